import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdtemp, rm, stat, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SqliteEventStore } from '../../src/event-store/sqlite.js';
import { all, pause, someEvents } from '../contracts/event-store.contract.js';

const STREAMS = Array.from({ length: 12 }, (_, index) => `organization-${index}`);

interface Writer {
  readonly pid: number;
  /** Last acknowledged revision of each stream; grows until the process has ended. */
  readonly acknowledged: ReadonlyMap<string, number>;
  kill(): Promise<void>;
}

let directory: string;
let file: string;
let child: ChildProcess | undefined;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'event-store-crash-'));
  file = join(directory, 'events.db');
});

afterEach(async () => {
  child?.kill('SIGKILL');
  await rm(directory, { recursive: true });
});

describe('a process that is killed while it writes', () => {
  it('loses nothing acknowledged, leaves no gap and no half append, and its file opens at once', async () => {
    let acknowledged = 0;
    for (let round = 0; round < 7; round++) {
      const writer = await startWriter();
      await pause(20 + Math.random() * 300);
      await writer.kill();
      for (const revision of writer.acknowledged.values()) acknowledged += revision;
      expect(existsSync(`${file}.pid`)).toBe(true);

      const started = Date.now();
      const store = await SqliteEventStore.open(file);
      expect(Date.now() - started).toBeLessThan(2_000);
      await expectWhole(store, writer.acknowledged);
      const { revision } = await store.append(`after-${round}`, someEvents(1), 'no-stream');
      expect(revision).toBe(0);
      await store.close();
    }
    expect(acknowledged).toBeGreaterThan(1_000);
  });

  it('keeps every other process out while it lives, and no longer', async () => {
    const writer = await startWriter();
    const inUse = `the event store \`${file}\` is in use by another process (pid ${writer.pid})`;
    await expect(SqliteEventStore.open(file)).rejects.toThrow(inUse);
    const before = sum(writer.acknowledged);
    while (sum(writer.acknowledged) < before + 100) await pause();
    await expect(SqliteEventStore.open(file)).rejects.toThrow(inUse);
    await writer.kill();

    const store = await SqliteEventStore.open(file);
    await expectWhole(store, writer.acknowledged);
    await store.close();
  });

  it('leaves whole appends even when the end of the write-ahead log is torn off, as by a loss of power', async () => {
    const writer = await startWriter();
    await pause(150);
    await writer.kill();
    const size = (await stat(`${file}-wal`)).size;

    for (let cut = 0; cut < 12; cut++) {
      const torn = join(directory, `torn-${cut}.db`);
      await copyFile(file, torn);
      await copyFile(`${file}-wal`, `${torn}-wal`);
      await truncate(`${torn}-wal`, Math.floor(size * (1 - (cut + Math.random()) / 12)));
      const store = await SqliteEventStore.open(torn);
      await expectWhole(store, new Map());
      for (const stream of STREAMS) {
        const { length } = await all(store.read(stream));
        await store.append(stream, someEvents(1), length === 0 ? 'no-stream' : length - 1);
      }
      await store.close();
    }
  });
});

/** Resolves once the writer has had its first append acknowledged. */
async function startWriter(): Promise<Writer> {
  const script = fileURLToPath(new URL('./sqlite-crash-writer.mjs', import.meta.url));
  const process_ = spawn(process.execPath, [script, file, ...STREAMS], { env: {}, stdio: ['ignore', 'pipe', 'pipe'] });
  child = process_;
  const acknowledged = new Map<string, number>();
  let rest = '';
  let complaint = '';
  process_.stdout.on('data', (data: Buffer) => {
    const lines = (rest + data.toString()).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const [stream = '', revision] = line.split(' ');
      acknowledged.set(stream, Number(revision));
    }
  });
  process_.stderr.on('data', (data: Buffer) => (complaint += data.toString()));
  const closed = new Promise<void>((resolve) => process_.once('close', () => resolve()));
  while (acknowledged.size === 0) {
    if (process_.exitCode !== null) throw new Error(`the writer has ended: ${complaint}`);
    await pause();
  }
  return {
    pid: process_.pid ?? 0,
    acknowledged,
    async kill() {
      process_.kill('SIGKILL');
      await closed;
    },
  };
}

/** Every stream has its events from 0 without a gap, whole appends only, and all that was acknowledged. */
async function expectWhole(store: SqliteEventStore, acknowledged: ReadonlyMap<string, number>): Promise<void> {
  const wrong: string[] = [];
  for (const stream of STREAMS) {
    let next = 0;
    let expected = { index: 0, of: 0 };
    for await (const { id, revision, data } of store.read(stream)) {
      const { index, of } = data as { index: number; of: number };
      if (expected.index === expected.of) expected = { index: 0, of };
      if (revision !== next || id !== `${stream}#${next}`) wrong.push(`${stream}: ${id} at ${revision}, not ${next}`);
      if (index !== expected.index || of !== expected.of) wrong.push(`${stream}: append broken at ${revision}`);
      expected = { index: index + 1, of };
      next++;
    }
    if (expected.index !== expected.of) wrong.push(`${stream}: half an append at its end`);
    const last = acknowledged.get(stream) ?? -1;
    if (next <= last) wrong.push(`${stream}: acknowledged up to ${last}, has ${next} events`);
  }
  expect(wrong).toEqual([]);
}

function sum(revisions: ReadonlyMap<string, number>): number {
  return [...revisions.values()].reduce((total, revision) => total + revision, 0);
}
