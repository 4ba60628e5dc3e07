import { open, readFile, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { createPrivateFile, removeCopiesOf, syncFolderOf } from '../files/private-file.js';

/** Where the key-encryption keys come from. */
export interface KekSource {
  /** 64 hex characters each, separated by commas, the current one first; undefined to use the file. */
  readonly kek: string | undefined;
  /**
   * One key per line, the current one first. Undefined if nothing is kept on disk: a key is then created and forgotten.
   */
  readonly kekFile: string | undefined;
}

/** The keys cannot be used, or not with this store; the message is the one line that the operator sees. */
export class WrongKek extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'WrongKek';
  }
}

const kekPattern = /^[0-9a-f]{64}$/i;

/**
 * The keys of the source, each once, the current one first; undefined if there are none yet. @throws {WrongKek} for
 * text that is not a key
 */
export async function readKeys({ kek, kekFile }: KekSource): Promise<Buffer[] | undefined> {
  if (kek !== undefined) return parseKeys(kek.split(','), 'KEK');
  if (kekFile === undefined) return undefined;
  let text: string;
  try {
    text = await readFile(kekFile, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw new WrongKek(`the key-encryption key in ${kekFile} cannot be read (${codeOf(error)}): make it readable`, {
      cause: error,
    });
  }
  return parseKeys(
    text.split('\n').filter((line) => line.trim() !== ''),
    kekFile,
  );
}

/** The permissions of the file, if others than its owner may read or write it; undefined if not, or without a file. */
export async function openToOthers({ kek, kekFile }: KekSource): Promise<number | undefined> {
  if (kek !== undefined || kekFile === undefined) return undefined;
  const { mode } = await stat(kekFile);
  return (mode & 0o077) === 0 ? undefined : mode & 0o777;
}

/** What to do about that. */
export const closeToOthers = (kekFile: string): string =>
  `run chmod 600 ${kekFile}, and rotate the key if others could have read it`;

/** The source of the keys, in messages. */
export const placeOf = ({ kek, kekFile }: KekSource): string => (kek === undefined ? (kekFile ?? 'memory') : 'KEK');

/**
 * Creates the file with a new key, readable only by its owner and on disk once this resolves. If someone else has
 * created it at the same moment, as coordinators that share it may, their keys are returned.
 * @throws {WrongKek} if it cannot be written
 */
export async function makeKeyFile(kekFile: string, key: Uint8Array): Promise<Buffer[] | undefined> {
  let isOurs: boolean;
  try {
    isOurs = await createPrivateFile(kekFile, textOf([key]));
  } catch (error) {
    const reason = `the key-encryption key cannot be written to ${kekFile} (${codeOf(error)})`;
    throw new WrongKek(
      `${reason}: create its folder, make room, allow this user to write there, or set KEK or KEK_FILE`,
      {
        cause: error,
      },
    );
  }
  if (isOurs) return undefined;
  const keys = await readKeys({ kek: undefined, kekFile });
  if (!keys) throw new WrongKek(`${kekFile} was created but has disappeared: start again`);
  return keys;
}

/**
 * Replaces the keys in the file: a crash at any moment leaves the old keys or the new ones. Owner and mode are kept.
 * @throws {WrongKek} if it cannot be replaced, for example on a read-only mount
 */
export async function replaceKeyFile(kekFile: string, keys: readonly Uint8Array[]): Promise<void> {
  let temporary: string | undefined;
  try {
    // A link must remain one: its target is replaced.
    const target = await realpath(kekFile);
    const { mode, uid, gid } = await stat(target);
    await removeCopiesOf(target);
    temporary = `${target}.new`;
    await rm(temporary, { force: true });
    const file = await open(temporary, 'wx', 0o600);
    try {
      await file.chmod(mode & 0o777);
      const made = await file.stat();
      if (made.uid !== uid || made.gid !== gid) await file.chown(uid, gid);
      await file.writeFile(textOf(keys));
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, target);
    await syncFolderOf(target);
  } catch (error) {
    if (temporary !== undefined) await rm(temporary, { force: true }).catch(() => undefined);
    throw new WrongKek(`${kekFile} cannot be replaced (${codeOf(error)})`, { cause: error });
  }
}

/**
 * Puts an old key into a file beside the key file, named by its id, readable only by its owner and on disk once this
 * resolves. An existing file is kept.
 * @throws {WrongKek} if it cannot be written
 */
export async function keepOldKey(kekFile: string, kekId: string, key: Uint8Array): Promise<void> {
  const file = join(dirname(kekFile), `old-${basename(kekFile)}.${kekId}`);
  const kept = await makeKeyFile(file, key);
  if (kept && !kept.some((one) => Buffer.from(key).equals(one))) throw new WrongKek(`${file} contains a different key`);
}

function textOf(keys: readonly Uint8Array[]): string {
  return keys.map((key) => `${Buffer.from(key).toString('hex')}\n`).join('');
}

function parseKeys(texts: readonly string[], place: string): Buffer[] {
  const keys = texts.map((text) => text.trim());
  const wrong = keys.findIndex((text) => !kekPattern.test(text));
  if (keys.length === 0) throw new WrongKek(`${place} is empty: it must contain 64 hex characters`);
  // Never the value: it may be most of a key.
  if (wrong >= 0) {
    throw new WrongKek(`key ${wrong + 1} in ${place} must be 64 hex characters, but has ${keys[wrong]!.length}`);
  }
  return [...new Set(keys.map((text) => text.toLowerCase()))].map((text) => Buffer.from(text, 'hex'));
}

/** A system error's code: its message would say no more, and less clearly. */
function codeOf(error: unknown): string {
  return String((error as { code?: unknown }).code ?? error);
}
