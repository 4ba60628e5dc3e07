import { jest } from '@jest/globals';
import { activities } from '../../src/activities/index.js';
import { buildRegistry } from '../../src/decide/registry.js';
import { organizationStream } from '../../src/domain/organization/organization.js';
import { organizationPath } from '../../src/fairness/fair-queue.js';
import { thisThread } from '../../src/fairness/turns.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { generateApiKeyPair, ManualClock, stampBody, type ApiKeyPair } from '../../src/testing/index.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { redecide } from '../../src/audit/verify/decide-again.js';
import { exchange, refusal } from '../e2e/exchange.js';
import { until } from '../e2e/until.js';
import { startBeside, type Beside } from './shared-store.js';

const store = new InMemoryEventStore();
const clock = new ManualClock(Date.UTC(2026, 0, 1));
let here: Beside;
let elsewhere: Beside;
let count = 0;

beforeAll(async () => {
  here = await startBeside(store, 'here', clock);
  elsewhere = await startBeside(store, 'elsewhere', clock);
});
afterEach(async () => {
  jest.restoreAllMocks();
  here.store.release();
  here.store.releaseFeed();
  await here.followed();
});
afterAll(async () => {
  await here.close();
  await elsewhere.close();
  await store.close();
});

const newKey = () => generateApiKeyPair((length) => crypto.getRandomValues(new Uint8Array(length)));
const keyParams = ({ publicKey, curve }: ApiKeyPair) => ({ apiKeyName: `key ${++count}`, publicKey, curveType: curve });
const historyOf = async (organizationId: string): Promise<readonly RecordedEvent[]> => {
  const events: RecordedEvent[] = [];
  for await (const event of store.read(organizationStream(organizationId))) events.push(event);
  return events;
};
const eventsOf = async (organizationId: string): Promise<readonly string[]> =>
  (await historyOf(organizationId)).map(({ type }) => type);

/** A sub-organization with one root user, made by the parent's root user. */
async function child(of: Beside, root: { readonly apiKeys: readonly ApiKeyPair[]; readonly contacts?: object }) {
  const { result } = await of.root.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
    subOrganizationName: `Child ${++count}`,
    rootUsers: [
      {
        userName: 'Ann',
        ...root.contacts,
        apiKeys: root.apiKeys.map(keyParams),
        authenticators: [],
        oauthProviders: [],
      },
    ],
    rootQuorumThreshold: 1,
  });
  const { subOrganizationId, rootUserIds } = result['createSubOrganizationResultV8'] as {
    subOrganizationId: string;
    rootUserIds: [string];
  };
  return { organizationId: subOrganizationId, userId: rootUserIds[0] };
}

/** Moves this process's own time past what it remembers of other writers. */
function later(): void {
  const real = performance.now.bind(performance);
  jest.spyOn(performance, 'now').mockImplementation(() => real() + 6_000);
}

const rename = (organizationName: string) => ['ACTIVITY_TYPE_UPDATE_ORGANIZATION_NAME', { organizationName }] as const;

describe('a key of the parent that another coordinator has revoked', () => {
  it('submits nothing in a sub-organization, though parent and sub-organization are held as they were', async () => {
    const eve = newKey();
    const { result } = await here.root.submit('ACTIVITY_TYPE_CREATE_USERS_V4', {
      users: [{ userName: 'Eve', apiKeys: [keyParams(eve)], authenticators: [], oauthProviders: [], userTags: [] }],
    });
    const { userIds } = result['createUsersResult'] as { userIds: [string] };
    await here.root.submit('ACTIVITY_TYPE_CREATE_POLICY_V3', {
      policyName: 'contacts',
      effect: 'EFFECT_ALLOW',
      condition: "activity.kind == 'RELEASE_CONTACT'",
      consensus: 'true',
      notes: '',
    });
    const contacts = { userEmail: 'ann@example.com', userPhoneNumber: '+13214567890' };
    const { organizationId } = await child(here, { apiKeys: [newKey()], contacts });
    await here.followed();
    here.store.holdFeed();
    const hers = here.clientOf(eve, organizationId);
    const release = (contact: string) => hers.submit('ACTIVITY_TYPE_RELEASE_CONTACT', { contact });
    expect((await release(contacts.userEmail)).status).toBe('ACTIVITY_STATUS_COMPLETED');

    await elsewhere.root.submit('ACTIVITY_TYPE_DELETE_USERS', { userIds });
    const before = await eventsOf(organizationId);
    expect(await refusal(release(contacts.userPhoneNumber))).toMatchObject({
      status: 401,
      turnkeyErrorCode: 'PUBLIC_KEY_NOT_FOUND',
    });
    expect(await eventsOf(organizationId)).toEqual(before);
    expect(await refusal(hers.query('whoami'))).toMatchObject({ status: 401 });
  });
});

describe('a user of the parent whose creation is on its way to the store', () => {
  const contact = 'ann@example.com';

  /** Asks for something in a sub-organization whose parent is read at once, and which is decided only after `goOn`. */
  async function inTurn<T>(organizationId: string, ask: () => Promise<T>) {
    const itsTurn = String(organizationPath(organizationId, here.organizationId));
    const next = thisThread.next.bind(thisThread);
    let goOn = () => undefined as void;
    const turn = new Promise<void>((resolve) => (goOn = resolve));
    const spy = jest
      .spyOn(thisThread, 'next')
      .mockImplementation((path, wanted) => (String(path) === itsTurn ? turn : next(path, wanted)));
    const asked = ask();
    await until('it waits for its turn', () => spy.mock.calls.some(([path]) => String(path) === itsTurn));
    return { asked, goOn };
  }

  /** Eve, whose creation is held up here; and what she submits in a sub-organization meanwhile, or just before. */
  async function eveActs({ createdBy = here.root, actsBefore = false }) {
    await here.root.submit('ACTIVITY_TYPE_CREATE_POLICY_V3', {
      policyName: `contacts ${++count}`,
      effect: 'EFFECT_ALLOW',
      condition: "activity.kind == 'RELEASE_CONTACT'",
      consensus: 'true',
      notes: '',
    });
    const { organizationId } = await child(here, { apiKeys: [newKey()], contacts: { userEmail: contact } });
    await here.followed();
    await elsewhere.followed();
    const before = await eventsOf(organizationId);
    const eve = newKey();
    const hers = here.clientOf(eve, organizationId);
    const act = () => hers.submit('ACTIVITY_TYPE_RELEASE_CONTACT', { contact });
    const waiting = actsBefore ? await inTurn(organizationId, act) : undefined;
    const parent = organizationStream(here.organizationId);
    here.store.hold((stream) => stream === parent);
    const asked = here.store.asked.length;
    const created = createdBy.submit('ACTIVITY_TYPE_CREATE_USERS_V4', {
      users: [{ userName: 'Eve', apiKeys: [keyParams(eve)], authenticators: [], oauthProviders: [], userTags: [] }],
    });
    await until('her creation is on its way', () => here.store.asked.length > asked);
    waiting?.goOn();
    const acts = [waiting?.asked ?? act(), hers.query('whoami')] as const;
    void Promise.allSettled([created, ...acts]);
    // Long enough for an answer that does not wait.
    await Promise.race([Promise.allSettled(acts), new Promise((resolve) => setTimeout(resolve, 500))]);
    expect(await eventsOf(organizationId)).toEqual(before);
    return { organizationId, created, acts, before };
  }

  it.each([
    ['meanwhile', false],
    ['before, and is decided on meanwhile', true],
  ])('does nothing in a sub-organization if the store refuses it: what she asks %s', async (_, actsBefore) => {
    const { userId } = await here.root.query<{ userId: string }>('whoami');
    const doomed = newKey();
    const { result } = await here.root.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', {
      userId,
      apiKeys: [keyParams(doomed)],
    });
    const { apiKeyIds } = result['createApiKeysResult'] as { apiKeyIds: string[] };
    const { organizationId, created, acts, before } = await eveActs({ createdBy: here.clientOf(doomed), actsBefore });
    await elsewhere.root.submit('ACTIVITY_TYPE_DELETE_API_KEYS', { userId, apiKeyIds });
    here.store.release();

    const unknown = { status: 401, turnkeyErrorCode: 'PUBLIC_KEY_NOT_FOUND' };
    const refusals = await Promise.all([created, ...acts].map(refusal));
    for (const one of refusals) expect(one).toMatchObject(unknown);
    expect(await eventsOf(organizationId)).toEqual(before);
  });

  it('acts in a sub-organization once it is recorded, and what she did is decided alike again', async () => {
    const { organizationId, created, acts } = await eveActs({});
    here.store.release();
    expect((await created).status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect((await acts[0]).status).toBe('ACTIVITY_STATUS_COMPLETED');
    const [own, parents] = [await historyOf(organizationId), await historyOf(here.organizationId)];
    const decisions = redecide(own, buildRegistry(activities), parents);
    expect(decisions).toHaveLength(1);
    for (const { recorded, again } of decisions) expect(again).toEqual(recorded);
  });
});

describe('where a public identifier leads, that has changed on another coordinator', () => {
  const login = (key: ApiKeyPair, of = here) =>
    of.clientOf(key).submit('ACTIVITY_TYPE_STAMP_LOGIN', { publicKey: newKey().publicKey, expirationSeconds: '60' });

  it('leads nobody in where the key is gone, though the rows here say that it is there', async () => {
    const [key, spare] = [newKey(), newKey()];
    const { organizationId, userId } = await child(here, { apiKeys: [key, spare] });
    await here.followed();
    expect((await login(key)).organizationId).toBe(organizationId);
    await here.followed();

    here.store.holdFeed();
    const own = elsewhere.clientOf(spare, organizationId);
    await elsewhere.followed();
    const { apiKeys } = await own.query<{
      apiKeys: { apiKeyId: string; credential: { publicKey: string } }[];
    }>('get_api_keys', { userId });
    const gone = apiKeys.find(({ credential }) => credential.publicKey === key.publicKey)!;
    await own.submit('ACTIVITY_TYPE_DELETE_API_KEYS', { userId, apiKeyIds: [gone.apiKeyId] });
    const before = await eventsOf(organizationId);
    // First the query: it must not find what a refused submit has read.
    expect(await refusal(here.clientOf(key).query('whoami'))).toMatchObject({ status: 401 });
    expect(await refusal(login(key))).toMatchObject({ status: 401 });
    expect(await eventsOf(organizationId)).toEqual(before);

    // Nor anywhere else, once it is known that the claim has ended.
    here.store.releaseFeed();
    await here.followed();
    expect(await refusal(login(key))).toMatchObject({ status: 401 });
  });

  it('is waited for by whoever names the position of the change', async () => {
    const key = newKey();
    await here.followed();
    here.store.holdFeed();
    const { organizationId } = await child(elsewhere, { apiKeys: [key] });
    expect(await refusal(here.clientOf(key).query('whoami'))).toMatchObject({ status: 401 });
    const body = JSON.stringify({ organizationId: here.organizationId });
    const { headerName, headerValue } = stampBody(body, key);
    const asked = exchange(`${here.url}/public/v1/query/whoami`, {
      method: 'POST',
      headers: { [headerName]: headerValue, 'x-min-position': String(await store.head()) },
      body,
    });
    here.store.releaseFeed();
    expect(await asked).toMatchObject({ status: 200, body: { organizationId } });
  });
});

describe('the feed of the read models', () => {
  const stream = () => organizationStream(here.organizationId);

  it('moves a head that is held on: nothing is read, and no append is lost, after others have written', async () => {
    await here.root.submit(...rename('Held'));
    for (const name of ['One', 'Two', 'Three']) await elsewhere.root.submit(...rename(name));
    await here.followed();
    later();
    const reads = jest.spyOn(here.store, 'read');
    here.store.asked.length = 0;
    await here.root.submit(...rename('Four'));
    expect(reads.mock.calls.map(([name]) => name)).toEqual([]);
    expect(here.store.asked.map((one) => one.stream)).toEqual([stream()]);
  });

  it('has whoever hears of another writer read first, for some seconds', async () => {
    await here.root.submit(...rename('Held'));
    await elsewhere.root.submit(...rename('Five'));
    await here.followed();
    // Of this one nothing was heard yet.
    here.store.holdFeed();
    await elsewhere.root.submit(...rename('Six'));
    const reads = jest.spyOn(here.store, 'read');
    here.store.asked.length = 0;
    await here.root.submit(...rename('Seven'));
    expect(reads.mock.calls.map(([name]) => name)).toEqual([stream()]);
    expect(here.store.asked.map((one) => one.stream)).toEqual([stream()]);
  });

  it('whoever has lost an append reads before the next, until it is long ago', async () => {
    await here.root.submit(...rename('Held'));
    later();
    here.store.holdFeed();
    const appendsOf = async (name: string) => {
      await elsewhere.root.submit(...rename(`Not ${name}`));
      here.store.asked.length = 0;
      await here.root.submit(...rename(name));
      return here.store.asked.length;
    };
    expect([await appendsOf('Eight'), await appendsOf('Nine'), await appendsOf('Ten')]).toEqual([2, 1, 1]);
  });
});
