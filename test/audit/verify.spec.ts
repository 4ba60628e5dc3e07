import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'libsql';
import { activities } from '../../src/activities/index.js';
import { fingerprintOf } from '../../src/stamps/fingerprint.js';
import { rootBeginning } from '../../src/decide/found-organization.js';
import { buildRegistry } from '../../src/decide/registry.js';
import type { Vote } from '../../src/domain/activity/events.js';
import type { EventMetadata } from '../../src/ledger/chain.js';
import { EventStoreDbEventStore } from '../../src/ledger/stores/event-store-db/event-store-db.js';
import type { EventStore, RecordedEvent } from '../../src/ledger/event-store.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { SqliteEventStore } from '../../src/ledger/stores/sqlite/sqlite.js';
import { SavedProgress } from '../../src/audit/verify/saved-progress.js';
import { SavedHeads } from '../../src/audit/verify/saved-heads.js';
import { Spill, SpilledMap, SpilledSet } from '../../src/audit/verify/spill.js';
import { verifyHistory, type Verification, type VerifyOptions } from '../../src/audit/verify/verify.js';
import { tellFlushed } from '../files/flushed.js';
import { EventStoreDouble } from '../ledger/stores/double/double.js';
import {
  anId,
  aSecret,
  fill,
  golden,
  isDeciding,
  sealAgain,
  vaultsLeftBy,
  withVaults,
  type Event,
  type History,
} from './forged-history.js';

const registry = buildRegistry(activities);
const noCounts = { decisions: 0, stamps: 0, stampsNotKept: 0, stampsRedacted: 0 };

/** What is said of a store with these streams alone. */
async function verifiedAsIs(
  history: History,
  options: Partial<VerifyOptions> = {},
  store: EventStore = new InMemoryEventStore(),
): Promise<Verification> {
  await fill(store, history);
  try {
    return await verifyHistory(store, { registry, ...options });
  } finally {
    await store.close();
  }
}

/** What is said of a store with these organizations and their vaults. */
const verified = (history: History, options: Partial<VerifyOptions> = {}, store?: EventStore) =>
  verifiedAsIs(withVaults(history), options, store);

const placesIn = (findings: Verification['findings']) =>
  findings.map(({ stream, revision, problem }) => [stream, revision, problem]);

/** The same history, as two organizations have recorded it by turns, a decision each. */
async function byTurns(store: InMemoryEventStore, history: History): Promise<void> {
  const heads = new Map<string, number>();
  const waiting = [...history].map(([stream, events]) => {
    const starts = events.flatMap((event, at) => (at === 0 || isDeciding(event) ? [at] : []));
    return { stream, runs: starts.map((start, index) => events.slice(start, starts[index + 1])) };
  });
  while (waiting.some(({ runs }) => runs.length > 0)) {
    for (const { stream, runs } of waiting) {
      const run = runs.shift();
      if (!run) continue;
      const plain = run.map(({ id, type, data, metadata }) => ({ id, type, data, metadata }));
      const { revision } = await store.append(stream, plain, heads.get(stream) ?? 'no-stream');
      heads.set(stream, revision);
    }
  }
}

const voteOf = ({ data }: Event) => data['vote'] as Vote | undefined;
const withVote = (event: Event, change: Partial<Vote>): Event => ({
  ...event,
  data: { ...event.data, vote: { ...voteOf(event)!, ...change } },
});
const isPolicyMade = ({ type }: Event) => type === 'PolicyCreated';

/** From a deciding event to the event before the next one. */
function runFrom(events: readonly Event[], start: number): Event[] {
  const length = events.slice(start + 1).findIndex(isDeciding);
  return events.slice(start, length < 0 ? undefined : start + 1 + length);
}

const mallory = { userId: anId(), userName: 'Mallory', userTags: [] };

/** Where the first event that fits stands in all streams. */
function find(history: History, fits: (event: Event, at: number, events: readonly Event[]) => boolean) {
  for (const [stream, events] of history) {
    const at = events.findIndex((event, index) => fits(event, index, events));
    if (at >= 0) return { stream, events, at };
  }
  throw new Error('no golden stream has such an event');
}

/** Gives the first stamp another signature, in a chain that fits. */
function forgeStamp(history: History) {
  const { stream, events, at } = find(history, (event) => voteOf(event) !== undefined);
  const signature = voteOf(events[at]!)!.signature.replace(/..$/, (end) => (end === '00' ? '01' : '00'));
  history.set(stream, sealAgain(stream, events.with(at, withVote(events[at]!, { signature }))));
  return { stream, at };
}

describe('verifyHistory', () => {
  it('finds nothing in histories that were recorded, and has looked at all of each', async () => {
    const history = golden();
    const all = [...history.values()].flat();
    const vaults = vaultsLeftBy(history).size;
    expect(vaults).toBeGreaterThan(10);
    const { findings, ...rest } = await verified(history);
    expect(findings).toEqual([]);
    expect(rest).toEqual({
      events: all.length + vaults,
      streams: history.size + vaults,
      decisions: all.filter(isDeciding).length,
      stamps: all.filter(voteOf).length,
      stampsNotKept: 0,
      stampsRedacted: 0,
      isCut: false,
    });
    expect(all.filter(isDeciding).length).toBeGreaterThan(100);
  });

  it('makes decisions of parents again, whatever their sub-organizations have recorded by turns', async () => {
    const history = golden();
    const isParents = ({ data }: Event) => (data['decision'] as { authority?: object } | undefined)?.authority;
    const children = [...history].filter(([, events]) => events.some(isParents));
    expect(children.length).toBeGreaterThanOrEqual(2);
    const store = new InMemoryEventStore();
    await fill(store, vaultsLeftBy(history));
    for (const [stream] of children) history.delete(stream);
    await byTurns(store, history);
    await byTurns(store, new Map(children));
    const { findings, decisions } = await verifyHistory(store, { registry });
    expect(findings).toEqual([]);
    expect(decisions).toBe(
      [...history.values(), ...children.map(([, events]) => events)].flat().filter(isDeciding).length,
    );
    await store.close();
  });

  it('finds the same in an EventStoreDB, and with the stamps in a thread of their own', async () => {
    const clean = await verified(golden());
    const forged = golden();
    const { stream, at } = forgeStamp(forged);
    const double = await EventStoreDouble.start();
    try {
      const found = await verified(golden(), {}, await EventStoreDbEventStore.open(double.connectionString));
      expect(found).toEqual(clean);
    } finally {
      await double.stop();
    }
    expect(await verified(golden(), { threads: true })).toEqual(clean);
    const threaded = await verified(forged, { threads: true });
    expect(threaded).toEqual(await verified(forged));
    expect(threaded.findings).toMatchObject([
      { stream, revision: at, problem: expect.stringMatching(/stamp of user/) as string },
    ]);
  });

  it('has its progress on the disk before the file has its name, and then the name', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'verify-'));
    const flushed: string[] = [];
    const progress = new SavedProgress(join(folder, 'progress'), 0);
    await tellFlushed(
      folder,
      (one) => flushed.push(one),
      () => progress.write({ position: 0n, hash: undefined, counts: noCounts, findings: [] }),
    );
    expect(flushed).toEqual(['progress.new', 'folder with progress']);
    await rm(folder, { recursive: true });
  });

  it('tells how far it is, and goes on where it has broken off', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'verify-'));
    const file = join(folder, 'progress');
    try {
      const all = [...withVaults(golden()).values()].flat().length;
      const shares: number[] = [];
      let seen = 0;
      const broken = verified(golden(), {
        progress: new SavedProgress(file, 0),
        onEvent() {
          seen += 1;
          return seen === all - 50 ? Promise.reject(new Error('broken off')) : undefined;
        },
        onProgress: (_events, share) => shares.push(share),
      });
      await expect(broken).rejects.toThrow('broken off');
      expect((await stat(file)).mode & 0o777).toBe(0o600);
      expect(shares).toEqual([...shares].sort((one, other) => one - other));

      // The stamps that it has looked at are not looked at again: this forgery is one of the first.
      const forged = golden();
      forgeStamp(forged);
      const kept = readFileSync(file);
      const { findings, ...counts } = await verified(forged, { progress: new SavedProgress(file, 0) });
      const { findings: none, ...whole } = await verified(golden());
      expect([findings, none]).toEqual([[], []]);
      expect(counts).toEqual(whole);
      expect(existsSync(file)).toBe(false);

      writeFileSync(file, kept);
      const other = new Map([...golden()].reverse());
      await expect(verified(other, { progress: new SavedProgress(file) })).rejects.toThrow(/is of another history/);
      writeFileSync(file, 'no progress');
      await expect(verified(golden(), { progress: new SavedProgress(file) })).rejects.toThrow(
        `\`${file}\` was not written by a verification of this release: remove it, or choose another`,
      );
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  describe('since saved heads', () => {
    let folder: string;
    let since: SavedHeads;

    beforeEach(async () => {
      folder = await mkdtemp(join(tmpdir(), 'verify-'));
    });

    afterEach(async () => {
      since.close();
      await rm(folder, { recursive: true });
    });

    /** Heads of all streams, at their ends unless other revisions are given. */
    async function headsOf(history: History, others: Readonly<Record<string, number>> = {}): Promise<SavedHeads> {
      const heads = [...history].map(([stream, events]) => {
        const revision = others[stream] ?? events.length - 1;
        return [stream, { revision, hash: events[revision]!.metadata.hash }] as const;
      });
      const file = join(folder, 'heads.json');
      writeFileSync(file, JSON.stringify({ format: 'countersign heads 1', heads: Object.fromEntries(heads) }));
      return SavedHeads.read(file, false);
    }

    it('checks the chains of earlier events, and neither their stamps nor their decisions', async () => {
      const history = golden();
      forgeStamp(history);
      since = await headsOf(history);
      const verification = await verified(history, { since });
      expect(verification).toMatchObject({ findings: [], eventsSince: 0, ...noCounts });

      const { stream, events: changed, at } = find(history, ({ type }) => type === 'UserUpdated');
      const data = { ...changed[at]!.data, userName: 'Mallory' };
      history.set(stream, changed.with(at, { ...changed[at]!, data }));
      expect(placesIn((await verified(history, { since })).findings)).toContainEqual([
        stream,
        at,
        expect.stringMatching(/hash chain .* is broken/),
      ]);
      history.set(stream, sealAgain(stream, history.get(stream)!));
      expect(placesIn((await verified(history, { since })).findings)).toContainEqual([
        stream,
        changed.length - 1,
        expect.stringMatching(/^its link was `.*` when `.*heads.json` was saved, and is `/),
      ]);
    });

    it('checks everything of later events, whatever their decisions are based on', async () => {
      const history = golden();
      const { stream, at } = forgeStamp(history);
      since = await headsOf(history, { [stream]: at - 1 });
      const { findings, decisions, eventsSince } = await verified(history, { since });
      expect(findings).toMatchObject([
        { stream, revision: at, problem: expect.stringMatching(/stamp of user/) as string },
      ]);
      const later = history.get(stream)!.slice(at);
      expect(decisions).toBe(later.filter(isDeciding).length);
      expect(eventsSince).toBe(later.length);
    });

    it('names later events that no decision has recorded, and a request that was recorded before', async () => {
      const history = golden();
      const { stream, events, at: voted } = find(history, ({ type }) => type === 'ActivityApproved');
      since = await headsOf(history);
      const store = new InMemoryEventStore();
      await fill(store, withVaults(history));
      const at = await forge(store, stream, { type: 'UserCreated', data: mallory }, events[voted]!);
      const places = placesIn((await verified(new Map(), { since }, store)).findings);
      expect(places).toContainEqual([stream, at, 'no decision has recorded it']);
      expect(places).toContainEqual([stream, at + 1, expect.stringMatching(/is recorded twice/)]);
    });

    it('names an event right behind the last decision that is known', async () => {
      const history = golden();
      since = await headsOf(history);
      const stream = [...history.keys()].at(-1)!;
      const store = new InMemoryEventStore();
      await fill(store, withVaults(history));
      const at = await forge(store, stream, { type: 'UserCreated', data: mallory });
      const { findings } = await verified(new Map(), { since }, store);
      expect(placesIn(findings)).toEqual([[stream, at, 'no decision has recorded it']]);
    });
  });

  it('keeps values in a temporary file, and those in use in memory', () => {
    const spill = new Spill();
    const map = new SpilledMap<{ size: number; text: string }>(spill, {
      name: 'texts',
      most: 10,
      sizeOf: ({ size }) => size,
      write: (value) => Buffer.from(JSON.stringify(value)),
      read: (bytes) => JSON.parse(bytes.toString()) as { size: number; text: string },
    });
    const set = new SpilledSet(spill, 'words');
    const texts = Array.from({ length: 20_100 }, (_, index) => String(index));
    expect(texts.filter((text) => !set.add(text))).toEqual([]);
    expect(['0', '19999', '20000', '20099', '20100'].map((text) => set.add(text))).toEqual([
      ...[false, false, false, false],
      true,
    ]);
    for (let count = 0; count < 20; count++) map.set(`key ${count}`, { size: 1, text: '' });
    map.set('large', { size: 6, text: 'large' });
    map.shrink();
    map.get('key 0')!.text = 'changed';
    map.shrink();
    for (let count = 1; count < 20; count++) map.get(`key ${count}`);
    map.shrink();
    expect([map.size, map.has('key 3'), map.has('key 20')]).toEqual([21, true, false]);
    expect(map.get('key 0')).toEqual({ size: 1, text: 'changed' });
    map.get('key 0')!.text = 'again';
    const all = new Map(map.entries());
    expect([all.size, all.get('key 0')?.text, all.get('large')?.text]).toEqual([21, 'again', 'large']);
    spill.close();
  });

  it('takes the words of a failure as they were recorded, and its code as it comes out', async () => {
    for (const [failure, found] of [
      [{ message: 'in the words of an earlier release' }, 0],
      [{ code: 'ABORTED' }, 1],
    ] as const) {
      const history = golden();
      const byItself = (_event: Event, index: number, all: readonly Event[]) =>
        all[index]!.type === 'ActivityFailed' && all[index - 1]!.type === 'ActivityApproved';
      const { stream, events, at } = find(history, byItself);
      const failed = events[at]!;
      const data = { ...failed.data, failure: { ...(failed.data['failure'] as object), ...failure } };
      history.set(stream, sealAgain(stream, events.with(at, { ...failed, data })));
      expect((await verified(history)).findings).toHaveLength(found);
    }
  });

  const otherRules = (rules: number | undefined) =>
    new RegExp(`was not decided by the rules of this release \\(1\\): its rules are \`${rules}\`; use the release`);

  /** The first submission as if other rules had decided it. */
  const byRules = (history: History, rules: number | undefined) => {
    const { stream, events, at } = find(history, ({ type }) => type === 'ActivitySubmitted');
    const { rules: _rules, ...decision } = events[at]!.data['decision'] as { rules?: number };
    const data = { ...events[at]!.data, decision: { ...decision, ...(rules === undefined ? {} : { rules }) } };
    const forged = { ...events[at]!, data };
    return { stream, events: events.with(at, forged), at, says: otherRules(rules), isSealed: true } as const;
  };

  /** Each forges one event, says where it must be found, and what must be said of it. */
  const forgeries: Readonly<
    Record<string, (history: History) => { stream: string; events: Event[]; at: number; says: RegExp; isSealed?: true }>
  > = {
    'a changed byte': (history) => {
      const { stream, events, at } = find(history, ({ type }) => type === 'UserUpdated');
      const data = { ...events[at]!.data, userName: 'Mallory' };
      return { stream, events: events.with(at, { ...events[at]!, data }), at, says: /hash chain .* is broken/ };
    },
    'an event taken out': (history) => {
      const { stream, events, at } = find(history, ({ type }) => type === 'UserCreated');
      return { stream, events: events.toSpliced(at, 1), at, says: /hash chain .* is broken/ };
    },
    'a changed byte of a signed request, in a chain that fits': (history) => {
      const { stream, events, at } = find(history, (event) => event.type === 'ActivitySubmitted');
      const message = voteOf(events[at]!)!.message.replace(/"timestampMs":"(\d)/, '"timestampMs":"9');
      return {
        stream,
        events: events.with(at, withVote(events[at]!, { message })),
        at,
        says: /stamp .* does not verify/,
        isSealed: true,
      };
    },
    'a changed request with a fingerprint that fits': (history) => {
      const { stream, events, at } = find(history, ({ type }) => type === 'ActivityRejected');
      const message = `${voteOf(events[at]!)!.message} `;
      const fingerprint = fingerprintOf(Buffer.from(message));
      return {
        stream,
        events: events.with(at, withVote(events[at]!, { message, fingerprint })),
        at,
        says: /stamp .* does not verify/,
        isSealed: true,
      };
    },
    'a vote without a stamp': (history) => {
      const { stream, events, at } = find(history, ({ type }) => type === 'ActivityApproved');
      return {
        stream,
        events: events.with(at, withVote(events[at]!, { signature: '' })),
        at,
        says: /stamp .* does not verify/,
        isSealed: true,
      };
    },
    'a vote in the name of another user': (history) => {
      const { stream, events, at } = find(history, ({ type }) => type === 'ActivityApproved');
      const { userId } = voteOf(events[at]!)!;
      const other = events.slice(0, at).find(({ type, data }) => type === 'UserCreated' && data['userId'] !== userId)!;
      return {
        stream,
        events: events.with(at, withVote(events[at]!, { userId: String(other.data['userId']) })),
        at,
        says: /no decision could have recorded this: user `.*` has no credential/,
        isSealed: true,
      };
    },
    'a rejection that counts as an approval': (history) => {
      const { stream, events, at } = find(history, ({ type }) => type === 'ActivityRejected');
      const { decision } = find(history, ({ type }) => type === 'ActivityApproved').events.find(
        ({ type }) => type === 'ActivityApproved',
      )!.data;
      const forged = withVote(events[at]!, { selection: 'VOTE_SELECTION_APPROVED' });
      return {
        stream,
        events: events.with(at, { ...forged, type: 'ActivityApproved', data: { ...forged.data, decision } }),
        at,
        says: /what was signed is `VOTE_SELECTION_REJECTED`/,
        isSealed: true,
      };
    },
    'a fingerprint that is not that of the signed request': (history) => {
      const { stream, events, at } = find(history, ({ type }) => type === 'ActivitySubmitted');
      const data = { ...events[at]!.data, fingerprint: fingerprintOf(Buffer.from('another')) };
      const says = /has the fingerprint sha256:\w+, not that of what was signed/;
      return { stream, events: events.with(at, { ...events[at]!, data }), at, says, isSealed: true };
    },
    'a submitter who rejects what they submit': (history) => {
      const { stream, events, at } = find(history, ({ type }) => type === 'ActivitySubmitted');
      const forged = withVote(events[at]!, { selection: 'VOTE_SELECTION_REJECTED' });
      const says = /an ActivitySubmitted with the selection `VOTE_SELECTION_REJECTED`/;
      return { stream, events: events.with(at, forged), at, says, isSealed: true };
    },
    'another id of a vote': (history) => {
      const { stream, events, at } = find(history, ({ type }) => type === 'ActivityApproved');
      return {
        stream,
        events: events.with(at, withVote(events[at]!, { voteId: anId() })),
        at,
        says: /the vote has the id `.*`, not `.*`/,
        isSealed: true,
      };
    },
    'proofs that nobody has requested': (history) => {
      const { stream, events, at } = find(history, ({ type }) => type === 'ActivitySubmitted');
      const data = { ...events[at]!.data, generateAppProofs: true };
      const says = /does not keep what was signed of generateAppProofs/;
      return { stream, events: events.with(at, { ...events[at]!, data }), at, says, isSealed: true };
    },
    ...Object.fromEntries(
      Object.entries({
        path: "m/44'/60'/9'/0/9",
        curve: 'CURVE_P256',
        addressFormat: 'ADDRESS_FORMAT_COSMOS',
      }).map(([member, value]) => [
        `an account of another ${member}`,
        (history: History) => {
          const { stream, events, at } = find(history, ({ type }) => type === 'WalletAccountsCreated');
          const accounts = (events[at]!.data['accounts'] as object[]).map((one) => ({ ...one, [member]: value }));
          const forged = { ...events[at]!, data: { ...events[at]!.data, accounts } };
          return { stream, events: events.with(at, forged), at, says: /./, isSealed: true };
        },
      ]),
    ),
    'an activity that was done without a vote that it took': (history) => {
      // Somebody has voted before the vote that has sufficed.
      const { stream, events, at } = find(
        history,
        (event, index, all) =>
          event.type === 'ActivityApproved' &&
          event.data['status'] === 'ACTIVITY_STATUS_CONSENSUS_NEEDED' &&
          all
            .slice(index + 1)
            .some(({ type, data }) => type === 'ActivityApproved' && data['activityId'] === event.data['activityId']),
      );
      const last = events.findIndex(
        ({ type, data }, index) =>
          index > at && type === 'ActivityApproved' && data['activityId'] === events[at]!.data['activityId'],
      );
      return {
        stream,
        events: events.toSpliced(at, 1),
        at: last - 1,
        says: /was decided `allow`, but deciding again yields `consensus-needed`/,
        isSealed: true,
      };
    },
    'a policy that never was, for what should have been denied': (history) => {
      // Without the policy that has allowed it, it is a denial.
      const { stream, events, at } = find(history, (event, index, all) => {
        const { decision } = event.data as { decision?: { decidedBy: string; outcome: string } };
        return (
          event.type === 'ActivitySubmitted' &&
          decision?.decidedBy === 'policy' &&
          decision.outcome === 'allow' &&
          all.slice(0, index).some(({ type }) => type === 'PolicyCreated')
        );
      });
      const { evaluations } = events[at]!.data['decision'] as {
        evaluations: { policyId: string; outcome: string }[];
      };
      const allowing = evaluations.find(({ outcome }) => outcome === 'OUTCOME_ALLOW')!;
      const made = events.findIndex(
        ({ type, data }) => type === 'PolicyCreated' && data['policyId'] === allowing.policyId,
      );
      const data = { ...events[made]!.data, effect: 'EFFECT_DENY' };
      return {
        stream,
        events: events.with(made, { ...events[made]!, data }),
        // Making the policy comes out with another event, and what it has allowed as a denial.
        at: made,
        says: /yields a different event than this one/,
        isSealed: true,
      };
    },
    'an effect that was not decided': (history) => {
      const { stream, events, at } = find(history, ({ type }) => type === 'UserUpdated');
      const data = { ...events[at]!.data, userName: 'Mallory' };
      return {
        stream,
        events: events.with(at, { ...events[at]!, data }),
        at,
        says: /yields a different event than this one/,
        isSealed: true,
      };
    },
    'the same request once more': (history) => {
      const { stream, events, at } = find(
        history,
        (event) => event.type === 'ActivitySubmitted' && event.data['type'] === 'ACTIVITY_TYPE_CREATE_USER_TAG',
      );
      const run = runFrom(events, at);
      const again = events.length;
      return {
        stream,
        events: [...events, ...run],
        at: again,
        says: /same user, .* is recorded twice/,
        isSealed: true,
      };
    },
    'what was decided in another organization': (history) => {
      const [[, others], [stream, events]] = [...history].slice(0, 2) as [[string, Event[]], [string, Event[]]];
      const run = runFrom(others, others.findIndex(isDeciding));
      return {
        stream,
        events: [...events, ...run],
        at: events.length,
        says: /no decision could have recorded this/,
        isSealed: true,
      };
    },
    'a decision of another organization in place of one of its own': (history) => {
      const [[other, others], [stream, events]] = [...history].slice(0, 2) as [[string, Event[]], [string, Event[]]];
      const [there, at] = [others.findIndex(isDeciding), events.findIndex(isDeciding)];
      const [theirs, own] = [runFrom(others, there), runFrom(events, at)];
      history.set(other, sealAgain(other, others.toSpliced(there, theirs.length, ...own)));
      return {
        stream,
        events: events.toSpliced(at, own.length, ...theirs),
        at,
        says: /no decision could have recorded this/,
        isSealed: true,
      };
    },
    'a decision that should have been a denial': (history) => {
      // Nobody has ever made the policy that has allowed it.
      const { stream, events, at } = find(history, (event, index, all) => {
        const { decision } = event.data as { decision?: { decidedBy: string; outcome: string } };
        const isAllowed = decision?.decidedBy === 'policy' && decision.outcome === 'allow';
        return event.type === 'ActivitySubmitted' && isAllowed && all.slice(0, index).some(isPolicyMade);
      });
      const { evaluations } = events[at]!.data['decision'] as {
        evaluations: { policyId: string; outcome: string }[];
      };
      const allowing = evaluations.filter(({ outcome }) => outcome === 'OUTCOME_ALLOW').map(({ policyId }) => policyId);
      const isAllowing = (event: Event) => isPolicyMade(event) && allowing.includes(String(event.data['policyId']));
      return {
        stream,
        // What has made it becomes what has made nothing.
        events: events.map<Event>((event) =>
          isAllowing(event) ? { ...event, type: 'PolicyDeleted', data: { policyId: event.data['policyId'] } } : event,
        ),
        at,
        says: /no decision could have recorded this: PERMISSION_DENIED/,
        isSealed: true,
      };
    },
    'another time for what followed from a decision': (history) => {
      const { stream, events, at } = find(
        history,
        (event, index, all) => !isDeciding(event) && index > 0 && isDeciding(all[index - 1]!),
      );
      const metadata = { ...events[at]!.metadata, at: events[at]!.metadata.at + 1 };
      return {
        stream,
        events: events.with(at, { ...events[at]!, metadata }),
        at: at - 1,
        says: /does not follow from revision/,
        isSealed: true,
      };
    },
    'a sub-organization that begins with another user': (history) => {
      const { stream, events } = find(
        history,
        ({ type, data }) => type === 'OrganizationCreated' && 'parentRevision' in data,
      );
      const user = events.findIndex(({ type }) => type === 'UserCreated');
      const data = { ...events[user]!.data, userName: 'Mallory' };
      return {
        stream,
        events: events.with(user, { ...events[user]!, data }),
        at: 0,
        says: /does not begin as `.*` recorded it/,
        isSealed: true,
      };
    },
    'a sub-organization that its parent never recorded': (history) => {
      const { stream, events } = find(
        history,
        ({ type, data }) => type === 'OrganizationCreated' && 'parentRevision' in data,
      );
      const data = { ...events[0]!.data, parentRevision: Number(events[0]!.data['parentRevision']) - 1 };
      return {
        stream,
        events: events.with(0, { ...events[0]!, data }),
        at: 0,
        says: /has not recorded this sub-organization at its revision/,
        isSealed: true,
      };
    },
    'a sub-organization that does not say where its parent recorded it': (history) => {
      const { stream, events } = find(
        history,
        ({ type, data }) => type === 'OrganizationCreated' && 'parentRevision' in data,
      );
      const { parentRevision: _where, ...data } = events[0]!.data;
      return {
        stream,
        events: events.with(0, { ...events[0]!, data }),
        at: 0,
        says: /does not name the revision of organization `.*` that founded it/,
        isSealed: true,
      };
    },
    'an event behind those that a sub-organization begins with': (history) => {
      const { stream, events } = find(
        history,
        ({ type, data }) => type === 'OrganizationCreated' && 'parentRevision' in data,
      );
      const at = events.findIndex(isDeciding);
      const forged = { ...events[0]!, id: anId(), type: 'UserCreated', data: mallory };
      return {
        stream,
        events: events.toSpliced(at < 0 ? events.length : at, 0, forged),
        at: at < 0 ? events.length : at,
        says: /no decision has recorded it/,
        isSealed: true,
      };
    },
    'a decision that does not say its rules': (history) => byRules(history, undefined),
    'a decision by other rules': (history) => byRules(history, 2),
    'a rejection by other rules': (history) => {
      const { stream, events, at } = find(history, ({ type }) => type === 'ActivityRejected');
      const forged = { ...events[at]!, data: { ...events[at]!.data, rules: 2 } };
      return { stream, events: events.with(at, forged), at, says: otherRules(2), isSealed: true };
    },
  };

  /** Appends events to a stream, in a chain that fits. */
  async function forge(
    store: EventStore,
    stream: string,
    ...facts: { readonly type: string; readonly data: object; readonly metadata?: Partial<EventMetadata> }[]
  ): Promise<number> {
    const before: RecordedEvent[] = [];
    for await (const event of store.read(stream)) before.push(event);
    const last = before.at(-1);
    const forged = facts.map(({ type, data, metadata: own }) => {
      const id = anId();
      const first = { at: 1, schemaVersion: 1, $correlationId: id, $causationId: id };
      const metadata = { ...((last?.metadata as EventMetadata | undefined) ?? first), ...own, hash: '' };
      return { id, type, data: { ...data }, metadata };
    });
    const sealed = sealAgain(stream, [...(before as Event[]), ...forged]).slice(before.length);
    await store.append(stream, sealed, before.length === 0 ? 'no-stream' : before.length - 1);
    return before.length;
  }

  it.each(['installation-boots', 'claims-x', 'message-counts-x'])(
    'names events that no decision has recorded, behind one in `%s`',
    async (other) => {
      const store = new InMemoryEventStore();
      const history = golden();
      const stream = [...history.keys()].at(-1)!;
      await fill(store, withVaults(history));
      await forge(store, 'vault-installation', { type: 'SecretSealed', data: { name: 'signer' } });
      await forge(store, other, { type: 'Told', data: {} });
      const at = await forge(
        store,
        stream,
        { type: 'UserCreated', data: mallory },
        { type: 'RootQuorumUpdated', data: { threshold: 1, userIds: [mallory.userId] } },
        { type: 'HistoryImported', data: { redacted: false, testKeys: [] } },
      );
      const { findings } = await verified(new Map(), {}, store);
      expect(placesIn(findings).filter(([place]) => place === stream)).toEqual(
        [at, at + 1, at + 2].map((revision) => [stream, revision, 'no decision has recorded it']),
      );
    },
  );

  it('names another stream that says what was installed, and does not believe it', async () => {
    const store = new InMemoryEventStore();
    const history = golden();
    await forge(store, 'claims-x', { type: 'CoordinatorInstalled', data: { imported: { redacted: true } } });
    const { stream, events, at } = find(history, ({ type }) => type === 'ActivityApproved');
    const unsigned = withVote(events[at]!, { signature: '' });
    const redacted: Event = { ...unsigned, metadata: { ...unsigned.metadata, redacted: true } };
    history.set(stream, sealAgain(stream, events.with(at, redacted)));
    const { findings } = await verified(history, {}, store);
    const places = placesIn(findings);
    expect(places).toContainEqual([
      'claims-x',
      0,
      expect.stringMatching(/only the first event of `installation-root`/),
    ]);
    expect(places).toContainEqual([stream, at, expect.stringMatching(/marked as redacted/)]);
    expect(places).toContainEqual([stream, at, expect.stringMatching(/stamp .* does not verify/)]);
  });

  it('names a root organization that does not begin as it was installed', async () => {
    const store = new InMemoryEventStore();
    const organizationId = anId();
    const founding = {
      organizationId,
      organizationName: 'Root organization',
      userId: anId(),
      userName: 'Root user',
      apiPublicKey: '02'.repeat(33),
      curve: 'API_KEY_CURVE_P256',
      at: 1,
    } as const;
    const { userId } = founding;
    const metadata = { at: founding.at, $correlationId: organizationId, $causationId: organizationId };
    await forge(store, 'installation-root', { type: 'CoordinatorInstalled', data: founding, metadata });
    const stream = `organization-${organizationId}`;
    await forge(store, stream, ...rootBeginning({ ...founding, apiPublicKey: '03'.repeat(33) }));
    expect(placesIn((await verified(new Map(), {}, store)).findings)).toEqual([
      [stream, 0, 'it does not begin as `installation-root` recorded it'],
    ]);
    const right = new InMemoryEventStore();
    await forge(right, 'installation-root', { type: 'CoordinatorInstalled', data: founding, metadata });
    await forge(right, stream, ...rootBeginning(founding).map((fact) => ({ ...fact, metadata })));
    const more = await forge(right, stream, { type: 'RootQuorumUpdated', data: { threshold: 1, userIds: [userId] } });
    expect(placesIn((await verified(new Map(), {}, right)).findings)).toEqual([
      [stream, more, 'no decision has recorded it'],
    ]);
  });

  it('names denials that nobody has signed, and says so of a body that is not JSON', async () => {
    const history = golden();
    const { stream, events, at } = find(history, (event) => event.type === 'ActivitySubmitted');
    const { message, userId, publicKey, signature, scheme } = voteOf(events[at]!)!;
    const { type, timestampMs } = events[at]!.data;
    const denials = stream.replace('organization-', 'denials-');
    const store = new InMemoryEventStore();
    await fill(store, withVaults(history));
    const denied = async (changes: object, of = message) => {
      const fingerprint = fingerprintOf(Buffer.from(of));
      const said = { type, timestampMs, userId, publicKey, signature, scheme, reason: '', details: [] };
      const metadata = { $correlationId: fingerprint, $causationId: fingerprint };
      const data = { ...said, message: of, fingerprint, ...changes };
      return forge(store, denials, { type: 'ActivityDenied', data, metadata });
    };
    const places = [
      [denials, await denied({}, 'no JSON'), /^what was signed is not a request: .*not valid JSON/],
      [denials, await denied({ userId: anId() }), /^the key that stamped it never was one of user/],
      [denials, await denied({ fingerprint: 'sha256:another' }), /^it is not recorded as the denial of its request/],
      [denials, await denied({ type: 'ACTIVITY_TYPE_DELETE_USERS' }), /^what was signed is `ACTIVITY_TYPE_/],
      [denials, await denied({ signature: '' }), /^the stamp of a denied request does not verify/],
    ] as const;
    await denied({});
    const found = placesIn((await verified(new Map(), {}, store)).findings);
    for (const [place, revision, says] of places) {
      expect(found).toContainEqual([place, revision, expect.stringMatching(says)]);
    }
    expect(found.map(([, revision]) => revision)).toEqual([0, 0, 1, 2, 3, 4]);
  });

  describe('of vaults', () => {
    it('names each that is gone and still needed, with its organization and what it holds', async () => {
      const history = golden();
      const { findings } = await verifiedAsIs(history);
      const sentence =
        /^the stream `(.*)` is missing: this vault of organization `(.*)` holds (.*); restore a backup of the store that has it$/;
      const said = findings.map(({ problem }) => sentence.exec(problem) ?? []);
      expect(said.map(([, stream]) => stream).sort()).toEqual([...vaultsLeftBy(history).keys()].sort());
      for (const [index, { stream, revision }] of findings.entries()) {
        expect([stream, revision]).toEqual([`organization-${said[index]![2]}`, history.get(stream)!.length - 1]);
      }
      const holds = new Set(said.map(([, , , what]) => what!.replace(/ `[^`]+`$/, '')));
      expect(holds).toEqual(
        new Set([
          'the seed of wallet',
          'private key',
          'the key for the bundle of import',
          'the key for one-time code',
          'the client secret of OAuth 2.0 credential',
          'the secrets of fiat on-ramp credential',
          'the key of its auth proxy',
        ]),
      );
    });

    it('names one alone, and no more of them than it was asked to', async () => {
      const history = golden();
      const whole = withVaults(history);
      const [lost, ...others] = vaultsLeftBy(history).keys();
      whole.delete(lost!);
      const { findings } = await verifiedAsIs(whole);
      expect(findings).toMatchObject([{ problem: expect.stringContaining(`\`${lost}\` is missing`) as string }]);
      for (const stream of others) whole.delete(stream);
      const cut = await verifiedAsIs(whole, { maxFindings: 3 });
      expect([cut.findings.length, cut.isCut]).toEqual([3, true]);
    });

    it('has nothing against one that nothing names, or nothing yet', async () => {
      const history = golden();
      const nameless = new Map([['vault-early', sealAgain('vault-early', [aSecret()])], ...history]);
      expect((await verified(nameless)).findings).toEqual([]);
    });

    it('has nothing against one that was shredded meanwhile, because something has ended it', async () => {
      const history = golden();
      const { stream, events, at } = find(history, ({ type }) => type === 'WalletDeleted');
      const start = events.slice(0, at).findLastIndex(isDeciding);
      const deletion = runFrom(events, start);
      history.set(stream, events.slice(0, start));
      const lost = `vault-${String(events[at]!.data['vaultId'])}`;
      const whole = withVaults(history);
      expect(whole.delete(lost)).toBe(true);
      const said = {
        stream,
        revision: start - 1,
        problem: expect.stringContaining(`\`${lost}\` is missing`) as string,
      };
      expect((await verifiedAsIs(whole)).findings).toMatchObject([said]);

      const store = new InMemoryEventStore();
      let first = true;
      const onEvent = async () => {
        if (first) await store.append(stream, deletion, start - 1);
        first = false;
      };
      expect((await verifiedAsIs(whole, { onEvent }, store)).findings).toEqual([]);
    });

    it('names one that has gone since a part was verified before', async () => {
      const folder = await mkdtemp(join(tmpdir(), 'verify-'));
      const file = join(folder, 'progress');
      try {
        const history = golden();
        const store = new InMemoryEventStore();
        await fill(store, withVaults(history));
        const [lost] = vaultsLeftBy(history).keys();
        const [last] = [...history.keys()].slice(-1);
        const onEvent = ({ stream }: RecordedEvent) =>
          stream === last ? Promise.reject(new Error('broken off')) : undefined;
        const broken = verifyHistory(store, { registry, progress: new SavedProgress(file, 0), onEvent });
        await expect(broken).rejects.toThrow('broken off');
        await store.delete(lost!);
        const { findings } = await verifyHistory(store, { registry, progress: new SavedProgress(file, 0) });
        expect(findings).toMatchObject([{ problem: expect.stringContaining(`\`${lost}\` is missing`) as string }]);
        await store.close();
      } finally {
        await rm(folder, { recursive: true });
      }
    });

    it("names the installation's own, once a boot is recorded", async () => {
      const boot = { type: 'AttestationRootIssued', data: { certificate: '' } };
      const store = new InMemoryEventStore();
      await forge(store, 'installation-boots', boot);
      expect(placesIn((await verified(golden(), {}, store)).findings)).toEqual([
        [
          'installation-boots',
          0,
          'the stream `vault-installation` is missing: this vault holds the keys that this installation signs and encrypts ' +
            'with; restore a backup of the store that has it',
        ],
      ]);
      const whole = new InMemoryEventStore();
      await forge(whole, 'vault-installation', { type: 'SecretSealed', data: { name: 'signer' } });
      await forge(whole, 'installation-boots', boot);
      expect((await verified(golden(), {}, whole)).findings).toEqual([]);
    });
  });

  it.each(Object.keys(forgeries))('names the event of %s', async (name) => {
    const history = golden();
    const { stream, events, at, says, isSealed } = forgeries[name]!(history);
    history.set(stream, isSealed ? sealAgain(stream, events) : events);
    const { findings } = await verified(history);
    expect(placesIn(findings)).toContainEqual([stream, at, expect.stringMatching(says)]);
  });

  it.each(['data', 'metadata'])('names the event in whose %s one flipped bit has left no UTF-8', async (column) => {
    const folder = await mkdtemp(join(tmpdir(), 'countersign-verify-'));
    try {
      const file = join(folder, 'events.db');
      const { findings: before } = await verified(golden(), {}, await SqliteEventStore.open(file));
      expect(before).toEqual([]);
      const [stream] = golden().keys();
      const place = [stream!, 3] as const;
      const database = new Database(file);
      const { data } = database
        .prepare(`SELECT CAST(${column} AS BLOB) AS data FROM events WHERE stream = ? AND revision = ?`)
        .get([...place]) as { data: Buffer };
      const flipped = Buffer.from(data);
      const inTheLastText = flipped.lastIndexOf('"') - 1;
      flipped[inTheLastText]! |= 0x80;
      database
        .prepare(`UPDATE events SET ${column} = CAST(? AS TEXT) WHERE stream = ? AND revision = ?`)
        .run([flipped, ...place]);
      database.close();
      const store = await SqliteEventStore.openForReading(file);
      const { findings } = await verifyHistory(store, { registry });
      await store.close();
      expect(placesIn(findings)).toContainEqual([
        ...place,
        expect.stringMatching(/hash chain .* is broken at revision 3/),
      ]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
