import { createHash, createHmac, createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto';
import { p256 } from '@noble/curves/nist.js';
import { verifyOtpVerificationToken, verifySessionJwtSignature } from '@turnkey/crypto';
import fc from 'fast-check';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { preparePorts } from '../coordinator/prepare-ports.js';

const { keys, tokens } = await preparePorts();
const now = Date.UTC(2026, 0, 1);
const publicKey = `02${'ab'.repeat(32)}`;

const session = {
  userId: '1f0d7a55-4a0b-4b0c-9c58-0d4b7a0f3f11',
  organizationId: '5d7f6e0a-63d6-4a53-a1ad-6a4c9d2f9b0f',
  publicKey,
  sessionType: 'SESSION_TYPE_READ_WRITE',
  expiresAt: now + 900_999,
} as const;

const verification = {
  tokenId: '0c0f6a9e-9ed1-4b6b-8d1d-0a49a1d5c2aa',
  verificationType: 'OTP_TYPE_EMAIL',
  contact: 'ann@example.com',
  organizationId: session.organizationId,
  publicKey,
  expiresAt: now + 3_600_000,
} as const;

const payloadOf = (token: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as Record<string, unknown>;

describe('session tokens', () => {
  test('are taken by the published client with our notarizer key, and by no other', async () => {
    const token = await tokens.signSession(session);
    const notarizer = keys.publicKey('notarizer', 'uncompressed');
    expect(await verifySessionJwtSignature(token, notarizer)).toBe(true);
    expect(await verifySessionJwtSignature(token, keys.publicKey('signer', 'uncompressed'))).toBe(false);
    expect(await verifySessionJwtSignature(token)).toBe(false);
  });

  test('say what clients read, the end in whole seconds', async () => {
    const token = await tokens.signSession(session);
    expect(JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString())).toEqual({ alg: 'ES256', typ: 'JWT' });
    expect(payloadOf(token)).toEqual({
      exp: Math.floor((now + 900_999) / 1000),
      public_key: publicKey,
      session_type: 'SESSION_TYPE_READ_WRITE',
      user_id: session.userId,
      organization_id: session.organizationId,
    });
    expect(await tokens.signSession(session)).toBe(token);
  });
});

describe('verification tokens', () => {
  test('are taken by the published client, every claim a text', async () => {
    const token = await tokens.signVerification(verification);
    // The client compares with today.
    const lasting = await tokens.signVerification({ ...verification, expiresAt: Date.now() + 3_600_000 });
    expect(
      await verifyOtpVerificationToken(lasting, keys.publicKey('verification-token', 'uncompressed')),
    ).toMatchObject({ contact: 'ann@example.com', id: verification.tokenId });
    expect(payloadOf(token)).toEqual({
      id: verification.tokenId,
      verification_type: 'OTP_TYPE_EMAIL',
      contact: 'ann@example.com',
      organization_id: verification.organizationId,
      public_key: publicKey,
      exp: String(verification.expiresAt),
    });
  });

  test('are returned as they were signed, until they expire', async () => {
    const token = await tokens.signVerification(verification);
    expect(await tokens.verifyVerification(token, verification.expiresAt - 1)).toEqual(verification);
    await expect(tokens.verifyVerification(token, verification.expiresAt)).rejects.toThrow('it has expired');
    const { publicKey: _key, ...older } = verification;
    expect(await tokens.verifyVerification(await tokens.signVerification(older), now)).toEqual(older);
  });

  test('of another kind or server, or changed, are refused', async () => {
    const token = await tokens.signVerification(verification);
    const [head, payload, signature] = token.split('.') as [string, string, string];
    const forged = Buffer.from(JSON.stringify({ ...payloadOf(token), contact: 'eve@example.com' })).toString(
      'base64url',
    );
    const none = Buffer.from('{"alg":"none","typ":"JWT"}').toString('base64url');
    const stranger = await (
      await preparePorts(new InMemoryEventStore(), 'stranger')
    ).tokens.signVerification(verification);
    const keyed = (alg: string, more: object = {}) =>
      Buffer.from(JSON.stringify({ alg, typ: 'JWT', ...more })).toString('base64url');
    const hmac = createHmac('sha256', Buffer.from(keys.publicKey('verification-token', 'uncompressed'), 'hex'))
      .update(`${keyed('HS256')}.${payload}`)
      .digest('base64url');
    const ours = (head: string, said = payload) =>
      keys.use('verification-token', (key) => {
        const signed = p256.sign(Buffer.from(`${head}.${said}`), key);
        return `${head}.${said}.${Buffer.from(signed).toString('base64url')}`;
      });
    const without = (name: string) => {
      const { [name]: _left, ...rest } = payloadOf(token);
      return ours(head, Buffer.from(JSON.stringify(rest)).toString('base64url'));
    };
    const attempts = [
      `${keyed('HS256')}.${payload}.${hmac}`,
      // By our key, but no token of ours: another kind, or critical headers.
      await ours(keyed('ES256', { typ: 'at+jwt' })),
      await ours(keyed('ES256', { typ: undefined })),
      await ours(keyed('ES384')),
      await ours(keyed('ES256', { crit: ['x'], x: 1 })),
      await ours(head, Buffer.from('[]').toString('base64url')),
      await ours(head, Buffer.from('{').toString('base64url')),
      ...(await Promise.all(['id', 'verification_type', 'contact', 'organization_id', 'exp'].map(without))),
      await tokens.signSession(session),
      stranger,
      `${head}.${forged}.${signature}`,
      `${none}.${payload}.`,
      `${none}.${payload}.${signature}`,
      `${head}.${payload}`,
      `${token}.${signature}`,
      'x'.repeat(10_000),
      '',
    ];
    for (const attempt of attempts) {
      await expect(tokens.verifyVerification(attempt, now)).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringContaining('invalid verification token') as string,
      });
    }
  });

  test('of more than 8 192 characters are not looked into', async () => {
    await expect(tokens.verifyVerification('x'.repeat(8_193), now)).rejects.toThrow(
      '8193 characters, which is too many',
    );
    await expect(tokens.verifyVerification('x'.repeat(8_192), now)).rejects.not.toThrow('too many');
  });

  test('told again say so, and nothing else', async () => {
    const token = await tokens.signVerification(verification);
    const again = await tokens.signVerificationAgain(token.slice(0, token.lastIndexOf('.') + 1));
    expect(payloadOf(again)).toEqual({ ...payloadOf(token), told_again: 'true' });
    expect(await tokens.verifyVerification(again, now)).toEqual({ ...verification, toldAgain: true });
    const lasting = await tokens.signVerification({ ...verification, expiresAt: Date.now() + 3_600_000 });
    const told = await tokens.signVerificationAgain(lasting.slice(0, lasting.lastIndexOf('.') + 1));
    const key = keys.publicKey('verification-token', 'uncompressed');
    expect(await verifyOtpVerificationToken(told, key)).toMatchObject({ contact: 'ann@example.com' });
  });

  test('are read alike by base64 decoders that know no base64url, whatever the contact', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }), async (contact) => {
        const token = await tokens.signVerification({ ...verification, contact });
        const payload = token.split('.')[1]!;
        expect(payload).not.toMatch(/[-_]/);
        expect(JSON.parse(atob(payload))).toMatchObject({ contact });
        expect((await tokens.verifyVerification(token, now)).contact).toBe(contact);
      }),
      { numRuns: 60 },
    );
  });
});

describe('client signatures', () => {
  const client = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { x, y } = client.publicKey.export({ format: 'jwk' });
  const parity = Buffer.from(y!, 'base64url').at(-1)! & 1;
  const compressed = `0${2 + parity}${Buffer.from(x!, 'base64url').toString('hex')}`;
  const message = '{"tokenId":"1","type":"USAGE_TYPE_LOGIN"}';
  const signed = (dsaEncoding: 'der' | 'ieee-p1363') =>
    sign('sha256', Buffer.from(message), { key: client.privateKey, dsaEncoding }).toString('hex');

  test.each(['der', 'ieee-p1363'] as const)('verify as %s', async (encoding) => {
    const signature = signed(encoding);
    expect(await tokens.verifyClientSignature({ publicKey: compressed, message, signature })).toBe(true);
    expect(await tokens.verifyClientSignature({ publicKey: compressed, message: `${message} `, signature })).toBe(
      false,
    );
    expect(await tokens.verifyClientSignature({ publicKey, message, signature })).toBe(false);
  });

  test('that are malformed verify nothing', async () => {
    for (const signature of ['', '00', 'zz', 'ff'.repeat(64)]) {
      expect(await tokens.verifyClientSignature({ publicKey: compressed, message, signature })).toBe(false);
    }
  });
});

test('a session is signed over a double hash, as its verifier asks', async () => {
  const [head, payload, signature] = (await tokens.signSession(session)).split('.') as [string, string, string];
  const point = Buffer.from(keys.publicKey('notarizer', 'uncompressed'), 'hex');
  const jwk = {
    kty: 'EC',
    crv: 'P-256',
    x: point.subarray(1, 33).toString('base64url'),
    y: point.subarray(33).toString('base64url'),
  };
  const key = createPublicKey({ key: jwk, format: 'jwk' });
  const inner = createHash('sha256').update(`${head}.${payload}`).digest();
  const check = (data: Buffer) =>
    verify('sha256', data, { key, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url'));
  expect([check(inner), check(Buffer.from(`${head}.${payload}`))]).toEqual([true, false]);
});
