import { ContactLimits } from '../../src/delivery/contact-limits.js';
import type { Message } from '../../src/delivery/delivery.js';
import { NoDelivery } from './no-delivery.js';
import { VoteNotices } from '../../src/delivery/vote-notices.js';
import { CoordinatorError } from '../../src/domain/errors.js';
import { organizationPath } from '../../src/fairness/fair-queue.js';
import type { AskedMessage } from '../../src/ports/delivery.js';
import { SeededRandomness } from '../../src/testing/deterministic.js';
import { SteeredStore } from '../ledger/steered-store.js';
import { until } from '../e2e/until.js';

const minute = 60_000;
const textWith = (part: string) => expect.stringContaining(part) as string;

function limitsOf(store = new SteeredStore(), mostFull?: number) {
  const clock = { at: 1_800_000_000_000, now: () => clock.at };
  const digest = { of: (text: string) => Promise.resolve(text) };
  return { store, clock, limits: new ContactLimits(store, clock, new SeededRandomness('ids'), digest, mostFull) };
}

const asked = (sender: AskedMessage['sender'], contact = 'ann@example.com', organizationId = 'one'): AskedMessage => ({
  contact,
  sender,
  organizationId,
});

/** How many are counted until one is refused, and what that says. */
async function most(count: (at: number) => Promise<void>): Promise<[number, string]> {
  for (let at = 0; at < 100; at++) {
    try {
      await count(at);
    } catch (error) {
      if (error instanceof CoordinatorError) return [at, JSON.stringify(error.details)];
      throw error;
    }
  }
  return [Infinity, ''];
}

describe('messages to one contact', () => {
  it('are 30 in three minutes for all, and as many again afterwards', async () => {
    const { limits, clock } = limitsOf();
    const count = () => limits.count(asked('trusted'));
    expect(await most(count)).toEqual([30, textWith('30 messages to one contact in three minutes')]);
    clock.at += 3 * minute;
    expect((await most(count))[0]).toBe(30);
  });

  it('are 4 of all strangers, and 3 of each', async () => {
    const { limits } = limitsOf();
    expect(await most(() => limits.count(asked('untrusted')))).toEqual([
      3,
      textWith('3 messages from one organization to one contact'),
    ]);
    const others = limitsOf().limits;
    expect(await most((at) => others.count(asked('untrusted', 'ann@example.com', `organization ${at}`)))).toEqual([
      4,
      textWith('4 messages to one contact in three minutes that neither'),
    ]);
  });

  it('are counted together, however its mailbox is spelled', async () => {
    const { limits } = limitsOf();
    expect((await most((at) => limits.count(asked('untrusted', `Ann+${at}@example.com`))))[0]).toBe(3);
    expect((await most(() => limits.count(asked('untrusted'))))[0]).toBe(0);
    expect((await most((at) => limits.countNotice(asked('untrusted', `Bob+${at}@example.com`))))[0]).toBe(3);
  });

  it('of one stranger are 60 an hour to all contacts', async () => {
    const { limits, clock } = limitsOf();
    const count = (at: number) => limits.count(asked('untrusted', `${at} ${clock.at}@example.com`));
    expect(await most(count)).toEqual([60, textWith('60 messages from one sub-organization')]);
    clock.at += 60 * minute;
    expect((await most(count))[0]).toBe(60);
  });
});

/** A store that says which streams' ends were read. */
class WatchedStore extends SteeredStore {
  readonly reads: string[] = [];

  override last(stream: string, most: number) {
    this.reads.push(stream);
    return super.last(stream, most);
  }
}

test('of contacts that take no more, so many are remembered; one that had to make room is read again, and takes no more', async () => {
  const { limits, store } = limitsOf(new WatchedStore(), 2);
  const reads = () => (store as WatchedStore).reads.splice(0).map((stream) => stream.slice(stream.indexOf('\0') + 1));
  const fill = async (contact: string) =>
    expect((await most(() => limits.count(asked('trusted', contact))))[0]).toBe(30);
  const refused = (contact: string) =>
    expect(limits.count(asked('trusted', contact))).rejects.toMatchObject({ code: 'RESOURCE_EXHAUSTED' });
  for (const contact of ['ann', 'bob']) await fill(contact);
  reads();
  for (const contact of ['ann', 'bob']) await refused(contact);
  expect(reads()).toEqual([]);
  await fill('carl');
  reads();
  for (const contact of ['bob', 'ann']) await refused(contact);
  expect(reads()).toEqual(['ann']);
});

describe('notices of votes', () => {
  it('to one approver are 20 an hour, of strangers 10', async () => {
    const known = limitsOf();
    const count = (sender: AskedMessage['sender']) => async () => {
      // The limit of messages is another one.
      known.clock.at += minute;
      await known.limits.countNotice(asked(sender));
    };
    expect((await most(count('untrusted')))[0]).toBe(10);
    expect((await most(count('trusted')))[0]).toBe(10);
  });

  it('that wait are of strangers of one parent half at most, and take turns', async () => {
    const store = new SteeredStore();
    const { limits } = limitsOf(store);
    const told: string[] = [];
    const outbox = new NoDelivery();
    const delivery = {
      enqueue: (message: Message) => {
        told.push(message.to);
        return outbox.enqueue(message);
      },
    };
    const failed: unknown[] = [];
    const notices = new VoteNotices(delivery, limits, { warn: ({ err }: { err: unknown }) => failed.push(err) });
    const wanted = (name: string, count: number) => ({
      organizationName: 'Acme',
      activityType: 'ACTIVITY_TYPE_CREATE_USER_TAG',
      activityId: name,
      approvers: Array.from({ length: count }, (_, at) => asked('trusted', `${name}-${at}@example.com`, name)),
    });
    store.hold();
    for (let child = 0; child < 4; child++) {
      notices.send(wanted(`child${child}`, 400), organizationPath(`child${child}`, 'parent'));
    }
    notices.send(wanted('parent', 100), organizationPath('parent'));
    await until('the first is being counted', () => store.asked.length > 0);
    store.release();
    await until('all are told', () => notices.isIdle);
    expect(failed).toEqual([]);
    const of = (name: string) => told.filter((to) => to.startsWith(name));
    expect(of('parent')).toHaveLength(100);
    // One had been taken when the others came.
    expect(of('child').length).toBeLessThanOrEqual(501);
    // The parent's took turns with those that were there before.
    expect(told.lastIndexOf('parent-99@example.com')).toBeLessThan(210);
  });

  it('that wait are 1,000: what is more is left out', async () => {
    const store = new SteeredStore();
    const { limits } = limitsOf(store);
    const told = new Set<string>();
    const outbox = new NoDelivery();
    const delivery = {
      enqueue: (message: Message) => {
        told.add(message.to);
        return outbox.enqueue(message);
      },
    };
    const failed: unknown[] = [];
    const notices = new VoteNotices(delivery, limits, { warn: ({ err }: { err: unknown }) => failed.push(err) });
    store.hold();
    for (let activity = 0; activity < 3; activity++) {
      const approvers = Array.from({ length: 500 }, (_, at) => asked('trusted', `${activity}-${at}@example.com`));
      const about = { organizationName: 'Acme', activityType: 'ACTIVITY_TYPE_CREATE_USER_TAG' };
      notices.send({ ...about, activityId: String(activity), approvers }, organizationPath('one'));
    }
    await until('the first is being counted', () => store.asked.length > 0);
    store.release();
    await until('all are told', () => notices.isIdle);
    expect(failed).toEqual([]);
    // One had been taken when the others came.
    expect(told.size).toBeGreaterThanOrEqual(1_000);
    expect(told.size).toBeLessThanOrEqual(1_001);
  });
});
