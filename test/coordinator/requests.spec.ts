import { createHash } from 'node:crypto';
import type { Stamp } from '../../src/stamps/stamp.js';
import { activities } from '../../src/activities/index.js';
import { buildRegistry } from '../../src/decide/registry.js';
import { readSubmit } from '../../src/coordinator/read-submit.js';
import { CoordinatorError } from '../../src/domain/errors.js';

const maxAgeMs = 3_600_000;
const maxAheadMs = 300_000;
const registry = buildRegistry(activities);
const now = Date.UTC(2026, 0, 1);
const stamp: Stamp = { kind: 'api-key', scheme: 'SIGNATURE_SCHEME_TK_API_P256', publicKey: '02', signature: '30' };
const organizationId = '00000000-0000-4000-8000-000000000001';
const userId = '00000000-0000-4000-8000-000000000002';

const submit = {
  type: 'ACTIVITY_TYPE_UPDATE_USER_NAME',
  timestampMs: String(now),
  organizationId,
  parameters: { userId, userName: 'Alice' },
};

function read(body: object | string, path = 'update_user_name') {
  const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  return readSubmit({ path, body: bytes, stamp }, registry, now);
}

function refused(body: object, path?: string): CoordinatorError {
  try {
    read(body, path);
  } catch (error) {
    if (error instanceof CoordinatorError) return error;
    throw error;
  }
  throw new Error('was taken');
}

test('keeps the bytes, their fingerprint, and the parameters as they were sent', () => {
  const text = JSON.stringify(submit, null, 2);
  const request = read(text);
  expect(request.text).toBe(text);
  expect(Buffer.from(request.body).toString()).toBe(text);
  expect(request.fingerprint).toBe(`sha256:${createHash('sha256').update(text).digest('hex')}`);
  expect(request).toMatchObject({
    organizationId,
    timestampMs: submit.timestampMs,
    generateAppProofs: undefined,
    stamp,
  });
  expect(request.version.type).toBe(submit.type);
  expect(request.parameters).toEqual(submit.parameters);
  expect({ ...request.intent }).toEqual(submit.parameters);
});

test('the order of members and the white space make another fingerprint of the same request', () => {
  const { type, ...rest } = submit;
  const [one, other] = [read(submit), read({ ...rest, type })];
  expect(one.fingerprint).not.toBe(other.fingerprint);
  expect({ ...one.intent }).toEqual({ ...other.intent });
});

test('null members are left out of the parameters too', () => {
  const request = read({ ...submit, generateAppProofs: null, parameters: { ...submit.parameters, extra: null } });
  expect(request.parameters).toEqual(submit.parameters);
});

test('an older version is lifted, and its parameters stay as submitted', () => {
  const parameters = {
    users: [{ userName: 'Alice', accessType: 'ACCESS_TYPE_ALL', apiKeys: [], authenticators: [], userTags: [] }],
  };
  const request = read({ ...submit, type: 'ACTIVITY_TYPE_CREATE_USERS', parameters }, 'create_users');
  expect(request.parameters).toEqual(parameters);
  expect(request.intent).toEqual({
    users: [{ userName: 'Alice', apiKeys: [], authenticators: [], userTags: [] }],
  });
});

test.each([
  [maxAgeMs, false],
  [maxAgeMs - 1, true],
  [0, true],
  [-maxAheadMs, true],
  [-maxAheadMs - 1, false],
])('a request that is %i ms old', (age, isTaken) => {
  const body = { ...submit, timestampMs: String(now - age) };
  if (isTaken) expect(read(body).timestampMs).toBe(body.timestampMs);
  else expect(refused(body)).toMatchObject({ code: 'INVALID_ARGUMENT', category: 'INVALID_TIME' });
});

test.each([
  ['no type', { type: undefined }, /type: is required/],
  ['no text', { type: ['ACTIVITY_TYPE_UPDATE_USER_NAME'] }, /type: must be a string/],
  [
    'unknown',
    { type: 'ACTIVITY_TYPE_NONE' },
    /not an activity type of this server: `ACTIVITY_TYPE_NONE`; this path accepts/,
  ],
  [
    'of another path',
    { type: 'ACTIVITY_TYPE_DELETE_USERS' },
    /must be sent to \/public\/v1\/submit\/delete_users; this path accepts/,
  ],
])('a type that is %s', (_name, changes, message) => {
  expect(refused({ ...submit, ...changes }).message).toMatch(message);
});

test('a long unknown type is truncated in the message', () => {
  expect(refused({ ...submit, type: 'X'.repeat(100_000) }).message.length).toBeLessThan(1_000);
});

test('every path accepts the whole version family of its kind, and no other type', () => {
  for (const [path, versions] of registry.paths) {
    for (const { type } of registry.versions.values()) {
      const { message } = refused({ ...submit, type, parameters: [] }, path);
      const isTaken = versions.some((version) => version.type === type);
      expect([path, type, message]).toEqual([
        path,
        type,
        expect.stringMatching(isTaken ? /^invalid request: parameters: must be an object$/ : /must be sent to/),
      ]);
    }
  }
});
