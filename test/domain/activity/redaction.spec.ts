import type { ActivityRecord } from '../../../src/domain/activity/record.js';
import { readableActivity, readableDenial, readableEvent } from '../../../src/domain/activity/redaction.js';

const now = Date.UTC(2026, 0, 1);
const base64url = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
const token = (exp: number) => `${base64url({ alg: 'ES256' })}.${base64url({ exp, sub: 'somebody' })}.c2lnbmF0dXJl`;
const [dead, live] = [token(now / 1000 - 1000), token(now / 1000 + 1000)];
const unsigned = live.slice(0, live.lastIndexOf('.') + 1);
/** What may be the header of a token, as far as can be told without decoding it. */
const candidates = (count: number) => `${base64url({ b: 'no token' })}.`.repeat(count);

const recorded = (payload: string): ActivityRecord<undefined> => ({
  activityId: 'a',
  organizationId: 'o',
  type: 'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2',
  status: 'ACTIVITY_STATUS_COMPLETED',
  intent: { payload },
  votes: [],
  decisions: [],
  fingerprint: '',
  timestampMs: '0',
  createdAt: 0,
  updatedAt: 0,
});
const payloadOf = (payload: string) => readableActivity(recorded(payload), now).intent['payload'];

test.each([
  ['in between', `before ${live} after`, `before ${unsigned} after`],
  ['at the end', `before ${live}`, `before ${unsigned}`],
  ['twice', `${live} ${live}`, `${unsigned} ${unsigned}`],
  ['after others', `${dead} ${live}`, `${dead} ${unsigned}`],
  ['with more parts', `x.${live}.y`, `x.${unsigned}.y`],
  ['in base64', Buffer.from(live).toString('base64'), Buffer.from(unsigned).toString('base64')],
  ['escaped in JSON', `{"t":"${live.replace('.', '\\u002e')}"}`, `{"t":"${unsigned}"}`],
  ['in JSON in JSON', JSON.stringify([JSON.stringify([live])]), JSON.stringify([JSON.stringify([unsigned])])],
])('a live token loses its signature: %s', (_where, payload, told) => expect(payloadOf(payload)).toBe(told));

test('whatever comes after two thousand possible tokens is taken for one', () => {
  const few = `${candidates(1_000)} ${dead}`;
  expect(payloadOf(few)).toBe(few);
  expect(payloadOf(`${candidates(3_000)} ${live}`)).toMatch(new RegExp(`${unsigned}$`));
  // Whether it is still good was not looked at.
  const unread = dead.slice(0, dead.lastIndexOf('.') + 1);
  expect(payloadOf(`${candidates(3_000)} ${dead}`)).toMatch(new RegExp(`${unread}$`));
});

test('base64 is looked into as far as a token may be in it', () => {
  const wrapped = (length: number) => {
    const [header, claims] = [
      base64url({ alg: 'ES256' }),
      base64url({ exp: now / 1000 + 1000, sub: 'x'.repeat(length) }),
    ];
    const [whole, rest] = [`${header}.${claims}.c2lnbmF0dXJl`, `${header}.${claims}.`];
    return [whole, rest].map((text) => Buffer.from(text).toString('base64')) as [string, string];
  };
  const [longest, told] = wrapped(18_000);
  expect(longest.length).toBeGreaterThan(32_000);
  expect(payloadOf(longest)).toBe(told);
  // No issuer’s token is as long as that, and so nothing would take it.
  const [tooLong] = wrapped(18_500);
  expect(tooLong.length).toBeLessThan(33_500);
  expect(payloadOf(tooLong)).toBe(tooLong);
});

test('JSON in texts is looked into only so far; what is spelled out has no signature all the same', () => {
  const large = Array.from({ length: 10 }, () => JSON.stringify(['x'.repeat(60_000)]));
  const padding = [...large, ...Array.from({ length: 400 }, () => '[]')];
  const told = (last: string) => {
    const intent = { payloads: [...padding, last] };
    return readableActivity({ ...recorded(''), intent }, now).intent['payloads'] as string[];
  };
  expect(told(`["${live}"]`).at(-1)).toBe(`["${unsigned}"]`);
  expect(told(`["${live.replace('.', '\\u002e')}"]`).at(-1)).toBe('');
  expect(told(`["${dead}"]`).at(-1)).toBe(`["${dead}"]`);
  expect(told('["otpCode"]').slice(0, -1)).toEqual(padding);
  const short = Array.from({ length: 10_000 }, () => '{');
  expect(readableActivity({ ...recorded(''), intent: { short } }, now).intent['short']).toEqual(short);
});

test('the signed texts of votes and proofs are looked into, however long they are, and what is in them as parameters are', () => {
  const message = JSON.stringify({ parameters: { filler: 'x'.repeat(500_000), token: live } });
  const proofPayload = JSON.stringify({ filler: 'x'.repeat(500_000), token: live });
  const vote = { message: message.replace(live, live.replace('.', '\\u002e')), userId: 'u' };
  const record = { status: 'ACTIVITY_STATUS_COMPLETED' } as const;
  expect(readableEvent({ type: 'ActivitySubmitted', data: { vote } }, record, now).data).toEqual({
    vote: { userId: 'u', message: message.replace(live, unsigned) },
  });
  const data = { proofs: [{ proofPayload: proofPayload.replace(live, live.replace('.', '\\u002e')) }] };
  expect(readableEvent({ type: 'AppProofsIssued', data }, record, now).data).toEqual({
    proofs: [{ proofPayload: proofPayload.replace(live, unsigned) }],
  });
});

describe('the id of a code that may be live', () => {
  const otpId = '0a1b2c3d-0000-4000-8000-000000000001';
  const hidden = '00000000-0000-0000-0000-000000000000';
  const codeLife = 600_000;
  const done = { status: 'ACTIVITY_STATUS_COMPLETED' } as const;
  const failed = { status: 'ACTIVITY_STATUS_FAILED' } as const;
  const sent = (userId: string): ActivityRecord<undefined> => ({
    ...recorded(''),
    intent: { contact: 'ann@example.com' },
    result: { otpId },
    votes: [{ userId, message: '{}' } as ActivityRecord<undefined>['votes'][number]],
    updatedAt: now - codeLife + 1,
  });

  test('is in the result for its submitter alone, and for everybody when no code lives as long', () => {
    const told = (readerId: string | undefined, at = now) => readableActivity(sent('maker'), at, { readerId }).result;
    expect(told('reader')).toEqual({ otpId: hidden });
    expect(told(undefined)).toEqual({ otpId: hidden });
    expect(told('maker')).toEqual({ otpId });
    expect(readableActivity(sent('maker'), now, { asSubmitted: true }).result).toEqual({ otpId });
    expect(told('reader', now + 1)).toEqual({ otpId });
  });

  test('is in parameters and signed bodies once what was done has used the code up, and not after a wrong guess', () => {
    const guess = JSON.stringify({ parameters: { otpId } });
    const data = { intent: { otpId }, vote: { userId: 'u', message: guess } };
    const read = (record: Pick<ActivityRecord<undefined>, 'status'>, at?: number) =>
      JSON.stringify(readableEvent({ type: 'ActivitySubmitted', data }, record, now, at === undefined ? {} : { at }));
    expect(read(failed, now)).not.toContain(otpId);
    expect(read(done, now)).not.toContain(hidden);
    expect(read(failed, now - codeLife)).not.toContain(hidden);
    // Without a time, for a file that is folded again.
    expect(read(failed)).not.toContain(hidden);
    const cut = guess.slice(0, -4);
    expect(
      readableEvent({ type: 'ActivitySubmitted', data: { vote: { message: cut } } }, failed, now, { at: now }).data,
    ).toEqual({ vote: { message: `{"parameters":{"otpId":"${hidden}` } });
  });

  test.each(['OtpSent', 'OtpGuessFailed'])('is not in %s while it may be live', (type) => {
    const read = (at: number) => readableEvent({ type, data: { otpId, contact: 'c' } }, done, now, { at }).data;
    expect(read(now)).toEqual({ otpId: hidden, contact: 'c' });
    expect(read(now - codeLife)).toEqual({ otpId, contact: 'c' });
  });

  test('is not in a denial until its request is too old, and the code with it', () => {
    const denial = { message: JSON.stringify({ otpId }), signature: 's', timestampMs: String(now) };
    expect(readableDenial(denial, now + 3_600_000 + codeLife - 1).message).toBe(JSON.stringify({ otpId: hidden }));
    expect(readableDenial(denial, now + 3_600_000 + codeLife)).toEqual(denial);
  });
});

describe('what is sealed to the installation is told to nobody', () => {
  const record = { status: 'ACTIVITY_STATUS_COMPLETED' } as const;
  const names = ['encryptedClientSecret', 'encryptedSecretApiKey', 'encryptedPrivateApiKey'] as const;
  const parameters = { clientId: 'app', ...Object.fromEntries(names.map((name) => [name, 'c0ffee'] as const)) };
  const told = { clientId: 'app', ...Object.fromEntries(names.map((name) => [name, ''] as const)) };
  const vote = (message: string) => ({ vote: { userId: 'u', message } });
  const read = (message: string, more?: { inPlace: string }, of: Pick<ActivityRecord<undefined>, 'status'> = record) =>
    readableEvent({ type: 'ActivitySubmitted', data: vote(message) }, of, now, more).data.vote.message;

  test('neither as parameters nor in the signed body, though the activity is done', () => {
    const activity = readableActivity({ ...recorded(''), intent: parameters }, now);
    expect([activity.intent, activity.redacted]).toEqual([told, true]);
    const filler = 'x'.repeat(500_000);
    expect(read(JSON.stringify({ parameters: { ...parameters, filler } }))).toBe(
      JSON.stringify({ parameters: { ...told, filler } }),
    );
    expect(read('{"parameters":{"encrypted\\u0043lientSecret":"c0ffee"}}')).toBe(
      '{"parameters":{"encryptedClientSecret":""}}',
    );
  });

  test.each(names)('not %s in a body that was cut off, nor in a text that is too long to be read', (name) => {
    expect(read(`{"parameters":{"${name}" : "c0ffee`)).toBe(`{"parameters":{"${name}" : "`);
    expect(read(`{"parameters":{"${name}":"c0\\"ffee","a":"b`)).toBe(`{"parameters":{"${name}":"","a":"b`);
    const payloads = [...Array.from({ length: 5 }, () => `["${'x'.repeat(60_000)}"]`), `{"${name}":"c0ffee"}`];
    const { intent } = readableActivity({ ...recorded(''), intent: { payloads } }, now);
    expect((intent['payloads'] as string[]).at(-1)).toBe(`{"${name}":""}`);
  });

  test('and in a file, something of their form stands in their place', () => {
    const inPlace = '00';
    const body = (secret: string) => JSON.stringify({ parameters: { encryptedClientSecret: secret } });
    expect(read(body('c0ffee'), { inPlace })).toBe(body('00'));
    expect(read(body('c0ffee').slice(0, -4), { inPlace })).toBe(body('00').slice(0, -3));
    expect(read(body(''), { inPlace })).toBe(body(''));
    const guess = (otpCode: string) => JSON.stringify({ parameters: { otpCode } });
    const waiting = { ...record, status: 'ACTIVITY_STATUS_CONSENSUS_NEEDED' } as const;
    expect(read(guess('123456'), { inPlace }, waiting)).toBe(guess('00'));
    expect(read(guess('123456').slice(0, -4), { inPlace }, waiting)).toBe(guess('00').slice(0, -3));
  });
});
