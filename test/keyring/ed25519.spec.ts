import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { ed25519 as noble, ed25519ph } from '@noble/curves/ed25519.js';
import fc from 'fast-check';
import { chooseEd25519, chosenEd25519 } from '../../src/keyring/ed25519/choose.js';
import type { Ed25519 } from '../../src/keyring/ed25519/ed25519.js';
import { nativeEd25519 } from '../../src/keyring/ed25519/native.js';
import { openSslEd25519 } from '../../src/keyring/ed25519/openssl.js';
import { unwipedCopies } from './copies.js';
import { fromHex } from './read-vectors.js';

const modules = new URL('../../node_modules/', import.meta.url);
const isBuilt = existsSync(new URL(`sodium-native/prebuilds/${process.platform}-${process.arch}`, modules));
const openSsl = openSslEd25519();
const libraries: readonly (readonly [string, Ed25519])[] = [
  ...(isBuilt ? [['native', nativeEd25519()] as const] : []),
  ['OpenSSL', openSsl],
];

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** RFC 8032, section 7.1, tests 1 to 3: private key, public key, message, signature. */
const PUBLISHED = [
  [
    '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
    'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
    '',
    'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  ],
  [
    '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb',
    '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
    '72',
    '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
  ],
  [
    'c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7',
    'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
    'af82',
    '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
  ],
] as const;

describe.each(libraries)('%s', (_, library) => {
  test.each(PUBLISHED)('signs with %s as RFC 8032 has it', (privateKey, publicKey, message, signature) => {
    expect(hex(library.publicKeyOf(fromHex(privateKey)))).toBe(publicKey);
    expect(hex(library.signer(fromHex(privateKey)).sign(fromHex(message)))).toBe(signature);
  });

  test('returns what noble returns, for any key and message', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 32, maxLength: 32 }),
        fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 3 }),
        (key, messages) => {
          expect(hex(library.publicKeyOf(key))).toBe(hex(noble.getPublicKey(key)));
          const signer = library.signer(key);
          for (const message of messages) expect(hex(signer.sign(message))).toBe(hex(noble.sign(message, key)));
          signer.forget();
        },
      ),
      { numRuns: 40 },
    );
  });

  test('takes bytes in the middle of others, and leaves them as they were', () => {
    const around = Buffer.from(Array.from({ length: 200 }, (_, at) => at));
    const before = hex(around);
    const [key, message] = [around.subarray(7, 39), around.subarray(41, 150)];
    const signer = library.signer(key);
    expect(hex(signer.sign(message))).toBe(hex(noble.sign(message, key)));
    signer.forget();
    expect(hex(around)).toBe(before);
  });

  test('refuses a private key of another length', () => {
    for (const length of [0, 31, 33, 64]) {
      expect(() => library.signer(new Uint8Array(length))).toThrow();
      expect(() => library.publicKeyOf(new Uint8Array(length))).toThrow();
    }
  });
});

describe('the native library', () => {
  const bindings = createRequire(import.meta.url)('sodium-native') as {
    crypto_sign_seed_keypair: (publicKey: Uint8Array, secretKey: Uint8Array, seed: Uint8Array) => void;
  };

  test('leaves nothing of a key when it is forgotten, and none of a public key', async () => {
    const made: Uint8Array[] = [];
    const original = bindings.crypto_sign_seed_keypair;
    bindings.crypto_sign_seed_keypair = (publicKey, secretKey, seed) => {
      made.push(secretKey);
      original(publicKey, secretKey, seed);
    };
    try {
      const library = nativeEd25519();
      const key = Buffer.alloc(32, 7);
      const signer = library.signer(key);
      signer.sign(Buffer.from('message'));
      expect(hex(made[0]!.subarray(0, 32))).toBe(hex(key));
      signer.forget();
      library.publicKeyOf(key);
      expect(made.map(hex)).toEqual(['00'.repeat(64), '00'.repeat(64)]);
      expect(
        await unwipedCopies(key, () => {
          const again = library.signer(key);
          again.sign(key.subarray(1));
          again.forget();
        }),
      ).toEqual([]);
    } finally {
      bindings.crypto_sign_seed_keypair = original;
    }
  });

  test('signs no more with a key that was forgotten', () => {
    const [key, message] = [Buffer.alloc(32, 7), Buffer.from('message')];
    const signer = nativeEd25519().signer(key);
    signer.forget();
    expect(hex(signer.sign(message))).not.toBe(hex(noble.sign(message, key)));
  });
});

describe('the library in use', () => {
  test('is the native one where there is a build for the platform', () => {
    const { library, passedOver } = chosenEd25519();
    expect(library.name).toBe(isBuilt ? 'sodium-native' : 'OpenSSL');
    expect(passedOver).toHaveLength(isBuilt ? 0 : 1);
  });

  test('is OpenSSL where the native one does not load, with the reason', () => {
    const missing = (): Ed25519 => {
      throw new Error("Cannot find addon '.' imported from somewhere\n    and a list of candidates");
    };
    expect(chooseEd25519([missing])).toMatchObject({
      library: { name: 'OpenSSL' },
      passedOver: ["Cannot find addon '.' imported from somewhere"],
    });
  });

  const signing = (sign: (key: Uint8Array, message: Uint8Array) => Uint8Array): Partial<Ed25519> => ({
    signer: (key) => ({ sign: (message) => sign(key, message), forget() {} }),
  });
  test.each<[string, Partial<Ed25519>]>([
    ['another public key', { publicKeyOf: () => noble.getPublicKey(Buffer.alloc(32, 9)) }],
    ['signatures of another key', signing((_, message) => noble.sign(message, Buffer.alloc(32, 9)))],
    ['Ed25519ph', signing((key, message) => ed25519ph.sign(message, key))],
    ['signatures of what fits into a block', signing((key, message) => noble.sign(message.subarray(0, 128), key))],
  ])('is not one that returns %s', (_, broken) => {
    expect(chooseEd25519([() => ({ ...openSsl, name: 'broken', ...broken })])).toMatchObject({
      library: { name: 'OpenSSL' },
      passedOver: ['self-test failed: unexpected signature from broken'],
    });
  });
});
