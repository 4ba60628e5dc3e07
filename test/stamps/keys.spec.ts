import { generateKeyPairSync } from 'node:crypto';
import { ed25519 } from '@noble/curves/ed25519.js';
import { p256 } from '@noble/curves/nist.js';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import fc from 'fast-check';
import { apiKeyObject, coseKey, normalizePublicKey } from '../../src/stamps/keys.js';
import { refusedWith } from './refused-with.js';
import { cborMap } from './software-authenticator.js';

const weierstrass = [
  ['API_KEY_CURVE_P256', p256],
  ['API_KEY_CURVE_SECP256K1', secp256k1],
] as const;

describe.each(weierstrass)('%s public keys', (curve, { Point, utils, getPublicKey }) => {
  const compressed = Buffer.from(getPublicKey(utils.randomSecretKey())).toString('hex');
  const uncompressed = Point.fromHex(compressed).toHex(false);
  const y = uncompressed.slice(66);
  const hybrid = (Number.parseInt(y.slice(-1), 16) % 2 === 0 ? '06' : '07') + uncompressed.slice(2);

  test('every spelling of a key has the same normal form', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 48, maxLength: 48 }), (seed) => {
        const point = Point.fromBytes(getPublicKey(utils.randomSecretKey(seed)));
        for (const spelling of [point.toHex(true), point.toHex(false)]) {
          expect(normalizePublicKey(spelling, curve)).toBe(point.toHex(true));
          expect(normalizePublicKey(spelling.toUpperCase(), curve)).toBe(point.toHex(true));
        }
      }),
      { numRuns: 50 },
    );
  });

  test.each([
    ['empty', '', /is not hex/],
    ['0x prefix', `0x${compressed}`, /is not hex/],
    ['odd number of digits', compressed.slice(1), /is not hex/],
    ['line break at the end', `${compressed}\n`, /is not hex/],
    ['identity', '00', /point at infinity/],
    ['hybrid', hybrid, /hybrid form/],
    ['one byte short', compressed.slice(0, -2), /is 32 bytes long: a point that begins with 0[23] has 33/],
    ['one byte long', `${compressed}00`, /is 34 bytes long/],
    ['uncompressed prefix on a compressed point', `04${compressed.slice(2)}`, /is 33 bytes long: .* 04 has 65/],
    ['no SEC1 prefix', `05${compressed.slice(2)}`, /begins with `05`/],
    ['x not below the field prime', `02${'ff'.repeat(32)}`, /not a point on the curve/],
    ['x of no point', xOfNoPoint(Point), /not a point on the curve/],
    ['y of another point', `${uncompressed.slice(0, -2)}${y.endsWith('00') ? '01' : '00'}`, /not a point on the curve/],
    ['very long', 'ab'.repeat(1000), /too long/],
  ])('refuses: %s', (_, hex, message) => {
    expect(() => normalizePublicKey(hex, curve)).toThrow(refusedWith('INVALID_ARGUMENT', message));
  });
});

function xOfNoPoint(Point: (typeof p256)['Point']): string {
  for (let x = 1; ; x++) {
    const hex = `02${x.toString(16).padStart(64, '0')}`;
    try {
      Point.fromHex(hex);
    } catch {
      return hex;
    }
  }
}

describe('Ed25519 public keys', () => {
  const key = Buffer.from(ed25519.getPublicKey(ed25519.utils.randomSecretKey())).toString('hex');

  test('the normal form is lower case', () => {
    expect(normalizePublicKey(key.toUpperCase(), 'API_KEY_CURVE_ED25519')).toBe(key);
  });

  test.each([
    ['identity', `01${'00'.repeat(31)}`, /small order/],
    ['order 2', `ec${'ff'.repeat(30)}7f`, /small order/],
    ['order 4', '00'.repeat(32), /small order/],
    ['order 8', '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05', /small order/],
    ['y = p', `ed${'ff'.repeat(30)}7f`, /not a canonical encoding/],
    ['y = p + 3, a point of large order', `f0${'ff'.repeat(30)}7f`, /not a canonical encoding/],
    ['negative zero x', `01${'00'.repeat(30)}80`, /not a canonical encoding/],
    ['not on the curve', `02${'00'.repeat(31)}`, /not a canonical encoding/],
    ['31 bytes', key.slice(2), /is 31 bytes long/],
    ['a compressed point', `02${key}`, /is 33 bytes long/],
  ])('refuses: %s', (_, hex, message) => {
    expect(() => normalizePublicKey(hex, 'API_KEY_CURVE_ED25519')).toThrow(refusedWith('INVALID_ARGUMENT', message));
  });
});

test('a key seen on one curve is not mistaken for one on another', () => {
  const onP256 = Buffer.from(p256.getPublicKey(p256.utils.randomSecretKey())).toString('hex');
  apiKeyObject(onP256, 'API_KEY_CURVE_P256');
  const accepted = Array.from({ length: 20 }, () => {
    const hex = Buffer.from(p256.getPublicKey(p256.utils.randomSecretKey())).toString('hex');
    apiKeyObject(hex, 'API_KEY_CURVE_P256');
    try {
      return normalizePublicKey(hex, 'API_KEY_CURVE_SECP256K1') === hex;
    } catch {
      return false;
    }
  });
  // Half of all x coordinates are on the other curve by chance, never all twenty.
  expect(accepted).toContain(false);
  expect(apiKeyObject(onP256, 'API_KEY_CURVE_P256').asymmetricKeyDetails?.namedCurve).toBe('prime256v1');
});

test('the cache of keys is bounded: what was named once goes first, and what is in use stays', () => {
  const hexOf = (scalar: number): string => p256.Point.BASE.multiply(BigInt(scalar)).toHex(true);
  const first = apiKeyObject(hexOf(1), 'API_KEY_CURVE_P256');
  const second = apiKeyObject(hexOf(2), 'API_KEY_CURVE_P256');
  expect(apiKeyObject(hexOf(1), 'API_KEY_CURVE_P256')).toBe(first);
  let point = p256.Point.BASE.multiply(3n);
  for (let scalar = 3; scalar <= 4097; scalar++) {
    apiKeyObject(point.toHex(true), 'API_KEY_CURVE_P256');
    point = point.add(p256.Point.BASE);
  }
  expect(apiKeyObject(hexOf(1), 'API_KEY_CURVE_P256')).toBe(first);
  expect(apiKeyObject(hexOf(2), 'API_KEY_CURVE_P256')).not.toBe(second);
});

describe('COSE keys', () => {
  const jwk = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' });
  const x = Buffer.from(jwk.x ?? '', 'base64url');
  const y = Buffer.from(jwk.y ?? '', 'base64url');
  const okp = Buffer.from(ed25519.getPublicKey(ed25519.utils.randomSecretKey()));
  const rsa = (bits: number): Buffer =>
    Buffer.from(
      generateKeyPairSync('rsa', { modulusLength: bits }).publicKey.export({ format: 'jwk' }).n ?? '',
      'base64url',
    );
  const n = rsa(2048);
  const e = Buffer.from('010001', 'hex');
  const es256 = cborMap([1, 2], [3, -7], [-1, 1], [-2, x], [-3, y]);
  const read = (bytes: Uint8Array) => coseKey(Buffer.from(bytes).toString('base64url'));

  test('reads the three kinds', () => {
    expect(read(es256).keyObject.export({ format: 'jwk' })).toMatchObject({ crv: 'P-256', x: jwk.x, y: jwk.y });
    const ed = read(cborMap([1, 1], [3, -8], [-1, 6], [-2, okp]));
    expect(ed).toMatchObject({ algorithm: -8 });
    expect(ed.keyObject.export({ format: 'jwk' })).toMatchObject({ crv: 'Ed25519', x: okp.toString('base64url') });
    const rs = read(cborMap([1, 3], [3, -257], [-1, n], [-2, e]));
    expect(rs.keyObject.asymmetricKeyDetails).toMatchObject({ modulusLength: 2048, publicExponent: 65537n });
  });

  test.each([
    ['nothing', Buffer.alloc(0), /ends too early/],
    ['not a map', Buffer.from('01', 'hex'), /not a map/],
    ['truncated', es256.subarray(0, -1), /ends too early/],
    ['bytes after it', Buffer.concat([es256, Buffer.from([0])]), /bytes after/],
    ['indefinite map', Buffer.concat([Buffer.from([0xbf]), es256.subarray(1), Buffer.from([0xff])]), /longer than/],
    ['long form of a short number', Buffer.concat([Buffer.from([0xb8, 5]), es256.subarray(1)]), /shortest form/],
    ['member twice', cborMap([1, 2], [1, 2], [3, -7], [-1, 1], [-2, x], [-3, y]), /member 1 appears twice/],
    ['unknown member', cborMap([1, 2], [2, x], [3, -7], [-1, 1], [-2, x], [-3, y]), /member `2` is not allowed/],
    ['text label', cborMap(['kty', 2]), /must be an integer or a byte string/],
    ['text value', cborMap([1, 'OKP'], [3, -8]), /must be an integer or a byte string/],
    ['no algorithm', cborMap([1, 2], [-1, 1], [-2, x], [-3, y]), /algorithm `undefined`/],
    ['ES384', cborMap([1, 2], [3, -35], [-1, 2], [-2, x], [-3, y]), /algorithm `-35`/],
    ['ES256 with kty OKP', cborMap([1, 1], [3, -7], [-1, 1], [-2, x], [-3, y]), /member 1 must be 2/],
    ['ES256 on secp256k1', cborMap([1, 2], [3, -7], [-1, 8], [-2, x], [-3, y]), /member -1 must be 1/],
    ['ES256 without y', cborMap([1, 2], [3, -7], [-1, 1], [-2, x]), /member -3 \(y\) must be a byte string/],
    ['ES256 with short x', cborMap([1, 2], [3, -7], [-1, 1], [-2, x.subarray(1)], [-3, y]), /31 bytes long, not 32/],
    ['ES256 off the curve', cborMap([1, 2], [3, -7], [-1, 1], [-2, x], [-3, x]), /not a point on the curve/],
    ['EdDSA on Ed448', cborMap([1, 1], [3, -8], [-1, 7], [-2, okp]), /member -1 must be 6/],
    ['EdDSA with y', cborMap([1, 1], [3, -8], [-1, 6], [-2, okp], [-3, y]), /5 members, not the 4/],
    ['EdDSA of small order', cborMap([1, 1], [3, -8], [-1, 6], [-2, Buffer.alloc(32)]), /small order/],
    ['RSA of 1024 bits', cborMap([1, 3], [3, -257], [-1, rsa(1024)], [-2, e]), /modulus has 1024 bits/],
    [
      'RSA with leading zero',
      cborMap([1, 3], [3, -257], [-1, Buffer.concat([Buffer.alloc(1), n])], [-2, e]),
      /leading/,
    ],
    ['RSA without modulus', cborMap([1, 3], [3, -257], [-1, Buffer.alloc(0)], [-2, e]), /modulus has 0 bits/],
    ['RSA with e = 1', cborMap([1, 3], [3, -257], [-1, n], [-2, Buffer.from([1])]), /exponent `01`/],
    ['RSA with e even', cborMap([1, 3], [3, -257], [-1, n], [-2, Buffer.from([4])]), /exponent `04`/],
    ['RSA with huge e', cborMap([1, 3], [3, -257], [-1, n], [-2, n]), /exponent/],
  ])('refuses: %s', (_, bytes, message) => {
    expect(() => read(bytes)).toThrow(refusedWith('INVALID_ARGUMENT', message));
  });

  test('any bytes are either a key or refused with INVALID_ARGUMENT', () => {
    const mutated = fc
      .tuple(fc.constantFrom(es256), fc.nat(es256.length - 1), fc.nat(255))
      .map(([bytes, at, value]) => Buffer.from(bytes).fill(value, at, at + 1));
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 100 }), mutated), (bytes) => {
        try {
          read(bytes);
        } catch (error) {
          expect(error).toMatchObject({ name: 'CoordinatorError', code: 'INVALID_ARGUMENT' });
        }
      }),
      { numRuns: 500 },
    );
  });
});
