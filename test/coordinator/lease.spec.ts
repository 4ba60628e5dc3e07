import { Lease } from '../../src/lease/lease.js';
import type { Term } from '../../src/lease/lease-term.js';
import { GENESIS_HASH, verifyChain, type EventMetadata } from '../../src/ledger/chain.js';
import { StoreUnavailable, WrongRevision } from '../../src/ledger/event-store.js';
import { SeededRandomness } from '../../src/testing/index.js';
import { Instance, SharedStore, SteppedTime, untilEnd } from './lease-world.js';

const ttlMs = 10_000;
const terms = 'lease-deliveries';

let time: SteppedTime;
let store: SharedStore;
let instances: Instance[];

beforeEach(() => {
  time = new SteppedTime();
  store = new SharedStore();
  instances = [];
});

function instance(holder: string, options: Partial<ConstructorParameters<typeof Instance>[3]> = {}): Instance {
  // Clocks of different machines: days apart.
  const made = new Instance(holder, time, store, { ttlMs, clockAt: instances.length * 86_400_000, ...options });
  instances.push(made);
  return made;
}

/** The first has the lease, the others want it. */
async function started(...some: readonly Instance[]): Promise<void> {
  for (const one of some) {
    one.lease.start();
    await time.pass(50);
  }
  expect(some.map(({ holds }) => holds)).toEqual(some.map((_, index) => index === 0));
}

const until = (isSo: () => boolean, atMost?: number): Promise<number> => time.passUntil(isSo, atMost);

async function expectSound(stream: string): Promise<void> {
  let hash = GENESIS_HASH;
  for (const event of await store.events(stream)) hash = verifyChain(hash, event);
}

describe('one of several', () => {
  test('holds the lease for as long as it lives, and the others do not', async () => {
    const [one, two, three] = [instance('one'), instance('two'), instance('three')];
    await started(one, two, three);
    for (let minute = 0; minute < 30; minute++) {
      await time.pass(60_000);
      expect([one.holds, two.holds, three.holds]).toEqual([true, false, false]);
    }
    expect([one.said, two.said, three.said]).toEqual([['held 0'], [], []]);
    expect(await store.types(terms)).toEqual(['LeaseAcquired']);
  });

  test('is recorded like everything else: hash chain, metadata, who and for how long', async () => {
    const [one, two] = [instance('one'), instance('two')];
    await started(one, two);
    await time.pass(ttlMs);
    await one.close();
    await until(() => two.holds);
    await time.pass(ttlMs);
    await two.close();
    const recorded = [...(await store.events(terms)), ...(await store.events('renewals-deliveries-1'))];
    expect(recorded.map(({ type, data }) => [type, data])).toEqual([
      ['LeaseAcquired', { holder: 'one', ttlMs }],
      ['LeaseAcquired', { holder: 'two', ttlMs }],
      ...recorded.slice(2, -1).map(() => ['LeaseRenewed', {}]),
      ['LeaseReleased', {}],
    ]);
    expect(recorded.length).toBeGreaterThan(4);
    await expectSound(terms);
    await expectSound('renewals-deliveries-1');
    const [first, second, ...renewals] = recorded.map(({ metadata }) => metadata as EventMetadata);
    expect([first, second]).toMatchObject(
      recorded.slice(0, 2).map(({ id }) => ({ $correlationId: id, $causationId: recorded[0]!.id, schemaVersion: 1 })),
    );
    for (const metadata of renewals) expect(metadata.$correlationId).toBe(recorded[1]!.id);
    expect(second!.at - first!.at).toBeGreaterThan(86_400_000);
  });

  test('wins when all of them want it in the same moment', async () => {
    for (let round = 0; round < 5; round++) {
      store = new SharedStore();
      const some = ['same name', 'same name', 'same name', 'same name'].map((holder) =>
        instance(holder, { clockAt: 0 }),
      );
      for (const one of some) one.lease.start();
      await time.pass(2 * ttlMs);
      expect(some.filter(({ holds }) => holds)).toHaveLength(1);
      expect(await store.types(terms)).toEqual(['LeaseAcquired']);
      await Promise.all(some.map((one) => one.close()));
    }
  });
});

describe('a holder that crashes', () => {
  test('is followed when it has given no sign of life for its time to live, by one of those who wait', async () => {
    const [one, two, three] = [instance('one'), instance('two'), instance('three')];
    await started(one, two, three);
    await time.pass(3.3 * ttlMs);
    const renewed = (await store.events('renewals-deliveries-0')).length;
    expect(renewed).toBeGreaterThan(10);
    one.stop();
    const waited = await until(() => two.holds || three.holds);
    // It may have given one just before, and others look at it once in a second.
    expect(waited).toBeGreaterThanOrEqual(ttlMs * 0.75);
    expect(waited).toBeLessThanOrEqual(ttlMs + 2_000);
    await time.pass(5 * ttlMs);
    expect([two, three].filter(({ holds }) => holds)).toHaveLength(1);
    expect([...two.said, ...three.said]).toEqual(['held 1']);
    expect(await store.types(terms)).toEqual(['LeaseAcquired', 'LeaseAcquired']);
  });

  test('is waited for as long as it has said, not as long as the follower would', async () => {
    const one = instance('one', { ttlMs: 60_000 });
    const two = instance('two', { ttlMs: 1_000 });
    await started(one, two);
    one.stop();
    expect(await until(() => two.holds)).toBeGreaterThanOrEqual(45_000);
  });

  test('is followed by one that starts only then, which waits the whole time from its own start', async () => {
    const one = instance('one');
    await started(one);
    one.stop();
    await time.pass(ttlMs * 0.9);
    const late = instance('late');
    late.lease.start();
    expect(await until(() => late.holds)).toBeGreaterThanOrEqual(ttlMs);
    expect(late.said).toEqual(['held 1']);
  });

  test('in the middle of taking over: what it left is taken up', async () => {
    const [one, two, three] = [instance('one'), instance('two'), instance('three')];
    await started(one, two);
    one.stop();
    // Ends the term of the first, and does not live to begin its own.
    two.journey = (_, [event]) => {
      if (event?.type === 'LeaseAcquired') two.stop();
      return event?.type === 'LeaseAcquired' ? { lost: 'request' } : {};
    };
    await until(() => store.appended.some(({ type }) => type === 'LeaseExpired'));
    await time.pass(100);
    expect(two.holds).toBe(false);
    three.lease.start();
    expect(await until(() => three.holds)).toBeLessThan(1_000);
  });
});

describe('an orderly end', () => {
  test('lets the next one begin at once, after the work has ended', async () => {
    let endWork: () => void = () => undefined;
    const one = instance('one', { work: () => new Promise((resolve) => (endWork = resolve)) });
    const two = instance('two');
    await started(one, two);
    await time.pass(3 * ttlMs);
    const closed = one.close();
    await time.pass(2_000);
    expect(one.term!.signal.aborted).toBe(true);
    expect(two.holds).toBe(false);
    endWork();
    await closed;
    expect(await until(() => two.holds)).toBeLessThanOrEqual(1_000);
    expect(one.said).toEqual(['held 0', 'ended 0 released']);
  });

  test('does not wait for work that does not end, and then says nothing to the others', async () => {
    const one = instance('one', { work: () => new Promise(() => undefined) });
    const two = instance('two');
    await started(one, two);
    let isClosed = false;
    void one.close().then(() => (isClosed = true));
    const waited = await until(() => isClosed);
    expect(waited).toBeGreaterThan(ttlMs / 4);
    expect(waited).toBeLessThanOrEqual(ttlMs * 0.75);
    expect(await store.types('renewals-deliveries-0')).not.toContain('LeaseReleased');
    await until(() => two.holds);
  });

  test('leaves no timer behind, whatever it interrupts', async () => {
    const [holding, waiting, unheard, unstarted] = [
      instance('holding'),
      instance('waiting'),
      instance('unheard'),
      instance('unstarted'),
    ];
    unheard.isCutOff = true;
    await started(holding, waiting, unheard);
    await time.pass(2 * ttlMs);
    for (const one of [unstarted, unheard, waiting, holding]) await one.close();
    expect(time.pending).toBe(0);
    const count = store.appended.length;
    await time.pass(10 * ttlMs);
    expect(store.appended).toHaveLength(count);
    expect(holding.holds).toBe(false);
  });

  test('of the work alone gives the lease to others first', async () => {
    let runs = 0;
    const failing = async () => {
      runs++;
      throw new Error('nothing works here');
    };
    const one = instance('one', { work: failing });
    one.lease.start();
    await time.pass(100);
    expect(one.said).toEqual(['held 0', 'ended 0 released']);
    expect(one.errors).toEqual([new Error('nothing works here')]);
    const two = instance('two');
    two.lease.start();
    await time.pass(3 * ttlMs);
    expect(two.holds).toBe(true);
    await two.close();
    await time.pass(2 * ttlMs);
    expect(runs).toBeGreaterThan(1);
  });
});

describe('a store that does not answer', () => {
  test('for longer than the time to live: the holder stops before that, by its own clock', async () => {
    const [one, two] = [instance('one'), instance('two')];
    await started(one, two);
    await time.pass(3.2 * ttlMs);
    const sent = store.appended.length;
    one.isCutOff = two.isCutOff = true;
    expect(await until(() => one.term!.signal.aborted)).toBeLessThanOrEqual(0.75 * ttlMs);
    expect(one.said).toEqual(['held 0', 'ended 0 expired']);
    await time.pass(3 * ttlMs);
    expect(store.appended).toHaveLength(sent);
    expect([one.holds, two.holds]).toEqual([false, false]);
    one.isCutOff = two.isCutOff = false;
    await until(() => one.holds || two.holds, 2 * ttlMs);
    await time.pass(5 * ttlMs);
    expect([one, two].filter(({ holds }) => holds)).toHaveLength(1);
    expect([...one.said, ...two.said].filter((said) => said === 'held 1')).toHaveLength(1);
  });

  test('in time: a term lasts from when its sign of life was sent, not from when that was confirmed', async () => {
    const one = instance('one');
    one.journey = (_, [event]) => (event?.type === 'LeaseRenewed' ? { back: 0.4 * ttlMs } : {});
    await started(one);
    const sent = await until(() => store.appended.some(({ type }) => type === 'LeaseRenewed'));
    await time.pass(0.45 * ttlMs);
    one.isCutOff = true;
    expect(sent + 0.45 * ttlMs + (await until(() => one.term!.signal.aborted))).toBeLessThanOrEqual(ttlMs);
  });

  test('and does not refuse either: what hangs does not keep the holder from stopping', async () => {
    const one = instance('one');
    await started(one);
    await time.pass(3.2 * ttlMs);
    one.journey = () => ({ there: 10 * ttlMs });
    expect(await until(() => one.term!.signal.aborted)).toBeLessThanOrEqual(0.75 * ttlMs);
  });

  test('to the holder alone: it has stopped when the other begins', async () => {
    const [one, two] = [instance('one'), instance('two')];
    await started(one, two);
    await time.pass(3.2 * ttlMs);
    one.isCutOff = true;
    let stopped = 0;
    one.term!.signal.addEventListener('abort', () => (stopped = time.now));
    await until(() => two.holds);
    expect(stopped).toBeGreaterThan(0);
    expect(time.now - stopped).toBeGreaterThanOrEqual(ttlMs / 4);
  });

  test('for a moment: a sign of life whose answer was lost is repeated, and the term goes on', async () => {
    const [one, two] = [instance('one'), instance('two')];
    await started(one, two);
    let lost = 0;
    one.journey = () => (lost++ % 3 === 2 ? {} : { lost: lost % 2 === 0 ? 'answer' : 'request' });
    await time.pass(20 * ttlMs);
    expect(lost).toBeGreaterThan(50);
    expect(one.errors.length).toBeGreaterThan(20);
    expect([one.said, two.said]).toEqual([['held 0'], []]);
    await expectSound('renewals-deliveries-0');
  });

  test('does not keep its holder from releasing it, when a sign of life was on its way', async () => {
    const [one, two] = [instance('one'), instance('two')];
    await started(one, two);
    let isLost = false;
    one.journey = () => {
      const journey = isLost ? {} : ({ lost: 'answer' } as const);
      isLost = true;
      return journey;
    };
    await until(() => isLost);
    await one.close();
    expect(await store.types('renewals-deliveries-0')).toEqual(['LeaseRenewed', 'LeaseReleased']);
    expect(await until(() => two.holds)).toBeLessThanOrEqual(1_000);
  });

  test('to a beginning that it has recorded: nobody works under that, and the next is not waited for', async () => {
    const one = instance('one');
    let beginnings = 0;
    one.journey = (_, [event]) => (event?.type === 'LeaseAcquired' && beginnings++ === 0 ? { lost: 'answer' } : {});
    one.lease.start();
    expect(await until(() => one.holds)).toBeLessThanOrEqual(2_000);
    expect(one.said).toEqual(['held 1']);
  });

  test('before the term would be over: no work is begun', async () => {
    const one = instance('one');
    let isSlow = true;
    one.journey = () => (isSlow ? { there: ttlMs } : {});
    one.lease.start();
    await time.pass(5 * ttlMs);
    expect([one.terms, one.said]).toEqual([[], []]);
    expect(String(one.errors[0])).toContain('longer to record a term');
    isSlow = false;
    await until(() => one.holds);
  });
});

describe('a holder that was paused, and wakes up when another holds the lease', () => {
  /** The stream that the work is about. Whoever begins advances it, and each step is at the revision of the one before. */
  async function advance(by: Instance, token: number, after: number): Promise<number> {
    const event = { id: crypto.randomUUID(), type: 'Delivered', data: { token }, metadata: {} };
    return (await by.append('work', [event], after < 0 ? 'no-stream' : after)).revision;
  }

  test('sees at once that its term is over, is told so by the store, and can change nothing', async () => {
    const [one, two] = [instance('one'), instance('two')];
    await started(one, two);
    const old = one.term!;
    const known = await advance(one, old.token, -1);
    await old.assertCurrent();

    one.stop();
    await until(() => two.holds);
    const advanced = await advance(two, two.term!.token, known);
    // The moment it wakes up, before any timer of its own.
    expect(old.signal.aborted).toBe(false);
    expect(old.isHeld()).toBe(false);
    one.wake();
    expect(old.signal.aborted).toBe(true);
    await expect(old.assertCurrent()).rejects.toThrow(
      'the lease `deliveries` is no longer held under token `0`: stop this work and leave it to the next holder',
    );
    await expect(old.assertCurrent()).rejects.toMatchObject({ code: 'ABORTED' });
    await expect(advance(one, old.token, known)).rejects.toThrow(WrongRevision);
    await advance(two, two.term!.token, advanced);
    await two.term!.assertCurrent();
    expect(two.term!.token).toBeGreaterThan(old.token);
    await time.pass(3 * ttlMs);
    expect([one.holds, two.holds]).toEqual([false, true]);
  });

  test('is refused also where its clock stood still with the machine', async () => {
    const [one, two] = [instance('one'), instance('two')];
    await started(one, two);
    const old = one.term!;
    const known = await advance(one, old.token, -1);
    one.stop();
    one.setRate(0);
    await until(() => two.holds);
    await advance(two, two.term!.token, known);
    await until(() => store.deleted.length > 0);
    one.setRate(1);
    one.wake();
    // By its own time nothing has happened.
    expect(old.isHeld()).toBe(true);
    await expect(advance(one, old.token, known)).rejects.toThrow(WrongRevision);
    await expect(old.assertCurrent()).rejects.toMatchObject({ code: 'ABORTED' });
    expect(old.signal.aborted).toBe(true);
    await time.pass(ttlMs);
    expect(one.said).toEqual(['held 0', 'ended 0 taken']);
  });

  test('finds out by its next sign of life, if by nothing else, although what it would renew is deleted', async () => {
    const [one, two] = [instance('one'), instance('two')];
    await started(one, two);
    one.stop();
    one.setRate(0);
    await until(() => store.deleted.includes('renewals-deliveries-0'));
    one.setRate(1);
    one.wake();
    expect(one.holds).toBe(true);
    await until(() => one.term!.signal.aborted);
    expect([one.said, one.errors]).toEqual([['held 0', 'ended 0 taken'], []]);
    await time.pass(3 * ttlMs);
    expect([one.holds, two.holds]).toEqual([false, true]);
  });

  test('is refused a sign of life that was on its way, and so is a beginning', async () => {
    const [one, two, three] = [instance('one'), instance('two'), instance('three')];
    await started(one, two);
    one.journey = () => ({ there: 5 * ttlMs });
    await until(() => two.holds);
    await time.pass(6 * ttlMs);
    expect([one.said, two.said]).toEqual([['held 0', 'ended 0 expired'], ['held 1']]);

    await two.close();
    three.journey = () => ({ there: ttlMs / 2 });
    three.lease.start();
    one.journey = () => ({});
    await until(() => one.holds);
    await time.pass(2 * ttlMs);
    expect([one.holds, three.holds]).toEqual([true, false]);
  });
});

describe('the streams of a lease', () => {
  test('do not grow with time: renewals are left behind and deleted, and the term goes on', async () => {
    const [one, two] = [instance('one', { renewalsPerStream: 5 }), instance('two')];
    await started(one, two);
    await time.pass(60 * ttlMs);
    expect([one.said, two.said]).toEqual([['held 0'], []]);
    await one.term!.assertCurrent();
    const types = await store.types(terms);
    expect(types).toEqual(['LeaseAcquired', ...types.slice(1).map(() => 'LeaseRenewalStreamOpened')]);
    expect(types.length).toBeGreaterThan(20);
    const present = `renewals-deliveries-${types.length - 1}`;
    const written = new Set(store.appended.map(({ stream }) => stream).filter((stream) => stream.startsWith('renew')));
    expect([...written].filter((stream) => stream !== present && !store.deleted.includes(stream))).toEqual([]);
    expect(store.deleted).not.toContain(present);
    await expectSound(terms);

    // Who comes later reads what is left and waits; who has waited follows.
    const late = instance('late');
    late.lease.start();
    await time.pass(3 * ttlMs);
    expect(late.holds).toBe(false);
    one.stop();
    await until(() => two.holds || late.holds);
    expect(Math.max(...[two, late].flatMap(({ terms: all }) => all.map(({ token }) => token)))).toBe(
      (await store.events(terms)).length - 1,
    );
  });

  test('are current while their holder moves on from one to the next', async () => {
    const one = instance('one', { renewalsPerStream: 2 });
    one.journey = (_, [event]) => (event?.type === 'LeaseRenewalStreamOpened' ? { back: 100 } : {});
    await started(one);
    await until(() => store.appended.some(({ type }) => type === 'LeaseRenewalStreamOpened'));
    await one.term!.assertCurrent();
  });

  test('are ended where they are: a holder that has moved on is waited for once more', async () => {
    const [one, two] = [instance('one', { renewalsPerStream: 2 }), instance('two')];
    one.journey = (_, [event]) => (event?.type === 'LeaseRenewalStreamOpened' ? { there: 1.5 * ttlMs } : {});
    let beginnings = 0;
    two.journey = (_, [event]) => (event?.type === 'LeaseAcquired' && beginnings++ === 0 ? { there: ttlMs } : {});
    await started(one, two);
    await until(() => beginnings > 0);
    // The first has sent that it moves on, and crashes; that is recorded between the end of its term and the next.
    one.stop();
    await until(() => store.appended.some(({ type }) => type === 'LeaseRenewalStreamOpened'));
    expect(await until(() => two.holds)).toBeGreaterThanOrEqual(ttlMs);
    expect(await store.types(terms)).toEqual(['LeaseAcquired', 'LeaseRenewalStreamOpened', 'LeaseAcquired']);
    const ended = store.appended.filter(({ type }) => type === 'LeaseExpired').map(({ stream }) => stream);
    expect(ended).toEqual(['renewals-deliveries-0', 'renewals-deliveries-1']);
  });

  test('are deleted also when the holder before has crashed before it came to it', async () => {
    for (let round = 0; round < 6; round++) {
      const one = instance(`one ${round}`);
      one.lease.start();
      await until(() => one.holds);
      // Every second one does not live long enough to delete anything.
      if (round % 2 === 1) await time.pass(2 * ttlMs);
      one.stop();
    }
    const last = instance('last');
    last.lease.start();
    await until(() => last.holds);
    await time.pass(2 * ttlMs);
    const { token } = last.term!;
    const left = new Set(
      store.appended.map(({ stream }) => stream).filter((stream) => !store.deleted.includes(stream)),
    );
    expect([...left]).toEqual([terms, `renewals-deliveries-${token}`]);
  });

  test('that were changed are not followed', async () => {
    const [one, two] = [instance('one'), instance('two')];
    await started(one);
    await store.append(
      terms,
      [{ id: 'forged', type: 'LeaseAcquired', data: { holder: 'x', ttlMs: 1 }, metadata: {} }],
      0,
    );
    two.lease.start();
    await time.pass(5 * ttlMs);
    expect(two.said).toEqual([]);
    expect(String(two.errors[0])).toContain(`the hash chain of stream \`${terms}\` is broken at revision 1`);
    await expect(one.term!.assertCurrent()).rejects.toMatchObject({ code: 'ABORTED' });
  });
});

describe('on a store that no other process can write to', () => {
  test('a dead process is not waited for, and nothing is written to show that one lives', async () => {
    const dead = instance('dead', { exclusive: true });
    await started(dead);
    await time.pass(ttlMs);
    dead.stop();
    const next = instance('next', { exclusive: true });
    next.lease.start();
    await time.pass(50);
    expect(next.said).toEqual(['held 1']);
    const count = store.appended.length;
    await time.pass(360 * ttlMs);
    expect(next.holds).toBe(true);
    await next.term!.assertCurrent();
    expect(store.appended).toHaveLength(count);
    expect(store.deleted).toEqual([]);
    await next.close();
    expect(store.appended.slice(count).map(({ type }) => type)).toEqual(['LeaseReleased']);
  });

  test('a start that the store did not confirm is repeated', async () => {
    const dead = instance('dead', { exclusive: true });
    await started(dead);
    dead.stop();
    const next = instance('next', { exclusive: true });
    let appends = 0;
    next.journey = () => (appends++ < 4 ? { lost: appends % 2 === 0 ? 'answer' : 'request' } : {});
    next.lease.start();
    await until(() => next.holds, ttlMs);
  });

  test('two in one process still have one term at a time', async () => {
    const [one, two] = [instance('one', { exclusive: true }), instance('two', { exclusive: true })];
    one.lease.start();
    await time.pass(50);
    two.lease.start();
    await time.pass(50);
    const [older, newer] = [one.term!, two.term!];
    await expect(older.assertCurrent()).rejects.toMatchObject({ code: 'ABORTED' });
    await newer.assertCurrent();
    await time.pass(20 * ttlMs);
    expect([one.holds, two.holds]).toEqual([false, true]);
    await two.close();
    await until(() => one.holds, 2_000);
  });
});

test('a name that streams cannot have, or a time that is none, is refused', () => {
  const observer = { held: () => undefined, ended: () => undefined, interrupted: () => undefined };
  const make = (name: string, ttl: number) =>
    new Lease({ store, clock: { now: () => 0 }, name, holder: 'one', ttlMs: ttl, work: untilEnd, observer });
  for (const name of ['', 'Deliveries', '-x', 'a b', 'ä']) {
    expect(() => make(name, 1)).toThrow(`\`${name}\` cannot name a lease: use lower-case letters, digits and dashes`);
  }
  for (const ttl of [0, -1, NaN, Infinity]) expect(() => make('x', ttl)).toThrow(`cannot last \`${ttl}\` ms`);
});

describe('whatever happens', () => {
  const seeds = Array.from({ length: 25 }, (_, index) => `lease ${index}`);

  test.each(seeds)('one holds it at a time, tokens grow, nothing is done under an old one: %s', async (seed) => {
    const dice = new SeededRandomness(seed);
    const below = (limit: number): number => Buffer.from(dice.bytes(4)).readUInt32BE() % limit;
    /** Tokens in the order in which their holders' steps were recorded. */
    const recorded = async () => (await store.events('work')).map(({ data }) => (data as { token: number }).token);
    let overlaps = 0;
    let steps = 0;

    const work =
      (self: () => Instance) =>
      async (term: Term): Promise<void> => {
        let after = -1;
        for await (const { revision, data } of self().read('work')) {
          if ((data as { token: number }).token > term.token) return;
          after = revision;
        }
        while (!term.signal.aborted) {
          if (instances.filter(({ holds }) => holds).length > 1) overlaps++;
          const event = { id: crypto.randomUUID(), type: 'Delivered', data: { token: term.token }, metadata: {} };
          for (let isUnknown = true; isUnknown;) {
            try {
              await self().append('work', [event], after < 0 ? 'no-stream' : after);
              isUnknown = false;
            } catch (error) {
              if (!(error instanceof StoreUnavailable)) return;
              if (term.signal.aborted) return;
              await new Promise<void>((resolve) => self().after(100, resolve));
            }
          }
          after++;
          steps++;
          await new Promise<void>((resolve) => self().after(100 + below(2_000), resolve));
        }
      };

    const add = (): void => {
      const made: Instance = instance('same name', {
        work: (term) => work(() => made)(term),
        renewalsPerStream: 2 + below(10),
        ttlMs: below(2) === 0 ? ttlMs : 2 * ttlMs,
        rate: 0.95 + below(100) / 1_000,
      });
      made.journey = () => {
        if (!isRough || below(4) > 0) return {};
        const lost = (['request', 'answer', undefined] as const)[below(3)];
        return { there: below(ttlMs), back: below(ttlMs), ...(lost ? { lost } : {}) };
      };
      made.lease.start();
    };

    let isRough = true;
    for (let count = 0; count < 3; count++) add();
    for (let step = 0; step < 80; step++) {
      await time.pass(below(ttlMs / 2));
      const one = instances[below(instances.length)]!;
      switch (below(8)) {
        case 0:
          one.stop();
          break;
        case 1:
        case 2:
          one.wake();
          break;
        case 3:
          one.isCutOff = true;
          break;
        case 4:
        case 5:
          one.isCutOff = false;
          break;
        case 6:
          if (instances.length < 6) add();
          break;
        case 7:
          if (instances.length > 3 && one.terms.length > 0) void one.close();
          break;
      }
      if (instances.filter(({ holds }) => holds).length > 1) overlaps++;
    }
    isRough = false;
    for (const one of instances) {
      one.isCutOff = false;
      one.wake();
    }
    add();
    await time.pass(10 * ttlMs);
    expect(overlaps).toBe(0);
    expect(steps).toBeGreaterThan(20);
    expect(instances.filter(({ holds }) => holds)).toHaveLength(1);
    const tokens = await recorded();
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
    expect(new Set(tokens).size).toBeGreaterThan(2);
    await expectSound(terms);
    const begun = instances.flatMap(({ terms: all }) => all.map(({ token }) => token));
    expect(new Set(begun).size).toBe(begun.length);
    let isClosed = false;
    void Promise.all(instances.map((one) => one.close())).then(() => (isClosed = true));
    await until(() => isClosed);
    await until(() => time.pending === 0, ttlMs);
  });
});
