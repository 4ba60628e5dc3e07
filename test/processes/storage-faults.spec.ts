import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stampBody, type ApiError, type StampingClient } from '../../src/testing/index.js';
import { exchange } from '../e2e/exchange.js';
import { countersign, Installation, main, stop, type Run } from '../e2e/installation.js';
import { until } from '../e2e/until.js';
import { DiskFaults } from './faults/faults.js';

// A process starts in half a second, and in ten on a machine with other work to do.
const patience = 180_000;
const tagType = 'ACTIVITY_TYPE_CREATE_USER_TAG';
const tagPath = '/public/v1/submit/create_user_tag';

let installation: Installation;
let faults: DiskFaults;
const others: ChildProcess[] = [];

beforeEach(async () => {
  installation = await Installation.make();
  faults = new DiskFaults(installation.dataDir);
});

afterEach(async () => {
  for (const child of others.splice(0)) child.kill('SIGKILL');
  await installation.remove();
  faults.remove();
});

const file = (name: string): string => join(installation.dataDir, name);

interface Line {
  readonly level: number;
  readonly msg: string;
  readonly condition?: string;
}

const linesOf = ({ stderr }: Run): Line[] =>
  stderr()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Line);

const fatalLinesOf = (run: Run): string[] =>
  linesOf(run)
    .filter(({ level }) => level === 60)
    .map(({ msg }) => msg);

/** It ends by itself with code 1 and one fatal line; resolves to that. */
async function fatalLine(run: Run, withinMs: number): Promise<string> {
  const late = new Promise((resolve) => void setTimeout(() => resolve('still running'), withinMs).unref());
  expect(await Promise.race([run.exit, late])).toEqual({ code: 1, signal: null });
  const fatal = fatalLinesOf(run);
  expect(fatal).toHaveLength(1);
  return fatal[0]!;
}

/** Submits one after the other until one is not acknowledged; the names of the others. */
async function submitUntilRefused(client: StampingClient): Promise<string[]> {
  const acknowledged: string[] = [];
  for (let count = 0; count < 1_000; count++) {
    const userTagName = `tag ${count} ${Math.random()}`;
    const isDone = await client.submit(tagType, { userTagName }).then(
      () => true,
      () => false,
    );
    if (!isDone) return acknowledged;
    acknowledged.push(userTagName);
  }
  throw new Error('every request was acknowledged');
}

async function tagNames(client: StampingClient): Promise<string[]> {
  const { userTags } = await client.query<{ userTags: readonly { readonly tagName: string }[] }>('list_user_tags');
  return userTags.map(({ tagName }) => tagName);
}

describe('a write that fails', () => {
  test.each([
    ['write', 'EIO', main, [], /could not be written: disk I\/O error; make sure that the disk is sound, then restart/],
    ['sync', 'EIO', main, [], /could not be written: disk I\/O error; make sure that the disk is sound, then restart/],
    [
      'write',
      'ENOSPC',
      countersign,
      ['start'],
      /could not be written: .+; the disk with `\S+` is full: make room, then/,
    ],
  ] as const)(
    '%s, with %s, ends the process with one line, and a restart has everything that was acknowledged',
    async (calls, error, program, args, words) => {
      const first = await installation.start();
      await (await installation.client(first.url)).submit(tagType, { userTagName: 'first' });
      await stop(first);
      const server = installation.run(program, faults.env, args);
      let url: string | undefined;
      await until('it is up', () => {
        url = /API\s+(http:\/\/\S+)/.exec(server.stdout())?.[1];
        return Promise.resolve(url !== undefined);
      });
      const client = await installation.client(url!);
      await client.submit(tagType, { userTagName: 'before' });
      faults.begin(calls, error);
      const acknowledged = await submitUntilRefused(client);
      expect(await fatalLine(server, 5_000)).toMatch(words);
      faults.end();

      const again = await installation.start();
      const names = await tagNames(await installation.client(again.url));
      expect(names).toEqual(expect.arrayContaining(['first', 'before', ...acknowledged]));
      await stop(again);
    },
    patience,
  );

  test(
    'at the start says that the disk is full',
    async () => {
      await stop(await installation.start());
      faults.begin('write', 'ENOSPC');
      const run = installation.run(main, faults.env);
      expect((await run.exit).code).toBe(1);
      expect(run.stderr()).toMatch(
        /^countersign cannot start: [^\n]+ the disk with `\S+` is full: make room, then start again\n$/,
      );
    },
    patience,
  );
});

describe('files that are deleted or replaced under a running coordinator', () => {
  const away = (name: string) => rm(file(name));
  test.each([
    ['events.db is deleted', /`\S+events\.db` was deleted while/, () => away('events.db')],
    ['the write-ahead log is deleted', /`\S+events\.db-wal` was deleted while/, () => away('events.db-wal')],
    ['the lock of the store is deleted', /`\S+events\.db\.lock` was deleted while/, () => away('events.db.lock')],
    ['the lock of the folder is deleted', /`\S+in-use\.lock` was deleted while/, () => away('in-use.lock')],
    [
      'events.db is replaced by a copy',
      /`\S+events\.db` was replaced while/,
      async () => {
        await copyFile(file('events.db'), file('copy'));
        await rename(file('copy'), file('events.db'));
      },
    ],
  ])(
    '%s: the process ends',
    async (_what, words, act) => {
      const server = await installation.start();
      await act();
      expect(await fatalLine(server, 5_000)).toMatch(words);
    },
    patience,
  );

  test(
    'nothing is acknowledged into a deleted file',
    async () => {
      const server = await installation.start();
      const client = await installation.client(server.url);
      await client.submit(tagType, { userTagName: 'before' });
      await rm(file('events.db'));
      expect(await submitUntilRefused(client)).toEqual([]);
      expect(await fatalLine(server, 5_000)).toContain('was deleted while the coordinator was using it');
    },
    patience,
  );

  test(
    'without the lock files, two coordinators do not go on writing to one file, and nothing acknowledged is lost',
    async () => {
      const first = await installation.start();
      const client = await installation.client(first.url);
      await client.submit(tagType, { userTagName: 'before' });
      await Promise.all([rm(file('events.db.lock')), rm(file('in-use.lock'))]);
      const [acknowledged, second] = await Promise.all([
        submitUntilRefused(client),
        installation.start().catch((error: unknown) => String(error)),
      ]);
      await fatalLine(first, 5_000);
      if (typeof second !== 'string') {
        second.child.kill('SIGKILL');
        await second.exit;
      }
      const again = await installation.start();
      const names = await tagNames(await installation.client(again.url));
      expect(names).toEqual(expect.arrayContaining(['before', ...acknowledged]));
      await stop(again);
    },
    patience,
  );
});

describe('another program', () => {
  /** Runs SQLite in another process, which does this to the events and then holds on. */
  async function other(sql: string): Promise<ChildProcess> {
    const script =
      'const database = new (require(process.argv[1]))(process.argv[2]); database.exec(process.argv[3]);' +
      `process.stdout.write('done'); setInterval(() => undefined, 1_000);`;
    const libsql = fileURLToPath(import.meta.resolve('libsql'));
    const child = spawn(process.execPath, ['-e', script, libsql, file('events.db'), sql], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    others.push(child);
    await once(child.stdout, 'data');
    return child;
  }

  test(
    'that holds the write lock delays requests for at most 5 s; queries are answered, and the same bytes take effect once after that',
    async () => {
      const server = await installation.start();
      const client = await installation.client(server.url);
      const holder = await other('BEGIN IMMEDIATE');
      const body = client.submitBody(tagType, { userTagName: 'once' });
      const post = () =>
        client.post<{ activity: { id: string } }>(tagPath, body).then(
          (answer) => answer.body.activity.id,
          (error: unknown) => error as ApiError,
        );
      let begun = performance.now();
      const waiting = post();
      const answers = await Promise.all(Array.from({ length: 5 }, () => client.query('list_user_tags')));
      expect(answers).toEqual(Array(5).fill({ userTags: [] }));
      expect(performance.now() - begun).toBeLessThan(4_000);
      const { status, body: refused } = (await waiting) as ApiError;
      expect(performance.now() - begun).toBeLessThan(6_000);
      expect([status, refused.message]).toEqual([503, expect.stringContaining('another program has locked the event')]);
      begun = performance.now();
      const { headerName, headerValue } = stampBody(body, client.key);
      const headers = { 'content-type': 'application/json', [headerName]: headerValue };
      const again = await exchange(`${server.url}${tagPath}`, { method: 'POST', body, headers });
      expect(performance.now() - begun).toBeLessThan(2_000);
      expect([again.status, again.headers.get('retry-after')]).toEqual([503, '5']);
      const ready = await exchange(`${server.url}/health/ready`);
      expect([ready.status, ready.body]).toEqual([
        200,
        expect.objectContaining({
          status: 'degraded',
          conditions: [expect.objectContaining({ name: 'event-store-locked' })],
        }),
      ]);
      holder.kill();
      await until(
        'it is free',
        async () => !(await exchange(`${server.url}/metrics`)).text.includes('event-store-locked'),
      );
      expect(await tagNames(client)).toEqual([]);
      const [id, sameId] = [await post(), await post()];
      expect([typeof id, sameId]).toEqual(['string', id]);
      expect(await tagNames(client)).toEqual(['once']);
      const told = linesOf(server).filter(({ condition }) => condition === 'event-store-locked');
      expect(told.map(({ msg }) => msg)).toEqual([
        expect.stringMatching(/^another program has the write lock of `\S+events\.db`; end its transaction/),
      ]);
      server.child.kill('SIGTERM');
      expect((await server.exit).code).toBe(0);
    },
    patience,
  );

  test(
    'that holds the write lock for a second only delays a request',
    async () => {
      const server = await installation.start();
      const client = await installation.client(server.url);
      const holder = await other('BEGIN IMMEDIATE');
      setTimeout(() => holder.kill(), 1_300);
      await client.submit(tagType, { userTagName: 'delayed' });
      expect(await tagNames(client)).toEqual(['delayed']);
    },
    patience,
  );

  test(
    'that holds the write lock for 30 s ends the process',
    async () => {
      const server = await installation.start();
      await other('BEGIN IMMEDIATE');
      const client = await installation.client(server.url);
      await client.submit(tagType, { userTagName: 'refused' }).catch(() => undefined);
      expect(fatalLinesOf(server)).toEqual([]);
      expect(await fatalLine(server, 40_000)).toMatch(
        /^another program has had the write lock of `\S+` for 30 s; end its/,
      );
    },
    patience,
  );

  test(
    'that adds events ends the process at its next write',
    async () => {
      const server = await installation.start();
      await other(
        `INSERT INTO events (stream, revision, id, type, data, metadata) VALUES ('organization-x', 0, 'x', 'X', '{}', '{}')`,
      );
      const client = await installation.client(server.url);
      expect(await submitUntilRefused(client)).toEqual([]);
      expect(await fatalLine(server, 5_000)).toContain('another program has added events up to position');
    },
    patience,
  );
});
