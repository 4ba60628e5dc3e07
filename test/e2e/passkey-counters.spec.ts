import { randomBytes } from 'node:crypto';
import { Writable } from 'node:stream';
import { send, startCoordinator, submitPath, type TestCoordinator } from '../../src/testing/index.js';
import { SoftwareAuthenticator, type AssertOptions } from '../stamps/software-authenticator.js';
import { exchange, refusal, textLike } from './exchange.js';

// WebAuthn level 3, section 6.1.1: a counter is a sign of a copy, not a proof; section 4: ids have up to 1,023 bytes.

const running: TestCoordinator[] = [];
let logged = '';
const log = new Writable({
  write(chunk: Buffer, _encoding, done) {
    logged += chunk.toString();
    done();
  },
});

afterEach(async () => {
  await Promise.all(running.splice(0).map((one) => one.close()));
});

interface Submitted {
  readonly activity: { readonly id: string; readonly status: string };
}

async function passkeyOwner(settings: Readonly<Record<string, string>> = {}, credentialId?: string) {
  logged = '';
  const coordinator = await startCoordinator({ settings, log, logLevel: 'warn' });
  running.push(coordinator);
  const { url, organizationId } = coordinator;
  const user = await coordinator.createUser('Owner');
  const passkey = new SoftwareAuthenticator();
  const named = credentialId === undefined ? {} : { credentialId };
  const register = () =>
    user.client.submit('ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', {
      userId: user.userId,
      authenticators: [{ authenticatorName: 'passkey', ...passkey.register({ ...named, signCount: 1 }) }],
    });
  const stamp = (options: Partial<AssertOptions> = {}) => {
    const type = 'ACTIVITY_TYPE_CREATE_API_KEYS_V2';
    const { publicKey } = coordinator.newKey();
    const apiKeys = [
      { apiKeyName: 'key', publicKey, curveType: 'API_KEY_CURVE_P256', expirationSeconds: '60' },
    ] as const;
    const body = coordinator.client.submitBody(type, { userId: user.userId, apiKeys });
    return { body, headers: { 'X-Stamp-WebAuthn': passkey.assert({ body, ...named, ...options }) } };
  };
  const submit = async ({ body, headers }: ReturnType<typeof stamp>) =>
    (await send<Submitted>(`${url}${submitPath('ACTIVITY_TYPE_CREATE_API_KEYS_V2')}`, body, headers)).body.activity;
  const ask = async (options: Partial<AssertOptions> = {}) => {
    const body = JSON.stringify({ organizationId });
    const headers = { 'X-Stamp-WebAuthn': passkey.assert({ body, ...named, ...options }) };
    return (await send<{ userId: string }>(`${url}/public/v1/query/whoami`, body, headers)).body;
  };
  const metric = async () => {
    const { text } = await exchange(`${url}/metrics`);
    return Number(/^countersign_passkey_counters_not_grown_total (\d+)$/m.exec(text)?.[1]);
  };
  return { coordinator, user, register, stamp, submit, ask, metric };
}

const lines = () => logged.split('\n').filter((line) => line.includes('signature counter'));

test.each(['report', 'strict'])(
  'counters of a backup-eligible passkey are ignored (PASSKEY_COUNTERS=%s)',
  async (mode) => {
    const { register, stamp, submit, ask, metric } = await passkeyOwner({ PASSKEY_COUNTERS: mode });
    await register();
    for (const signCount of [50, 50, 7, 0, 9, 4]) {
      const synced = { signCount, backupEligible: true };
      expect(await submit(stamp(synced))).toMatchObject({ status: 'ACTIVITY_STATUS_COMPLETED' });
      expect(await ask(synced)).toBeDefined();
    }
    expect([lines(), await metric()]).toEqual([[], 0]);
  },
);

test('a counter of one device that does not grow is reported, and not refused', async () => {
  const { coordinator, user, register, stamp, submit, ask, metric } = await passkeyOwner();
  await register();
  await submit(stamp({ signCount: 9 }));
  expect(lines()).toEqual([]);
  await submit(stamp({ signCount: 9 }));
  await submit(stamp({ signCount: 4 }));
  await ask({ signCount: 4 });
  expect(lines()).toHaveLength(3);
  expect(JSON.parse(lines()[1]!)).toMatchObject({
    level: 40,
    organizationId: coordinator.organizationId,
    userId: user.userId,
    credentialId: textLike(/^[\w-]{43}$/),
    signCount: 4,
    highestSeen: 9,
  });
  // The highest counter counts, not the last.
  await submit(stamp({ signCount: 8 }));
  await submit(stamp({ signCount: 10 }));
  expect([lines().length, await metric()]).toEqual([4, 4]);
});

test('requests that arrive in another order than they were stamped are all executed', async () => {
  const { register, stamp, submit } = await passkeyOwner();
  await register();
  const stamped = [2, 3, 4].map((signCount) => stamp({ signCount }));
  const activities = [];
  for (const one of stamped.reverse()) activities.push(await submit(one));
  expect(activities.map(({ status }) => status)).toEqual(activities.map(() => 'ACTIVITY_STATUS_COMPLETED'));
  expect(new Set(activities.map(({ id }) => id)).size).toBe(3);
});

test.each(['report', 'strict'])('the same stamped bytes are one request (PASSKEY_COUNTERS=%s)', async (mode) => {
  const { register, stamp, submit, metric } = await passkeyOwner({ PASSKEY_COUNTERS: mode });
  await register();
  const one = stamp({ signCount: 2 });
  const first = await submit(one);
  await submit(stamp({ signCount: 3 }));
  expect(await submit(one)).toEqual(first);
  expect([lines(), await metric()]).toEqual([[], 0]);
});

test('with PASSKEY_COUNTERS=strict a counter that does not grow is refused, and reported', async () => {
  const { register, stamp, submit, ask } = await passkeyOwner({ PASSKEY_COUNTERS: 'strict' });
  await register();
  await submit(stamp({ signCount: 9 }));
  const refused = { status: 401, turnkeyErrorCode: 'SIGNATURE_INVALID', message: textLike('counter 9 is not above 9') };
  expect(await refusal(submit(stamp({ signCount: 9 })))).toMatchObject(refused);
  expect(await refusal(ask({ signCount: 9 }))).toMatchObject(refused);
  expect(lines()).toHaveLength(2);
});

test.each([16, 192, 193, 512, 1_022, 1_023])('a passkey with a credential id of %d bytes works', async (length) => {
  const { coordinator, user, register, stamp, submit, ask } = await passkeyOwner(
    {},
    randomBytes(length).toString('base64url'),
  );
  await register();
  expect(await submit(stamp({ signCount: 2 }))).toMatchObject({ status: 'ACTIVITY_STATUS_COMPLETED' });
  expect(await ask({ signCount: 3 })).toMatchObject({ userId: user.userId });
  const { organizationIds } = await coordinator.client.query<{ organizationIds: string[] }>('list_suborgs', {
    filterType: 'CREDENTIAL_ID',
    filterValue: randomBytes(length).toString('base64url'),
  });
  expect(organizationIds).toEqual([]);
});

test('one of 1,024 bytes is refused', async () => {
  const { register } = await passkeyOwner({}, randomBytes(1_024).toString('base64url'));
  expect(await refusal(register())).toMatchObject({ status: 400, message: textLike('credentialId') });
});
