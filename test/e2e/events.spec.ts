import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { organizationStream } from '../../src/domain/organization/organization.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { startCoordinator, StampingClient, type TestCoordinator } from '../../src/testing/index.js';
import { exchange, refusal } from './exchange.js';
import { clientSignature, codeOf } from './one-time-codes.js';

// Whole histories, for those who stand above everything. Whoever asks here besides them is turned away.

interface Told {
  readonly id: string;
  readonly revision: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly hash: string;
  readonly activityId?: string;
  readonly decidedAt?: string;
  readonly redacted?: true;
}

interface Page {
  readonly events: readonly Told[];
  readonly hasMore?: true;
}

interface State {
  readonly at: { readonly revision: string; readonly eventId: string; readonly hash: string };
  readonly organization: Readonly<Record<string, unknown>>;
  readonly elements: readonly { number: string; list: string; id: string; value: Readonly<Record<string, unknown>> }[];
  readonly hasMore?: true;
}

interface Compared {
  readonly from: State['at'];
  readonly to: State['at'];
  readonly changes: readonly { number: string; list: string; id: string; change: string; text: string }[];
}

/** Every query about whole histories, with what it may be asked of any organization. */
const histories: Readonly<Record<string, object>> = {
  list_events: {},
  get_event: { revision: '0' },
  get_organization_state: {},
  compare_states: { from: { revision: '0' } },
  what_if: { draft: { withoutUsers: ['nobody'] } },
};

let coordinator: TestCoordinator;

beforeAll(async () => {
  coordinator = await startCoordinator({
    settings: {
      PROXY_RATE_LIMIT_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_PER_CONFIGURATION: '0',
      PROXY_RATE_LIMIT_SIGN_UPS_PER_ADDRESS: '0',
    },
  });
});

afterAll(() => coordinator.close());

const listOf = (client: StampingClient, request: object = {}) => client.query<Page>('list_events', request);

async function proxy(path: string, body: object) {
  const { status, body: answer } = await exchange(`${coordinator.url}/v1/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-auth-proxy-config-id': coordinator.root.authProxyConfigId },
    body: JSON.stringify(body),
  });
  expect({ status, answer }).toMatchObject({ status: 200 });
  return answer as Readonly<Record<string, string>>;
}

/** A stranger who has signed up, alone in the quorum of a sub-organization. */
async function stranger() {
  const key = coordinator.newKey();
  const apiKeys = [{ apiKeyName: 'own', publicKey: key.publicKey, curveType: key.curve }];
  const { organizationId } = await proxy('signup', { apiKeys, authenticators: [], oauthProviders: [] });
  return {
    key,
    organizationId: organizationId!,
    client: new StampingClient(coordinator.url, organizationId!, key, coordinator.clock),
  };
}

describe('list_events', () => {
  test('tells each event once, in order, across restarts, and where its signed request and its decision are', async () => {
    const carol = await coordinator.createUser('Carol');
    await coordinator.createPolicy({
      policyName: 'two',
      consensus: `approvers.any(user, user.id == '${carol.userId}')`,
    });
    await carol.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'hers', userIds: [carol.userId] });

    const seen: Told[] = [];
    for (;;) {
      const after = seen.at(-1)?.revision;
      const { events } = await listOf(coordinator.client, { limit: '7', ...(after === undefined ? {} : { after }) });
      if (events.length === 0) break;
      expect(events.length).toBeLessThanOrEqual(7);
      seen.push(...events);
      if (seen.length === 14) coordinator = await coordinator.restart();
    }
    const recorded = await coordinator.events();
    expect(recorded.length).toBeGreaterThan(14);
    const placed = ({ id, revision, type, metadata }: RecordedEvent) => {
      return { id, revision: String(revision), type, hash: (metadata as { hash: string }).hash };
    };
    expect(seen.map(({ id, revision, type, hash }) => ({ id, revision, type, hash }))).toEqual(recorded.map(placed));

    const effect = seen.find(({ type }) => type === 'UserTagCreated')!;
    const deciding = seen.find(({ revision }) => revision === effect.decidedAt)!;
    expect(deciding).toMatchObject({
      type: 'ActivitySubmitted',
      activityId: effect.activityId,
      decidedAt: deciding.revision,
      data: { vote: { userId: carol.userId, publicKey: carol.key.publicKey }, decision: { outcome: 'allow' } },
    });
    for (const { activityId, decidedAt, revision } of seen) {
      if (activityId === undefined) continue;
      const found = seen.find((one) => one.revision === decidedAt)!;
      expect([found.activityId, Number(found.revision) <= Number(revision)]).toEqual([activityId, true]);
      expect(Object.keys(found.data)).toContain('vote');
    }
    expect(await coordinator.client.query('get_event', { revision: effect.revision })).toEqual({
      event: effect,
      decision: deciding,
    });
    expect(await coordinator.client.query('get_event', { revision: deciding.revision })).toEqual({ event: deciding });
    const beyond = await refusal(coordinator.client.query('get_event', { revision: '9999999' }));
    expect(beyond).toMatchObject({ status: 404, message: expect.stringContaining('`9999999`') as string });
  });

  test.each(Object.entries(histories))('%s is for members of the root quorum, with their key', async (path, asked) => {
    const alice = await coordinator.createUser(`Alice and ${path}`);
    expect(await refusal(alice.client.query(path, asked))).toMatchObject({
      status: 403,
      message: `query ${path}: user \`${alice.userId}\` is not in the root quorum of organization \`${coordinator.organizationId}\``,
    });

    const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_READ_ONLY_SESSION', {});
    const { session } = result['createReadOnlySessionResult'] as { readonly session: string };
    const body = JSON.stringify({ organizationId: coordinator.organizationId, ...asked });
    const bySession = await exchange(`${coordinator.url}/public/v1/query/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-session': session },
      body,
    });
    expect(bySession).toMatchObject({
      status: 403,
      body: { message: expect.stringContaining('requires a stamp') as string },
    });
  });

  test('of a sub-organization is for its parent’s quorum', async () => {
    const one = await stranger();
    const parents = coordinator.clientFor(coordinator.client.key, one.organizationId);
    const recorded = await coordinator.events(organizationStream(one.organizationId));
    const told = (await listOf(parents)).events;
    expect(told.map(({ id }) => id)).toEqual(recorded.map(({ id }) => id));
    const { at } = await parents.query<State>('get_organization_state');
    expect(at.revision).toBe(String(recorded.length - 1));
  });

  test.each(Object.entries(histories))(
    '%s of a sub-organization is for its own quorum once the parent says so',
    async (path, asked) => {
      const one = await stranger();
      const other = await stranger();
      const alice = await coordinator.createUser(`Alice too and ${path}`);
      const ask = (client: StampingClient) => client.query(path, asked);
      expect(await ask(coordinator.clientFor(coordinator.client.key, one.organizationId))).toBeDefined();
      expect(await refusal(ask(coordinator.clientFor(alice.key, one.organizationId)))).toMatchObject({ status: 403 });
      expect(await refusal(ask(coordinator.clientFor(other.key, one.organizationId)))).toMatchObject({ status: 401 });
      expect(await refusal(ask(coordinator.clientFor(one.key)))).toMatchObject({ status: 401 });

      const feature = { name: 'FEATURE_NAME_SUB_ORGANIZATION_EVENTS' };
      expect(await refusal(ask(one.client))).toMatchObject({
        status: 403,
        message: expect.stringContaining(`has not enabled ${feature.name}`) as string,
      });
      // Its own setting is not its parent's.
      await one.client.submit('ACTIVITY_TYPE_SET_ORGANIZATION_FEATURE', { ...feature, value: '' });
      expect(await refusal(ask(one.client))).toMatchObject({ status: 403 });
      await coordinator.client.submit('ACTIVITY_TYPE_SET_ORGANIZATION_FEATURE', { ...feature, value: '' });
      expect(await ask(one.client)).toBeDefined();
      // It speaks for the quorums of sub-organizations about themselves alone.
      expect(await refusal(ask(coordinator.clientFor(other.key, one.organizationId)))).toMatchObject({ status: 401 });
      expect(await refusal(ask(coordinator.clientFor(one.key)))).toMatchObject({ status: 401 });
      await coordinator.client.submit('ACTIVITY_TYPE_REMOVE_ORGANIZATION_FEATURE', feature);
      expect(await refusal(ask(one.client))).toMatchObject({ status: 403 });
    },
  );

  test('leaves a token out while it lives, and tells the signed request to the byte afterwards', async () => {
    const key = coordinator.newKey();
    const contact = 'somebody@example.com';
    const { otpId } = await proxy('otp_init', { otpType: 'OTP_TYPE_EMAIL', contact });
    const otpCode = await codeOf(coordinator, otpId!);
    const { verificationToken } = await proxy('otp_verify', { otpId, otpCode, publicKey: key.publicKey });
    const asked = {
      apiKeys: [{ apiKeyName: 'own', publicKey: key.publicKey, curveType: key.curve }],
      authenticators: [],
      oauthProviders: [],
    };
    const signup = { signup: { ...asked, email: contact } };
    const signature = clientSignature(key, verificationToken!, 'USAGE_TYPE_SIGNUP', signup);
    await proxy('signup', { userEmail: contact, verificationToken, ...asked, clientSignature: signature });

    const recorded = (await coordinator.events()).find(({ type, data }) => {
      return type === 'ActivitySubmitted' && JSON.stringify(data).includes(verificationToken!);
    })!;
    const after = String(recorded.revision - 1);
    const live = await listOf(coordinator.client, { after, limit: '1' });
    expect(live.events).toMatchObject([{ id: recorded.id, redacted: true }]);
    expect(JSON.stringify(live)).not.toContain(verificationToken!.split('.')[2]);
    const [{ decidedAt } = { decidedAt: '' }] = live.events;
    const alone = await coordinator.client.query('get_event', { revision: decidedAt! });
    expect(JSON.stringify(alone)).not.toContain(verificationToken!.split('.')[2]);

    coordinator.clock.advance('24h');
    const over = await listOf(coordinator.client, { after, limit: '1' });
    expect(over.events[0]).not.toHaveProperty('redacted');
    const { vote } = over.events[0]!.data as { readonly vote: { readonly message: string } };
    expect(vote.message).toContain(verificationToken);
  });

  test('is followed by the code on the page about following, as it is written', async () => {
    const page = await readFile(new URL('../../docs/how-to/follow-an-organization.md', import.meta.url), 'utf8');
    const [, written] = /```ts\n(let after[^]*?)```/.exec(page)!;
    const code = written!.replace(': string | undefined', '');
    const folder = await mkdtemp(join(tmpdir(), 'countersign-follow-'));
    try {
      const file = join(folder, 'follow.mjs');
      await writeFile(file, `export async function follow(client, keep, sleep) {${code}}`);
      const { follow } = (await import(file)) as { follow: (...given: readonly unknown[]) => Promise<void> };
      const kept: string[] = [];
      const enough = new Error('enough');
      let pauses = 0;
      // It follows for ever; what is recorded while it pauses is told next.
      const sleep = async (): Promise<void> => {
        pauses += 1;
        if (pauses > 1) throw enough;
        await coordinator.createUser('Later');
      };
      await expect(follow(coordinator.client, ({ id }: Told) => kept.push(id), sleep)).rejects.toBe(enough);
      expect(kept).toEqual((await coordinator.events()).map(({ id }) => id));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  test('refuses invalid cursors and limits', async () => {
    for (const request of [{ after: '-1' }, { after: 'x' }, { limit: '0' }, { limit: '101' }, { after: 5 }]) {
      expect([request, (await refusal(listOf(coordinator.client, request))).status]).toEqual([request, 400]);
    }
    expect(await listOf(coordinator.client, { after: '9999999999' })).toEqual({ events: [] });
  });
});

describe('get_organization_state and compare_states', () => {
  const stateOf = (request: object = {}) => coordinator.client.query<State>('get_organization_state', request);
  const compared = (request: object) => coordinator.client.query<Compared>('compare_states', request);
  const newest = async () => (await coordinator.events()).at(-1)!;

  test('tell what was there at a revision, a position and a time, and what has changed between them in words', async () => {
    const before = await newest();
    coordinator.clock.advance('1m');
    const policyId = await coordinator.createPolicy({ policyName: 'for a while', condition: 'true' });
    const during = await newest();
    coordinator.clock.advance('1m');
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
    const { at: time, hash } = during.metadata as { at: number; hash: string };

    const points = [
      { revision: String(during.revision) },
      { position: String(during.position) },
      { time: new Date(time).toISOString() },
      { time: new Date(time + 30_000).toISOString().replace('Z', '+00:00') },
    ];
    for (const at of points) {
      const state = await stateOf({ at, lists: ['policies'] });
      expect(state.at).toEqual({
        revision: String(during.revision),
        eventId: during.id,
        recordedAt: new Date(time).toISOString(),
        hash,
      });
      expect(state.elements.map(({ list }) => list)).toEqual(state.elements.map(() => 'policies'));
      expect(state.elements.find(({ id }) => id === policyId)?.value).toMatchObject({ policyName: 'for a while' });
      const { changes } = await compared({ from: { revision: String(before.revision) }, to: at });
      expect(changes).toEqual([
        { number: '1', list: 'policies', id: policyId, change: 'CREATED', text: "policy 'for a while' was created" },
      ]);
    }
    const now = await stateOf();
    expect(now.at.revision).toBe(String((await newest()).revision));
    expect(now.organization).toMatchObject({ organizationId: coordinator.organizationId });
    expect(now.elements.map(({ id }) => id)).not.toContain(policyId);
    const end = await compared({ from: points[0]! });
    expect(end.changes.map(({ text }) => text)).toEqual(["policy 'for a while' was deleted"]);
    const rest = await stateOf({ after: now.elements[1]!.number });
    expect(rest.elements).toEqual(now.elements.slice(2));
  });

  test('refuse invalid or unknown points', async () => {
    const one = { revision: '1' };
    for (const [at, words] of [
      [{}, /`?at`?.* must have exactly one of `revision`, `position` and `time`, got 0/],
      [{ ...one, position: '1' }, /got 2/],
      [{ time: 'yesterday' }, /must be a time such as .* got `yesterday`/],
      [{ time: '2026-11-23T12:00:00' }, /must be a time such as/],
      [{ revision: '-1' }, /at\.revision/],
    ] as const) {
      const refused = await refusal(stateOf({ at }));
      expect([at, refused]).toMatchObject([at, { status: 400, message: expect.stringMatching(words) as string }]);
    }
    expect(await refusal(stateOf({ at: { revision: '999999' } }))).toMatchObject({
      status: 404,
      message: expect.stringContaining('has no event at revision `999999`: the last one is') as string,
    });
    expect(await refusal(stateOf({ at: { time: '1999-01-01T00:00:00Z' } }))).toMatchObject({ status: 404 });
    expect(await refusal(compared({ from: { revision: '5' }, to: one }))).toMatchObject({
      status: 400,
      message: 'invalid request: to: is earlier than `from`: name the earlier state first',
    });
  });

  test('omit usable secrets, and digests that would allow guessing', async () => {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const exp = Math.floor(coordinator.clock.now() / 1_000) + 600;
    const secret = 'c2lnbmF0dXJlIG9mIGEgbGl2ZSB0b2tlbg';
    const token = `${part({ alg: 'ES256' })}.${part({ exp })}.${secret}`;
    const dave = await coordinator.createUser('Dave');
    await coordinator.createPolicy({ policyName: 'Dave with another', consensus: `approvers.count() >= 2` });
    const from = { revision: String((await newest()).revision) };
    const { id: activityId } = await dave.client.submit('ACTIVITY_TYPE_CREATE_POLICY_V3', {
      policyName: 'of Dave',
      effect: 'EFFECT_ALLOW',
      condition: 'true',
      notes: token,
    });
    const { otpId } = await proxy('otp_init', { otpType: 'OTP_TYPE_EMAIL', contact: 'dave@example.com' });
    const texts = async () => JSON.stringify([await stateOf(), await compared({ from })]);
    const live = await texts();
    expect(live).toContain(activityId);
    expect(live).toContain('dave@example.com');
    expect(live).not.toContain(otpId);
    expect(live).not.toContain(secret);
    expect(live).not.toMatch(/codeHash|vaultId|"signature"/);
    coordinator.clock.advance('1h');
    expect(await texts()).toContain(secret);
  });
});
