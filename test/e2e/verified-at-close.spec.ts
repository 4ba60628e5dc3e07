import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Vote } from '../../src/domain/activity/events.js';
import { chainEvent, GENESIS_HASH, type EventMetadata } from '../../src/ledger/chain.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { emptyTail, seal } from '../../src/ledger/seal.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { SqliteEventStore } from '../../src/ledger/stores/sqlite/sqlite.js';
import { goldenStream } from '../golden/streams.js';

// What every spec of this folder rests on: a store that does not verify cannot be closed without a word (test/audit/verified-at-close.ts).

let dataDir: string;
let file: string;

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'countersign-verified-'));
  file = join(dataDir, 'events.db');
  const store = await SqliteEventStore.open(file);
  const events = goldenStream('consensus.v1');
  // Its organization needs the vault with the key of its auth proxy.
  const enabled = events.find(({ type }) => type === 'AuthProxyEnabled')!.data as { vaultId: string };
  const vault = `vault-${enabled.vaultId}`;
  const cause = { at: 1, $correlationId: randomUUID(), $causationId: randomUUID() };
  const secret = { type: 'SecretSealed', data: { name: 'a secret' }, metadata: cause };
  await store.append(vault, seal(vault, emptyTail, [secret]).events, 'no-stream');
  await store.append(
    events[0]!.stream,
    events.map(({ id, type, data, metadata }) => ({ id, type, data, metadata })),
    'no-stream',
  );
  await store.close();
});
afterEach(() => rm(dataDir, { recursive: true, force: true }));

/** Runs a script on the closed `database`, in a process of its own. */
function inFile(script: string): string {
  const whole = `const database = new (require('libsql'))(process.argv[1]); ${script}`;
  const cwd = new URL('../..', import.meta.url);
  return execFileSync(process.execPath, ['-e', whole, file], { cwd, encoding: 'utf8', timeout: 60_000 });
}

/** The streams of organizations in the file and their vaults, in the order of the store. */
async function recorded(): Promise<RecordedEvent[]> {
  const store = await SqliteEventStore.open(file);
  const events: RecordedEvent[] = [];
  const head = (await store.head())!;
  await new Promise<void>((resolve, reject) => {
    store.subscribe({
      after: 'start',
      onEvents(some) {
        events.push(...some);
        if (some.at(-1)!.position >= head) resolve();
      },
      onError: reject,
    });
  });
  await store.close();
  return events.filter(({ stream }) => /^(?:organization|vault)-/.test(stream));
}

/** A store with these events, each linked anew to the one before it, as somebody would who rewrites all of it. */
async function linkedAnew(events: readonly RecordedEvent[]): Promise<InMemoryEventStore> {
  const store = new InMemoryEventStore();
  const hashes = new Map<string, string>();
  for (const { stream, revision, id, type, data, metadata } of events) {
    if (stream.startsWith('vault-')) {
      await store.append(stream, [{ id, type, data, metadata }], revision === 0 ? 'no-stream' : revision - 1);
      continue;
    }
    const { hash: _, ...cause } = metadata as EventMetadata;
    const hash = chainEvent(hashes.get(stream) ?? GENESIS_HASH, { stream, revision, id, type, data, metadata: cause });
    hashes.set(stream, hash);
    const expected = revision === 0 ? 'no-stream' : revision - 1;
    await store.append(stream, [{ id, type, data, metadata: { ...cause, hash } }], expected);
  }
  return store;
}

test('a store as it was recorded closes', async () => {
  const store = await SqliteEventStore.open(file);
  await store.close();
  await (await linkedAnew(await recorded())).close();
});

test('one with a changed event does not, the event is named, and the file is let go all the same', async () => {
  const [stream, revision] = JSON.parse(
    inFile(`
      const first = "SELECT stream, revision FROM events WHERE type = 'PolicyCreated' ORDER BY position LIMIT 1";
      const { stream, revision } = database.prepare(first).get();
      const turn = "UPDATE events SET data = replace(data, 'EFFECT_ALLOW', 'EFFECT_DENY') WHERE stream = ? AND revision = ?";
      database.prepare(turn).run(stream, revision);
      process.stdout.write(JSON.stringify([stream, revision]));`),
  ) as [string, number];
  const store = await SqliteEventStore.open(file);
  await expect(store.close()).rejects.toThrow(`what was recorded does not verify:\n${stream} @ ${revision}: `);
  inFile(`
    const back = "UPDATE events SET data = replace(data, 'EFFECT_DENY', 'EFFECT_ALLOW') WHERE stream = ? AND revision = ?";
    database.prepare(back).run('${stream}', ${revision});`);
  await (await SqliteEventStore.open(file)).close();
});

test('a history whose chain is whole, with a request that nobody has signed, does not pass either', async () => {
  const events = await recorded();
  const at = events.findIndex(({ type }) => type === 'ActivityApproved');
  const { stream, revision, data } = events[at]!;
  const { vote } = data as { vote: Vote };
  const forged = { ...vote, message: vote.message.replace(/"timestampMs":"\d/, '"timestampMs":"9') };
  expect(forged.message).not.toBe(vote.message);
  events[at] = { ...events[at]!, data: { ...(data as object), vote: forged } };
  const store = await linkedAnew(events);
  await expect(store.close()).rejects.toThrow(`${stream} @ ${revision}: `);
});

test('a history with a decision that should have been another does not pass', async () => {
  const events = await recorded();
  const at = events.findIndex(
    ({ type, data }) =>
      type === 'ActivitySubmitted' &&
      (data as { decision: { outcome: string } }).decision.outcome === 'consensus-needed',
  );
  const { stream, revision, data } = events[at]!;
  const { decision, ...rest } = data as { decision: { evaluations: readonly object[] } };
  events[at] = { ...events[at]!, data: { ...rest, decision: { ...decision, evaluations: [] } } };
  const store = await linkedAnew(events);
  await expect(store.close()).rejects.toThrow(`${stream} @ ${revision}: `);
});
