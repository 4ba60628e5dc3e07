import { pbkdf2 } from 'node:crypto';
import { promisify } from 'node:util';
import { entropyToMnemonic, mnemonicToEntropy } from '@scure/bip39';
import { wordlist as czech } from '@scure/bip39/wordlists/czech.js';
import { wordlist as english } from '@scure/bip39/wordlists/english.js';
import { wordlist as french } from '@scure/bip39/wordlists/french.js';
import { wordlist as italian } from '@scure/bip39/wordlists/italian.js';
import { wordlist as japanese } from '@scure/bip39/wordlists/japanese.js';
import { wordlist as korean } from '@scure/bip39/wordlists/korean.js';
import { wordlist as simplifiedChinese } from '@scure/bip39/wordlists/simplified-chinese.js';
import { wordlist as spanish } from '@scure/bip39/wordlists/spanish.js';
import { wordlist as traditionalChinese } from '@scure/bip39/wordlists/traditional-chinese.js';
import { invalidField } from '../domain/errors.js';
import { MNEMONIC_LANGUAGES, MNEMONIC_LENGTHS, type MnemonicLanguage } from '../domain/key-formats.js';

const WORD_LISTS: Readonly<Record<MnemonicLanguage, string[]>> = {
  MNEMONIC_LANGUAGE_ENGLISH: english,
  MNEMONIC_LANGUAGE_SIMPLIFIED_CHINESE: simplifiedChinese,
  MNEMONIC_LANGUAGE_TRADITIONAL_CHINESE: traditionalChinese,
  MNEMONIC_LANGUAGE_CZECH: czech,
  MNEMONIC_LANGUAGE_FRENCH: french,
  MNEMONIC_LANGUAGE_ITALIAN: italian,
  MNEMONIC_LANGUAGE_JAPANESE: japanese,
  MNEMONIC_LANGUAGE_KOREAN: korean,
  MNEMONIC_LANGUAGE_SPANISH: spanish,
};

/** A valid mnemonic: NFKD, lower case, one space between words, and its word list. */
export interface Mnemonic {
  readonly phrase: string;
  readonly language: MnemonicLanguage;
}

const pbkdf2InThreadPool = promisify(pbkdf2);

/**
 * A new English mnemonic of 12, 15, 18, 21 or 24 words (BIP-39). `randomBytes` is asked once, for 4 bytes per 3 words;
 * they are wiped. The phrase is a string, which JavaScript cannot wipe: keep it short-lived.
 */
export function generateMnemonic(wordCount: number, randomBytes: (length: number) => Uint8Array): string {
  if (!MNEMONIC_LENGTHS.includes(wordCount)) {
    throw invalidField('mnemonicLength', `\`${wordCount}\` is not one of ${MNEMONIC_LENGTHS.join(', ')} words`);
  }
  const length = (wordCount / 3) * 4;
  const entropy = randomBytes(length);
  if (entropy.length !== length) throw new Error(`the source of randomness did not return ${length} bytes`);
  try {
    return entropyToMnemonic(entropy, english);
  } finally {
    entropy.fill(0);
  }
}

/**
 * Parses a mnemonic in any of the nine languages, with any white space and letter case. Throws INVALID_ARGUMENT naming
 * `title`, beginning with `invalid mnemonic`, that gives the position of the first wrong word and never quotes one. If
 * two lists share all words (the two Chinese ones), the first with a matching checksum is used; the seed is the same.
 */
export function parseMnemonic(text: string, title = 'mnemonic'): Mnemonic {
  const refuse = (reason: string): Error => invalidField(title, `invalid mnemonic: ${reason}`);
  if (text.length > 2048) throw refuse(`it has ${text.length} characters, which is too many`);
  const words = text.normalize('NFKD').toLowerCase().trim().split(/\s+/);
  if (!MNEMONIC_LENGTHS.includes(words.length)) {
    throw refuse(`it has ${words.length} words: 12, 15, 18, 21 or 24 are needed`);
  }
  const phrase = words.join(' ');

  let firstUnknown = 0;
  for (const language of MNEMONIC_LANGUAGES) {
    const unknown = words.findIndex((word) => !WORD_LISTS[language].includes(word));
    if (unknown >= 0) {
      firstUnknown = Math.max(firstUnknown, unknown + 1);
      continue;
    }
    firstUnknown = Number.POSITIVE_INFINITY;
    try {
      mnemonicToEntropy(phrase, WORD_LISTS[language]).fill(0);
      return { phrase, language };
    } catch {
      // The words are in this list, but the checksum is wrong: another list may share the words.
    }
  }
  throw refuse(
    Number.isFinite(firstUnknown)
      ? `word ${firstUnknown} is not in the word list that the words before it belong to`
      : 'the checksum does not match: a word is missing, misplaced or replaced by another from the list',
  );
}

/**
 * The same entropy in another language's words (Japanese with ideographic spaces, BIP-39). BEWARE: BIP-39 computes the
 * seed from the words, not from the entropy, so another wallet derives other keys from a translation; only translating
 * it back gives the original keys.
 */
export function translateMnemonic(mnemonic: Mnemonic, language: MnemonicLanguage): string {
  const entropy = mnemonicToEntropy(mnemonic.phrase, WORD_LISTS[mnemonic.language]);
  try {
    return entropyToMnemonic(entropy, WORD_LISTS[language]);
  } finally {
    entropy.fill(0);
  }
}

/**
 * The 64-byte seed of a mnemonic (BIP-39, "From mnemonic to seed": PBKDF2-HMAC-SHA512, 2048 rounds, NFKD), computed in
 * the thread pool. Takes any text: check it with `parseMnemonic` before. The caller wipes the seed.
 */
export async function mnemonicToSeed(phrase: string, passphrase = ''): Promise<Buffer> {
  const password = Buffer.from(phrase.normalize('NFKD'));
  const salt = Buffer.from(`mnemonic${passphrase}`.normalize('NFKD'));
  try {
    return await pbkdf2InThreadPool(password, salt, 2048, 64, 'sha512');
  } finally {
    password.fill(0);
    salt.fill(0);
  }
}
