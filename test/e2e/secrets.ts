import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { base58 } from '@scure/base';

/** What must not be found anywhere, by what it is called in a report. */
export type Secrets = ReadonlyMap<string, Uint8Array>;

/** Everything that was written to one place. */
export interface Written {
  readonly place: string;
  readonly content: Buffer;
}

/** Shorter pieces come up by chance. */
const shortest = 12;

/**
 * The forms that bytes may be written in: as they are, hex, base64 (in the middle of other bytes too, which shifts its
 * letters), base58, a JSON list of numbers, and as Node prints a buffer.
 */
function formsOf(secret: Uint8Array): ReadonlyMap<string, Buffer> {
  const bytes = Buffer.from(secret);
  const hex = bytes.toString('hex');
  const forms = new Map([
    ['as it is', bytes],
    ['as hex', Buffer.from(hex)],
    ['as hex in capitals', Buffer.from(hex.toUpperCase())],
    ['as base58', Buffer.from(base58.encode(bytes))],
    ['as numbers', Buffer.from([...bytes].join(','))],
    ['as a printed buffer', Buffer.from(hex.match(/../g)!.slice(0, 40).join(' '))],
  ]);
  for (const before of [0, 1, 2]) {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64url');
    // Letters that also depend on what stands before or behind are left out.
    const own = text.slice(Math.ceil((8 * before) / 6), Math.floor((8 * (before + bytes.length)) / 6));
    forms.set(`as base64url after ${before}`, Buffer.from(own));
    forms.set(`as base64 after ${before}`, Buffer.from(own.replaceAll('-', '+').replaceAll('_', '/')));
  }
  return forms;
}

/** Every three words in a row of a mnemonic, however they are separated. */
function wordsIn(phrase: string): RegExp[] {
  const words = phrase.split(' ');
  return words.slice(2).map((_, at) => new RegExp(words.slice(at, at + 3).join('[^a-z]{1,8}')));
}

/** Where any of the secrets or mnemonics are found: `what, in which form, at which place`. */
export function findIn(written: readonly Written[], secrets: Secrets, mnemonics: readonly string[]): string[] {
  const found = new Set<string>();
  const wanted = [...secrets].filter(([, secret]) => secret.length >= shortest);
  const forms = wanted.map(([name, secret]) => [name, formsOf(secret)] as const);
  const patterns = mnemonics.map((phrase, index) => [`mnemonic ${index}`, wordsIn(phrase)] as const);
  for (const { place, content } of written) {
    for (const [name, all] of forms) {
      for (const [form, bytes] of all) if (content.includes(bytes)) found.add(`${name} ${form} in ${place}`);
    }
    const text = content.toString('latin1');
    for (const [name, all] of patterns) {
      if (all.some((pattern) => pattern.test(text))) found.add(`words of ${name} in ${place}`);
    }
  }
  return [...found];
}

/** Every file under a folder. One that vanishes while it is looked at is left out. */
export async function filesUnder(folder: string): Promise<Written[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const written: Written[] = [];
  for (const entry of entries) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    const content = await readFile(file).catch(() => undefined);
    if (content) written.push({ place: relative(folder, file), content });
  }
  return written;
}
