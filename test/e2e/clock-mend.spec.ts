import { activities } from '../../src/activities/index.js';
import { buildRegistry } from '../../src/decide/registry.js';
import { uuidV7 } from '../../src/ledger/ids.js';
import { fold, nothingLoaded } from '../../src/ledger/loaded-organization.js';
import { mendClock } from '../../src/ledger/mend-clock.js';
import type { EventMetadata } from '../../src/ledger/chain.js';
import { seal } from '../../src/ledger/seal.js';
import { EventStoreDbEventStore } from '../../src/ledger/stores/event-store-db/event-store-db.js';
import { verifyHistory } from '../../src/audit/verify/verify.js';
import { startCoordinator, submitPath, type TestCoordinator, type TestUser } from '../../src/testing/index.js';
import { stampBody } from '../../src/stamps/sign.js';
import { deviations } from '../docs/event-validator.js';
import { EventStoreDouble } from '../ledger/stores/double/double.js';
import { exchange, refusal, textLike } from './exchange.js';
import { invitationLinkOf } from './invitation-links.js';
import { codeOf } from './one-time-codes.js';

// A clock was a year ahead for an hour. Everything that this hour has made is tried after its end, and again when the year is over.

const year = '365d';
const minutes = 60_000;

let server: EventStoreDouble;
let coordinator: TestCoordinator;
let store: EventStoreDbEventStore;

beforeEach(async () => {
  server = await EventStoreDouble.start();
  const settings = { INVITATION_URL: 'https://app.example/join' };
  coordinator = await startCoordinator({ store: server.connectionString as 'esdb', settings });
  client = coordinator.client;
  store = await EventStoreDbEventStore.open(server.connectionString);
});

afterEach(async () => {
  await coordinator.close();
  await store.close();
  await server.stop();
});

const resultOf = (activity: { readonly result: unknown }): Readonly<Record<string, string>> =>
  Object.values(activity.result as Readonly<Record<string, Readonly<Record<string, string>>>>)[0]!;

let tags = 0;
const tag = () => ['ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: `tag ${(tags += 1)}`, userIds: [] }] as const;

/** Clients never go back in time, so a clock that was set back needs new ones. */
let client: ReturnType<TestCoordinator['clientFor']>;
const root = () => client;

function setRight(): void {
  coordinator.clock.turnBack(year);
  client = coordinator.clientFor(coordinator.client.key);
}

const anew = ({ key, ...user }: TestUser): TestUser => ({ ...user, key, client: coordinator.clientFor(key) });

const mend = (organizationId = coordinator.organizationId) => {
  const newId = () => uuidV7(coordinator.clock, { bytes: (count) => crypto.getRandomValues(new Uint8Array(count)) });
  return mendClock({ store, clock: coordinator.clock, newId }, organizationId);
};

const findings = async () => (await verifyHistory(store, { registry: buildRegistry(activities) })).findings;

/** A key that logs in for so many seconds, by a stamp of the user. */
async function session({ client }: Pick<TestUser, 'client'>, expirationSeconds: number) {
  const key = coordinator.newKey();
  await client.submit('ACTIVITY_TYPE_STAMP_LOGIN', {
    publicKey: key.publicKey,
    expirationSeconds: String(expirationSeconds),
  });
  return coordinator.clientFor(key);
}

async function readSession({ client }: Pick<TestUser, 'client'>): Promise<() => Promise<number>> {
  const { session: token } = resultOf(await client.submit('ACTIVITY_TYPE_CREATE_READ_ONLY_SESSION', {}));
  return async () => {
    const { status } = await exchange(`${coordinator.url}/public/v1/query/whoami`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-session': token! },
      body: JSON.stringify({ organizationId: coordinator.organizationId }),
    });
    return status;
  };
}

async function sentCode(contact: string): Promise<{ readonly otpId: string; readonly otpCode: string }> {
  const asked = { otpType: 'OTP_TYPE_EMAIL', contact, appName: 'Acme' };
  const { otpId } = resultOf(await root().submit('ACTIVITY_TYPE_INIT_OTP_V2', asked));
  return { otpId: otpId!, otpCode: await codeOf(coordinator, otpId!) };
}

async function verifiedToken(contact: string): Promise<string> {
  const sent = await sentCode(contact);
  return resultOf(await root().submit('ACTIVITY_TYPE_VERIFY_OTP', sent))['verificationToken']!;
}

describe('an organization whose clock was mended', () => {
  test('has nothing left of the false time, neither at once nor when that time comes', async () => {
    const [ann, bob] = [
      await coordinator.createUser('Ann', { userEmail: 'ann@example.com' }),
      await coordinator.createUser('Bob'),
    ];
    await coordinator.createPolicy({
      policyName: 'two approve tags',
      condition: "activity.kind == 'CREATE_USER_TAG'",
      consensus: `approvers.any(user, user.id == '${ann.userId}') && approvers.any(user, user.id == '${bob.userId}')`,
    });
    const lasting = coordinator.newKey();
    await root().submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', {
      userId: ann.userId,
      apiKeys: [
        {
          apiKeyName: 'two years',
          publicKey: lasting.publicKey,
          curveType: lasting.curve,
          expirationSeconds: String(2 * 365 * 86_400),
        },
      ],
    });
    const early = await session(ann, 900);
    const beforeWaits = await ann.client.submit(...tag());

    coordinator.clock.advance(year);
    const falseKey = coordinator.newKey();
    await root().submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', {
      userId: bob.userId,
      apiKeys: [
        { apiKeyName: 'false', publicKey: falseKey.publicKey, curveType: falseKey.curve, expirationSeconds: '36000' },
      ],
    });
    const late = await session(ann, 36_000);
    const reads = await readSession(ann);
    const waits = await ann.client.submit(...tag());
    expect(waits.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    const token = await verifiedToken('ann@example.com');
    const code = await sentCode('ann@example.com');
    const deniedBody = bob.client.submitBody('ACTIVITY_TYPE_UPDATE_USER_NAME', { userId: ann.userId, userName: 'Eve' });
    const { headerName, headerValue } = stampBody(deniedBody, bob.key);
    const replay = () =>
      exchange(`${coordinator.url}${submitPath('ACTIVITY_TYPE_UPDATE_USER_NAME')}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', [headerName]: headerValue },
        body: deniedBody,
      });
    expect((await replay()).status).toBe(403);
    await root().submit('ACTIVITY_TYPE_CREATE_INVITATIONS', {
      invitations: [
        {
          receiverUserName: 'Cid',
          receiverUserEmail: 'cid@example.com',
          receiverUserTags: [],
          accessType: 'ACCESS_TYPE_ALL',
          senderUserId: coordinator.root.userId,
        },
      ],
    });
    const invited = await invitationLinkOf(coordinator, 'cid@example.com');

    setRight();
    coordinator.clock.advance('1h');
    const ahead = {
      status: 503,
      message: textLike(
        / s behind the last event of organization `[^`]+`, so nothing .* `countersign clock mend [-0-9a-f]+`/,
      ),
    };
    expect(await refusal(root().submit(...tag()))).toMatchObject(ahead);
    await expect(mend()).resolves.toMatchObject({ sessions: 3, activities: 2, codes: 1, invitations: 1 });
    await expect(mend()).rejects.toThrow(/there is nothing to mend/);

    const update = (verificationToken: string) =>
      root().submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', {
        userId: ann.userId,
        userEmail: 'ann@example.com',
        verificationToken,
      });
    const nothingLeft = async () => {
      expect((await refusal(early.query('whoami'))).status).toBe(401);
      expect((await refusal(coordinator.clientFor(late.key).query('whoami'))).status).toBe(401);
      expect((await refusal(coordinator.clientFor(late.key).submit(...tag()))).status).toBe(401);
      expect((await refusal(coordinator.clientFor(falseKey).submit(...tag()))).status).toBe(401);
      expect(await reads()).toBe(401);
      for (const { fingerprint } of [beforeWaits, waits]) {
        expect((await refusal(anew(bob).client.approve(fingerprint))).message).toMatch(/not waiting|has failed|ended/i);
      }
      expect((await refusal(root().submit('ACTIVITY_TYPE_VERIFY_OTP', code))).message).toMatch(/Invalid OTP/);
      expect((await refusal(update(token))).message).toMatch(/clock of organization/);
      const link = coordinator.clientFor(invited.client.key);
      const { publicKey, curve: curveType } = coordinator.newKey();
      const accepts = link.submit('ACTIVITY_TYPE_ACCEPT_INVITATION', {
        invitationId: invited.invitationId,
        apiKeys: [{ apiKeyName: 'own', publicKey, curveType }],
      });
      expect((await refusal(accepts)).status).toBe(401);
    };
    await nothingLeft();
    expect((await replay()).status).toBe(400);
    // What had no end in the false time, or a later one, is as it was.
    expect(await coordinator.clientFor(lasting).query('whoami')).toMatchObject({ userId: ann.userId });
    const own = await root().submit(...tag());
    expect(own.status).toBe('ACTIVITY_STATUS_COMPLETED');
    const events = await coordinator.events();
    expect((events.at(-1)!.metadata as EventMetadata).at).toBe(coordinator.clock.now());
    expect(events.flatMap(deviations)).toEqual([]);

    // Whoever had read the denied request tries it when its time comes, and policies have changed.
    await root().submit('ACTIVITY_TYPE_CREATE_POLICY_V3', {
      policyName: 'all',
      effect: 'EFFECT_ALLOW',
      condition: 'true',
      consensus: 'true',
      notes: '',
    });
    const newToken = await verifiedToken('ann@example.com');
    const readsAnew = await readSession(anew(ann));
    expect(await readsAnew()).toBe(200);
    await update(newToken);
    coordinator.clock.advance(365 * 86_400_000 - 3_600_000 + 2 * minutes);
    await nothingLeft();
    const again = await replay();
    expect([again.status, again.text]).toEqual([
      400,
      textLike(/was denied when the clock of this organization was wrong/),
    ]);
    expect(await findings()).toEqual([]);
  }, 120_000);

  test('keeps limits and uses of tokens, and after a restart too', async () => {
    const ann = await coordinator.createUser('Ann', { userEmail: 'ann@example.com' });
    const token = await verifiedToken('ann@example.com');
    const update = () =>
      root().submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', {
        userId: ann.userId,
        userEmail: 'ann@example.com',
        verificationToken: token,
      });
    await update();
    coordinator.clock.advance(year);
    for (let sent = 0; sent < 3; sent++) await sentCode('ann@example.com');
    setRight();
    await mend();
    // The state had forgotten the use, and has it again.
    const mended = (await coordinator.events()).at(-1)!.data;
    expect(mended).toMatchObject({ usedTokens: [{ usage: 'USAGE_TYPE_UPDATE_CONTACT' }] });
    await coordinator.restart();
    expect((await refusal(sentCode('ann@example.com'))).status).toBe(429);
    coordinator.clock.advance('181s');
    await sentCode('ann@example.com');
    // Its use had expired in the false time, and is as new again.
    expect((await refusal(update())).status).toBe(400);
    expect(await findings()).toEqual([]);
  }, 60_000);

  test('is mended by itself: its sub-organizations wait, and a parent that waits keeps none from working', async () => {
    const key = coordinator.newKey();
    const created = await root().submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V7', {
      subOrganizationName: 'Child',
      rootQuorumThreshold: 1,
      rootUsers: [
        {
          userName: 'Ann',
          apiKeys: [{ apiKeyName: 'key', publicKey: key.publicKey, curveType: key.curve }],
          authenticators: [],
          oauthProviders: [],
        },
      ],
    });
    const organizationId = resultOf(created)['subOrganizationId']!;
    const child = () => coordinator.clientFor(key, organizationId);
    coordinator.clock.advance(year);
    await root().submit(...tag());
    setRight();
    coordinator.clock.advance('1m');
    expect((await refusal(root().query('whoami'))).status).toBe(503);
    // The child's own key needs nothing of its parent; the parent's keys do.
    expect(await child().query('whoami')).toMatchObject({ organizationId });
    await child().submit(...tag());
    const parents = coordinator.clientFor(coordinator.client.key, organizationId);
    expect(
      (
        await refusal(
          parents.submit('ACTIVITY_TYPE_EMAIL_AUTH_V3', {
            email: 'a@example.com',
            targetPublicKey: coordinator.newKey().publicKey,
            emailCustomization: { appName: 'Sample' },
          }),
        )
      ).status,
    ).toBe(503);

    coordinator.clock.advance(year);
    await child().submit(...tag());
    setRight();
    await mend();
    await root().submit(...tag());
    expect((await refusal(child().submit(...tag()))).status).toBe(503);
    await mend(organizationId);
    await child().submit(...tag());
    expect(await findings()).toEqual([]);
  }, 60_000);
});

describe('verification', () => {
  /** Appends an event that nobody has decided, as the holder of the store can. */
  async function append(type: string, data: object, at: number, cause = crypto.randomUUID()): Promise<void> {
    const last = (await coordinator.events()).at(-1)!;
    const { hash } = last.metadata as EventMetadata;
    const metadata = { at, $correlationId: cause, $causationId: cause };
    const { events } = seal(last.stream, { revision: last.revision, hash }, [{ type, data, metadata }]);
    await store.append(last.stream, events, last.revision);
  }

  const problems = async () => (await findings()).map(({ problem }) => problem);

  test('finds time that runs backwards where nothing was mended', async () => {
    const { userId } = await coordinator.createUser('Ann');
    await append('UserDeleted', { userId }, coordinator.clock.now() - 1);
    expect(await problems()).toContainEqual(
      textLike(/^it was recorded at \S+, before the event that precedes it, at \S+$/),
    );
  });

  test('finds a mend that was not finished, or has left something, or ends another time', async () => {
    coordinator.clock.advance(year);
    const at = coordinator.clock.now();
    const short = { client: root() };
    const [one, two] = [await session(short, 900), await session(short, 901)];
    setRight();
    const { apiKeys } = (await keys())!;
    const idOf = (key: { readonly publicKey: string }) =>
      apiKeys.find(({ publicKey }) => publicKey === key.publicKey)!.apiKeyId;
    const deleted = (key: { readonly publicKey: string }) => ({ userId: coordinator.root.userId, apiKeyId: idOf(key) });
    await append('ApiKeyDeleted', deleted(one.key), at);
    expect(await problems()).toEqual(['a mend of the clock that was not finished: run countersign clock mend again']);
    await append('ClockMended', { lastTime: at + 1, usedTokens: [] }, coordinator.clock.now());
    expect(await problems()).toEqual([
      textLike(/^it ends a time until \S+, but the event before it is of \S+$/),
      textLike(
        new RegExp(`^it has not ended everything of the false time: .*${idOf(two.key)}.* is missing before it$`),
      ),
    ]);
  });

  test('takes a mend that an earlier attempt has begun', async () => {
    coordinator.clock.advance(year);
    const at = coordinator.clock.now();
    const one = await session({ client: root() }, 900);
    await session({ client: root() }, 901);
    setRight();
    const { apiKeys } = (await keys())!;
    const { apiKeyId } = apiKeys.find(({ publicKey }) => publicKey === one.key.publicKey)!;
    await append('ApiKeyDeleted', { userId: coordinator.root.userId, apiKeyId }, at);
    await expect(mend()).resolves.toMatchObject({ sessions: 1 });
    expect(await findings()).toEqual([]);
    const types = (await coordinator.events()).map(({ type }) => type);
    expect(types.slice(-3)).toEqual(['ApiKeyDeleted', 'ApiKeyDeleted', 'ClockMended']);
    await root().submit(...tag());
    expect(await findings()).toEqual([]);
  });

  /** The root user as the stream says. */
  async function keys() {
    const loaded = nothingLoaded();
    for (const event of await coordinator.events()) fold(loaded, event);
    return loaded.organization.users.get(coordinator.root.userId);
  }
});
