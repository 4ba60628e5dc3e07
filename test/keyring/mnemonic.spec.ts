import { randomBytes } from 'node:crypto';
import { HDKey } from '@scure/bip32';
import { generateMnemonic, mnemonicToSeed, parseMnemonic, translateMnemonic } from '../../src/keyring/mnemonic.js';
import { MNEMONIC_LANGUAGES, MNEMONIC_LENGTHS, type MnemonicLanguage } from '../../src/domain/key-formats.js';
import { fromHex, readVectors } from './read-vectors.js';

const ABANDON = `${'abandon '.repeat(11)}about`;

interface OracleMnemonic {
  readonly entropy: string;
  readonly languages: Record<
    MnemonicLanguage,
    { readonly phrase: string; readonly seed: string; readonly passphrase: string; readonly seedWithPassphrase: string }
  >;
}

const oracle = readVectors<{ mnemonics: readonly OracleMnemonic[] }>('hd/bip39_languages_oracle.json').mnemonics;

/** The message a mnemonic is refused with. */
function refusal(text: string): string {
  try {
    parseMnemonic(text, 'wallet');
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('the mnemonic was taken');
}

describe('published vectors', () => {
  const { english } = readVectors<{ english: [string, string, string, string][] }>('hd/bip39_english.json');

  test('come out: from 24 entropies of BIP-39 to phrase, seed with passphrase, and master key', async () => {
    expect(english).toHaveLength(24);
    for (const [entropy, phrase, seed, xprv] of english) {
      const bytes = fromHex(entropy);
      expect(generateMnemonic(phrase.split(' ').length, () => bytes)).toBe(phrase);
      expect(parseMnemonic(phrase)).toEqual({ phrase, language: 'MNEMONIC_LANGUAGE_ENGLISH' });
      const computed = await mnemonicToSeed(phrase, 'TREZOR');
      expect(computed.toString('hex')).toBe(seed);
      expect(HDKey.fromMasterSeed(computed).privateExtendedKey).toBe(xprv);
    }
  });

  test('come out: 40 phrases of ethers, with passphrases that are not ASCII among them', async () => {
    const wallets =
      readVectors<{ phrase: string; password: string; entropy: string; seed: string }[]>('hd/ethers_mnemonics_en.json');
    expect(wallets).toHaveLength(40);
    for (const { phrase, password, seed } of wallets) {
      const text = fromHex(phrase).toString();
      expect(parseMnemonic(text).phrase).toBe(text);
      expect(`0x${(await mnemonicToSeed(text, fromHex(password).toString())).toString('hex')}`).toBe(seed);
    }
  });
});

describe('languages', () => {
  test('are the nine of published clients', () => {
    expect(MNEMONIC_LANGUAGES).toHaveLength(9);
    expect(Object.keys(oracle[0]!.languages)).toEqual(MNEMONIC_LANGUAGES);
  });

  test.each(MNEMONIC_LANGUAGES)(
    'in %s have the phrase and seeds of the package bip39, in every length',
    async (language) => {
      expect(oracle).toHaveLength(5);
      for (const { languages } of oracle) {
        const { phrase, seed, passphrase, seedWithPassphrase } = languages[language];
        const english = parseMnemonic(languages.MNEMONIC_LANGUAGE_ENGLISH.phrase);
        const translated = translateMnemonic(english, language);
        expect(translated.normalize('NFKD')).toBe(phrase.normalize('NFKD'));
        expect((await mnemonicToSeed(translated)).toString('hex')).toBe(seed);
        expect((await mnemonicToSeed(phrase, passphrase)).toString('hex')).toBe(seedWithPassphrase);
        expect((await mnemonicToSeed(parseMnemonic(translated).phrase)).toString('hex')).toBe(seed);

        const parsed = parseMnemonic(translated);
        expect(parsed.language).toBe(language);
        expect(translateMnemonic(parsed, 'MNEMONIC_LANGUAGE_ENGLISH')).toBe(english.phrase);
      }
    },
  );

  test('Japanese words are joined by ideographic spaces and read with either', () => {
    const japanese = translateMnemonic(parseMnemonic(ABANDON), 'MNEMONIC_LANGUAGE_JAPANESE');
    expect(japanese.split('\u3000')).toHaveLength(12);
    expect(parseMnemonic(japanese)).toEqual(parseMnemonic(japanese.replaceAll('\u3000', ' ')));
  });
});

describe('new mnemonics', () => {
  test.each(MNEMONIC_LENGTHS)('have %i words', (wordCount) => {
    const asked: number[] = [];
    const phrase = generateMnemonic(wordCount, (length) => {
      asked.push(length);
      return randomBytes(length);
    });
    expect(phrase.split(' ')).toHaveLength(wordCount);
    expect(parseMnemonic(phrase)).toEqual({ phrase, language: 'MNEMONIC_LANGUAGE_ENGLISH' });
    expect(asked).toEqual([(wordCount / 3) * 4]);
  });

  test.each([0, 3, 9, 11, 13, 27, 12.5, -12, Number.NaN])('cannot have %d words', (wordCount) => {
    expect(() => generateMnemonic(wordCount, randomBytes)).toThrow(
      `mnemonicLength: \`${wordCount}\` is not one of 12, 15, 18, 21, 24 words`,
    );
  });

  test('the entropy is wiped', () => {
    const entropy = Buffer.alloc(32, 7);
    generateMnemonic(24, () => entropy);
    expect(entropy).toEqual(Buffer.alloc(32));
  });

  test('a source that gives too little is a defect', () => {
    expect(() => generateMnemonic(24, () => randomBytes(16))).toThrow('did not return 32 bytes');
  });
});

describe('reading', () => {
  test('white space and letter case do not matter', () => {
    expect(parseMnemonic(`\n  ${ABANDON.replaceAll(' ', ' \t ').toUpperCase()}\r\n`).phrase).toBe(ABANDON);
  });

  test('what is composed is decomposed, so that the seed is the same', async () => {
    const { phrase, seed } = oracle[0]!.languages.MNEMONIC_LANGUAGE_SPANISH;
    const parsed = parseMnemonic(phrase.normalize('NFC'));
    expect(parsed.phrase).toBe(phrase.normalize('NFKD'));
    expect((await mnemonicToSeed(parsed.phrase)).toString('hex')).toBe(seed);
  });

  test.each([
    ['nothing', '', 'it has 1 words'],
    ['13 words', `${ABANDON} about`, 'it has 13 words: 12, 15, 18, 21 or 24 are needed'],
    ['a word of no list', ABANDON.replace('about', 'aboutt'), 'word 12 is not in the word list'],
    ['a word of another list', ABANDON.replace('about', 'ábaco'), 'word 12 is not in the word list'],
    ['a word in the middle', `${'zoo '.repeat(4)}xyzzy ${'zoo '.repeat(7)}`, 'word 5 is not in the word list'],
    ['no words at all', '1 '.repeat(12), 'word 1 is not in the word list'],
    ['a wrong checksum', 'abandon '.repeat(12), 'the checksum does not match'],
    ['words in another order', `about ${'abandon '.repeat(11)}`, 'the checksum does not match'],
    ['very much', 'abandon '.repeat(300), 'it has 2400 characters, which is too many'],
  ])('%s is refused', (_what, text, message) => {
    expect(refusal(text)).toContain(`invalid request: wallet: invalid mnemonic: ${message}`);
  });

  test('a refusal quotes no word, and neither does its cause', () => {
    for (const text of [ABANDON.replace('about', 'secretword'), 'abandon '.repeat(12)]) {
      expect(refusal(text)).not.toMatch(/abandon|secretword/);
      try {
        parseMnemonic(text);
      } catch (error) {
        expect((error as Error).cause).toBe(undefined);
      }
    }
  });
});

test('the event loop runs while a seed is computed', async () => {
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  try {
    await Promise.all(Array.from({ length: 16 }, (_, index) => mnemonicToSeed(ABANDON, String(index))));
  } finally {
    clearInterval(timer);
  }
  expect(turns).toBeGreaterThan(0);
});
