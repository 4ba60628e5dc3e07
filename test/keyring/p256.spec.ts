import { p256 } from '@noble/curves/nist.js';
import fc from 'fast-check';
import { CURVE_ORDER } from '../../src/keyring/curve-orders.js';
import { publicKeyOf } from '../../src/keyring/curves.js';
import { derOfP256, signBytesP256, signDigestP256 } from '../../src/keyring/p256.js';
import { unwipedCopies } from './copies.js';
import { fromHex, readVectors } from './read-vectors.js';

const order = BigInt(`0x${Buffer.from(CURVE_ORDER.CURVE_P256).toString('hex')}`);
const bytesOf = (number: bigint): Buffer => fromHex(number.toString(16).padStart(64, '0'));
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

const random = {};
const seeded = { isSeeded: true } as const;

/** Keys, with those at the edges often among them. */
const keys = fc
  .oneof(
    fc.bigInt({ min: 1n, max: order - 1n }),
    fc.constantFrom(1n, 2n, order / 2n, order / 2n + 1n, order - 2n, order - 1n),
  )
  .map(bytesOf);

describe('digests', () => {
  const digests = fc.oneof(
    fc.uint8Array({ minLength: 32, maxLength: 32 }),
    fc.constantFrom(...[0n, 1n, order - 1n, order, order + 1n, 2n ** 256n - 1n].map(bytesOf)),
    fc.bigInt({ min: order, max: 2n ** 256n - 1n }).map(bytesOf),
  );

  test('are signed with a low s, verified, and lead back to the key', () => {
    fc.assert(
      fc.property(keys, digests, (key, digest) => {
        const signature = signDigestP256(digest, key);
        expect(hex(signDigestP256(digest, key))).toBe(hex(signature));
        const publicKey = publicKeyOf('CURVE_P256', key);
        const options = { prehash: false, lowS: true, format: 'recovered' } as const;
        expect(p256.verify(signature, digest, publicKey, options)).toBe(true);
        expect(hex(p256.recoverPublicKey(signature, digest, { prehash: false }))).toBe(hex(publicKey));
      }),
      { numRuns: 40 },
    );
  });
});

describe('bytes', () => {
  test('are signed with a low s, which noble verifies, and every time with another nonce', () => {
    fc.assert(
      fc.property(keys, fc.uint8Array({ maxLength: 300 }), (key, bytes) => {
        const signatures = [1, 2, 3].map(() => signBytesP256(bytes, key, random));
        for (const signature of signatures) {
          expect(p256.verify(signature, bytes, publicKeyOf('CURVE_P256', key), { lowS: true })).toBe(true);
        }
        expect(new Set(signatures.map((signature) => hex(signature.subarray(0, 32)))).size).toBe(3);
      }),
      { numRuns: 40 },
    );
  });

  test('are signed as RFC 6979, A.2.5, has it where randomness has a seed', () => {
    const { d, cases } = readVectors<{ d: string; cases: { message: string; r: string; s: string }[] }>(
      'ecdsa/rfc6979_p256_sha256.json',
    );
    expect(cases).toHaveLength(3);
    for (const { message, r, s } of cases) {
      const [one, other] = [BigInt(`0x${s}`), order - BigInt(`0x${s}`)];
      const signature = signBytesP256(Buffer.from(message), fromHex(d), seeded);
      expect(hex(signature)).toBe(r + hex(bytesOf(one < other ? one : other)));
    }
  });

  test('leave no copy of the key', async () => {
    const key = Buffer.alloc(32, 7);
    expect(await unwipedCopies(key, () => signBytesP256(Buffer.from('token'), key, random))).toEqual([]);
    expect(key).toEqual(Buffer.alloc(32, 7));
  });
});

test('DER says the same', () => {
  const [key, bytes] = [Buffer.alloc(32, 7), Buffer.from('token')];
  const signature = derOfP256(signBytesP256(bytes, key, random));
  expect(p256.verify(signature, bytes, publicKeyOf('CURVE_P256', key), { format: 'der', lowS: true })).toBe(true);
});

test('refuses to sign with zero, or with the order', () => {
  for (const none of [bytesOf(0n), bytesOf(order), bytesOf(2n ** 256n - 1n)]) {
    expect(() => signDigestP256(Buffer.alloc(32, 1), none)).toThrow();
    for (const randomness of [random, seeded]) {
      expect(() => signBytesP256(Buffer.from('token'), none, randomness)).toThrow();
    }
  }
});
