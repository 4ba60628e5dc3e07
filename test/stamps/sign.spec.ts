import { randomBytes } from 'node:crypto';
import type { ApiKeyScheme, ApiKeyStamp } from '../../src/stamps/stamp.js';
import { readFileSync } from 'node:fs';
import { p256 } from '@noble/curves/nist.js';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { ApiKeyStamper } from '@turnkey/api-key-stamper';
import { apiKeyPairFromPrivate, generateApiKeyPair, stampBody } from '../../src/stamps/sign.js';
import { CURVE_OF_SCHEME, personalMessageDigest, readStamp, verifyApiKeyStamp } from '../../src/stamps/verify.js';
import { refusedWith } from './refused-with.js';

function vectors<Content>(path: string): Content {
  return JSON.parse(readFileSync(new URL(`../vectors/${path}`, import.meta.url), 'utf8')) as Content;
}

function apiKeyStamp(headerValue: string): ApiKeyStamp {
  const stamp = readStamp({ 'x-stamp': headerValue });
  if (stamp.kind !== 'api-key') throw new Error('an API key stamp was read as something else');
  return stamp;
}

const derBytes = (stamp: ApiKeyStamp): Buffer => Buffer.from(stamp.signature, 'hex');

describe('stamps of our own', () => {
  const schemes = Object.keys(CURVE_OF_SCHEME) as ApiKeyScheme[];

  test.each(schemes)('%s: verify, are the same every time, and read as the clients make them', async (scheme) => {
    const key = generateApiKeyPair(randomBytes, CURVE_OF_SCHEME[scheme]);
    const body = '{"organizationId":"…","timestampMs":"1"}';
    const { headerName, headerValue } = stampBody(body, key, scheme);
    expect(headerName).toBe('X-Stamp');
    expect(headerValue).toMatch(/^[A-Za-z0-9_-]+$/);
    expect(stampBody(Buffer.from(body), key, scheme).headerValue).toBe(headerValue);
    expect(Object.keys(JSON.parse(Buffer.from(headerValue, 'base64url').toString()) as object)).toEqual([
      'publicKey',
      'scheme',
      'signature',
    ]);
    await expect(verifyApiKeyStamp(apiKeyStamp(headerValue), Buffer.from(body))).resolves.toBeUndefined();
  });

  test('P-256 is RFC 6979 with low s', () => {
    const { d, cases } = vectors<{ d: string; cases: { message: string; r: string; s: string }[] }>(
      'ecdsa/rfc6979_p256_sha256.json',
    );
    const key = apiKeyPairFromPrivate(d);
    expect(cases).toHaveLength(3);
    for (const { message, r, s } of cases) {
      const signature = p256.Signature.fromBytes(derBytes(apiKeyStamp(stampBody(message, key).headerValue)), 'der');
      const high = BigInt(`0x${s}`) > p256.Point.Fn.ORDER / 2n;
      expect(signature.r).toBe(BigInt(`0x${r}`));
      expect(signature.s).toBe(high ? p256.Point.Fn.ORDER - BigInt(`0x${s}`) : BigInt(`0x${s}`));
    }
  });

  test('secp256k1 is RFC 6979 with low s', () => {
    const { valid } = vectors<{ valid: { d: string; description?: string; m: string; signature: string }[] }>(
      'ecdsa/secp256k1_ecdsa_deterministic.json',
    );
    let checked = 0;
    for (const { d, description, m, signature } of valid) {
      // The vectors give the hash; only those whose text is known can be signed as a body.
      if (description === undefined || sha256Hex(description) !== m) continue;
      const key = apiKeyPairFromPrivate(d, 'API_KEY_CURVE_SECP256K1');
      const made = secp256k1.Signature.fromBytes(derBytes(apiKeyStamp(stampBody(description, key).headerValue)), 'der');
      expect(made.toHex('compact')).toBe(signature);
      checked += 1;
    }
    expect(checked).toBeGreaterThan(3);
  });

  test('EIP-191 is what wallets sign with personal_sign', () => {
    interface Case {
      messageUtf8?: string;
      messageHex?: string;
      hash?: string;
      privateKey?: string;
      signature?: string;
    }
    let signed = 0;
    let hashed = 0;
    for (const { messageUtf8, messageHex, hash, privateKey, signature } of vectors<Case[]>(
      'ethereum/eip191_personal_sign.json',
    )) {
      const message = messageHex === undefined ? Buffer.from(messageUtf8 ?? '') : fromHex(messageHex);
      if (hash !== undefined) {
        expect(Buffer.from(personalMessageDigest(message))).toEqual(fromHex(hash));
        hashed += 1;
      }
      if (privateKey === undefined || signature === undefined) continue;
      const key = apiKeyPairFromPrivate(privateKey.slice(2), 'API_KEY_CURVE_SECP256K1');
      const { headerValue } = stampBody(message, key, 'SIGNATURE_SCHEME_TK_API_SECP256K1_EIP191');
      const made = secp256k1.Signature.fromBytes(derBytes(apiKeyStamp(headerValue)), 'der');
      expect(Buffer.from(made.toBytes('compact'))).toEqual(fromHex(signature).subarray(0, 64));
      signed += 1;
    }
    expect([hashed > 2, signed > 4]).toEqual([true, true]);
  });

  test('refuses a scheme of another curve', () => {
    const key = generateApiKeyPair(randomBytes);
    for (const scheme of ['SIGNATURE_SCHEME_TK_API_ED25519', 'SIGNATURE_SCHEME_TK_WEBAUTHN'] as const) {
      expect(() => stampBody('', key, scheme)).toThrow(/does not sign with a key on API_KEY_CURVE_P256/);
    }
  });
});

describe('key pairs', () => {
  test('come from the given randomness alone', () => {
    for (const curve of ['API_KEY_CURVE_P256', 'API_KEY_CURVE_SECP256K1', 'API_KEY_CURVE_ED25519'] as const) {
      const fixed = (fill: number) => (length: number) => new Uint8Array(length).fill(fill);
      expect(generateApiKeyPair(fixed(1), curve)).toEqual(generateApiKeyPair(fixed(1), curve));
      expect(generateApiKeyPair(fixed(1), curve).privateKey).not.toBe(generateApiKeyPair(fixed(2), curve).privateKey);
      expect(generateApiKeyPair(fixed(255), curve).privateKey).toMatch(/^[0-9a-f]{64}$/);
      const { publicKey, privateKey } = generateApiKeyPair(randomBytes, curve);
      expect(apiKeyPairFromPrivate(privateKey.toUpperCase(), curve)).toEqual({ publicKey, privateKey, curve });
    }
  });

  test.each([
    ['zero', '0'.repeat(64)],
    ['the order', p256.Point.Fn.ORDER.toString(16)],
    ['short', 'ab'.repeat(31)],
    ['prefixed', `0x${'ab'.repeat(31)}`],
    ['no hex', 'zz'.repeat(32)],
  ])('a private key that is %s is refused without being repeated', (_, privateKey) => {
    const make = () => apiKeyPairFromPrivate(privateKey);
    expect(make).toThrow(refusedWith('INVALID_ARGUMENT', 'the private key is'));
    expect(make).not.toThrow(privateKey);
  });
});

describe('@turnkey/api-key-stamper', () => {
  test.each(['node', 'purejs', 'browser'] as const)('stamps of its %s signer verify', async (runtimeOverride) => {
    let high = 0;
    for (let index = 0; index < (runtimeOverride === 'node' ? 40 : 8); index++) {
      const key = generateApiKeyPair(randomBytes);
      const body = JSON.stringify({ index, text: 'ünïcode ☂' });
      const stamper = new ApiKeyStamper({
        apiPublicKey: key.publicKey,
        apiPrivateKey: key.privateKey,
        runtimeOverride,
      });
      const { stampHeaderName, stampHeaderValue } = await stamper.stamp(body);
      expect(stampHeaderName).toBe('X-Stamp');
      const stamp = apiKeyStamp(stampHeaderValue);
      await expect(verifyApiKeyStamp(stamp, Buffer.from(body))).resolves.toBeUndefined();
      await expect(verifyApiKeyStamp(stamp, Buffer.from(`${body} `))).rejects.toThrow(/is not one over these/);
      if (p256.Signature.fromBytes(derBytes(stamp), 'der').hasHighS()) high += 1;
    }
    // Its Node signer does not normalise s; this is why high s must be accepted.
    if (runtimeOverride === 'node') expect(high).toBeGreaterThan(0);
  });
});

function sha256Hex(text: string): string {
  return Buffer.from(sha256(Buffer.from(text))).toString('hex');
}

function fromHex(prefixed: string): Buffer {
  return Buffer.from(prefixed.replace(/^0x/, ''), 'hex');
}
