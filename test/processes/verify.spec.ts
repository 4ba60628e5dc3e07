import { execFileSync } from 'node:child_process';
import { readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { StampingClient } from '../../src/testing/index.js';
import { countersign, Installation, stop, type Run } from '../e2e/installation.js';

const patience = 300_000;

let installation: Installation;

beforeEach(async () => {
  installation = await Installation.make();
});

afterEach(() => installation.remove());

const verify = (...args: readonly string[]) => command('verify', ...args);

async function command(...args: readonly string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const run: Run = installation.run(countersign, {}, args);
  const { code } = await run.exit;
  return { code, stdout: run.stdout(), stderr: run.stderr() };
}

/** Runs a script on a `database` of the data folder, in a process of its own: its locks end with it. */
function inSqlite(file: string, script: string): string {
  const whole = `const database = new (require('libsql'))(process.argv[1]); ${script}`;
  const cwd = new URL('../..', import.meta.url);
  const path = join(installation.dataDir, file);
  return execFileSync(process.execPath, ['-e', whole, path], { cwd, encoding: 'utf8', timeout: 60_000 });
}

/** Turns the effect of the first policy round. */
function forge(): { readonly stream: string; readonly revision: number } {
  const said = inSqlite(
    'events.db',
    `
    const first = "SELECT stream, revision FROM events WHERE type = 'PolicyCreated' ORDER BY position LIMIT 1";
    const { stream, revision } = database.prepare(first).get();
    const turn = "UPDATE events SET data = replace(data, 'EFFECT_ALLOW', 'EFFECT_DENY') WHERE stream = ? AND revision = ?";
    database.prepare(turn).run(stream, revision);
    process.stdout.write(JSON.stringify({ stream, revision }));`,
  );
  return JSON.parse(said) as { stream: string; revision: number };
}

/** Tells the whole tour, and sends a body so long that the store keeps it in base64. */
async function history() {
  const server = await installation.start();
  const { exit, stderr } = installation.run(countersign, {}, ['tour']);
  expect({ ...(await exit), stderr: stderr() }).toEqual({ code: 0, signal: null, stderr: '' });
  const inputs = ['a', 'b', 'c', 'd', 'e'].map((name) => ({ name, type: 'bool' }));
  const functions = Array.from({ length: 1_000 }, (_, at) => ({ type: 'function', name: `f${at}`, inputs }));
  const client = await installation.client(server.url);
  await client.submit('ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE', {
    smartContractAddress: '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48',
    smartContractInterface: JSON.stringify(functions),
    type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
    label: 'long',
  });
  return server;
}

/** Works beside a server that goes on recording, and that alone has the key-encryption key. */
async function whileItWrites(client: StampingClient, work: () => Promise<void>): Promise<void> {
  const [key, hidden] = ['kek', 'kek.elsewhere'].map((name) => join(installation.dataDir, name)) as [string, string];
  await rename(key, hidden);
  let isOver = false;
  let written = 0;
  const writing = (async () => {
    for (; !isOver; written++) {
      await client.submit('ACTIVITY_TYPE_UPDATE_ORGANIZATION_NAME', { organizationName: `name ${written}` });
      await pause(20);
    }
  })();
  try {
    await Promise.race([work(), writing]);
  } finally {
    isOver = true;
    await writing;
    await rename(hidden, key);
  }
  expect(written).toBeGreaterThan(5);
}

test(
  'the whole history of the tour is verified again, and a forged event is named',
  async () => {
    const server = await history();
    const client = await installation.client(server.url);
    await whileItWrites(client, async () => {
      expect(await verify()).toMatchObject({ code: 0, stderr: '' });
      const told = await command('replay', '--json', '--decisions');
      expect(told).toMatchObject({ code: 0, stderr: '' });
      const { events } = JSON.parse(told.stdout) as { events: { decision: { again: string } }[] };
      expect(new Set(events.map(({ decision }) => decision.again))).toEqual(new Set(['same']));
    });
    await client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'meanwhile', userIds: [] });
    await stop(server);
    expect(await verify()).toEqual({
      code: 0,
      stdout: expect.stringMatching(
        /^OK: \d{2,} events in \d+ streams, \d+ stamps, \d+ decisions and \d{2,} read-model rows verified\.\n$/,
      ) as string,
      stderr: '',
    });
    const clean = JSON.parse((await verify('--json')).stdout) as Record<string, unknown>;
    expect(clean).toMatchObject({ findings: [], isCut: false });
    expect(Number(clean['decisions'])).toBeGreaterThan(3);

    expect(clean['rows']).toMatchObject({ differences: [], notCompared: [] });
    expect((await readdir(installation.dataDir)).filter((name) => name.startsWith('verify-'))).toEqual([]);
    const changed = "UPDATE users SET doc = doc || ' ' WHERE user_id = (SELECT min(user_id) FROM users)";
    inSqlite('read-models.db', `database.exec(${JSON.stringify(changed)});`);
    inSqlite('read-models.db', `database.exec('DELETE FROM policies');`);
    const rows = await verify();
    expect(rows).toMatchObject({ code: 1, stderr: '' });
    expect(rows.stdout).toMatch(/^\d+ findings \(/);
    expect(rows.stdout).toMatch(
      /\n {2}read model users: the row of .*user_id `[0-9a-f-]{36}`.* has a different doc than the events yield\n/,
    );
    expect(rows.stdout).toMatch(
      /\n {2}read model policies: the row of .*policy_id `[0-9a-f-]{36}`.* is missing or different\n/,
    );
    expect(await verify('--no-rows')).toMatchObject({ code: 0 });

    const forged = forge();
    const { code, stdout, stderr } = await verify('--no-rows');
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    expect(stdout).toMatch(/^2 findings \(/);
    // Its sub-organizations have decisions of its members, which nobody can make again.
    expect(stdout).toContain(
      `\n  ${forged.stream} @ ${forged.revision}: the hash chain of stream \`${forged.stream}\` is broken at revision ${forged.revision}`,
    );
  },
  patience,
);

test(
  'since saved heads, stamps and decisions of later events are verified, and of earlier ones the chains',
  async () => {
    const heads = join(installation.dataDir, 'heads.json');
    const server = await installation.start();
    const client = await installation.client(server.url);
    const named = (userTagName: string) => client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName, userIds: [] });
    await named('before');
    expect(await verify('--since', heads)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining(`\`${heads}\` does not exist: save heads with`) as string,
    });
    expect(await verify('--heads', heads)).toMatchObject({ code: 0 });
    const saved = await readFile(heads, 'utf8');
    await named('after');
    await stop(server);
    const since = await verify('--since', heads, '--heads', heads);
    expect(since).toEqual({
      code: 0,
      stdout: expect.stringMatching(
        /^OK: \d+ events in \d+ streams, 1 stamps and 1 decisions verified\. Stamps and decisions: only of 3 events since the saved heads\. \d+ heads are as saved\.\nRead models not compared: --since leaves them out\.\n$/,
      ) as string,
      stderr: '',
    });
    expect(await readFile(heads, 'utf8')).not.toBe(saved);

    const renamed = (from: string, to: string) =>
      inSqlite(
        'events.db',
        `database.prepare("UPDATE events SET data = replace(data, ?, ?) WHERE type = 'UserTagCreated'").run(['"${from}"', '"${to}"']);`,
      );
    await writeFile(heads, saved);
    for (const one of ['after', 'before']) {
      renamed(one, 'forged');
      const { code, stdout } = await verify('--since', heads);
      expect(code).toBe(1);
      expect(stdout).toMatch(/^1 finding .*\n {2}organization-\S+ @ \d+: the hash chain of .* is broken/);
      renamed('forged', one);
    }
    expect(await verify('--since', heads)).toMatchObject({ code: 0 });
    await writeFile(heads, saved.replace(/("organization-.*"hash":\s*")[0-9a-f]{4}/, '$10000'));
    const moved = await verify('--since', heads);
    expect(moved.code).toBe(1);
    expect(moved.stdout).toMatch(/^1 finding .*\n {2}organization-\S+ @ \d+: its link was `0000/);
  },
  patience,
);

test(
  'what cannot be verified ends with 2 and says why',
  async () => {
    expect(await verify()).toEqual({
      code: 2,
      stdout: '',
      stderr: `error: ${join(installation.dataDir, 'events.db')} does not exist: set --data-dir or DATA_DIR to the data folder of the coordinator\n`,
    });
    expect(await verify('--jsn')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/'--jsn'\n\(Did you mean --json\?\)/) as string,
    });
    expect(await verify('--help')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Usage: countersign verify /) as string,
    });
  },
  patience,
);
