import { randomBytes } from 'node:crypto';
import { p256 } from '@noble/curves/nist.js';
import fc from 'fast-check';
import { CURVE_ORDER } from '../../src/keyring/curve-orders.js';
import { publicKeyOf } from '../../src/keyring/curves.js';
import { forgetNonce, signAllP256, signBytesP256, signP256 } from '../../src/keyring/p256.js';
import { fromHex } from './read-vectors.js';

const order = BigInt(`0x${Buffer.from(CURVE_ORDER.CURVE_P256).toString('hex')}`);
const bytesOf = (number: bigint): Buffer => fromHex(number.toString(16).padStart(64, '0'));

test('signs what noble signs, for any key and digests, and noble verifies and recovers', () => {
  const keys = fc.oneof(
    fc.bigInt({ min: 1n, max: order - 1n }),
    fc.constantFrom(1n, 2n, order / 2n, order / 2n + 1n, order - 2n, order - 1n),
  );
  const digests = fc.oneof(
    fc.uint8Array({ minLength: 32, maxLength: 32 }),
    fc.constantFrom(...[0n, 1n, order - 1n, order, order + 1n, 2n ** 256n - 1n].map(bytesOf)),
    fc.bigInt({ min: order, max: 2n ** 256n - 1n }).map(bytesOf),
  );
  fc.assert(
    fc.property(keys, fc.array(digests, { minLength: 1, maxLength: 4 }), (number, together) => {
      const key = bytesOf(number);
      const publicKey = publicKeyOf('CURVE_P256', key);
      const signatures = signAllP256(together, key);
      expect(signatures).toHaveLength(together.length);
      for (const [at, digest] of together.entries()) {
        const signature = signatures[at]!.toBytes('recovered');
        const options = { prehash: false, lowS: true, format: 'recovered' } as const;
        expect(Buffer.from(signature)).toEqual(Buffer.from(p256.sign(digest, key, options)));
        expect(p256.verify(signature, digest, publicKey, options)).toBe(true);
        expect(Buffer.from(p256.recoverPublicKey(signature, digest, { prehash: false }))).toEqual(publicKey);
      }
    }),
    { numRuns: 40 },
  );
});

test('refuses to sign with zero, or with the order', () => {
  for (const none of [bytesOf(0n), bytesOf(order), bytesOf(2n ** 256n - 1n)]) {
    expect(() => signP256(Buffer.alloc(32, 1), none)).toThrow();
  }
});

test('signs nothing if there is nothing to sign', () => {
  expect(signAllP256([], Buffer.alloc(32, 7))).toEqual([]);
});

test('signs on after it has forgotten', () => {
  const [key, digest] = [Buffer.alloc(32, 7), randomBytes(32)];
  const before = signP256(digest, key);
  forgetNonce();
  expect(signP256(digest, key)).toEqual(before);
  expect(key).toEqual(Buffer.alloc(32, 7));
});

it('signs bytes as noble does by itself', () => {
  for (const seed of [1, 2, 3, 4, 5, 6, 7, 8]) {
    const key = Buffer.alloc(32, seed);
    const bytes = Buffer.from(`token ${seed}`);
    expect(Buffer.from(signBytesP256(bytes, key)).toString('hex')).toBe(
      Buffer.from(p256.sign(bytes, key)).toString('hex'),
    );
  }
});
