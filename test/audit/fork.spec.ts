import { activities } from '../../src/activities/index.js';
import { buildRegistry } from '../../src/decide/registry.js';
import { isActivityEvent } from '../../src/domain/activity/events.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { type InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import type { Change } from '../../src/audit/simulate/fork-change.js';
import { forkHistory } from '../../src/audit/simulate/fork-history.js';
import type { Forked } from '../../src/audit/simulate/fork-report.js';
import { goldenNamesOf, goldenStream } from '../golden/streams.js';
import { storeOf } from './store-of.js';
import { ethTransaction, startCoordinator, type TestCoordinator, type TestUser } from '../../src/testing/index.js';

const account = {
  curve: 'CURVE_SECP256K1',
  pathFormat: 'PATH_FORMAT_BIP32',
  path: "m/44'/60'/0'/0/0",
  addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
} as const;
const registry = buildRegistry(activities);

/** Every golden stream of a version, parents before their sub-organizations. */
function goldenEvents(version: string): { readonly organizationIds: string[]; readonly events: RecordedEvent[] } {
  const streams = goldenNamesOf(version).map(goldenStream);
  const isChild = ([first]: RecordedEvent[]) => Number('parentOrganizationId' in (first!.data as object));
  streams.sort((one, other) => isChild(one) - isChild(other));
  const organizationIds = streams.map(([first]) => first!.stream.replace('organization-', ''));
  return { organizationIds, events: streams.flat() };
}

const nothing = { divergences: [], more: 0, differences: [] };

describe('a branch without a change', () => {
  it.each(['v1'])('diverges nowhere over the streams of %s', async (version) => {
    const { organizationIds, events } = goldenEvents(version);
    const store = await storeOf(events);
    for (const organizationId of organizationIds) {
      const forked = await forkHistory(store, { organizationId, registry, now: 0 });
      expect(forked).toMatchObject(nothing);
      const { decisions, forOtherReasons } = forked.unchanged;
      expect(forOtherReasons).toBe(0);
      expect(decisions).toBeGreaterThan(5);
    }
    await store.close();
  });

  it('is the history wherever an edit leaves everything as it is', async () => {
    const { organizationIds, events } = goldenEvents('v1');
    const store = await storeOf(events);
    for (const organizationId of organizationIds) {
      const stream = events.filter(({ stream }) => stream.endsWith(organizationId));
      const facts = stream.filter(({ type, revision }) => revision > 0 && !isActivityEvent({ type }));
      const { revision, data } = facts[Math.floor(facts.length / 2)]!;
      const change: Change = { kind: 'edit', revision, as: { data: data as Record<string, unknown> } };
      expect(await forkHistory(store, { organizationId, registry, change, now: 0 })).toMatchObject(nothing);
    }
    await store.close();
  });
});

describe('a branch', () => {
  let coordinator: TestCoordinator;
  let store: InMemoryEventStore;
  let alice: TestUser;
  let bob: TestUser;
  let stream: readonly RecordedEvent[];
  const tag = 'ACTIVITY_TYPE_CREATE_USER_TAG';

  beforeAll(async () => {
    coordinator = await startCoordinator({ seed: 'what if' });
    const { client, clock } = coordinator;
    alice = await coordinator.createUser('Alice');
    bob = await coordinator.createUser('Bob');
    await coordinator.createPolicy({ policyName: 'tags', condition: "activity.kind == 'CREATE_USER_TAG'" });
    await coordinator.createPolicy({
      policyName: 'no tags',
      effect: 'EFFECT_DENY',
      condition: "activity.kind == 'CREATE_USER_TAG'",
    });
    await coordinator.createPolicy({
      policyName: 'two people make wallets',
      condition: "activity.kind == 'CREATE_WALLET'",
      consensus: 'approvers.count() >= 2',
    });
    await coordinator.createPolicy({
      policyName: 'up to 100 wei',
      condition: "activity.kind == 'SIGN_TRANSACTION' && eth.tx.value <= 100",
    });
    clock.advance('1m');
    await alice.client.submit(tag, { userTagName: 'Treasury', userIds: [] }).catch(() => undefined);
    clock.advance('1m');
    await client.submit(tag, { userTagName: 'Treasury', userIds: [] });
    const asked = await alice.client.submit('ACTIVITY_TYPE_CREATE_WALLET', {
      walletName: 'Vault',
      accounts: [account],
    });
    clock.advance('1m');
    await coordinator.createTag('between');
    await bob.client.approve(asked.fingerprint);
    const { result } = await client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'last', userIds: [] });
    expect(result).toBeDefined();
    const [{ address }] = (
      await client.query<{ accounts: { address: string }[] }>('list_wallet_accounts', {
        walletId: (await client.query<{ wallets: { walletId: string }[] }>('list_wallets', {})).wallets[0]!.walletId,
      })
    ).accounts as [{ address: string }];
    await alice.client.submit('ACTIVITY_TYPE_SIGN_TRANSACTION_V2', {
      signWith: address,
      type: 'TRANSACTION_TYPE_ETHEREUM',
      unsignedTransaction: ethTransaction({ to: `0x${'11'.repeat(20)}`, value: 100n }).slice(2),
    });
    store = await storeOf(await coordinator.recorded());
    stream = await coordinator.events();
  });

  afterAll(() => coordinator.close());

  const fork = (change?: Change): Promise<Forked> =>
    forkHistory(store, { organizationId: coordinator.organizationId, registry, ...(change ? { change } : {}), now: 0 });
  const at = (type: string, fits: (data: Record<string, unknown>) => boolean = () => true): number =>
    stream.find((event) => event.type === type && fits(event.data as Record<string, unknown>))!.revision;
  const policy = (name: string) => at('PolicyCreated', ({ policyName }) => policyName === name);

  it('diverges nowhere without a change, denials included', async () => {
    const forked = await fork();
    expect(forked).toMatchObject({ ...nothing, notDecided: [], unchanged: { denials: 1 } });
  });

  it('without a policy that denied: what was denied is done, and what it took away fails later', async () => {
    for (const revision of [policy('no tags'), policy('no tags') - 1]) {
      const { divergences, change, unchanged, differences } = await fork({ kind: 'skip', revision });
      expect(change!.changes).toEqual(["policy 'no tags' was deleted"]);
      const [first, second] = divergences;
      expect(first).toMatchObject({
        isDenial: true,
        activityType: tag,
        userName: 'Alice',
        was: expect.stringMatching(/^denied: /) as string,
        is: 'done',
        because: [
          "policy 'no tags' OUTCOME_DENY_EXPLICIT → not there",
          "policy 'tags' OUTCOME_ALLOW → OUTCOME_ALLOW",
        ].slice(0, 1),
        changed: [],
        changes: ["user tag 'Treasury' was created"],
      });
      expect(second).toMatchObject({
        isDenial: false,
        userName: 'Root user',
        was: 'done',
        is: expect.stringMatching(/^refused: .*Treasury/) as string,
        changed: ["user tag 'Treasury' was created"],
        changes: [],
      });
      expect(divergences).toHaveLength(2);
      expect(unchanged).toMatchObject({ denials: 0, things: { users: 4 } });
      expect(differences.map(({ text }) => text)).toContain("policy 'no tags' was deleted");
    }
  });

  it('with another amount in a policy: what it allowed is denied', async () => {
    const revision = policy('up to 100 wei');
    const condition = "activity.kind == 'SIGN_TRANSACTION' && eth.tx.value <= 99";
    const as = { data: { condition } };
    const { divergences } = await fork({ kind: 'edit', revision, as });
    expect(divergences).toMatchObject([
      {
        activityType: 'ACTIVITY_TYPE_SIGN_TRANSACTION_V2',
        was: 'done',
        is: 'denied: No policies evaluated to outcome: Allow',
      },
    ]);
    // The same by editing what was signed.
    const asked = revision - 1;
    expect(
      (await fork({ kind: 'edit', revision: asked, as: { parameters: { condition } } })).divergences,
    ).toMatchObject([{ is: divergences[0]!.is, because: divergences[0]!.because }]);
    // With less than was allowed, the signature is another one.
    const signing = at('ActivitySubmitted', (data) => data['type'] === 'ACTIVITY_TYPE_SIGN_TRANSACTION_V2');
    const amount = (value: bigint) =>
      fork({
        kind: 'edit',
        revision: signing,
        as: { parameters: { unsignedTransaction: ethTransaction({ to: `0x${'11'.repeat(20)}`, value }).slice(2) } },
      });
    expect((await amount(7n)).change!.is).toMatch(
      /^cannot be judged: it is allowed, and what it would have taken from outside/,
    );
    expect((await amount(101n)).change!.is).toBe('denied: No policies evaluated to outcome: Allow');
  });

  it('with one more vote: the wallet is there earlier, by what was made for it, and the recorded vote is too late', async () => {
    const asked = at('ActivitySubmitted', (data) => (data['vote'] as { userId: string }).userId === alice.userId);
    const { fingerprint } = stream[asked]!.data as { fingerprint: string };
    const as = { userId: bob.userId, type: 'ACTIVITY_TYPE_APPROVE_ACTIVITY', parameters: { fingerprint } };
    const { change, divergences, differences } = await fork({ kind: 'insert', revision: asked + 1, as });
    expect(change).toMatchObject({
      is: 'done',
      changes: expect.arrayContaining(["wallet 'Vault' was created"]) as string[],
    });
    expect(divergences).toMatchObject([
      {
        was: 'done',
        is: expect.stringMatching(/^refused: FAILED_PRECONDITION: .* is not waiting for votes/) as string,
      },
    ]);
    // Earlier is all that it is.
    expect(differences.map(({ text }) => text)).toEqual([
      expect.stringMatching(/^wallet 'Vault' was changed: createdAt '[^']*' → '[^']*'$/),
      expect.stringMatching(/^wallet account '0x\w*' was changed: createdAt '[^']*' → '[^']*'$/),
    ]);
    // A rejection ends it, and the transaction is not signed.
    const rejected = await fork({
      kind: 'insert',
      revision: asked + 1,
      as: { ...as, type: 'ACTIVITY_TYPE_REJECT_ACTIVITY' },
    });
    expect(rejected.change!.is).toBe('rejected');
    expect(rejected.divergences).toMatchObject([
      { was: 'done', is: expect.stringMatching(/is not waiting for votes/) as string },
      { was: 'done', is: expect.stringMatching(/^refused: NOT_FOUND/) as string },
    ]);
  });

  it('without a request: everything that needed it is refused', async () => {
    const users = at('ActivitySubmitted', (data) => (data['vote'] as { message: string }).message.includes('"Bob"'));
    const { divergences } = await fork({ kind: 'skip', revision: users });
    expect(divergences).toMatchObject([
      {
        activityType: 'ACTIVITY_TYPE_CREATE_WALLET',
        was: 'done',
        is: expect.stringMatching(/^refused: UNAUTHENTICATED/) as string,
      },
      { activityType: 'ACTIVITY_TYPE_SIGN_TRANSACTION_V2', is: expect.stringMatching(/^refused: NOT_FOUND/) as string },
    ]);
  });

  it('says what cannot be judged: what was denied would have made keys', async () => {
    const none = at('PolicyCreated', ({ policyName }) => policyName === 'two people make wallets');
    const data = { consensus: 'approvers.count() >= 1' };
    const { divergences } = await fork({ kind: 'edit', revision: none, as: { data } });
    // It was asked for, and is done at once: nobody has made it at that time.
    expect(divergences[0]).toMatchObject({
      was: 'waits for votes',
      is: expect.stringMatching(/^cannot be judged: it is allowed/) as string,
      isJudged: false,
    });
  });

  it.each([
    [{ kind: 'skip', revision: 0 }, /revision 0 is the organization itself/],
    [{ kind: 'skip', revision: 9_999 }, /no event at revision `9999`/],
    [{ kind: 'insert', revision: 8, as: { userId: 'nobody', type: tag } }, /userTagName/],
    [{ kind: 'insert', revision: 8, as: { type: tag, parameters: {} } }, /says `userId`, `type` and `parameters`/],
  ] satisfies readonly (readonly [Change, RegExp])[])('cannot begin with %j', async (change, says) => {
    await expect(fork(change)).rejects.toThrow(says);
  });

  it('cannot begin within a decision, nor with what is no fact or no request', async () => {
    const made = policy('no tags');
    await expect(fork({ kind: 'insert', revision: made, as: { type: 'PolicyDeleted', data: {} } })).rejects.toThrow(
      `revisions ${made - 1} to ${made + 1} were recorded at once, by one request: insert at ${made - 1} or ${made + 2}`,
    );
    await expect(fork({ kind: 'edit', revision: made, as: { parameters: {} } })).rejects.toThrow(
      /has to say its `data`/,
    );
    await expect(fork({ kind: 'edit', revision: made - 1, as: { data: {} } })).rejects.toThrow(/is a signed request/);
    const as = { userId: 'nobody', type: tag, parameters: { userTagName: 'x', userIds: [] } };
    await expect(fork({ kind: 'insert', revision: made - 1, as })).rejects.toThrow(/has no API key or passkey/);
  });

  it('takes a fact before an event, and one behind the last', async () => {
    const policyId = (stream[policy('no tags')]!.data as { policyId: string }).policyId;
    const as = { type: 'PolicyDeleted', data: { policyId } };
    const denied = at('ActivitySubmitted', (data) => JSON.stringify(data).includes('Treasury'));
    const early = await fork({ kind: 'insert', revision: policy('no tags') + 2, as });
    expect(early.divergences[0]).toMatchObject({ isDenial: true, is: 'done' });
    const late = await fork({ kind: 'insert', revision: denied, as });
    expect(late.divergences).toEqual([]);
    const end = await fork({ kind: 'insert', revision: stream.length, as });
    expect(end).toMatchObject({ divergences: [], differences: [{ text: "policy 'no tags' was deleted" }] });
  });
});

describe('a branch in a family of organizations', () => {
  let coordinator: TestCoordinator;
  let store: InMemoryEventStore;
  let childId: string;
  let eve: TestUser;
  const release = 'ACTIVITY_TYPE_RELEASE_CONTACT';

  beforeAll(async () => {
    coordinator = await startCoordinator({ seed: 'family' });
    eve = await coordinator.createUser('Eve');
    await coordinator.createPolicy({ policyName: 'contacts', condition: "activity.kind == 'RELEASE_CONTACT'" });
    const ann = coordinator.newKey();
    const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
      subOrganizationName: 'Child',
      rootUsers: [
        {
          userName: 'Ann',
          userEmail: 'ann@example.com',
          apiKeys: [{ apiKeyName: 'key', publicKey: ann.publicKey, curveType: ann.curve }],
          authenticators: [],
          oauthProviders: [],
        },
      ],
      rootQuorumThreshold: 1,
    });
    ({ subOrganizationId: childId } = result['createSubOrganizationResultV8'] as { subOrganizationId: string });
    coordinator.clock.advance('1m');
    await coordinator
      .clientFor(ann, childId)
      .submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'hers', userIds: [] });
    await coordinator.clientFor(eve.key, childId).submit(release, { contact: 'ann@example.com' });
    await coordinator.createTag('afterwards');
    store = await storeOf(await coordinator.recorded());
  });
  afterAll(async () => {
    await store.close();
    await coordinator.close();
  });

  const fork = (organizationId: string, change?: Change): Promise<Forked> =>
    forkHistory(store, { organizationId, registry, ...(change ? { change } : {}), now: 0 });
  const revisionOf = async (organizationId: string, fits: (event: RecordedEvent) => boolean): Promise<number> => {
    for await (const event of store.read(`organization-${organizationId}`)) if (fits(event)) return event.revision;
    throw new Error('no such event');
  };
  const submitted = (type: string) => (event: RecordedEvent) =>
    event.type === 'ActivitySubmitted' && (event.data as { type: string }).type === type;

  it('of either diverges nowhere without a change, also where a member of the parent has acted', async () => {
    expect(await fork(childId)).toMatchObject({
      ...nothing,
      unchanged: { forOtherReasons: 0, decisions: 2 },
    });
    expect(await fork(coordinator.organizationId)).toMatchObject(nothing);
  });

  it('of the sub-organization has its parent as it was: what the parent’s member did is decided again', async () => {
    const tagged = await revisionOf(childId, submitted('ACTIVITY_TYPE_CREATE_USER_TAG'));
    const other = await fork(childId, { kind: 'skip', revision: tagged });
    expect(other).toMatchObject({
      divergences: [],
      differences: [{ text: "user tag 'hers' was deleted" }],
      unchanged: { decisions: 1 },
    });

    const created = await revisionOf(childId, ({ type }) => type === 'UserCreated');
    const as = { data: { userEmail: 'anna@example.com' } };
    const { divergences } = await fork(childId, { kind: 'edit', revision: created, as });
    expect(divergences).toMatchObject([
      {
        activityType: release,
        userId: eve.userId,
        was: 'done',
        is: expect.stringMatching(/^refused: NOT_FOUND/) as string,
      },
    ]);
  });

  it('of the parent leaves its sub-organizations as they were recorded, also one that it has not founded', async () => {
    const { organizationId } = coordinator;
    const policy = await revisionOf(
      organizationId,
      ({ data }) => (data as { policyName?: string }).policyName === 'contacts',
    );
    expect(await fork(organizationId, { kind: 'skip', revision: policy })).toMatchObject({
      divergences: [],
      differences: [{ text: "policy 'contacts' was deleted" }],
    });
    const founding = await revisionOf(organizationId, submitted('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8'));
    const { change, divergences } = await fork(organizationId, { kind: 'skip', revision: founding });
    expect(divergences).toEqual([]);
    expect(change!.text).toBe('ActivitySubmitted is left out');
    expect(await fork(childId)).toMatchObject(nothing);
  });
});
