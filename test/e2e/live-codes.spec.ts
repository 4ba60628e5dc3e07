import { startCoordinator, type StampingClient, submitPath, type TestCoordinator } from '../../src/testing/index.js';
import { exchange, refusal } from './exchange.js';
import { resultOf } from './login-world.js';
import { codeOf } from './one-time-codes.js';
import { until } from './until.js';

// Wrong guesses end a code, and anybody may guess through the auth proxy: so nobody else learns which codes are live, and
// one network ends a code for itself alone (docs/adr/0018).

let coordinator: TestCoordinator;

beforeAll(async () => {
  coordinator = await startCoordinator({ settings: { TRUST_PROXY: 'true', PROXY_RATE_LIMIT_PER_CONTACT: '0' } });
});
afterAll(() => coordinator.close());

async function proxy(path: string, body: object, address = '198.51.100.1') {
  const { status, body: answer } = await exchange(`${coordinator.url}/v1/${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-auth-proxy-config-id': coordinator.root.authProxyConfigId,
      'x-forwarded-for': address,
    },
    body: JSON.stringify(body),
  });
  return { status, body: answer as Readonly<Record<string, string>> };
}

let people = 0;

async function sent(): Promise<{ otpId: string; code: string }> {
  const contact = `person-${++people}@example.com`;
  const { body } = await proxy('otp_init', { otpType: 'OTP_TYPE_EMAIL', contact }, `203.0.113.${people}`);
  return { otpId: body['otpId']!, code: await codeOf(coordinator, body['otpId']!) };
}

const guess = async (otpId: string, otpCode: string, address: string) => {
  const { status, body } = await proxy('otp_verify', { otpId, otpCode }, address);
  return status === 200 ? 'right' : `${status} ${body['message']?.split(':')[0]}`;
};
const wrong = '400 Invalid OTP code';

async function lockEvents(otpId: string) {
  return (await coordinator.events())
    .filter(({ data }) => (data as { otpId?: string }).otpId === otpId)
    .map(({ type }) => type);
}

test('three wrong guesses of one network end a code for it, and its owner still logs in', async () => {
  const { otpId, code } = await sent();
  for (let times = 0; times < 3; times++) expect(await guess(otpId, '000000000', '192.0.2.1')).toBe(wrong);
  expect(await guess(otpId, code, '192.0.2.1')).toBe(wrong);
  // What the proxy refuses does not reach the API.
  expect(await lockEvents(otpId)).toEqual(['OtpSent', 'OtpGuessFailed', 'OtpGuessFailed', 'OtpGuessFailed']);
  expect(await guess(otpId, code, '192.0.2.2')).toBe('right');
});

test('nine wrong guesses of several networks end it for all of them', async () => {
  const { otpId, code } = await sent();
  const guesses = Array.from({ length: 30 }, (_, number) => guess(otpId, '000000000', `192.0.2.${10 + (number % 5)}`));
  expect(new Set(await Promise.all(guesses))).toEqual(new Set([wrong]));
  expect(await guess(otpId, code, '192.0.2.99')).toBe(wrong);
  const types = await lockEvents(otpId);
  expect(types.filter((type) => type === 'OtpGuessFailed')).toHaveLength(9);
  expect(types.at(-1)).toBe('OtpInvalidated');
});

test('three wrong guesses by a key of the organization end it, as before', async () => {
  const { otpId, code } = await sent();
  const verify = (otpCode: string) =>
    refusal(coordinator.client.submit('ACTIVITY_TYPE_VERIFY_OTP', { otpId, otpCode }));
  for (let times = 0; times < 3; times++) expect(await verify('000000000')).toMatchObject({ status: 400 });
  expect((await lockEvents(otpId)).at(-1)).toBe('OtpInvalidated');
  expect(await guess(otpId, code, '192.0.2.3')).toBe(wrong);
});

describe('the id of a live code', () => {
  /** Everything that members can read about activities, the root quorum's histories included. */
  async function readAll(reader: StampingClient): Promise<string> {
    const limit = { paginationOptions: { limit: '100' } };
    const list = await reader.query<{ activities: { id: string }[] }>('list_activities', limit);
    const parts: unknown[] = [list, await reader.query('list_denials', limit)];
    for (const { id: activityId } of list.activities) {
      for (const path of ['get_activity', 'list_activity_events', 'list_app_proofs'])
        parts.push(await reader.query(path, { activityId }));
    }
    return JSON.stringify(parts);
  }

  async function readHistories(after: string): Promise<string> {
    const { client } = coordinator;
    return JSON.stringify([
      await client.query('list_events', { after, limit: '100' }),
      await client.query('get_organization_state', {}),
    ]);
  }

  test('is read by its submitter alone, and by everybody ten minutes later', async () => {
    const [maker, reader] = [await coordinator.createUser('Maker'), await coordinator.createUser('Reader')];
    await coordinator.createPolicy({
      policyName: 'the maker sends codes',
      condition: "activity.kind == 'INIT_OTP'",
      consensus: `approvers.any(user, user.id == '${maker.userId}')`,
    });
    const after = String((await coordinator.events()).length - 1);
    const type = 'ACTIVITY_TYPE_INIT_OTP_V3';
    const asked = { otpType: 'OTP_TYPE_EMAIL', contact: 'live@example.com', appName: 'Acme' };
    const activity = await maker.client.submit(type, asked);
    const { otpId } = resultOf<{ otpId: string }>(activity);
    const { otpId: ofStranger } = await sent();
    for (const id of [otpId, ofStranger]) {
      expect(await guess(id, '000000000', '192.0.2.50')).toBe(wrong);
      const denied = reader.client.submit('ACTIVITY_TYPE_VERIFY_OTP', { otpId: id, otpCode: '000000000' });
      expect(await refusal(denied)).toMatchObject({ status: 403 });
    }
    const denials = async () => JSON.stringify(await reader.client.query('list_denials'));
    await until('both denials are listed', async () => (await denials()).split(reader.userId).length > 2);

    const all = (await readAll(reader.client)) + (await readHistories(after));
    expect(all).toContain(activity.id);
    expect(all).not.toContain(otpId);
    expect(all).not.toContain(ofStranger);

    // Clients ask for the activity until it is completed.
    const own = await maker.client.query<{ activity: typeof activity }>('get_activity', { activityId: activity.id });
    expect([own.activity.result, own.activity.redacted]).toEqual([activity.result, undefined]);
    expect(JSON.stringify(await maker.client.query('list_activities'))).toContain(otpId);

    // Whoever reads the request can send it again.
    const { message, publicKey, scheme, signature } = own.activity.votes[0]!;
    const stamp = Buffer.from(JSON.stringify({ publicKey, scheme, signature })).toString('base64url');
    const again = await exchange(`${coordinator.url}${submitPath(type)}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-stamp': stamp },
      body: message,
    });
    expect(again).toMatchObject({ status: 200, body: { activity: { id: activity.id, redacted: true } } });
    expect(JSON.stringify(again.body)).not.toContain(otpId);

    coordinator.clock.advance('11m');
    expect(await readAll(reader.client)).toContain(otpId);
    expect(await readHistories(after)).toContain(ofStranger);
  });
});
