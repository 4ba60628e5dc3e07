import { randomBytes } from 'node:crypto';
import { ed25519 } from '@noble/curves/ed25519.js';
import { p256 } from '@noble/curves/nist.js';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { CURVES } from '../../src/domain/key-formats.js';
import type { Curve } from '../../src/domain/key-formats.js';
import { CURVE_ORDER, type EcdsaCurve } from '../../src/keyring/curve-orders.js';
import {
  addToScalar,
  checkPrivateKey,
  generatePrivateKey,
  parsePublicKey,
  publicKeyOf,
  uncompressPublicKey,
} from '../../src/keyring/curves.js';
import { fromHex, oracle, readVectors } from './read-vectors.js';

const ECDSA_CURVES: readonly EcdsaCurve[] = ['CURVE_SECP256K1', 'CURVE_P256'];
const noble = { CURVE_SECP256K1: secp256k1, CURVE_ED25519: ed25519, CURVE_P256: p256 } as const;

/** The order, moved by so many, as 32 bytes. */
function orderPlus(curve: EcdsaCurve, difference: bigint): Buffer {
  const order = BigInt(`0x${Buffer.from(CURVE_ORDER[curve]).toString('hex')}`);
  return fromHex((order + difference).toString(16).padStart(64, '0'));
}

describe('public keys', () => {
  test.each(CURVES)('on %s are those of noble and of the oracle, with the smallest and largest keys', (curve) => {
    const accounts = oracle.filter((account) => account.curve === curve);
    expect(accounts.length).toBeGreaterThanOrEqual(26);
    for (const { privateKey, addresses } of accounts) {
      const publicKey = publicKeyOf(curve, fromHex(privateKey));
      expect(publicKey.toString('hex')).toBe(addresses.ADDRESS_FORMAT_COMPRESSED);
      expect(publicKey.toString('hex')).toBe(
        Buffer.from(noble[curve].getPublicKey(fromHex(privateKey))).toString('hex'),
      );
      expect(parsePublicKey(curve, publicKey.toString('hex'))).toEqual(publicKey);
      if (curve === 'CURVE_ED25519') continue;
      const uncompressed = uncompressPublicKey(curve, publicKey).toString('hex');
      expect(uncompressed).toBe(addresses.ADDRESS_FORMAT_UNCOMPRESSED);
      expect(parsePublicKey(curve, uncompressed.toUpperCase())).toEqual(publicKey);
    }
  });

  test('include that of RFC 6979, A.2.5, on P-256', () => {
    const { d, x, y } = readVectors<{ d: string; x: string; y: string }>('ecdsa/rfc6979_p256_sha256.json');
    const publicKey = publicKeyOf('CURVE_P256', fromHex(d));
    expect(uncompressPublicKey('CURVE_P256', publicKey).toString('hex')).toBe(`04${x}${y}`);
  });

  test('keys are told apart by their curve', () => {
    const key = Buffer.alloc(32, 7);
    expect(new Set(CURVES.map((curve) => publicKeyOf(curve, key).toString('hex'))).size).toBe(3);
  });
});

describe('private keys', () => {
  test.each(CURVES)('on %s of another length are refused with both lengths', (curve) => {
    for (const length of [0, 31, 33, 64]) {
      expect(() => checkPrivateKey(curve, Buffer.alloc(length, 1), 'privateKeys[2]')).toThrow(
        `privateKeys[2]: a private key has 32 bytes, this one has ${length}`,
      );
    }
  });

  test.each(ECDSA_CURVES)('on %s that are zero or not below the order are refused', (curve) => {
    for (const key of [Buffer.alloc(32), orderPlus(curve, 0n), orderPlus(curve, 1n), Buffer.alloc(32, 0xff)]) {
      expect(() => publicKeyOf(curve, key)).toThrow(`zero or not below the order of ${curve}`);
    }
    expect(() => checkPrivateKey(curve, orderPlus(curve, -1n))).not.toThrow();
  });

  test('every Ed25519 seed is a key', () => {
    expect(() => checkPrivateKey('CURVE_ED25519', Buffer.alloc(32))).not.toThrow();
    expect(() => checkPrivateKey('CURVE_ED25519', Buffer.alloc(32, 0xff))).not.toThrow();
  });

  test('a refusal never quotes the key', () => {
    const secret = Buffer.concat([Buffer.alloc(31, 0xab), Buffer.alloc(2, 0xcd)]);
    expect(() => checkPrivateKey('CURVE_P256', secret)).toThrow(/^(?!.*abab).*$/s);
  });
});

describe('adding to a scalar', () => {
  const toNumber = (bytes: Uint8Array): bigint => BigInt(`0x${Buffer.from(bytes).toString('hex')}`);

  test.each(ECDSA_CURVES)('on %s is addition modulo the order', (curve) => {
    const order = toNumber(CURVE_ORDER[curve]);
    const edges = [1n, 2n, 255n, 256n, order / 2n, order / 2n + 1n, order - 2n, order - 1n];
    const random = Array.from({ length: 20 }, () => toNumber(generatePrivateKey(curve, randomBytes)));
    const toBytes = (value: bigint): Buffer => fromHex(value.toString(16).padStart(64, '0'));
    let [wrapped, carried] = [0, 0];
    for (const left of [0n, ...edges, ...random]) {
      for (const right of [...edges, ...random]) {
        const scalar = toBytes(left);
        const expected = (left + right) % order;
        expect(addToScalar(curve, scalar, toBytes(right))).toBe(expected !== 0n);
        expect([left, right, toNumber(scalar)]).toEqual([left, right, expected]);
        if (left + right >= order && left + right < 2n ** 256n) wrapped++;
        if (left + right >= 2n ** 256n) carried++;
      }
    }
    // Above the order without a carry out of 32 bytes, and with one.
    expect(wrapped).toBeGreaterThan(0);
    expect(carried).toBeGreaterThan(0);
  });

  test.each(ECDSA_CURVES)('on %s is refused for what is not below the order', (curve) => {
    for (const difference of [0n, 1n]) {
      expect(addToScalar(curve, orderPlus(curve, difference), orderPlus(curve, -1n))).toBe(false);
    }
  });
});

describe('new private keys', () => {
  test.each(CURVES)('on %s are keys, and differ', (curve) => {
    const keys = Array.from({ length: 20 }, () => generatePrivateKey(curve, randomBytes));
    for (const key of keys) expect(() => checkPrivateKey(curve, key)).not.toThrow();
    expect(new Set(keys.map((key) => key.toString('hex'))).size).toBe(20);
  });

  test.each(ECDSA_CURVES)('on %s are drawn again where they are no scalar', (curve) => {
    const draws = [
      Buffer.alloc(32),
      orderPlus(curve, 0n),
      Buffer.alloc(32, 0xff),
      orderPlus(curve, -1n),
      Buffer.alloc(32, 1),
    ];
    expect(generatePrivateKey(curve, () => draws.shift()!)).toEqual(orderPlus(curve, -1n));
    expect(draws).toHaveLength(1);
  });

  test('the random bytes are wiped', () => {
    const drawn = Buffer.alloc(32, 5);
    expect(generatePrivateKey('CURVE_P256', () => drawn)).toEqual(Buffer.alloc(32, 5));
    expect(drawn).toEqual(Buffer.alloc(32));
  });

  test('a source that gives too little is a defect', () => {
    expect(() => generatePrivateKey('CURVE_ED25519', () => Buffer.alloc(16))).toThrow('did not return 32 bytes');
  });
});

describe('reading public keys', () => {
  const point = publicKeyOf('CURVE_P256', Buffer.alloc(32, 9)).toString('hex');

  test.each<[string, Curve, string, string]>([
    ['no hex', 'CURVE_P256', `0x${point}`, 'is not hex'],
    ['odd digits', 'CURVE_P256', point.slice(1), 'is not hex'],
    ['nothing', 'CURVE_P256', '', 'is not hex'],
    ['too long', 'CURVE_P256', point.repeat(3), 'a public key of 198 characters is too long'],
    ['a hybrid point', 'CURVE_P256', `06${'11'.repeat(64)}`, 'is not a SEC1 point'],
    ['the point at infinity', 'CURVE_P256', '00', 'is not a SEC1 point'],
    ['a cut point', 'CURVE_P256', point.slice(0, -2), 'is not a SEC1 point'],
    ['a long compressed point', 'CURVE_SECP256K1', `02${'11'.repeat(64)}`, 'is not a SEC1 point'],
    ['a point off the curve', 'CURVE_P256', `04${'11'.repeat(64)}`, 'is not a point on CURVE_P256'],
    ['an x without a point', 'CURVE_SECP256K1', `02${'00'.repeat(31)}05`, 'is not a point on CURVE_SECP256K1'],
    ['an x beyond the field', 'CURVE_SECP256K1', `02${'ff'.repeat(32)}`, 'is not a point on CURVE_SECP256K1'],
    ['Ed25519, 33 bytes', 'CURVE_ED25519', point, 'an Ed25519 public key has 32'],
    ['Ed25519, no point', 'CURVE_ED25519', `02${'00'.repeat(31)}`, 'is not a canonical encoding'],
    ['Ed25519, y beyond the field', 'CURVE_ED25519', `f0${'ff'.repeat(30)}7f`, 'is not a canonical encoding'],
    ['Ed25519, identity', 'CURVE_ED25519', `01${'00'.repeat(31)}`, 'is a point of small order'],
  ])('refuses %s', (_what, curve, hex, message) => {
    expect(() => parsePublicKey(curve, hex, 'targetPublicKey')).toThrow(message);
    expect(() => parsePublicKey(curve, hex, 'targetPublicKey')).toThrow('invalid request: targetPublicKey: ');
  });
});
