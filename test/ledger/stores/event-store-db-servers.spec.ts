import 'reflect-metadata';
import { EventStoreDBClient, eventTypeFilter, jsonEvent, NO_STREAM } from '@eventstore/db-client';
import { jest } from '@jest/globals';
import { SubjectAlternativeNameExtension, X509CertificateGenerator } from '@peculiar/x509';
import { randomUUID, webcrypto } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:tls';
import { organizationStream } from '../../../src/domain/organization/organization.js';
import { type EventStoreDbEventStore } from '../../../src/ledger/stores/event-store-db/event-store-db.js';
import type { EventStoreDbOptions } from '../../../src/ledger/stores/event-store-db/event-store-db.js';
import { StoreUnavailable } from '../../../src/ledger/event-store.js';
import { warnOfLimit } from '../../../src/ledger/stores/open-event-store.js';
import { ReadModelDatabase } from '../../../src/read-models/database.js';
import { readModels } from '../../../src/read-models/index.js';
import { Projector } from '../../../src/read-models/projector.js';
import type { ReadModel } from '../../../src/read-models/read-model.js';
import { ReadModelRunner } from '../../../src/read-models/runner.js';
import { dueDeliveries, webhooksModel } from '../../../src/read-models/webhooks.js';
import {
  apiKeyPairFromPrivate,
  stampBody,
  startCoordinator,
  type TestCoordinator,
} from '../../../src/testing/index.js';
import { exchange } from '../../e2e/exchange.js';
import { until } from '../../e2e/until.js';
import { all, anEvent, aStream, follow, pause, someEvents } from '../../contracts/event-store.contract.js';
import { type EventStoreDouble } from './double/double.js';
import type { Proposed } from './double/log.js';
import { runningDoubles } from './double/running.js';

/** What real servers do that is easily got wrong, and what the adapter makes of it. */

const quick = { appendTimeoutMs: 1_000, giveUpAfterMs: 5_000, retryAfterMs: 5 };
const versions = ['23.10', '24.10'] as const;
const modes = ['classic', 'batch'] as const;

let double: EventStoreDouble;
const { aDouble, storeAt } = runningDoubles(quick);

beforeEach(async () => {
  double = await aDouble();
});

function open(options: EventStoreDbOptions = {}, url = double.connectionString): Promise<EventStoreDbEventStore> {
  return storeAt(url, options);
}

/** Events on their way into the log of the double, past any client. */
function proposed(count: number, type = 'Happened', data: unknown = {}, at = 0): Proposed[] {
  const bytes = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));
  const metadata = bytes({ at, schemaVersion: 1 });
  return Array.from({ length: count }, () => ({
    id: randomUUID(),
    type,
    contentType: 'application/json',
    data: bytes(data),
    metadata,
  }));
}

const outcomeOf = (promise: Promise<unknown>): Promise<unknown> => promise.catch((error: unknown) => error);

describe.each(versions)('a feed from a server of version %s', (version) => {
  beforeEach(() => {
    double.version = version;
  });

  it('loses nothing behind an event that was scavenged while it was away', async () => {
    const store = await open();
    const [stream, vault] = [aStream(), `vault-${randomUUID()}`];
    const feed = follow(store, 'start');
    await store.append(stream, someEvents(1), 'no-stream');
    await store.append(vault, someEvents(1), 'no-stream');
    await feed.sees(2);
    double.log.append(stream, proposed(2), 0n);
    double.log.tombstone(vault);
    double.log.scavenge();
    // In the same turn: none of it can have been sent.
    double.dropSubscriptions('unavailable');
    await feed.sees(4);
    await feed.stop();
    expect(feed.events.map((event) => [event.stream, event.revision])).toEqual([
      [stream, 0],
      [vault, 0],
      [stream, 1],
      [stream, 2],
    ]);
  });

  it('loses nothing after a checkpoint at a position that has no event yet', async () => {
    const store = await open();
    const stream = aStream();
    const feed = follow(store, 'start');
    for (let revision = 0; revision < 4; revision++) {
      await store.append(stream, someEvents(1), revision === 0 ? 'no-stream' : revision - 1);
      await feed.sees(revision + 1);
      const before = double.checkpoints.length;
      double.log.append('billing-1', proposed(40), 'any');
      await until('a checkpoint is sent', () => double.checkpoints.length > before);
    }
    double.dropSubscriptions('unavailable');
    await store.append(stream, someEvents(1), 3);
    await feed.sees(5);
    await feed.stop();
    expect(feed.events.map(({ revision }) => revision)).toEqual([0, 1, 2, 3, 4]);
  });

  it('loses nothing when it starts on a store that has nothing for it', async () => {
    double.log.append('$stats-0.0.0.0:2113', proposed(3), 'any');
    const store = await open();
    const feed = follow(store, 'start');
    await until('a checkpoint is sent', () => double.checkpoints.length > 0);
    await store.append(aStream(), someEvents(2), 'no-stream');
    await feed.sees(2);
    double.dropSubscriptions('unavailable');
    await store.append(aStream(), someEvents(1), 'no-stream');
    await feed.sees(3);
    await feed.stop();
  });

  it('gives nothing twice, although it begins again at an event that is kept', async () => {
    const store = await open();
    const feed = follow(store, 'start');
    const stream = aStream();
    const { position } = await store.append(stream, someEvents(1), 'no-stream');
    const vaults = Array.from({ length: 3 }, () => `vault-${randomUUID()}`);
    for (const vault of vaults) await store.append(vault, someEvents(2), 'no-stream');
    await feed.sees(7);
    double.dropSubscriptions('unavailable');
    await store.append(stream, someEvents(1), 0);
    await feed.sees(8);
    await feed.stop();
    expect(double.allReads.at(-1)).toBe(position);
    const seen = feed.events.map((event) => `${event.stream} ${event.revision}`);
    expect(seen).toEqual([...new Set(seen)]);
    expect(seen).toHaveLength(8);
  });

  it('says so when it is to begin at a position that is no event of this store', async () => {
    const store = await open();
    const { position } = await store.append(aStream(), [anEvent({ text: 'x'.repeat(100) })], 'no-stream');
    await store.append(aStream(), someEvents(1), 'no-stream');
    const error = await new Promise<unknown>((onError) => {
      store.subscribe({ after: position + 7n, onEvents: () => undefined, onError });
    });
    expect(error).toBeInstanceOf(StoreUnavailable);
    expect((error as Error).message).toContain(`no event at position ${position + 7n}`);
    expect((error as Error).message).toContain('again from the start');
  });

  it('goes on when the server says that it has fallen behind', async () => {
    const store = await open();
    const feed = follow(store, 'start');
    const stream = aStream();
    await store.append(stream, someEvents(1), 'no-stream');
    await feed.sees(1);
    double.fallBehind();
    await store.append(stream, someEvents(1), 0);
    await feed.sees(2);
    await feed.stop();
  });
});

describe.each(versions)('read models fed from a server of version %s', (version) => {
  const organizationId = randomUUID();

  /** The rows of models that saw the first of those events and a vault's, and began again once the vault was scavenged. */
  async function rowsOf(models: readonly ReadModel[], first: readonly Proposed[], then: readonly Proposed[]) {
    double.version = version;
    const store = await open();
    const stream = organizationStream(organizationId);
    const vault = `vault-${randomUUID()}`;
    const rows = new ReadModelDatabase(':memory:');
    /** A new start that gets as far as the last event. */
    const runs = async (): Promise<void> => {
      const projector = new Projector(rows, models, { identity: 'one', head: (await store.head()) ?? -1n });
      const runner = new ReadModelRunner(
        store,
        {
          rows,
          progress: () => projector.progress(),
          leftOut: () => projector.leftOut(),
          project: (events) => Promise.resolve(void projector.project(events)),
          close: () => Promise.resolve(),
        },
        { projected: () => undefined, failed: () => undefined, interrupted: () => undefined },
      );
      runner.start();
      await runner.passed(double.log.events.findLast(({ type }) => type !== '$streamDeleted')!.position, 10_000);
      await runner.close();
      expect(runner.failures()).toEqual([]);
    };
    double.log.append(stream, first, 'no_stream');
    double.log.append(vault, proposed(1), 'no_stream');
    await runs();
    double.log.append(stream, then, BigInt(first.length - 1));
    double.log.tombstone(vault);
    double.log.scavenge();
    await runs();
    return rows;
  }

  const created = proposed(1, 'OrganizationCreated', { organizationId, name: 'First' });

  it('lack nothing after a restart behind an event that was scavenged', async () => {
    const renamed = proposed(1, 'OrganizationRenamed', { organizationId, name: 'Second' });
    const rows = await rowsOf(readModels, created, renamed);
    const [row] = rows.all('SELECT doc FROM organizations');
    expect(JSON.parse(String(row?.['doc']))).toMatchObject({ name: 'Second' });
    rows.close();
  });

  it('have every delivery to a webhook that was to follow such an event, once', async () => {
    const endpointId = randomUUID();
    const subscriptions = [{ eventType: 'ACTIVITY_UPDATES', isActive: true }];
    const endpoint = { endpointId, url: 'https://app.example.com', name: 'Main', isActive: true, subscriptions };
    const type = 'ACTIVITY_TYPE_UPDATE_USER_NAME';
    const activity = (activityId: string) =>
      proposed(1, 'ActivitySubmitted', { activityId, type, status: 'ACTIVITY_STATUS_COMPLETED', intent: {}, vote: {} });
    const rows = await rowsOf(
      [webhooksModel],
      [...created, ...proposed(1, 'WebhookEndpointCreated', endpoint), ...activity('before')],
      [...activity('behind'), ...activity('later')],
    );
    const due = dueDeliveries(rows, endpointId, Date.now(), 10);
    expect(due.map(({ activityId }) => activityId)).toEqual(['before', 'behind', 'later']);
    rows.close();
  });
});

describe('a stream that somebody has shortened or linked into', () => {
  it.each([
    ['$maxCount', (stream: string) => double.log.retain(stream, { maxCount: 2 })],
    ['$tb', (stream: string) => double.log.retain(stream, { truncateBefore: 3n })],
  ] as const)('is not taken for whole (%s)', async (_, shorten) => {
    const store = await open();
    const stream = aStream();
    await store.append(stream, someEvents(5), 'no-stream');
    shorten(stream);
    const reading = all(store.read(stream));
    await expect(reading).rejects.toThrow(`\`${stream}\` continues at revision 3 instead of 0: remove $maxCount`);
    await expect(reading).rejects.toBeInstanceOf(StoreUnavailable);
    expect(await all(store.read(stream, 3))).toHaveLength(2);
  });

  it.each(modes)('is not begun anew after a soft delete (%s)', async (appendMode) => {
    const store = await open({ appendMode });
    const stream = aStream();
    await store.append(stream, someEvents(3), 'no-stream');
    double.log.softDelete(stream);
    expect(await all(store.read(stream))).toEqual([]);
    await expect(store.append(stream, someEvents(1), 'no-stream')).rejects.toThrow(
      'at 3 after an append that ends at 0',
    );
    await expect(all(store.read(stream))).rejects.toThrow('continues at revision 3');
  });

  it('is not read where it has what is no JSON, such as a link', async () => {
    const store = await open();
    const stream = aStream();
    await store.append(stream, someEvents(1), 'no-stream');
    const link = { ...proposed(1, '$>')[0]!, contentType: 'application/octet-stream' };
    double.log.append(stream, [{ ...link, data: new TextEncoder().encode('0@billing-1') }], 0n);
    await expect(all(store.read(stream))).rejects.toThrow('is not JSON: it was not written by Countersign');
    const error = await new Promise<unknown>((onError) => {
      store.subscribe({ after: 'start', onEvents: () => undefined, onError });
    });
    expect((error as Error).message).toContain('is not JSON');
  });
});

describe('an append', () => {
  it.each(modes)('that timed out on the server is done or done again (%s)', async (appendMode) => {
    const store = await open({ appendMode });
    const stream = aStream();
    double.appendFaults.push('timeout-after');
    expect((await store.append(stream, someEvents(2), 'no-stream')).revision).toBe(1);
    expect(await all(store.read(stream))).toHaveLength(2);
  });

  it.each(modes)(
    'at `no-stream` says where the stream is, however the server repeats what was expected (%s)',
    async (appendMode) => {
      const store = await open({ appendMode });
      const stream = aStream();
      await store.append(stream, someEvents(3), 'no-stream');
      await expect(store.append(stream, someEvents(1), 'no-stream')).rejects.toMatchObject({
        name: 'WrongRevision',
        expected: 'no-stream',
        actual: 2,
      });
    },
  );

  it.each(modes)('counts by its types too (%s)', async (appendMode) => {
    const store = await open({ appendMode });
    double.maxAppendBytes = 10_000;
    const event = { ...anEvent({}), type: 'T'.repeat(4_900) };
    const stream = aStream();
    await store.append(stream, [event], 'no-stream');
    const error = await outcomeOf(store.append(stream, [{ ...event, id: randomUUID(), type: 'T'.repeat(5_000) }], 0));
    expect((error as Error).message).toContain('10000 bytes');
  });

  it.each(modes)('waits for a node that knows of no leader (%s)', async (appendMode) => {
    const store = await open({ appendMode });
    const stream = aStream();
    await store.append(stream, someEvents(1), 'no-stream');
    double.leader = 'unknown';
    const before = double.appends[appendMode];
    const appending = store.append(stream, someEvents(1), 0);
    await until('it is tried again', () => double.appends[appendMode] > before + 1);
    double.leader = undefined;
    expect((await appending).revision).toBe(1);
    expect(await all(store.read(stream))).toHaveLength(2);
  });
});

describe('a cluster', () => {
  it('has members that are dead, which nobody asks', async () => {
    const dead = await aDouble(double.log);
    await dead.down();
    double.members = [
      { host: '127.0.0.1', port: dead.port, leader: true, alive: false },
      { host: '127.0.0.1', port: double.port, leader: true },
    ];
    const url = `esdb://127.0.0.1:${dead.port},127.0.0.1:${double.port}?tls=false&discoveryInterval=1`;
    const store = await open({}, url);
    expect((await store.append(aStream(), someEvents(1), 'no-stream')).revision).toBe(0);
  });
});

describe('the client, version 6.2.1', () => {
  const client = (options = ''): EventStoreDBClient =>
    EventStoreDBClient.connectionString(`${double.connectionString}${options}`);
  const one = () => [jsonEvent({ type: 'Happened', data: {} })];

  it('ignores `throwOnAppendFailure` of a call on the batch path, so that a store lets conflicts be thrown', async () => {
    const stream = aStream();
    const bare = client();
    await bare.appendToStream(stream, one(), { expectedRevision: NO_STREAM });
    const again = { expectedRevision: NO_STREAM, throwOnAppendFailure: false } as const;
    expect(await outcomeOf(bare.appendToStream(stream, one(), again))).toMatchObject({
      type: 'wrong-expected-version',
    });
    const store = await open({ appendMode: 'batch' });
    await expect(store.append(stream, someEvents(1), 'no-stream')).rejects.toMatchObject({ name: 'WrongRevision' });
    await bare.dispose();
  });

  it('reads $all without the filter it is given, so that a store looks for its own by itself', async () => {
    const bare = client();
    double.log.append('billing-1', proposed(2, 'Billed'), 'any');
    const types: string[] = [];
    const filter = eventTypeFilter({ prefixes: ['Nothing'] });
    const options = { filter } as Parameters<typeof bare.readAll>[0];
    for await (const { event } of bare.readAll(options)) types.push(event?.type ?? '');
    expect(types).toEqual(['Billed', 'Billed']);
    const store = await open();
    expect(await store.head()).toBeUndefined();
    const { position } = await store.append(aStream(), someEvents(1), 'no-stream');
    double.log.append('billing-1', proposed(2, 'Billed'), 'any');
    const other = await open({}, `${double.connectionString}&connectionName=other`);
    expect(await other.head()).toBe(position);
    await bare.dispose();
  });

  it('rejects an append to a server that is down with an error that has no type, so that a store goes by its code', async () => {
    const store = await open();
    await double.down();
    const bare = client();
    const error = await outcomeOf(bare.appendToStream(aStream(), one(), { expectedRevision: NO_STREAM }));
    expect(error).toMatchObject({ code: 14 });
    expect(error).not.toHaveProperty('type');
    const tries = jest.spyOn(EventStoreDBClient.prototype, 'appendToStream');
    const appending = store.append(aStream(), someEvents(1), 'no-stream');
    await until('it is tried again', () => tries.mock.calls.length > 1);
    tries.mockRestore();
    await double.up();
    expect((await appending).revision).toBe(0);
  });

  it('ends a subscription as unavailable and does not take it up again, so that a store does', async () => {
    const bare = client();
    const errors: unknown[] = [];
    const subscription = bare.subscribeToAll();
    subscription.on('data', () => undefined).on('error', (error) => errors.push(error));
    await until('the client subscribes', () => double.subscriptions === 1);
    const store = await open();
    const feed = follow(store, 'start');
    await until('the store subscribes', () => double.subscriptions === 2);
    double.dropSubscriptions('unavailable');
    await until('the subscription ends', () => errors.length > 0);
    expect(errors).toMatchObject([{ type: 'unavailable' }]);
    await store.append(aStream(), someEvents(1), 'no-stream');
    await feed.sees(1);
    await feed.stop();
    await until('nobody subscribes', () => double.subscriptions === 0);
    await bare.dispose();
  });
});

describe('a start that can never succeed', () => {
  const dayMs = 24 * 60 * 60 * 1000;
  /** Long enough to be told from what ends at once. */
  const patient = { giveUpAfterMs: 60_000 };
  let servers: TlsServer[] = [];
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'countersign-tls-'));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));
  afterEach(async () => {
    for (const server of servers) await new Promise((resolve) => server.close(resolve));
    servers = [];
  });

  /** A server with a certificate of its own; its port, and the file that vouches for it. */
  async function tlsServer(name: string, notAfter = Date.now() + dayMs): Promise<{ port: number; file: string }> {
    const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
    const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
    const certificate = await X509CertificateGenerator.createSelfSigned(
      {
        name: `CN=${name}`,
        notBefore: new Date(notAfter - 2 * dayMs),
        notAfter: new Date(notAfter),
        signingAlgorithm: algorithm,
        keys,
        extensions: [new SubjectAlternativeNameExtension([{ type: 'dns', value: name }])],
      },
      webcrypto as Crypto,
    );
    const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64');
    const key = `-----BEGIN PRIVATE KEY-----\n${der}\n-----END PRIVATE KEY-----\n`;
    const cert = certificate.toString('pem');
    const server = createTlsServer({ key, cert, ALPNProtocols: ['h2'] }, (socket) =>
      socket.on('error', () => undefined),
    );
    server.on('tlsClientError', () => undefined);
    await new Promise<void>((resolve) => server.listen(0, resolve));
    servers.push(server);
    const file = join(folder, `${name}-${notAfter}.pem`);
    await writeFile(file, cert);
    return { port: (server.address() as AddressInfo).port, file };
  }

  const message = async (url: string): Promise<string> => {
    const error = await outcomeOf(open(patient, url));
    expect(error).toBeInstanceOf(Error);
    return (error as Error).message;
  };

  it('names the certificate and the setting, with one host and with several', async () => {
    const good = await tlsServer('localhost');
    const other = await tlsServer('elsewhere.test');
    const old = await tlsServer('localhost', Date.now() - dayMs);
    for (const hosts of [`localhost:${good.port}`, `localhost:1,localhost:${good.port}`]) {
      expect(await message(`esdb://ada:hunter2@${hosts}`)).toMatch(
        /certificate of localhost:\d+ is not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\).*`tlsCAFile`$/,
      );
      expect(await message(`esdb://ada:hunter2@${hosts}?tlsCAFile=${other.file}`)).toContain(
        `\`tlsCAFile\` names \`${other.file}\``,
      );
    }
    expect(await message(`esdb://localhost:${old.port}?tlsCAFile=${old.file}`)).toContain('CERT_HAS_EXPIRED');
    expect(await message(`esdb://localhost:${other.port}?tlsCAFile=${other.file}`)).toContain(
      'EVENT_STORE must name the host exactly as the certificate does',
    );
  });

  it('names `tls` when one side speaks it and the other does not', async () => {
    const { port, file } = await tlsServer('localhost');
    expect(await message(`esdb://localhost:${port}?tls=false`)).toContain('uses TLS: remove `tls=false`');
    expect(await message(`esdb://127.0.0.1:${double.port}?tlsCAFile=${file}`)).toContain(
      'does not use TLS: set `tls=false`',
    );
  });

  it('names the file that is none', async () => {
    const url = `esdb://ada:hunter2@localhost:1?tlsCAFile=${folder}`;
    expect(await message(url)).toContain(`\`tlsCAFile\` names, \`${folder}\`, is a directory: name a PEM file`);
    expect(await message(`${url}/none.pem`)).toContain('cannot be read (ENOENT)');
  });

  it.each(['login', 'read-all'] as const)(
    'says that the user is refused, with one host and with several (%s)',
    async (what) => {
      double.denied.add(what);
      double.members = [{ host: '127.0.0.1', port: double.port, leader: true }];
      for (const hosts of [`127.0.0.1:${double.port}`, `127.0.0.1:1,127.0.0.1:${double.port}`]) {
        expect(await message(`esdb://${hosts}?tls=false&discoveryInterval=1`)).toContain('check user and password');
      }
    },
  );
});

describe('a coordinator on a store that refuses', () => {
  let coordinator: TestCoordinator;
  let lines = '';
  const log = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines += chunk.toString();
      done();
    },
  });

  beforeEach(async () => {
    lines = '';
    const store = `${double.connectionString}` as `esdb${string}`;
    coordinator = await startCoordinator({ store, logLevel: 'error', log });
  });
  afterEach(() => coordinator.close());

  const tag = (name: string) =>
    coordinator.client.submitBody('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: name, userIds: [] });
  const send = (body: string) => exchange(`${coordinator.url}/public/v1/submit/create_user_tag`, stamped(body));
  const stamped = (body: string) => ({
    method: 'POST',
    body,
    headers: { 'x-stamp': stampBody(body, apiKeyPairFromPrivate(coordinator.root.apiPrivateKey)).headerValue },
  });
  const ready = async () => (await exchange(`${coordinator.url}/health/ready`)).status;

  it('says that access is denied, logs why, and is not ready until it is given back', async () => {
    const body = tag('denied for a while');
    double.denied.add('append');
    const denied = await send(body);
    expect(denied.status).toBe(503);
    expect(denied.headers.get('retry-after')).toBeNull();
    expect((denied.body as { message: string }).message).toMatch(/^the event store refuses access to this server/);
    expect(lines).toContain('access is denied; check user and password');
    expect(await ready()).toBe(503);
    double.denied.clear();
    await until('it is ready', async () => (await ready()) === 200);
    expect((await send(body)).status).toBe(200);

    double.denied.add('login');
    expect((await send(tag('nobody logs in'))).status).toBe(503);
    await until('it is not ready', async () => (await ready()) === 503);
    double.denied.clear();
    expect((await send(tag('somebody does'))).status).toBe(200);
    await until('it is ready', async () => (await ready()) === 200);
  });

  describe('that takes 4 MiB in one append', () => {
    /** The published maximum. */
    const largest = 2 * 1024 * 1024;
    let signWith: string;

    beforeEach(async () => {
      double.maxAppendBytes = 4 * 1024 * 1024;
      const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_PRIVATE_KEYS_V2', {
        privateKeys: [{ privateKeyName: 'key', curve: 'CURVE_SECP256K1', privateKeyTags: [], addressFormats: [] }],
      });
      const { privateKeys } = result['createPrivateKeysResultV2'] as { privateKeys: { privateKeyId: string }[] };
      signWith = privateKeys[0]!.privateKeyId;
    });

    const sent = (body: string, name = 'sign_raw_payload') =>
      exchange(`${coordinator.url}/public/v1/submit/${name}`, stamped(body));
    const signing = (payload: string) => ({
      signWith,
      payload,
      encoding: 'PAYLOAD_ENCODING_TEXT_UTF8',
      hashFunction: 'HASH_FUNCTION_SHA256',
    });
    /** A body of exactly `largest` bytes: as many of the characters as its payload may have, then white space. */
    const bodyOf = (character: string, more: object = {}) => {
      const body = (payload: string) =>
        coordinator.client.submitBody('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', signing(payload), more);
      const each = Buffer.byteLength(JSON.stringify(character)) - 2;
      const most = Math.floor((largest - Buffer.byteLength(body(''))) / each);
      const text = body(character.repeat(Math.min(most, Math.floor(2_000_000 / character.length))));
      return text.replace('{', `{${'\n'.repeat(largest - Buffer.byteLength(text))}`);
    };

    it.each([
      ['quotes', '"'],
      ['backslashes', '\\'],
      ['control characters', '\u0001'],
      ['characters beyond the basic plane', '😀'],
      ['letters', 'a'],
    ])('records a body of the published maximum that is full of %s', async (_name, character) => {
      const body = bodyOf(character);
      expect(Buffer.byteLength(body)).toBe(largest);
      const { status, body: answer } = await sent(body);
      expect({ status, message: (answer as { message?: string }).message }).toEqual({ status: 200 });
      const { activity } = answer as { activity: { id: string; fingerprint: string } };
      const again = await coordinator.client.query<{
        activity: { intent: { signRawPayloadIntentV2: unknown }; votes: { message: string }[] };
      }>('get_activity', { activityId: activity.id });
      expect(again.activity.votes[0]?.message === body).toBe(true);
      const { parameters } = JSON.parse(body) as { parameters: unknown };
      expect(again.activity.intent.signRawPayloadIntentV2).toEqual(parameters);
    });

    it('refuses what would take more than that with its creations or proofs, on any store', async () => {
      const proved = await sent(bodyOf('"', { generateAppProofs: true }));
      expect(proved.status).toBe(413);
      expect(proved.body).toMatchObject({
        code: 11,
        message: expect.stringMatching(
          /its proofs would take \d+ bytes, but one activity may take at most 4190208; create fewer/,
        ) as unknown,
      });
      expect((await sent(`${bodyOf('a')} `)).status).toBe(400);
    });
  });

  it('answers what is too large with 413, the limit and the setting, and what waits beside it is recorded', async () => {
    double.maxAppendBytes = 100_000;
    const large = coordinator.client.submitBody('ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE', {
      smartContractAddress: `0x${'11'.repeat(20)}`,
      smartContractInterface: `[{"type":"function","name":"f","inputs":[],"outputs":[]}${' '.repeat(80_000)}]`,
      type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
      label: 'large',
    });
    const path = `${coordinator.url}/public/v1/submit/create_smart_contract_interface`;
    let answer = (): void => undefined;
    const heldUntil = new Promise<void>((resolve) => (answer = resolve));
    double.appendFaults.push({ heldUntil, stream: organizationStream(coordinator.organizationId) });
    const first = send(tag('first'));
    await until('it is held', () => double.appendFaults.length === 0);
    const rest = [send(tag('second')), exchange(path, stamped(large)), send(tag('third'))];
    await pause(100);
    answer();
    const answers = await Promise.all([first, ...rest]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 413, 200]);
    expect(answers[2]?.body).toMatchObject({
      code: 11,
      message: expect.stringMatching(/accepts 100000 bytes in one append.*raise MaxAppendSize/) as unknown,
    });
    expect(lines).toBe('');
  });

  it.each([
    ['of KurrentDB on one event', 'maxEventBytes', /accepts 100000 bytes in one event.*raise MaxAppendEventSize/],
    ['of gRPC on a message', 'maxMessageBytes', /accepts fewer bytes in one append.*raise MaxAppendSize/],
  ] as const)('answers 413 where the limit %s is exceeded, and logs nothing', async (_, limit, message) => {
    double[limit] = 100_000;
    const answer = await send(tag('x').replace('{', `{${' '.repeat(200_000)}`));
    expect(answer.status).toBe(413);
    expect(answer.body).toMatchObject({ code: 11, message: expect.stringMatching(message) as unknown });
    expect(lines).toBe('');
    expect((await send(tag('small'))).status).toBe(200);
  });
});

describe.each(modes)('limits on the size of an append, path %s', (appendMode) => {
  const large = () => [anEvent({ text: 'x'.repeat(200_000) })];

  it.each([
    ['maxAppendBytes', { limit: 100_000, setting: 'MaxAppendSize' }],
    ['maxEventBytes', { setting: 'MaxAppendEventSize' }],
    ['maxMessageBytes', { setting: 'MaxAppendSize' }],
  ] as const)('are final: %s', async (limit, refusal) => {
    const store = await open({ appendMode });
    double[limit] = 100_000;
    const begun = performance.now();
    const error = await outcomeOf(store.append(aStream(), large(), 'no-stream'));
    expect(error).toMatchObject({ name: 'StoreRefused', refusal: { kind: 'too-large', ...refusal } });
    expect(performance.now() - begun).toBeLessThan(quick.giveUpAfterMs);
    expect((await store.append(aStream(), someEvents(1), 'no-stream')).revision).toBe(0);
  });

  it('refuse nobody else: an append on a stream that the refusal of another one has ended is tried again', async () => {
    const store = await open({ appendMode });
    double.maxMessageBytes = 100_000;
    const [held, refused] = [aStream(), aStream()];
    double.appendFaults.push({ delayMs: 300 });
    const small = store.append(held, someEvents(1), 'no-stream');
    await until('it is held', () => double.appendFaults.length === 0);
    expect(await outcomeOf(store.append(refused, large(), 'no-stream'))).toMatchObject({ name: 'StoreRefused' });
    expect((await small).revision).toBe(0);
  });
});

test('a start says which size of requests the server does not take', async () => {
  const said: string[] = [];
  for (const appendMode of modes) {
    const store = await open({ appendMode });
    await warnOfLimit(store, (message) => said.push(message));
    expect(said.splice(0)).toEqual([expect.stringContaining('accepts 1048576 bytes in one append')]);
    double.maxAppendBytes = 4 * 1024 * 1024;
    await warnOfLimit(store, (message) => said.push(message));
    expect(said).toEqual([]);
    double.maxEventBytes = 1024 * 1024;
    await warnOfLimit(store, (message) => said.push(message));
    expect(said.splice(0)).toEqual([expect.stringMatching(/bytes in one event.*set its MaxAppendEventSize/)]);
    double.maxEventBytes = 16 * 1024 * 1024;
    double.maxAppendBytes = 1024 * 1024;
  }
  expect(double.log.events).toEqual([]);
});
