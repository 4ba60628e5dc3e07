import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdtemp, open, readFile, rm, stat, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SqliteEventStore } from '../../src/ledger/stores/sqlite/sqlite.js';
import { all, pause, someEvents } from '../contracts/event-store.contract.js';

const STREAMS = Array.from({ length: 12 }, (_, index) => `organization-${index}`);

interface Writer {
  readonly pid: number;
  /** Resolves after so many bytes more of acknowledgements, an append being about twenty. */
  progress(bytes: number): Promise<void>;
  /** Kills it, and returns the last acknowledged revision of each stream. */
  kill(): Promise<ReadonlyMap<string, number>>;
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
      const last = await writer.kill();
      for (const revision of last.values()) acknowledged += revision;
      expect(existsSync(`${file}.pid`)).toBe(true);

      const started = Date.now();
      const store = await SqliteEventStore.open(file);
      expect(Date.now() - started).toBeLessThan(2_000);
      await expectWhole(store, last);
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
    await writer.progress(2_000);
    await expect(SqliteEventStore.open(file)).rejects.toThrow(inUse);
    const last = await writer.kill();

    const store = await SqliteEventStore.open(file);
    await expectWhole(store, last);
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
  // A file, not a pipe: what was written to it before the process died is there whatever this process was doing.
  const said = join(directory, 'acknowledged');
  const output = await open(said, 'w');
  const writer = spawn(process.execPath, [script, file, ...STREAMS], { env: {}, stdio: ['ignore', output.fd, 'pipe'] });
  child = writer;
  await output.close();
  let complaint = '';
  writer.stderr?.on('data', (data: Buffer) => (complaint += data.toString()));
  const closed = new Promise<void>((resolve) => writer.once('close', () => resolve()));

  async function progress(bytes: number): Promise<void> {
    const enough = (await stat(said)).size + bytes;
    while ((await stat(said)).size < enough) {
      if (writer.exitCode !== null) throw new Error(`the writer has ended: ${complaint}`);
      await pause();
    }
  }

  await progress(1);
  return {
    pid: writer.pid ?? 0,
    progress,
    async kill() {
      writer.kill('SIGKILL');
      await closed;
      const lines = (await readFile(said, 'utf8')).split('\n').slice(0, -1);
      return new Map(lines.map((line) => line.split(' ')).map(([stream = '', revision]) => [stream, Number(revision)]));
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
