import { OrganizationLoader } from '../../src/ledger/load-organization.js';
import { organizationStream } from '../../src/domain/organization/organization.js';
import { GENESIS_HASH, verifyChain } from '../../src/ledger/chain.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { ManualClock } from '../../src/testing/deterministic.js';
import { BareCoordinator, organizationId, startedAt, type Member } from '../coordinator/bare-coordinator.js';
import { thisThread } from '../../src/fairness/turns.js';
import { SteeredStore } from './steered-store.js';
import { until } from '../e2e/until.js';

const createTag = 'ACTIVITY_TYPE_CREATE_USER_TAG';
const stream = organizationStream(organizationId);

const running: BareCoordinator[] = [];
const stores: SteeredStore[] = [];

afterEach(async () => {
  for (const store of stores.splice(0)) {
    store.release();
    store.releaseReads();
  }
  await Promise.all(running.splice(0).map((coordinator) => coordinator.close()));
});

/** A coordinator whose store can be steered, and another writer to the same streams. */
async function together() {
  const inner = new InMemoryEventStore();
  const clock = new ManualClock(startedAt);
  const store = new SteeredStore(inner, false);
  const one = await BareCoordinator.start({ store, clock, seed: 'one' });
  const other = await BareCoordinator.start({ store: new SteeredStore(inner, false), clock, seed: 'other' });
  running.push(one, other);
  stores.push(store);
  return { store, one, other };
}

const tag = (coordinator: BareCoordinator, userTagName: string) =>
  coordinator.submit(coordinator.root.key, createTag, { userTagName, userIds: [] });

/** Whether a reader of that coordinator would take the key of a member. */
async function knows(coordinator: BareCoordinator, { key }: Member): Promise<boolean> {
  const { organization } = await coordinator.loader.load(organizationId);
  return organization.apiKeyOwners.has(key.publicKey);
}

async function deleteKeyOf(coordinator: BareCoordinator, { userId }: Member): Promise<void> {
  const { organization } = await coordinator.loader.load(organizationId);
  const apiKeyIds = organization.users.get(userId)!.apiKeys.map(({ apiKeyId }) => apiKeyId);
  await coordinator.submit(coordinator.root.key, 'ACTIVITY_TYPE_DELETE_API_KEYS', { userId, apiKeyIds });
}

const soon = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A request whose events are recorded, while the store has not answered their append: `answer` has it do so. */
async function writtenAndNotAnswered(store: SteeredStore, coordinator: BareCoordinator) {
  let answer = (): void => undefined;
  const answered = new Promise<void>((resolve) => (answer = resolve));
  const written = store.inner.append.bind(store.inner);
  let isWritten = false;
  store.append = async (...append) => {
    const appended = await written(...append);
    isWritten = true;
    await answered;
    return appended;
  };
  const slow = tag(coordinator, 'slow');
  await until('the append is written', () => isWritten);
  return { slow, answer };
}

it('folds a long history in turns with others', async () => {
  const { store, one } = await together();
  for (let at = 0; at < 20; at++) await tag(one, `tag ${at}`);
  const order: string[] = [];
  store.tamper = (event) => {
    order.push('event');
    return event;
  };
  const others = { areDone: false };
  const taking = (async () => {
    while (!others.areDone) {
      await thisThread.next(['others'], { alone: true });
      order.push('other');
    }
  })();
  const nothing = () => undefined;
  const metrics = {
    decided: nothing,
    spent: nothing,
    appended: nothing,
    appendFailed: nothing,
    conflict: nothing,
    folded: nothing,
  };
  await new OrganizationLoader(store, metrics, { turnMs: 0 }).load(organizationId);
  others.areDone = true;
  await taking;
  expect(order.filter((who) => who === 'event').length).toBeGreaterThan(40);
  expect(order.join(' ')).not.toContain('event event event');
});

describe('a reader', () => {
  it('sees what another writer has recorded while an append of its own coordinator is on its way', async () => {
    const { store, one, other } = await together();
    const gone = await one.createUser('Gone');
    expect(await knows(one, gone)).toBe(true);
    const asked = store.asked.length;
    store.hold((name) => name === stream);
    const late = tag(one, 'late');
    await store.until(asked + 1);
    await deleteKeyOf(other, gone);
    expect(await knows(one, gone)).toBe(false);
    store.release();
    expect((await late).status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect(await knows(one, gone)).toBe(false);
    expect((await one.events()).reduce(verifyChain, GENESIS_HASH)).toMatch(/^[0-9a-f]{64}$/);
  });

  it('sees all of it when its own append is recorded and not answered yet', async () => {
    const { store, one, other } = await together();
    const gone = await one.createUser('Gone');
    const { slow, answer } = await writtenAndNotAnswered(store, one);
    expect(await knows(one, gone)).toBe(true);
    await deleteKeyOf(other, gone);
    expect(await knows(one, gone)).toBe(false);
    answer();
    expect((await slow).status).toBe('ACTIVITY_STATUS_COMPLETED');
    await tag(one, 'next');
    expect(one.counts.conflicts).toBe(0);
    expect((await one.events()).reduce(verifyChain, GENESIS_HASH)).toMatch(/^[0-9a-f]{64}$/);
  });

  it('is not answered from a read that was begun before it came', async () => {
    const { store, one, other } = await together();
    const gone = await one.createUser('Gone');
    store.holdReads();
    const early = knows(one, gone);
    await until('a read is held', () => store.heldReads > 0);
    await deleteKeyOf(other, gone);
    const late = Promise.all([knows(one, gone), knows(one, gone)]);
    await soon();
    store.releaseReads();
    expect([await early, ...(await late)]).toEqual([true, false, false]);
  });

  it('that is slow leaves nothing behind of an append that has lost meanwhile', async () => {
    const { store, one, other } = await together();
    await tag(one, 'first');
    const asked = store.asked.length;
    store.hold((name) => name === stream);
    const late = tag(one, 'late');
    await store.until(asked + 1);
    store.holdReads();
    const reading = one.loader.load(organizationId);
    await until('a read is held', () => store.heldReads > 0);
    // As many events as the held append has: from the next revision on nobody could tell them apart.
    await tag(other, 'other');
    store.release();
    await until('the append has lost', () => one.counts.conflicts > 0);
    await soon();
    store.releaseReads();
    expect((await late).status).toBe('ACTIVITY_STATUS_COMPLETED');
    const events = await one.events();
    expect(events.reduce(verifyChain, GENESIS_HASH)).toMatch(/^[0-9a-f]{64}$/);
    const names = (await reading).organization.userTags.values();
    expect([...names].map(({ tagName }) => tagName)).toEqual(expect.arrayContaining(['first', 'other']));
    const recorded = events.flatMap(({ type, data }) =>
      type === 'UserTagCreated' ? [(data as { tagName: string }).tagName] : [],
    );
    expect(recorded).toEqual(['first', 'other', 'late']);
  });

  it('whose events the answer to their append has confirmed meanwhile does not fold the organization again', async () => {
    const { store, one } = await together();
    const { slow, answer } = await writtenAndNotAnswered(store, one);
    store.holdReads();
    const reading = one.loader.load(organizationId);
    await until('a read is held', () => store.heldReads > 0);
    answer();
    await soon();
    let first = Infinity;
    store.tamper = (event) => {
      first = Math.min(first, event.revision);
      return event;
    };
    store.releaseReads();
    const { organization, pending } = await reading;
    expect((await slow).status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect([...organization.userTags.values()].map(({ tagName }) => tagName)).toEqual(['slow']);
    expect(pending).toEqual([]);
    expect(first).toBeGreaterThan(0);
  });
});

test('of a long organization a copy is kept once its state was dropped, and not before: it is read from there', async () => {
  const { store, one } = await together();
  for (let count = 0; count < 25; count++) await tag(one, `tag ${count}`);
  const loader = new OrganizationLoader(store, {
    decided: () => undefined,
    spent: () => undefined,
    appended: () => undefined,
    appendFailed: () => undefined,
    conflict: () => undefined,
    folded: () => undefined,
  });
  let read = 0;
  store.tamper = (event) => {
    read++;
    return event;
  };
  const { revision } = await loader.load(organizationId);
  expect([read, loader.remembered]).toEqual([revision + 1, 0]);
  expect(revision).toBeGreaterThan(70);
  loader.drop(organizationId);
  await loader.load(organizationId);
  expect([read, loader.remembered]).toEqual([2 * (revision + 1), 1]);
  loader.drop(organizationId);
  expect((await loader.load(organizationId)).revision).toBe(revision);
  expect(read).toBe(2 * (revision + 1));
});
