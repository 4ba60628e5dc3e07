import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import fc from 'fast-check';
import { CURVE_ORDER } from '../../src/keyring/curve-orders.js';
import {
  chooseSecp256k1,
  chosenSecp256k1,
  nativeSecp256k1,
  nobleSecp256k1 as noble,
  type Secp256k1,
} from '../../src/keyring/secp256k1.js';
import { fromHex, readVectors } from './read-vectors.js';

const modules = new URL('../../node_modules/', import.meta.url);
const isBuilt = existsSync(new URL(`secp256k1/prebuilds/${process.platform}-${process.arch}`, modules));
const libraries: readonly (readonly [string, Secp256k1])[] = [
  ...(isBuilt ? [['native', nativeSecp256k1()] as const] : []),
  ['noble', noble],
];

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const order = BigInt(`0x${hex(CURVE_ORDER.CURVE_SECP256K1)}`);
const bytesOf = (number: bigint): Buffer => fromHex(number.toString(16).padStart(64, '0'));

/** Keys and digests, with those at the edges often among them. */
const keys = fc.oneof(
  fc.bigInt({ min: 1n, max: order - 1n }),
  fc.constantFrom(1n, 2n, order / 2n, order / 2n + 1n, order - 2n, order - 1n),
);
const digests = fc.oneof(
  fc.uint8Array({ minLength: 32, maxLength: 32 }),
  fc.constantFrom(...[0n, 1n, order - 1n, order, order + 1n, 2n ** 256n - 1n].map(bytesOf)),
  // Hardly any random digest is above the order.
  fc.bigInt({ min: order, max: 2n ** 256n - 1n }).map(bytesOf),
);

describe.each(libraries)('%s', (_, library) => {
  test('gives 200 signatures of RFC 6979 as published', () => {
    const { valid } = readVectors<{ valid: { d: string; m: string; signature: string }[] }>(
      'ecdsa/secp256k1_ecdsa_deterministic.json',
    );
    expect(valid).toHaveLength(200);
    for (const { d, m, signature } of valid) {
      expect(hex(library.signEcdsa(fromHex(m), fromHex(d)).subarray(1))).toBe(signature);
    }
  });

  test('returns what noble returns, for any key and digest', () => {
    fc.assert(
      fc.property(keys, digests, (number, digest) => {
        const key = bytesOf(number);
        const signature = library.signEcdsa(digest, key);
        expect(hex(signature)).toBe(hex(noble.signEcdsa(digest, key)));

        const publicKey = library.publicKeyOf(key);
        expect(hex(publicKey)).toBe(hex(secp256k1.getPublicKey(key)));
        expect(secp256k1.verify(signature.subarray(1), digest, publicKey, { prehash: false, lowS: true })).toBe(true);
        const recovered = secp256k1.recoverPublicKey(signature, digest, { prehash: false });
        expect(hex(recovered)).toBe(hex(publicKey));
        expect(hex(library.uncompress(publicKey))).toBe(hex(secp256k1.getPublicKey(key, false)));
      }),
      { numRuns: 40 },
    );
  });

  test('verifies what noble signed, with s low or high, and no other digest, key or signature', () => {
    fc.assert(
      fc.property(keys, digests, (number, digest) => {
        const key = bytesOf(number);
        const publicKey = secp256k1.getPublicKey(key);
        const compact = noble.signEcdsa(digest, key).subarray(1);
        const { r, s } = secp256k1.Signature.fromBytes(compact, 'compact');
        const high = new secp256k1.Signature(r, order - s).toBytes('compact');
        const other = Buffer.from(digest).fill(7, 0, 4);
        fc.pre(!other.equals(digest));
        for (const signature of [compact, high]) {
          const before = hex(signature);
          expect(library.verifyEcdsa(signature, digest, publicKey)).toBe(true);
          expect(library.verifyEcdsa(signature, digest, secp256k1.getPublicKey(key, false))).toBe(true);
          expect(library.verifyEcdsa(signature, other, publicKey)).toBe(false);
          expect(library.verifyEcdsa(signature, digest, secp256k1.getPublicKey(bytesOf(3n)))).toBe(number === 3n);
          expect(hex(signature)).toBe(before);
        }
        const wrong = new secp256k1.Signature(r, (s % (order - 1n)) + 1n).toBytes('compact');
        expect(library.verifyEcdsa(wrong, digest, publicKey)).toBe(false);
      }),
      { numRuns: 30 },
    );
  });

  test('adds to a point what noble adds', () => {
    fc.assert(
      fc.property(keys, keys, (number, scalar) => {
        fc.pre((number + scalar) % order !== 0n);
        const publicKey = secp256k1.getPublicKey(bytesOf(number));
        const sum = secp256k1.getPublicKey(bytesOf((number + scalar) % order));
        expect(hex(library.addToPoint(publicKey, bytesOf(scalar)))).toBe(hex(sum));
      }),
      { numRuns: 20 },
    );
  });

  test('refuses what is not a point, or a sum that is none', () => {
    const offCurve = Buffer.concat([Buffer.from([2]), Buffer.alloc(31), Buffer.from([5])]);
    expect(() => library.uncompress(offCurve)).toThrow();
    expect(() => library.addToPoint(offCurve, Buffer.alloc(32, 1))).toThrow();
    expect(() => library.addToPoint(secp256k1.getPublicKey(bytesOf(1n)), bytesOf(order - 1n))).toThrow();
  });

  test('refuses to sign with zero, or with the order', () => {
    for (const none of [bytesOf(0n), bytesOf(order), bytesOf(2n ** 256n - 1n)]) {
      expect(() => library.signEcdsa(Buffer.alloc(32, 1), none)).toThrow();
      expect(() => library.publicKeyOf(none)).toThrow();
    }
  });

  test('leaves key and digest as they were', () => {
    const [key, digest] = [Buffer.alloc(32, 3), Buffer.alloc(32, 0xff)];
    library.signEcdsa(digest, key);
    library.publicKeyOf(key);
    expect([hex(key), hex(digest)]).toEqual(['03'.repeat(32), 'ff'.repeat(32)]);
  });
});

describe('the library in use', () => {
  test('is the native one where there is a build for the platform', () => {
    const { library, passedOver } = chosenSecp256k1();
    expect(library.name).toBe(isBuilt ? 'secp256k1 (native)' : '@noble/curves');
    expect(passedOver === undefined).toBe(isBuilt);
  });

  test('is noble where the native one does not load, with the reason', () => {
    const missing = (): Secp256k1 => {
      throw new Error('No native build was found for platform=plan9\n    loaded from: somewhere');
    };
    expect(chooseSecp256k1(missing)).toEqual({
      library: noble,
      passedOver: 'No native build was found for platform=plan9',
    });
  });

  test('noble passes the self-test of the native one', () => {
    expect(chooseSecp256k1(() => noble)).toEqual({ library: noble });
  });

  const negated = (signature: Uint8Array): Buffer =>
    Buffer.concat(
      [[signature[0]! ^ 1], signature.subarray(1, 33), bytesOf(order - BigInt(`0x${hex(signature.subarray(33))}`))].map(
        (part) => Uint8Array.from(part),
      ),
    );
  const flipped = (bytes: Uint8Array, at: number): Uint8Array =>
    bytes.map((byte, index) => (index === at ? byte ^ 1 : byte));

  test.each<[string, Partial<Secp256k1>]>([
    ['a high s', { signEcdsa: (digest, key) => negated(noble.signEcdsa(digest, key)) }],
    ['a wrong recovery id', { signEcdsa: (digest, key) => flipped(noble.signEcdsa(digest, key), 0) }],
    [
      'another nonce for a digest above the order',
      { signEcdsa: (digest, key) => noble.signEcdsa(digest[0] === 0xff ? flipped(digest, 31) : digest, key) },
    ],
    [
      'random nonces',
      {
        signEcdsa: (digest, key) =>
          secp256k1.sign(digest, key, { prehash: false, format: 'recovered', extraEntropy: randomBytes(32) }),
      },
    ],
    ['another public key', { publicKeyOf: () => noble.publicKeyOf(Buffer.alloc(32, 9)) }],
    ['a compressed key for an uncompressed one', { uncompress: (publicKey) => publicKey }],
    ['another sum', { addToPoint: (publicKey) => publicKey }],
    ['that anything is a signature', { verifyEcdsa: () => true }],
    ['that nothing is a signature', { verifyEcdsa: () => false }],
  ])('is not one that returns %s', (_, broken) => {
    expect(chooseSecp256k1(() => ({ ...noble, name: 'broken', ...broken }))).toEqual({
      library: noble,
      passedOver: 'self-test failed: unexpected signature from broken',
    });
  });
});
