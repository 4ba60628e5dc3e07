import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { readFile, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Metrics } from '../../src/metrics/metrics.js';
import { ImportedHistory, install } from '../../src/app/installation.js';
import { GENESIS_HASH, type EventMetadata } from '../../src/ledger/chain.js';
import { OrganizationLoader } from '../../src/ledger/load-organization.js';
import { emptyTail, seal } from '../../src/ledger/seal.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { historyLimits, NotAHistory, readHistory, type HistoryEvent } from '../../src/audit/export/history-file.js';
import { verifyHistory } from '../../src/audit/verify/verify.js';
import { importHistory, readImport } from '../../src/testing/import-history.js';
import {
  type ActivityClient,
  ApiError,
  ManualClock,
  matchers,
  SeededRandomness,
  startCoordinator,
  type TestCoordinator,
  type TestUser,
} from '../../src/testing/index.js';
import { LocalKeyEncryption } from '../../src/vault/key-encryption.js';
import { Vault } from '../../src/vault/vault.js';
import { copyOf, Exports, registry, verifiedOf } from './exported.js';

// A history of one installation goes on in a test harness: what happened there happens here again. A file may be a stranger's.

let exports: Exports;
let production: TestCoordinator;
let alice: TestUser;
let bob: TestUser;
let policyId: string;
let address: string;
let child: { readonly organizationId: string; readonly client: ActivityClient; readonly userId: string };

const rawPayload = (signWith: string, byte = 'ab') => ({
  signWith,
  payload: byte.repeat(32),
  encoding: 'PAYLOAD_ENCODING_HEXADECIMAL' as const,
  hashFunction: 'HASH_FUNCTION_NO_OP' as const,
});

beforeAll(async () => {
  exports = await Exports.open();
  production = await startCoordinator({ seed: 'production', at: new Date('2026-03-01T09:00:00Z') });
  alice = await production.createUser('Alice Adams', { userEmail: 'Alice.Adams@acme.test' });
  bob = await production.createUser('Bob Brown', { userEmail: 'bob@acme.test' });
  policyId = await production.createPolicy({
    policyName: 'Alice may tag',
    notes: 'asked for by Zoe',
    condition: "activity.kind == 'CREATE_USER_TAG' && requester.email == 'Alice.Adams@acme.test'",
  });
  await production.createPolicy({
    policyName: 'Two sign',
    condition: "activity.action == 'SIGN' && wallet.label == 'Treasury of Alice'",
    consensus: "approvers.any(user, user.alias == 'Alice Adams') && approvers.any(user, user.alias == 'Bob Brown')",
  });
  ({
    addresses: [address = ''],
  } = await production.createWallet('Treasury of Alice'));
  await alice.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'by Alice', userIds: [] });
  await expect(alice.client.submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId })).rejects.toMatchObject({ status: 403 });
  const key = production.newKey();
  const { subOrganizationId, rootUserIds } = await production.client.perform(
    'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8',
    {
      subOrganizationName: 'Customer Carol',
      rootUsers: [
        {
          userName: 'Carol Cole',
          userEmail: 'carol@mail.test',
          apiKeys: [{ apiKeyName: 'phone of Carol', publicKey: key.publicKey, curveType: key.curve }],
          authenticators: [],
          oauthProviders: [],
        },
      ],
      rootQuorumThreshold: 1,
    },
  );
  const client = production.clientFor(key, subOrganizationId);
  child = { organizationId: subOrganizationId, client, userId: rootUserIds![0]! };
  await client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'proves the key', userIds: [] });
  await production.settled();
  // What was denied could be sent again for an hour.
  production.clock.advance('2h');
});
afterAll(async () => {
  await production.close();
  await exports.close();
});

/** What becomes of a request, without what differs from one to the next: ids, times, words. */
async function outcomeOf(coordinator: TestCoordinator, client: ActivityClient, type: string, parameters: object) {
  const stream = `organization-${client.organizationId}`;
  const before = (await coordinator.events(stream)).length;
  let answer: unknown;
  try {
    const { status } = await client.submit(type, parameters);
    answer = status;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const { code, details } = error.body as { code: number; details: readonly { policyEvaluations?: unknown }[] };
    answer = { status: error.status, code, policies: details.map(({ policyEvaluations }) => policyEvaluations) };
  }
  const events = (await coordinator.events(stream, before)).map(({ type: name, data }) => {
    const { decision, status } = data as { decision?: object; status?: string };
    return { name, status, decision: { ...decision, voteId: '', revision: 0 } };
  });
  return JSON.parse(
    JSON.stringify({ answer, events }, (member, value: unknown) =>
      ['policyName', 'text', 'digest'].includes(member) ? '' : value,
    ),
  ) as object;
}

test.each([false, true])(
  'what was decided, is decided and will be decided is the same (redacted: %s)',
  async (redact) => {
    for (const organizationId of [production.organizationId, child.organizationId]) {
      const exported = await exports.of(production, organizationId, { redact });
      expect(exported).toMatchObject({ otherwise: [], unknownMembers: [], header: { organizationId } });
      await using coordinator = await startCoordinator({ history: exported.file });
      expect(coordinator.organizationId).toBe(organizationId);
      const { findings, stamps, stampsRedacted } = await verifiedOf(coordinator);
      expect(findings).toEqual([]);
      expect([stamps > 0, stampsRedacted > 0]).toEqual([!redact, redact]);

      const said = /Alice|Bob|Carol|Zoe|acme|mail\.test|Treasury|Customer/g;
      if (redact) expect(exported.text.match(said)).toBeNull();
      else expect(new Set(exported.text.match(said)).size).toBeGreaterThan(5);
    }
    const { file } = await exports.of(production, child.organizationId, { redact });
    await using coordinator = await startCoordinator({ history: file });
    const parent = production.organizationId;
    const of = (userId: string, organizationId = parent) =>
      [
        userId === child.userId
          ? child.client
          : ({ [alice.userId]: alice.client, [bob.userId]: bob.client }[userId] ?? production.client),
        coordinator.clientOf(userId, organizationId),
      ] as const;
    const root = production.root.userId;
    const requests = [
      [of(alice.userId), 'CREATE_USER_TAG', { userTagName: `more ${redact}`, userIds: [] }],
      [of(bob.userId), 'CREATE_USER_TAG', { userTagName: `never ${redact}`, userIds: [] }],
      [of(alice.userId), 'SIGN_RAW_PAYLOAD_V2', rawPayload(address)],
      [of(alice.userId), 'DELETE_POLICY', { policyId }],
      [of(root), 'UPDATE_ROOT_QUORUM', { threshold: 1, userIds: [] }],
      [of(root), 'DELETE_USERS', { userIds: [root] }],
      [of(root), 'SIGN_RAW_PAYLOAD_V2', rawPayload(address, 'cd')],
      [of(child.userId, child.organizationId), 'CREATE_USER_TAG', { userTagName: `another ${redact}`, userIds: [] }],
      [of(child.userId, child.organizationId), 'DELETE_USERS', { userIds: [child.userId] }],
    ] as const;
    for (const [[there, here], name, parameters] of requests) {
      const type = `ACTIVITY_TYPE_${name}`;
      expect([name, await outcomeOf(coordinator, here, type, parameters)]).toEqual([
        name,
        await outcomeOf(production, there, type, parameters),
      ]);
    }
    // The vote that was missing.
    const [waiting] = (await coordinator.events(`organization-${parent}`))
      .filter(({ type }) => type === 'ActivitySubmitted')
      .filter(({ data }) => (data as { status: string }).status === 'ACTIVITY_STATUS_CONSENSUS_NEEDED')
      .slice(-1);
    const { fingerprint } = waiting!.data as { fingerprint: string };
    const { status } = await coordinator
      .clientOf(bob.userId, parent)
      .submit('ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint });
    expect(status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect((await verifiedOf(coordinator)).findings).toEqual([]);
    production.clock.advance('2h');
  },
);

test('goes on after a restart, and stamps for nobody who has no key', async () => {
  const { file } = await exports.of(production, production.organizationId);
  await using coordinator = await startCoordinator({ history: file, store: 'sqlite' });
  await coordinator.restart();
  const created = await coordinator.createTag('after the restart');
  expect(created).toMatch(/^[0-9a-f-]{36}$/);
  expect(() => coordinator.clientOf('7b1b1d6e-5a0f-4f6c-9f05-3d1d5b1f0000')).toThrow('there is no test key for user');
  await expect(coordinator.listenForWebhooks()).rejects.toThrow('webhooks of an imported history are not delivered');
  // Addresses stay as they were recorded, and what signs is a substitute that says so.
  const sealed = (await coordinator.recorded()).filter(({ type }) => type === 'SecretSealed').map(({ data }) => data);
  expect(sealed.filter((data) => (data as { substitute?: true }).substitute)).toHaveLength(3);
});

describe('a store with an imported history', () => {
  const world = () => {
    const randomness = new SeededRandomness('attacker');
    const keyEncryption = new LocalKeyEncryption([randomness.bytes(32)], randomness);
    return {
      store: new InMemoryEventStore(),
      clock: new ManualClock(Date.parse('2026-06-01')),
      randomness,
      keyEncryption,
    };
  };
  async function imported() {
    const { file } = await exports.of(production, production.organizationId);
    const given = world();
    const vault = new Vault(given);
    await importHistory(await readImport(file), { ...given, vault, now: given.clock.now() });
    return { ...given, vault, file };
  }

  test('is none that a coordinator starts on', async () => {
    const given = await imported();
    await expect(install({ rootApiPublicKey: undefined }, given, undefined, () => Promise.resolve())).rejects.toThrow(
      ImportedHistory,
    );
  });

  test('whose mark in the installation was taken away has organizations that nobody can load', async () => {
    const { store } = await imported();
    const loader = new OrganizationLoader(store, new Metrics());
    await expect(loader.load(production.organizationId)).rejects.toThrow('was imported for tests');
  });

  test('was empty before', async () => {
    const { file, ...given } = await imported();
    const again = importHistory(await readImport(file), { ...given, now: given.clock.now() });
    await expect(again).rejects.toThrow('only into an empty store');
  });

  test('is the only one whose events may say that they are redacted', async () => {
    const { file } = await exports.of(production, production.organizationId, { redact: true });
    const { events } = await readImport(file);
    const store = new InMemoryEventStore();
    for (const { stream, revision, id, type, data, metadata } of events) {
      await store.append(stream, [{ id, type, data, metadata }], revision === 0 ? 'no-stream' : revision - 1);
    }
    const { findings } = await verifyHistory(store, { registry });
    expect(findings.length).toBeGreaterThan(5);
    expect(findings[0]!.problem).toContain('only events in a history imported for tests');
  });
});

describe('a file of a stranger', () => {
  let lines: readonly string[];
  beforeAll(async () => {
    const { file } = await exports.of(production, child.organizationId);
    lines = (await readFile(file, 'utf8')).trimEnd().split('\n');
  });

  type Line = Record<string, unknown>;
  const parsed = (line: string) => JSON.parse(line) as Line;

  /** The lines with a last one that is theirs. */
  async function written(changed: readonly string[]): Promise<string> {
    const { createHash } = await import('node:crypto');
    const sha256 = createHash('sha256')
      .update(changed.map((line) => `${line}\n`).join(''))
      .digest('hex');
    return exports.write(`${[...changed, JSON.stringify({ events: changed.length - 1, sha256 })].join('\n')}\n`);
  }
  const whole = () => lines.slice(0, -1);
  const withLine = (at: number, change: (line: Line) => unknown) =>
    written(whole().map((line, index) => (index === at ? JSON.stringify(change(parsed(line))) : line)));

  test('goes on when nothing is changed', async () => {
    expect((await readImport(await written(whole()))).events.length).toBe(lines.length - 2);
  });

  test.each<readonly [string, () => Promise<string>, string]>([
    ['that is cut', () => exports.write(lines.slice(0, -1).join('\n') + '\n'), 'was cut off'],
    ['that is cut within a line', () => exports.write(lines.join('\n').slice(0, -5)), 'cut off'],
    ['that was changed', () => exports.write(lines.join('\n').replace('Carol', 'Karol') + '\n'), 'cannot be folded'],
    ['that is empty', () => exports.write(''), 'it is empty'],
    ['that is a folder', () => Promise.resolve('/tmp'), 'it is not a file'],
    ['that is a device', () => Promise.resolve('/dev/zero'), 'it is not a file'],
    [
      'that is a pipe nobody writes to',
      () => {
        const pipe = join(mkdtempSync(join(tmpdir(), 'pipe-')), 'history');
        execFileSync('mkfifo', [pipe]);
        return Promise.resolve(pipe);
      },
      'it is not a file',
    ],
    [
      'whose first event has another link, before what follows is read',
      () =>
        written(
          whole().map((line, index) => {
            if (index !== 1) return index > 1 ? 'x'.repeat(10) : line;
            const event = parsed(line);
            return JSON.stringify({ ...event, metadata: { ...(event['metadata'] as object), hash: '0'.repeat(64) } });
          }),
        ),
      'cannot be folded',
    ],
    ['that is not there', () => Promise.resolve('/nowhere/at/all'), 'cannot be read'],
    ['of another format', () => withLine(0, (line) => ({ ...line, format: 'x' })), 'does not say'],
    ['of a later version', () => withLine(0, (line) => ({ ...line, version: 2 })), 'this release reads 1'],
    [
      'with a path for an id',
      () => withLine(0, (line) => ({ ...line, organizationId: '../../etc' })),
      'is not a lower-case UUID',
    ],
    [
      'with another stream',
      () => withLine(3, (line) => ({ ...line, stream: 'installation-root' })),
      'a stream of another organization',
    ],
    [
      'with a vault',
      () => withLine(3, (line) => ({ ...line, stream: `vault-${child.organizationId}` })),
      'a stream of another organization',
    ],
    ['with a gap', () => written(whole().filter((_, index) => index !== 2)), 'comes next'],
    ['with more in an event', () => withLine(2, (line) => ({ ...line, position: 1 })), 'which no event has'],
    [
      'with more in metadata',
      () => withLine(2, (line) => ({ ...line, metadata: { ...(line['metadata'] as object), x: 1 } })),
      'metadata that no event has',
    ],
    ['with a type that is none', () => withLine(2, (line) => ({ ...line, type: 'constructor' })), 'has no type'],
    [
      'with a type that nobody knows',
      () => withLine(2, (line) => ({ ...line, type: 'SecretSealed' })),
      'cannot be folded',
    ],
    [
      'with another prototype',
      () =>
        written(
          whole().map((line, index) =>
            index === 2 ? line.replace('{"stream"', '{"__proto__":{"a":1},"stream"') : line,
          ),
        ),
      '__proto__',
    ],
    [
      'with another prototype inside',
      () =>
        written(
          whole().map((line, index) => (index === 2 ? line.replace('"data":{', '"data":{"__proto__":{"a":1},') : line)),
        ),
      '__proto__',
    ],
    [
      'with a member twice',
      () =>
        written(whole().map((line, index) => (index === 2 ? line.replace('"data":{', '"data":{},"data":{') : line))),
      'twice',
    ],
    [
      'with a link that does not follow',
      () => withLine(2, (line) => ({ ...line, data: { ...(line['data'] as object), name: 'x' } })),
      'its hash does not follow',
    ],
    [
      'nested without end',
      () =>
        written(
          whole().map((line, index) =>
            index === 2 ? line.replace('"data":{', `"data":{"x":${'['.repeat(5_000)}${']'.repeat(5_000)},`) : line,
          ),
        ),
      'nested deeper',
    ],
    ['that is no JSON', () => written([...whole().slice(0, 3), 'require("child_process")']), 'is not JSON'],
    [
      'with bytes that are no text',
      () => exports.write(Buffer.concat([Buffer.from(`${lines[0]!}\n`), Buffer.of(0xff, 0x0a)])),
      'not valid UTF-8',
    ],
    [
      'under another parent',
      () => withLine(0, ({ parentOrganizationId: _, ...line }) => line),
      'a stream of another organization',
    ],
  ])('%s is refused', async (_what, make, problem) => {
    const refused = startCoordinator({ history: await make() });
    await expect(refused).rejects.toThrow(NotAHistory);
    await expect(refused).rejects.toThrow(problem);
    expect(({} as { a?: number }).a).toBeUndefined();
  });

  test('with its own chain, in which an organization claims to be another, is refused', async () => {
    // Links that follow, made by whoever makes the file.
    const tails = new Map<string, typeof emptyTail>();
    const forged = whole().map((line, index) => {
      if (index === 0) return line;
      const { stream, type, data, metadata, id } = parsed(line) as unknown as HistoryEvent & { data: object };
      const said =
        type === 'OrganizationCreated' && stream.endsWith(production.organizationId)
          ? { ...data, organizationId: alice.userId }
          : data;
      const { at, $correlationId, $causationId } = metadata as EventMetadata;
      const { events, tail } = seal(stream, tails.get(stream) ?? emptyTail, [
        { id, type, data: said, metadata: { at, $correlationId, $causationId } },
      ]);
      const revision = (tails.get(stream) ?? emptyTail).revision + 1;
      tails.set(stream, tail);
      return JSON.stringify({ stream, revision, id, type, data: said, metadata: events[0]!.metadata });
    });
    expect(tails.size).toBeGreaterThan(1);
    expect(GENESIS_HASH).toHaveLength(64);
    await expect(startCoordinator({ history: await written(forged) })).rejects.toThrow(
      'is the stream of another organization',
    );
  });

  test('that is larger than it may be is not read to its end', async () => {
    const file = await written(whole());
    const size = (await readFile(file)).length;
    for (const limits of [{ bytes: size - 1 }, { lineBytes: 200 }, { events: 3 }]) {
      await expect(readHistory(file, { ...historyLimits, ...limits })).rejects.toThrow(NotAHistory);
    }
    expect((await readHistory(file, { ...historyLimits, bytes: size })).events.length).toBeGreaterThan(10);
    const link = `${file}.link`;
    await symlink('/dev/zero', link);
    await expect(readHistory(link)).rejects.toThrow('it is not a file');
  });
});

test('the page that says how is right: its test runs as it is written, and says why it fails', async () => {
  const page = await readFile(new URL('../../docs/how-to/production-bugs.md', import.meta.url), 'utf8');
  const [, written, shown] = /```js\n(import [^]*?)```[^]*?```\n(expected [^]*?)\n```/.exec(page)!;
  const exported = await exports.of(production, production.organizationId, { redact: true });
  const testOf = async (userId: string): Promise<readonly [string, () => Promise<void>]> => {
    const code = written!
      .replace('bug.jsonl', exported.file)
      .replace('<id of the user>', userId)
      .replace('<address>', address)
      .replace(/^import .* from 'countersign\/testing';$/m, '');
    const file = await exports.write(`export function run(startCoordinator, matchers, test, expect) {${code}}`, 'mjs');
    const { run } = (await import(file)) as { run: (...given: readonly unknown[]) => void };
    return new Promise((defined) => {
      run(startCoordinator, matchers, (title: string, body: () => Promise<void>) => defined([title, body]), expect);
    });
  };
  const [title, body] = await testOf(production.root.userId);
  expect(title).toBe('the treasurer can sign');
  await body();
  const [, failing] = await testOf(alice.userId);
  const pattern = shown!.split('…').map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  await expect(failing()).rejects.toThrow(new RegExp(pattern.join('.*')));
});

test('an organization that is not there has no history', async () => {
  const copy = await copyOf(production);
  expect(await copy.head()).toBeDefined();
  await expect(exports.of(production, alice.userId)).rejects.toThrow('no organization');
});
