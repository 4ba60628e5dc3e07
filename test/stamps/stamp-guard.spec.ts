import type { ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { largeBody } from '../../src/fairness/turns.js';
import { generateApiKeyPair, stampBody } from '../../src/stamps/sign.js';
import { rawBody, ReadGuard, StampGuard, turnOfLarge } from '../../src/stamps/stamp.guard.js';
import { refusedWith } from './refused-with.js';
import { SoftwareAuthenticator } from './software-authenticator.js';

const key = generateApiKeyPair((length) => new Uint8Array(length).fill(9));
const body = Buffer.from('{"a":1}');
const stampOf = (bytes: Uint8Array) => stampBody(bytes, key).headerValue;
const session = `session.${'s'.repeat(43)}`;

const requestWith = (headers: Readonly<Record<string, string>>, sent: Uint8Array | null = body) =>
  ({ headers, body: sent, caller: { network: '192.0.2.1', isThroughProxy: false } }) as unknown as FastifyRequest;
const contextOf = (request: FastifyRequest) =>
  ({ switchToHttp: () => ({ getRequest: () => request }) }) as unknown as ExecutionContext;

const attested = (bytes: Uint8Array) => {
  const { signature } = JSON.parse(Buffer.from(stampOf(bytes), 'base64url').toString()) as { signature: string };
  const members = {
    publicKeyAttestation: 'a.b.c',
    scheme: 'STAMP_ATTESTED_SCHEME_P256_OIDC',
    publicKey: key.publicKey,
  };
  return { 'x-stamp-attested': JSON.stringify({ ...members, signature }) };
};

const guards = [
  ['submits', new StampGuard()],
  ['queries', new ReadGuard()],
] as const;

describe.each(guards)('the guard of %s', (_of, guard) => {
  const admit = async (request: FastifyRequest) => [await guard.canActivate(contextOf(request)), request.stamp?.kind];

  test('admits a stamp over these bytes, and hands it on', async () => {
    expect(await admit(requestWith({ 'x-stamp': stampOf(body) }))).toEqual([true, 'api-key']);
    expect(await admit(requestWith(attested(body)))).toEqual([true, 'attested']);
    const passkey = new SoftwareAuthenticator().assert({ body });
    expect(await admit(requestWith({ 'x-stamp-webauthn': passkey }))).toEqual([true, 'webauthn']);
    const large = Buffer.alloc(largeBody + 1, 'x');
    expect(await admit(requestWith({ 'x-stamp': stampOf(large) }, large))).toEqual([true, 'api-key']);
    expect(await admit(requestWith({ 'x-stamp': stampOf(Buffer.alloc(0)) }, null))).toEqual([true, 'api-key']);
  });

  test.each([
    ['an API key', { 'x-stamp': stampOf(Buffer.from('{"a":2}')) }],
    ['a key with a token', attested(Buffer.from('{"a":2}'))],
  ])('refuses a stamp by %s over other bytes, and hands nothing on', async (_by, headers) => {
    const request = requestWith(headers);
    await expect(admit(request)).rejects.toThrow(
      refusedWith('UNAUTHENTICATED', 'could not verify api key signature', 'SIGNATURE_INVALID'),
    );
    expect(request.stamp).toBeUndefined();
  });

  test('refuses a request without a stamp', async () => {
    await expect(admit(requestWith({}))).rejects.toThrow(
      refusedWith('UNAUTHENTICATED', 'without a stamp', 'SIGNATURE_MISSING'),
    );
  });
});

test('a session is enough for queries alone', async () => {
  const submit = requestWith({ 'x-session': session, 'x-stamp': stampOf(body) });
  await expect(new StampGuard().canActivate(contextOf(submit))).rejects.toThrow(/session/i);
  expect(submit.stamp).toBeUndefined();
  const query = requestWith({ 'x-session': session });
  expect(await new ReadGuard().canActivate(contextOf(query))).toBe(true);
  expect(query.stamp).toBeUndefined();
  expect(query.session).toBeDefined();
  const stamped = requestWith({ 'x-stamp': stampOf(body) });
  await new ReadGuard().canActivate(contextOf(stamped));
  expect(stamped.session).toBeUndefined();
});

test('the raw body is the received bytes, and empty where none came or something else is in its place', () => {
  expect(rawBody(requestWith({}))).toBe(body);
  for (const sent of [undefined, 'text', { a: 1 }]) {
    expect(rawBody({ body: sent } as unknown as FastifyRequest)).toEqual(Buffer.alloc(0));
  }
});

test('a small body waits for no turn', () => {
  expect(turnOfLarge(requestWith({}))).toBeUndefined();
  expect(turnOfLarge(requestWith({}), largeBody)).toBeUndefined();
});
