import { chmod, mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { ApiKeyCurve } from '../domain/key-formats.js';
import { replacePrivateFile } from '../files/private-file.js';
import { apiKeyPairFromPrivate, type ApiKeyPair } from '../stamps/sign.js';
import { BadUsage } from './bad-usage.js';
import type { Terminal } from './terminal.js';

/** Who calls which coordinator. */
export interface Profile {
  /** Origin of the Activity API. */
  readonly address: string;
  readonly organizationId: string;
  readonly key: ApiKeyPair;
  /** Id of the key at the coordinator, if `login` registered it. */
  readonly apiKeyId?: string;
  readonly userId?: string;
}

/** Contents of a profile's file. */
interface Stored extends Omit<Profile, 'key'> {
  readonly publicKey: string;
  readonly privateKey: string;
  readonly curve: ApiKeyCurve;
}

const namePattern = /^[a-z0-9][a-z0-9._-]{0,63}$/i;

/**
 * The profiles of the user who runs the command line: one file each, which only that user may read, and which is always
 * replaced as a whole.
 */
export class Profiles {
  private constructor(
    private readonly folder: string,
    private readonly env: Terminal['env'],
  ) {}

  /** Those in the user's configuration folder (XDG Base Directory Specification). */
  static of({ env, surroundings }: Terminal): Profiles {
    // The specification says to ignore relative paths.
    const input = env['XDG_CONFIG_HOME'];
    const base = input?.startsWith('/') ? input : join(surroundings.home, '.config');
    return new Profiles(join(base, 'countersign'), env);
  }

  /** Every name, sorted. */
  async names(): Promise<readonly string[]> {
    const files = await readdir(join(this.folder, 'profiles')).catch(() => []);
    return files
      .filter((file) => file.endsWith('.json'))
      .map((file) => file.slice(0, -'.json'.length))
      .toSorted();
  }

  /** The name that commands use by default. */
  async current(): Promise<string> {
    const chosen = this.env['COUNTERSIGN_PROFILE']?.trim();
    if (chosen) return chosen;
    return (await readFile(join(this.folder, 'current'), 'utf8').catch(() => '')).trim() || 'default';
  }

  fileOf(name: string): string {
    if (namePattern.test(name)) return join(this.folder, 'profiles', `${name}.json`);
    throw new BadUsage(
      `\`${name}\` cannot be the name of a profile: use up to 64 letters, digits, dots, hyphens and underscores`,
    );
  }

  async has(name: string): Promise<boolean> {
    return (await stat(this.fileOf(name)).catch(() => undefined)) !== undefined;
  }

  /** @throws {BadUsage} if there is none with that name, or it cannot be trusted */
  async read(name: string): Promise<Profile> {
    const file = this.fileOf(name);
    const found = await stat(file).catch(() => undefined);
    if (!found) {
      const names = await this.names();
      const others = names.length > 0 ? `existing ones: ${names.join(', ')}` : 'there are none yet';
      const named = name === 'default' ? '' : ` --profile ${name}`;
      throw new BadUsage(`no profile is named \`${name}\` (${others}): create it with countersign login${named}`);
    }
    if ((found.mode & 0o077) !== 0) {
      throw new BadUsage(`${file} contains a private key, and others can read it: run chmod 600 ${file}`);
    }
    const { publicKey, privateKey, curve, ...rest } = storedProfile(name, file, await readFile(file, 'utf8'));
    const key = apiKeyPairFromPrivate(privateKey, curve);
    if (key.publicKey !== publicKey) throw new BadUsage(`${file}: its two keys do not match; log in again`);
    return { ...rest, key };
  }

  async write(name: string, { key, ...rest }: Profile): Promise<void> {
    const { publicKey, privateKey, curve } = key;
    const stored: Stored = { ...rest, publicKey, privateKey, curve };
    await this.replace(this.fileOf(name), `${JSON.stringify(stored, null, 2)}\n`);
  }

  /** Makes a profile the default. */
  async use(name: string): Promise<void> {
    await this.read(name);
    await this.replace(join(this.folder, 'current'), `${name}\n`);
  }

  async remove(name: string): Promise<void> {
    await rm(this.fileOf(name), { force: true });
  }

  /** A crash leaves the old file or the new one, and nobody else may ever read either. */
  private async replace(file: string, text: string): Promise<void> {
    for (const folder of [this.folder, join(this.folder, 'profiles')]) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await chmod(folder, 0o700);
    }
    await replacePrivateFile(file, text);
  }
}

function storedProfile(name: string, file: string, text: string): Stored {
  const wrong = (): BadUsage =>
    new BadUsage(
      `${file} is not a profile that this version can read: log in again with countersign login --profile ${name}`,
    );
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The error would quote part of the file.
    throw wrong();
  }
  if (typeof value !== 'object' || value === null) throw wrong();
  const stored = value as Partial<Record<keyof Stored, unknown>>;
  for (const member of ['address', 'organizationId', 'publicKey', 'privateKey', 'curve'] as const) {
    if (typeof stored[member] !== 'string') throw wrong();
  }
  return value as Stored;
}
