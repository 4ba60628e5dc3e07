import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { schnorr, secp256k1 } from '@noble/curves/secp256k1.js';
import fc from 'fast-check';
import type * as Tiny from 'tiny-secp256k1';
import { CURVE_ORDER } from '../../src/keyring/curve-orders.js';
import { chosenSecp256k1, chooseFrom } from '../../src/keyring/secp256k1/choose.js';
import { nativeSecp256k1 } from '../../src/keyring/secp256k1/native.js';
import { nobleSecp256k1 } from '../../src/keyring/secp256k1/noble.js';
import type { Secp256k1 } from '../../src/keyring/secp256k1/secp256k1.js';
import { webAssemblySecp256k1 } from '../../src/keyring/secp256k1/web-assembly.js';
import { fromHex, readText, readVectors } from './read-vectors.js';

const require = createRequire(import.meta.url);
// As the product loads it: a second copy would have another memory.
const tiny = require('tiny-secp256k1') as typeof Tiny;
const modules = new URL('../../node_modules/', import.meta.url);
const isBuilt = existsSync(new URL(`secp256k1/prebuilds/${process.platform}-${process.arch}`, modules));
const noble = nobleSecp256k1();
const webAssembly = webAssemblySecp256k1();
const libraries: readonly (readonly [string, Secp256k1])[] = [
  ...(isBuilt ? [['native', nativeSecp256k1(webAssembly)] as const] : []),
  ['WebAssembly', webAssembly],
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
      expect(hex(library.signEcdsa(fromHex(m), fromHex(d)).compact)).toBe(signature);
    }
  });

  test('gives the vector of BIP-340 without randomness', () => {
    const [, secret, publicKey, , message, signature] = readText('bitcoin/bip340_test-vectors.csv')
      .split(/\r?\n/)[1]!
      .split(',');
    expect(hex(library.publicKeyOf(fromHex(secret!))).slice(2)).toBe(publicKey!.toLowerCase());
    expect(hex(library.signSchnorr(fromHex(message!), fromHex(secret!)))).toBe(signature!.toLowerCase());
  });

  test('returns what noble returns, for any key and digest', () => {
    fc.assert(
      fc.property(keys, digests, (number, digest) => {
        const key = bytesOf(number);
        const { compact, recoveryId } = library.signEcdsa(digest, key);
        const expected = noble.signEcdsa(digest, key);
        expect([hex(compact), recoveryId]).toEqual([hex(expected.compact), expected.recoveryId]);

        const publicKey = library.publicKeyOf(key);
        expect(hex(publicKey)).toBe(hex(secp256k1.getPublicKey(key)));
        expect(secp256k1.verify(compact, digest, publicKey, { prehash: false, lowS: true })).toBe(true);
        const recovered = secp256k1.recoverPublicKey(Buffer.from([recoveryId, ...compact]), digest, { prehash: false });
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
        const { compact } = noble.signEcdsa(digest, key);
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

  test('signs BIP-340 as noble does, which verifies it', () => {
    fc.assert(
      fc.property(keys, digests, (number, digest) => {
        const key = bytesOf(number);
        const signature = library.signSchnorr(digest, key);
        expect(hex(signature)).toBe(hex(noble.signSchnorr(digest, key)));
        expect(schnorr.verify(signature, digest, schnorr.getPublicKey(key))).toBe(true);
      }),
      { numRuns: 12 },
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
      expect(() => library.signSchnorr(Buffer.alloc(32, 1), none)).toThrow();
      expect(() => library.publicKeyOf(none)).toThrow();
    }
  });

  test('leaves key and digest as they were', () => {
    const [key, digest] = [Buffer.alloc(32, 3), Buffer.alloc(32, 0xff)];
    library.signEcdsa(digest, key);
    library.signSchnorr(digest, key);
    library.publicKeyOf(key);
    library.forgetKeys();
    expect([hex(key), hex(digest)]).toEqual(['03'.repeat(32), 'ff'.repeat(32)]);
  });
});

describe('the library in use', () => {
  test('is the native one where there is a build for the platform', () => {
    const { library, passedOver } = chosenSecp256k1();
    expect(library.name).toBe(
      isBuilt ? 'secp256k1 (native; BIP-340 by tiny-secp256k1 (WebAssembly))' : 'tiny-secp256k1 (WebAssembly)',
    );
    expect(passedOver).toHaveLength(isBuilt ? 0 : 1);
  });

  test('is the next one where a faster one does not load, with the reason', () => {
    const missing = (): Secp256k1 => {
      throw new Error('No native build was found for platform=plan9\n    loaded from: somewhere');
    };
    expect(chooseFrom([webAssemblySecp256k1, missing])).toMatchObject({
      library: { name: 'tiny-secp256k1 (WebAssembly)' },
      passedOver: ['No native build was found for platform=plan9'],
    });
    expect(chooseFrom([missing, missing]).library.name).toBe('@noble/curves');
  });

  test('noble passes the test that the others have to pass', () => {
    expect(chooseFrom([() => noble])).toEqual({ library: noble, passedOver: [] });
  });

  const negated = (compact: Uint8Array): Buffer =>
    Buffer.concat([compact.subarray(0, 32), bytesOf(order - BigInt(`0x${hex(compact.subarray(32))}`))]);
  const flipped = (bytes: Uint8Array): Uint8Array => bytes.map((byte, at) => (at === 31 ? byte ^ 1 : byte));

  test.each<[string, Partial<Secp256k1>]>([
    [
      'a high s',
      {
        signEcdsa(digest, key) {
          const { compact, recoveryId } = noble.signEcdsa(digest, key);
          return { compact: negated(compact), recoveryId: recoveryId ^ 1 };
        },
      },
    ],
    [
      'a wrong recovery id',
      {
        signEcdsa(digest, key) {
          const signature = noble.signEcdsa(digest, key);
          return { ...signature, recoveryId: signature.recoveryId ^ 1 };
        },
      },
    ],
    [
      'another nonce for a digest above the order',
      { signEcdsa: (digest, key) => noble.signEcdsa(digest[0] === 0xff ? flipped(digest) : digest, key) },
    ],
    [
      'random nonces',
      {
        signEcdsa(digest, key) {
          const options = { prehash: false, format: 'recovered', extraEntropy: randomBytes(32) } as const;
          const signature = secp256k1.sign(digest, key, options);
          return { compact: signature.subarray(1), recoveryId: signature[0]! };
        },
      },
    ],
    ['BIP-340 with randomness', { signSchnorr: (digest, key) => schnorr.sign(digest, key, Buffer.alloc(32, 1)) }],
    ['another public key', { publicKeyOf: () => noble.publicKeyOf(Buffer.alloc(32, 9)) }],
    ['a compressed key for an uncompressed one', { uncompress: (publicKey) => publicKey }],
    ['another sum', { addToPoint: (publicKey) => publicKey }],
    ['that anything is a signature', { verifyEcdsa: () => true }],
    ['that nothing is a signature', { verifyEcdsa: () => false }],
  ])('is not one that returns %s', (_, broken) => {
    expect(chooseFrom([() => ({ ...noble, name: 'broken', ...broken })])).toMatchObject({
      library: { name: '@noble/curves' },
      passedOver: ['self-test failed: unexpected signature from broken'],
    });
  });
});

describe('the memory of WebAssembly', () => {
  /** A copy of all that `tiny-secp256k1` has. */
  const memory = (): Buffer => {
    const path = fileURLToPath(new URL('tiny-secp256k1/lib/cjs/wasm_loader.cjs', modules));
    const loaded = require(path) as { default: { memory: WebAssembly.Memory } };
    return Buffer.from(new Uint8Array(loaded.default.memory.buffer));
  };
  const isSigned = noble.signSchnorr(Buffer.alloc(32), Buffer.alloc(32, 1));

  test.each<[string, (key: Uint8Array) => unknown]>([
    ['ECDSA', (key) => webAssembly.signEcdsa(randomBytes(32), key)],
    ['BIP-340', (key) => webAssembly.signSchnorr(randomBytes(32), key)],
    ['a public key', (key) => webAssembly.publicKeyOf(key)],
  ])('%s leaves something of the key; forgotten, the memory is the same whatever the key was', (_, use) => {
    const after = (forget: () => void): Buffer => {
      use(randomBytes(32));
      forget();
      // What is left of verifying is public: it is made the same.
      tiny.verifySchnorr(Buffer.alloc(32), schnorr.getPublicKey(Buffer.alloc(32, 1)), isSigned);
      return memory();
    };
    expect(after(() => {}).equals(after(() => {}))).toBe(false);
    const forget = (): void => webAssembly.forgetKeys();
    expect(after(forget).equals(after(forget))).toBe(true);
  });
});
