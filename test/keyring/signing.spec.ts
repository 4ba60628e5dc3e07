import { createHash, createPublicKey, randomBytes, verify } from 'node:crypto';
import { p256 } from '@noble/curves/nist.js';
import { schnorr, secp256k1 } from '@noble/curves/secp256k1.js';
import { CURVES } from '../../src/domain/key-formats.js';
import type { AddressFormat, Curve } from '../../src/domain/key-formats.js';
import { ADDRESS_FORMATS } from '../../src/keyring/addresses.js';
import { CURVE_ORDER, type EcdsaCurve } from '../../src/keyring/curve-orders.js';
import { generatePrivateKey, publicKeyOf } from '../../src/keyring/curves.js';
import { payloadSigner, signatureScheme, signPayload, signsInJavaScript } from '../../src/keyring/signing.js';
import type { Signature, SignatureScheme } from '../../src/keyring/signing.js';
import { chosenSecp256k1 } from '../../src/keyring/secp256k1.js';
import { taprootPrivateKey } from '../../src/keyring/taproot.js';
import { unwipedCopies } from './copies.js';
import { fromHex, oracle, readText, readVectors } from './read-vectors.js';

const noble = { CURVE_SECP256K1: secp256k1, CURVE_P256: p256 } as const;
const FORMATS = Object.keys(ADDRESS_FORMATS) as AddressFormat[];
const P2TR = 'ADDRESS_FORMAT_BITCOIN_MAINNET_P2TR';
const SPARK = 'ADDRESS_FORMAT_SPARK_MAINNET';

const signEcdsa = (curve: EcdsaCurve, privateKey: Uint8Array, digest: Uint8Array): Signature =>
  signPayload({ curve, privateKey }, digest);
const signEd25519 = (privateKey: Uint8Array, message: Uint8Array): Signature =>
  signPayload({ curve: 'CURVE_ED25519', privateKey }, message);
const signSchnorr = (privateKey: Uint8Array, digest: Uint8Array): Signature =>
  signPayload({ curve: 'CURVE_SECP256K1', privateKey, addressFormat: SPARK }, digest);

const joined = ({ r, s }: Signature): string => r + s;
const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest();

function order(curve: EcdsaCurve): bigint {
  return BigInt(`0x${Buffer.from(CURVE_ORDER[curve]).toString('hex')}`);
}

/** Everything a client takes for granted about a signature. */
function expectWellFormed({ r, s, v }: Signature): void {
  expect(r).toMatch(/^[0-9a-f]{64}$/);
  expect(s).toMatch(/^[0-9a-f]{64}$/);
  expect(v).toMatch(/^0[01]$/);
}

/** Low s, verified, and the recovery id leads back to the key. */
function expectRecoverable(curve: EcdsaCurve, privateKey: Uint8Array, digest: Uint8Array, signature: Signature): void {
  expectWellFormed(signature);
  expect(BigInt(`0x${signature.s}`)).toBeLessThanOrEqual(order(curve) / 2n);
  const recovered = noble[curve].recoverPublicKey(fromHex(signature.v + joined(signature)), digest, { prehash: false });
  expect(Buffer.from(recovered)).toEqual(publicKeyOf(curve, privateKey));
}

describe('ECDSA', () => {
  test('signs as RFC 6979, A.2.5, on P-256, with one nonce rejected and a low s', () => {
    const { d, cases } = readVectors<{ d: string; cases: { message: string; r: string; s: string }[] }>(
      'ecdsa/rfc6979_p256_sha256.json',
    );
    expect(cases).toHaveLength(3);
    let brought = 0;
    for (const { message, r, s } of cases) {
      const signature = signEcdsa('CURVE_P256', fromHex(d), sha256(message));
      const isHigh = BigInt(`0x${s}`) > order('CURVE_P256') / 2n;
      brought += isHigh ? 1 : 0;
      const low = isHigh ? order('CURVE_P256') - BigInt(`0x${s}`) : BigInt(`0x${s}`);
      expect(signature).toMatchObject({ r, s: low.toString(16).padStart(64, '0') });
      expectRecoverable('CURVE_P256', fromHex(d), sha256(message), signature);
    }
    expect(brought).toBeGreaterThan(0);
  });

  test('signs 200 digests on secp256k1 as RFC 6979 says', () => {
    const { valid } = readVectors<{ valid: { d: string; m: string; signature: string }[] }>(
      'ecdsa/secp256k1_ecdsa_deterministic.json',
    );
    expect(valid).toHaveLength(200);
    for (const { d, m, signature } of valid) {
      expect(joined(signEcdsa('CURVE_SECP256K1', fromHex(d), fromHex(m)))).toBe(signature);
    }
  });

  test.each(['CURVE_SECP256K1', 'CURVE_P256'] as const)('signs on %s with fresh keys', (curve) => {
    for (let round = 0; round < 16; round++) {
      const key = generatePrivateKey(curve, randomBytes);
      const digest = randomBytes(32);
      const signature = signEcdsa(curve, key, digest);
      expectRecoverable(curve, key, digest, signature);
      expect(signEcdsa(curve, key, digest)).toEqual(signature);
    }
  });

  test.each(['CURVE_SECP256K1', 'CURVE_P256'] as const)('pads r and s on %s', (curve) => {
    // Searched once: digests whose r, and whose s, begins with a zero byte.
    const key = sha256('countersign padding');
    const found = { r: false, s: false };
    for (let number = 0; number < 4096 && !(found.r && found.s); number++) {
      const signature = signEcdsa(curve, key, sha256(String(number)));
      if (signature.r.startsWith('00')) found.r = true;
      if (signature.s.startsWith('00')) found.s = true;
      expectWellFormed(signature);
    }
    expect(found).toEqual({ r: true, s: true });
  });
});

describe('BIP-340', () => {
  const rows = readText('bitcoin/bip340_test-vectors.csv')
    .trim()
    .split(/\r?\n/)
    .slice(1)
    .map((line) => line.split(','));

  test('signs the vector with no auxiliary randomness', () => {
    const zeroes = rows.filter(
      ([, secret, , aux, message]) => secret !== '' && /^0+$/.test(aux!) && message!.length === 64,
    );
    expect(zeroes.map(([index]) => index)).toEqual(['0']);
    for (const [, secret, , , message, signature] of zeroes) {
      expect(joined(signSchnorr(fromHex(secret!), fromHex(message!)))).toBe(signature!.toLowerCase());
    }
  });

  test('is verified by the library as the vectors say', () => {
    expect(rows).toHaveLength(19);
    for (const [, , publicKey, , message, signature, result] of rows) {
      const isValid = ((): boolean => {
        try {
          return schnorr.verify(fromHex(signature!), fromHex(message!), fromHex(publicKey!));
        } catch {
          return false;
        }
      })();
      expect(isValid).toBe(result === 'TRUE');
    }
  });
});

describe('BIP-341', () => {
  interface Input {
    readonly given: { readonly internalPrivkey: string; readonly merkleRoot: string | null };
    readonly intermediary: { readonly tweakedPrivkey: string; readonly sigHash: string };
    readonly expected: { readonly witness: readonly string[] };
  }
  const { keyPathSpending } = readVectors<{ keyPathSpending: { inputSpending: Input[] }[] }>(
    'bitcoin/bip341_wallet-test-vectors.json',
  );
  const inputs = keyPathSpending[0]!.inputSpending;

  test('gives the tweaked key and signature of the key path without a script tree', () => {
    const [input, ...others] = inputs.filter(({ given }) => given.merkleRoot === null);
    expect(others).toHaveLength(0);
    const { given, intermediary, expected } = input!;
    const privateKey = fromHex(given.internalPrivkey);
    expect(Buffer.from(taprootPrivateKey(privateKey)).toString('hex')).toBe(intermediary.tweakedPrivkey);
    const key = { curve: 'CURVE_SECP256K1', addressFormat: P2TR, privateKey } as const;
    expect(joined(signPayload(key, fromHex(intermediary.sigHash)))).toBe(expected.witness[0]!.slice(0, 128));
  });

  test('verifies signatures under tweaked keys that are given', () => {
    expect(inputs).toHaveLength(7);
    for (const { intermediary, expected } of inputs) {
      const signature = signSchnorr(fromHex(intermediary.tweakedPrivkey), fromHex(intermediary.sigHash));
      expect(joined(signature)).toBe(expected.witness[0]!.slice(0, 128));
    }
  });

  test('gives the tweaked key of the address, whether y is odd or even', () => {
    const parities = new Set<number>();
    for (const { privateKey } of oracle.filter(({ curve }) => curve === 'CURVE_SECP256K1')) {
      const key = fromHex(privateKey);
      parities.add(publicKeyOf('CURVE_SECP256K1', key)[0]!);
      const digest = sha256(privateKey);
      const signature = signPayload({ curve: 'CURVE_SECP256K1', addressFormat: P2TR, privateKey: key }, digest);
      const outputKey = schnorr.getPublicKey(taprootPrivateKey(key));
      expect(schnorr.verify(fromHex(joined(signature)), digest, outputKey)).toBe(true);
      expect(schnorr.verify(fromHex(joined(signature)), digest, schnorr.getPublicKey(key))).toBe(false);
    }
    expect(parities).toEqual(new Set([2, 3]));
  });
});

describe('signatures are verified by other libraries', () => {
  const formatOf: Record<SignatureScheme, AddressFormat | undefined> = {
    ecdsa: undefined,
    ed25519: undefined,
    schnorr: SPARK,
    'schnorr-taproot': P2TR,
  };

  test.each<[SignatureScheme, number]>([
    ['ecdsa', 2 * 26 + 3],
    ['ed25519', 26 + 3],
    ['schnorr', 26 + 3],
    ['schnorr-taproot', 26 + 3],
  ])('on %s, with %i keys of the oracle', (scheme, count) => {
    let checked = 0;
    for (const { curve, privateKey, digest, signatures } of oracle) {
      const expected = signatures[scheme];
      if (expected === undefined) continue;
      const addressFormat = formatOf[scheme];
      const key = { curve, privateKey: fromHex(privateKey), ...(addressFormat === undefined ? {} : { addressFormat }) };
      const signature = signPayload(key, fromHex(digest));
      expectWellFormed(signature);
      expect(scheme === 'ecdsa' ? joined(signature) + signature.v : joined(signature)).toBe(expected);
      if (scheme !== 'ecdsa') expect(signature.v).toBe('00');
      checked++;
    }
    expect(checked).toBe(count);
  });

  test('on Ed25519, of messages of any length, by OpenSSL', () => {
    for (const length of [0, 1, 31, 32, 33, 1000, 100_000]) {
      const key = randomBytes(32);
      const message = randomBytes(length);
      const x = publicKeyOf('CURVE_ED25519', key).toString('base64url');
      const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
      expect(verify(null, message, publicKey, fromHex(joined(signEd25519(key, message))))).toBe(true);
    }
  });
});

describe('many payloads with one key', () => {
  test.each([
    { curve: 'CURVE_SECP256K1' },
    { curve: 'CURVE_SECP256K1', addressFormat: SPARK },
    { curve: 'CURVE_SECP256K1', addressFormat: P2TR },
    { curve: 'CURVE_P256' },
    { curve: 'CURVE_ED25519' },
  ] as const)('are signed as each alone: $curve, $addressFormat', (kind) => {
    const key = { ...kind, privateKey: randomBytes(32).fill(1, 0, 1) };
    const payloads = Array.from({ length: 9 }, () => randomBytes(32));
    payloads.push(payloads[0]!);
    const signer = payloadSigner(key);
    expect(payloads.map((payload) => signer.sign(payload))).toEqual(
      payloads.map((payload) => signPayload(key, payload)),
    );
    signer.forget();
    expect(key.privateKey[0]).toBe(1);
  });
});

test('JavaScript signs on P-256 and BIP-340, and nothing else where there is a native library', () => {
  const isIn = (curve: Curve, addressFormat?: AddressFormat) => signsInJavaScript({ curve, addressFormat });
  const isFallback = chosenSecp256k1().passedOver !== undefined;
  expect([isIn('CURVE_P256'), isIn('CURVE_SECP256K1', SPARK), isIn('CURVE_SECP256K1', P2TR)]).toEqual([
    true,
    true,
    true,
  ]);
  expect([isIn('CURVE_ED25519'), isIn('CURVE_SECP256K1')]).toEqual([false, isFallback]);
});

describe('the scheme of an address', () => {
  test('is Schnorr for P2TR, tweaked, and Spark; otherwise the curve’s', () => {
    const schemes = FORMATS.map((format) => [format, signatureScheme(ADDRESS_FORMATS[format].curves[0]!, format)]);
    const tweaked = ['MAINNET', 'TESTNET', 'SIGNET', 'REGTEST'].map((name) => `ADDRESS_FORMAT_BITCOIN_${name}_P2TR`);
    expect(schemes.filter(([, scheme]) => scheme === 'schnorr-taproot').map(([format]) => format)).toEqual(tweaked);
    expect(schemes.filter(([, scheme]) => scheme === 'schnorr').map(([format]) => format)).toEqual([
      'ADDRESS_FORMAT_SPARK_MAINNET',
      'ADDRESS_FORMAT_SPARK_REGTEST',
    ]);
    expect(schemes.filter(([, scheme]) => scheme === 'ed25519')).toHaveLength(7);
    expect(schemes.filter(([, scheme]) => scheme === 'ecdsa')).toHaveLength(38 - 4 - 2 - 7);
  });

  test('without a format is the curve’s', () => {
    expect(CURVES.map((curve) => signatureScheme(curve))).toEqual(['ecdsa', 'ed25519', 'ecdsa']);
  });
});

// noble keeps the key among other bytes, where nobody can reach them.
test.each(CURVES)('neither signing on %s nor its public key leaves a copy of ours of the key', async (curve) => {
  const privateKey = generatePrivateKey(curve, randomBytes);
  const left = await unwipedCopies(privateKey, () => {
    publicKeyOf(curve, privateKey);
    signPayload({ curve, privateKey }, Buffer.alloc(32, 1));
  });
  expect(left.filter((by) => !by.includes('/@noble/'))).toEqual([]);
  expect(left.length > 0).toBe(curve === 'CURVE_P256');
});

describe('signing is refused', () => {
  test.each([0, 20, 31, 33, 64])('with a digest of %i bytes', (length) => {
    const payload = Buffer.alloc(length);
    const privateKey = Buffer.alloc(32, 1);
    for (const key of [
      { curve: 'CURVE_SECP256K1', privateKey },
      { curve: 'CURVE_P256', privateKey },
      { curve: 'CURVE_SECP256K1', privateKey, addressFormat: P2TR },
      { curve: 'CURVE_SECP256K1', privateKey, addressFormat: SPARK },
    ] as const) {
      expect(() => signPayload(key, payload)).toThrow(`expected a 32-bytes-long digest, got ${length} bytes`);
    }
  });

  test('with a private key that is none', () => {
    for (const addressFormat of [P2TR, SPARK, 'ADDRESS_FORMAT_ETHEREUM'] as const) {
      const key = { curve: 'CURVE_SECP256K1', privateKey: Buffer.alloc(32), addressFormat } as const;
      expect(() => signPayload(key, Buffer.alloc(32))).toThrow('zero or not below the order of CURVE_SECP256K1');
    }
    expect(() => signEd25519(Buffer.alloc(64, 1), Buffer.alloc(3))).toThrow('a private key has 32 bytes');
  });

  test('without changing the key', () => {
    for (const curve of CURVES) {
      const privateKey = Buffer.alloc(32, 3);
      signPayload({ curve, privateKey }, Buffer.alloc(32));
      expect(privateKey).toEqual(Buffer.alloc(32, 3));
    }
  });
});
