import { createPublicKey, ECDH } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { ed25519 } from '@noble/curves/ed25519.js';
import { CoordinatorError } from '../domain/errors.js';
import type { ApiKeyCurve } from '../domain/key-formats.js';
import { LatestEntries } from '../fairness/latest-entries.js';

/** COSE algorithm numbers a passkey may use: ES256, EdDSA (Ed25519 only), RS256 (RFC 9053, RFC 8812). */
type CoseAlgorithm = -7 | -8 | -257;

/** A passkey's public key, ready to verify with. */
export interface CoseKey {
  readonly algorithm: CoseAlgorithm;
  readonly keyObject: KeyObject;
}

const OPENSSL_CURVE = { API_KEY_CURVE_P256: 'prime256v1', API_KEY_CURVE_SECP256K1: 'secp256k1' } as const;
const CURVE_LABEL: Record<ApiKeyCurve, string> = {
  API_KEY_CURVE_P256: 'P-256',
  API_KEY_CURVE_SECP256K1: 'secp256k1',
  API_KEY_CURVE_ED25519: 'Ed25519',
};

/** DER of SubjectPublicKeyInfo up to the key bytes: 33-byte points (RFC 5480), raw Ed25519 keys (RFC 8410). */
const SPKI_PREFIX: Record<ApiKeyCurve, string> = {
  API_KEY_CURVE_P256: '3039301306072a8648ce3d020106082a8648ce3d030107032200',
  API_KEY_CURVE_SECP256K1: '3036301006072a8648ce3d020106052b8104000a032200',
  API_KEY_CURVE_ED25519: '302a300506032b6570032100',
};

/**
 * Separates entries that were used more than once from the others, so that someone who names keys without end evicts
 * only one half. In each half, the least recently used entry goes first.
 */
export class KeyCache<Value> {
  readonly #seenOnce: LatestEntries<Value>;
  readonly #inUse: LatestEntries<Value>;

  constructor(capacity: number) {
    this.#seenOnce = new LatestEntries(capacity / 2);
    this.#inUse = new LatestEntries(capacity / 2);
  }

  get(key: string): Value | undefined {
    const value = this.#inUse.get(key) ?? this.#seenOnce.get(key);
    if (value === undefined) return undefined;
    this.#seenOnce.delete(key);
    this.#inUse.set(key, value);
    return value;
  }

  set(key: string, value: Value): void {
    this.#seenOnce.set(key, value);
  }
}

// Decoding a key costs more than twice as much as the verification it serves, hence the caches. They hold only public
// keys under their normalized form, so an entry can never be wrong; a stranger can at most cause misses.
const apiKeys = new KeyCache<KeyObject>(4096);
const coseKeys = new KeyCache<CoseKey>(4096);

/**
 * The normalized form in which a public key is stored and looked up: lower-case hex of the compressed point (33 bytes),
 * or of the 32 Ed25519 bytes. Takes SEC1 compressed or uncompressed points (SEC 1, section 2.3.3) in either letter
 * case. Throws INVALID_ARGUMENT for anything that is not a usable key: wrong length, hybrid form, identity, a point
 * that is not on the curve, an Ed25519 key that is not canonical or of small order.
 */
export function normalizePublicKey(hex: string, curve: ApiKeyCurve): string {
  if (apiKeys.get(`${curve}:${hex}`) !== undefined) return hex;
  const label = CURVE_LABEL[curve];
  if (hex.length > 130) throw invalidKey(`${label} public key of ${hex.length} characters is too long`);
  if (!/^(?:[0-9a-fA-F]{2})+$/.test(hex)) {
    throw invalidKey(`${label} public key \`${hex}\` is not hex: send pairs of hex digits without a 0x prefix`);
  }
  const lower = hex.toLowerCase();
  return curve === 'API_KEY_CURVE_ED25519' ? checkEd25519Key(lower) : compressPoint(lower, curve);
}

/** The key for node:crypto, from a bounded cache. Throws like `normalizePublicKey`. */
export function apiKeyObject(publicKey: string, curve: ApiKeyCurve): KeyObject {
  const cached = apiKeys.get(`${curve}:${publicKey}`);
  if (cached !== undefined) return cached;
  const normalized = normalizePublicKey(publicKey, curve);
  const keyObject = spkiKey(curve, normalized);
  apiKeys.set(`${curve}:${normalized}`, keyObject);
  return keyObject;
}

/**
 * Parses a COSE_Key (RFC 9052, section 7) given as base64url of its CBOR. Strict: exactly the members that WebAuthn
 * allows in a credentialPublicKey (section 6.5.1), each once, shortest encodings, no trailing bytes; RSA moduli of 2048
 * to 8192 bits. Throws INVALID_ARGUMENT saying which member is wrong.
 */
export function coseKey(base64url: string): CoseKey {
  const cached = coseKeys.get(base64url);
  if (cached !== undefined) return cached;
  const key = readCoseKey(Buffer.from(base64url, 'base64url'));
  coseKeys.set(base64url, key);
  return key;
}

function invalidKey(message: string, cause?: unknown): CoordinatorError {
  return new CoordinatorError('INVALID_ARGUMENT', message, { category: 'REQUEST_INVALID', cause });
}

function spkiKey(curve: ApiKeyCurve, normalizedHex: string): KeyObject {
  return createPublicKey({ key: Buffer.from(SPKI_PREFIX[curve] + normalizedHex, 'hex'), format: 'der', type: 'spki' });
}

function compressPoint(hex: string, curve: 'API_KEY_CURVE_P256' | 'API_KEY_CURVE_SECP256K1'): string {
  const label = CURVE_LABEL[curve];
  const form = hex.slice(0, 2);
  if (hex === '00') throw invalidKey(`${label} public key \`00\` is the point at infinity, which is not a valid key`);
  // OpenSSL also accepts the hybrid form 06/07; a second encoding of a key would only confuse look-ups.
  if (form === '06' || form === '07') {
    throw invalidKey(`${label} public key \`${hex}\` is in the hybrid form: send the compressed point (02 or 03)`);
  }
  const length = { '02': 66, '03': 66, '04': 130 }[form];
  if (length === undefined) {
    throw invalidKey(`${label} public key \`${hex}\` begins with \`${form}\`: a SEC1 point begins with 02, 03 or 04`);
  }
  if (hex.length !== length) {
    throw invalidKey(
      `${label} public key \`${hex}\` is ${hex.length / 2} bytes long: a point that begins with ${form} has ${length / 2}`,
    );
  }
  try {
    return ECDH.convertKey(hex, OPENSSL_CURVE[curve], 'hex', 'hex', 'compressed').toString();
  } catch (cause) {
    throw invalidKey(`${label} public key \`${hex}\` is not a point on the curve`, cause);
  }
}

function checkEd25519Key(hex: string): string {
  if (hex.length !== 64) {
    throw invalidKey(`Ed25519 public key \`${hex}\` is ${hex.length / 2} bytes long: it must be the 32 raw bytes`);
  }
  let isSmallOrder: boolean;
  try {
    isSmallOrder = ed25519.Point.fromHex(hex, false).isSmallOrder();
  } catch (cause) {
    throw invalidKey(`Ed25519 public key \`${hex}\` is not a canonical encoding of a point on the curve`, cause);
  }
  // For such a key there are signatures that fit any message, so it identifies nobody.
  if (isSmallOrder)
    throw invalidKey(`Ed25519 public key \`${hex}\` is a point of small order, which is not a valid key`);
  return hex;
}

/** kty, alg, and the members -1 (crv or n), -2 (x or e), -3 (y) that depend on the type. */
const COSE_LABELS: ReadonlySet<unknown> = new Set([1, 3, -1, -2, -3]);

function readCoseKey(bytes: Uint8Array): CoseKey {
  const members = readCoseMap(bytes);
  const kty = members.get(1);
  const algorithm = members.get(3);
  const integer = (label: number, expected: number, meaning: string): void => {
    if (members.get(label) !== expected) throw invalidKey(`COSE key: member ${label} must be ${expected} (${meaning})`);
  };
  const octets = (label: number, meaning: string, length?: number): Buffer => {
    const value = members.get(label);
    if (!(value instanceof Uint8Array))
      throw invalidKey(`COSE key: member ${label} (${meaning}) must be a byte string`);
    if (length !== undefined && value.length !== length) {
      throw invalidKey(`COSE key: member ${label} (${meaning}) is ${value.length} bytes long, not ${length}`);
    }
    return Buffer.from(value);
  };
  const only = (count: number): void => {
    if (members.size !== count) throw invalidKey(`COSE key: has ${members.size} members, not the ${count} of its type`);
  };

  switch (algorithm) {
    case -7: {
      integer(1, 2, 'kty EC2');
      integer(-1, 1, 'crv P-256');
      const point = `04${octets(-2, 'x', 32).toString('hex')}${octets(-3, 'y', 32).toString('hex')}`;
      only(5);
      return { algorithm, keyObject: spkiKey('API_KEY_CURVE_P256', compressPoint(point, 'API_KEY_CURVE_P256')) };
    }
    case -8: {
      integer(1, 1, 'kty OKP');
      integer(-1, 6, 'crv Ed25519');
      const raw = octets(-2, 'x', 32).toString('hex');
      only(4);
      return { algorithm, keyObject: spkiKey('API_KEY_CURVE_ED25519', checkEd25519Key(raw)) };
    }
    case -257: {
      integer(1, 3, 'kty RSA');
      const n = octets(-1, 'n');
      const e = octets(-2, 'e');
      only(4);
      return { algorithm, keyObject: rsaKey(n, e) };
    }
    default:
      throw invalidKey(
        `COSE key: algorithm \`${String(algorithm)}\` (kty \`${String(kty)}\`) is not supported: use ES256 (-7), EdDSA (-8) or RS256 (-257)`,
      );
  }
}

function rsaKey(n: Buffer, e: Buffer): KeyObject {
  const bits = n.length === 0 ? 0 : n.length * 8 + 24 - Math.clz32(n.readUInt8(0));
  if (n[0] === 0 || bits < 2048 || bits > 8192) {
    throw invalidKey(`COSE key: the RSA modulus has ${bits} bits: it must have 2048 to 8192, without leading zeros`);
  }
  const exponent = e.length <= 4 ? e.reduce((value, byte) => value * 256 + byte, 0) : 0;
  if (e[0] === 0 || exponent < 3 || exponent % 2 === 0) {
    throw invalidKey(`COSE key: the RSA exponent \`${e.toString('hex')}\` must be odd, 3 or more, at most 4 bytes`);
  }
  const jwk = { kty: 'RSA', n: n.toString('base64url'), e: e.toString('base64url') };
  return createPublicKey({ key: jwk, format: 'jwk' });
}

/** One CBOR map of integers and byte strings (RFC 8949), nothing else: a key needs no general decoder. */
function readCoseMap(bytes: Uint8Array): Map<number, number | Uint8Array> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let offset = 0;

  const need = (length: number): void => {
    if (offset + length > bytes.length) throw invalidKey('COSE key: the CBOR ends too early');
  };
  const readHead = (): { major: number; argument: number } => {
    need(1);
    const initial = view.getUint8(offset);
    offset += 1;
    const major = initial >> 5;
    const info = initial & 31;
    if (info < 24) return { major, argument: info };
    if (info > 25) throw invalidKey('COSE key: the CBOR has an argument longer than a key needs');
    const width = info === 24 ? 1 : 2;
    need(width);
    const argument = width === 1 ? view.getUint8(offset) : view.getUint16(offset);
    offset += width;
    if (argument < (width === 1 ? 24 : 256)) throw invalidKey('COSE key: the CBOR is not in its shortest form');
    return { major, argument };
  };
  const readValue = (): number | Uint8Array => {
    const { major, argument } = readHead();
    if (major === 0) return argument;
    if (major === 1) return -1 - argument;
    if (major !== 2) throw invalidKey('COSE key: every member must be an integer or a byte string');
    need(argument);
    offset += argument;
    return bytes.subarray(offset - argument, offset);
  };

  const head = readHead();
  if (head.major !== 5) throw invalidKey('COSE key: the CBOR is not a map');
  const members = new Map<number, number | Uint8Array>();
  for (let index = 0; index < head.argument; index++) {
    const label = readValue();
    if (typeof label !== 'number' || !COSE_LABELS.has(label)) {
      throw invalidKey(`COSE key: member \`${String(label)}\` is not allowed in a credential public key`);
    }
    if (members.has(label)) throw invalidKey(`COSE key: member ${label} appears twice`);
    members.set(label, readValue());
  }
  if (offset !== bytes.length) throw invalidKey('COSE key: there are bytes after the CBOR map');
  return members;
}
