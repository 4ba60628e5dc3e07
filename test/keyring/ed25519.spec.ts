import { ed25519 as noble } from '@noble/curves/ed25519.js';
import fc from 'fast-check';
import { ed25519Signer, publicKeyOfEd25519 } from '../../src/keyring/ed25519.js';
import { fromHex } from './read-vectors.js';

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

test.each(PUBLISHED)('signs with %s as RFC 8032 has it', (privateKey, publicKey, message, signature) => {
  expect(hex(publicKeyOfEd25519(fromHex(privateKey)))).toBe(publicKey);
  expect(hex(ed25519Signer(fromHex(privateKey))(fromHex(message)))).toBe(signature);
});

test('returns what noble returns, for any key and message', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 32, maxLength: 32 }),
      fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 3 }),
      (key, messages) => {
        expect(hex(publicKeyOfEd25519(key))).toBe(hex(noble.getPublicKey(key)));
        const sign = ed25519Signer(key);
        for (const message of messages) expect(hex(sign(message))).toBe(hex(noble.sign(message, key)));
      },
    ),
    { numRuns: 40 },
  );
});

test('takes bytes in the middle of others, and leaves them as they were', () => {
  const around = Buffer.from(Array.from({ length: 200 }, (_, at) => at));
  const before = hex(around);
  const [key, message] = [around.subarray(7, 39), around.subarray(41, 150)];
  expect(hex(ed25519Signer(key)(message))).toBe(hex(noble.sign(message, key)));
  expect(hex(around)).toBe(before);
});

test('refuses a private key of another length', () => {
  for (const length of [0, 31, 33, 64]) {
    expect(() => ed25519Signer(new Uint8Array(length))).toThrow();
    expect(() => publicKeyOfEd25519(new Uint8Array(length))).toThrow();
  }
});
