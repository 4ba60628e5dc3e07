import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCoordinator } from '../app.module.js';
import { readConfig, refuseMisspelled, type Config } from '../config.js';
import { install, type RootCredentials } from '../installation.js';
import { organizationStream } from '../domain/organization/organization.js';
import { StoreUnavailable, type EventStore, type RecordedEvent } from '../event-store/event-store.js';
import { openEventStore } from '../event-store/open-event-store.js';
import { createLogger } from '../http/logger.js';
import type { Rows } from '../read-models/database.js';
import { projectInMemory, projectIntoFile, type Projecting } from '../read-models/projecting.js';
import { generateApiKeyPair, apiKeyPairFromPrivate, type ApiKeyPair } from '../stamps/sign.js';
import { StampingClient } from '../client/stamping-client.js';
import { deliveryBy } from '../delivery/open-delivery.js';
import { KeyEncryptionError, LocalKeyEncryption, type KeyEncryption } from '../vault/key-encryption.js';
import { ManualClock, SeededRandomness } from './deterministic.js';
import { KeptMessages } from './kept-messages.js';

export interface StartOptions {
  /**
   * Ids, keys and randomness follow from it: the same seed and the same requests give the same events, byte for byte, but
   * for the documents of boot proofs.
   */
  readonly seed?: string;
  /** Time at the start; the clock stands until it is told to go on. Default 2026-01-01T00:00:00Z. */
  readonly at?: Date;
  /**
   * `memory` (default), `sqlite`: a real file in a temporary folder that goes with the coordinator, or the connection
   * string of an EventStoreDB.
   */
  readonly store?: 'memory' | 'sqlite' | `esdb${string}`;
  /** Settings by their environment names, such as `RATE_LIMIT_PER_ADDRESS`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Log level; nothing is logged by default. */
  readonly logLevel?: string;
  /** Where log lines go; standard error by default. */
  readonly log?: NodeJS.WritableStream;
}

/** A member of the organization with a client that stamps as this user. */
export interface TestUser {
  readonly userId: string;
  readonly key: ApiKeyPair;
  readonly client: StampingClient;
}

/** A message to a person. */
interface SentMessage {
  readonly channel: 'email' | 'sms';
  readonly to: string;
  readonly subject?: string;
  readonly text: string;
  readonly html?: string;
  readonly otpId?: string;
}

/**
 * What can be made to fail. Of the event store: `read`, `append`, `head` (the position of the last event) and `delete` (the
 * shredding of secrets). `feed`: the read models get no events. `rows`: they cannot be read. `key-encryption`: secrets
 * can neither be sealed nor opened. `randomness`: there are no random bytes. `email`, `sms`, and both as `messages`: nothing
 * is carried to people. `clock`: it has jumped against the monotonic clock.
 */
export const ports = [
  'read',
  'append',
  'head',
  'delete',
  'feed',
  'rows',
  'key-encryption',
  'randomness',
  'email',
  'sms',
  'messages',
  'clock',
] as const;

/** @see ports */
export type Port = (typeof ports)[number];

/** A real coordinator in this process: HTTP on a free port, real stamps, a real store, a steered clock. */
export interface TestCoordinator {
  readonly url: string;
  readonly organizationId: string;
  /** The root user's credentials, as `root.json` has them. */
  readonly root: Required<RootCredentials>;
  /** Stamps as the root user. */
  readonly client: StampingClient;
  readonly clock: ManualClock;
  /** Creates a user with an API key, as the root user. */
  createUser(
    userName: string,
    options?: { readonly userTags?: readonly string[]; readonly userEmail?: string },
  ): Promise<TestUser>;
  /** Creates a policy, as the root user, and returns its id. */
  createPolicy(policy: {
    readonly policyName: string;
    readonly effect?: 'EFFECT_ALLOW' | 'EFFECT_DENY';
    readonly condition?: string;
    readonly consensus?: string;
  }): Promise<string>;
  /** A client for a key of the caller's choice. */
  clientFor(key: ApiKeyPair, organizationId?: string): StampingClient;
  /** A new key pair that follows from the seed. */
  newKey(): ApiKeyPair;
  /** Everything recorded in a stream (default: the organization's) from a revision on (default: 0), in order. */
  events(stream?: string, from?: number): Promise<readonly RecordedEvent[]>;
  /** Everything recorded in the whole store, in order. What was shredded is not there any more. */
  recorded(): Promise<readonly RecordedEvent[]>;
  /** Appends and deletions that the store was asked for since the start or the last restart. */
  writes(): number;
  /**
   * Lets the store take so many writes more; of all that follow it says that it does not know whether they were written,
   * as a process would that dies there. None of them is, but the first if it `isWritten`. A restart begins anew.
   */
  breakAfter(writes: number, isWritten?: boolean): void;
  /** Messages that would have been sent to people so far, codes and all, the oldest first. */
  messages(): readonly SentMessage[];
  /** Makes a port fail, as its real adapters do when what they need is not there, until it is told to work again. */
  fail(port: Port, isFailing?: boolean): void;
  /** Stops and starts again on the same store: what was only in memory is gone. The port changes. */
  restart(): Promise<TestCoordinator>;
  close(): Promise<void>;
}

/** Starts a coordinator. Many can run side by side; each is closed with `close()`. */
export async function startCoordinator(options: StartOptions = {}): Promise<TestCoordinator> {
  const { seed = 'countersign', at = new Date('2026-01-01T00:00:00Z'), store: kind = 'memory' } = options;
  refuseMisspelled(options.settings ?? {}, { only: true });
  const config = readConfig({ PORT: '0', ...options.settings });
  const folder = kind === 'sqlite' ? await mkdtemp(join(tmpdir(), 'countersign-')) : undefined;
  const store = await openEventStore(kind.startsWith('esdb') ? kind : `${kind}:`, folder ?? '');
  const failing = new Set<Port>();
  const world = {
    failing,
    clock: new SteeredClock(at.getTime(), failing),
    randomness: new FailingRandomness(seed, failing),
    kek: new SeededRandomness(`kek of ${seed}`).bytes(32),
    kept: new KeptMessages((channel) => failing.has(channel) || failing.has('messages')),
  };
  return boot(options, config, { store, folder, ...world }, undefined);
}

interface World {
  readonly store: EventStore;
  readonly folder: string | undefined;
  readonly clock: ManualClock;
  readonly randomness: SeededRandomness;
  readonly kek: Uint8Array;
  readonly kept: KeptMessages;
  readonly failing: Set<Port>;
}

async function boot(
  options: StartOptions,
  config: Config,
  world: World,
  earlier: Omit<RootCredentials, 'apiUrl'> | undefined,
): Promise<TestCoordinator> {
  const { folder, clock, randomness } = world;
  let credentials = earlier;
  const persistent = new SharedStore(world.store, world.failing);
  const keyEncryption = new FailingKeyEncryption(new LocalKeyEncryption([world.kek], randomness), world.failing);
  await install(config, { store: persistent, clock, randomness, keyEncryption }, undefined, (root) => {
    credentials = root;
    return Promise.resolve();
  });
  const coordinator = await createCoordinator(config, {
    store: persistent,
    clock,
    randomness,
    keyEncryption,
    delivery: deliveryBy(
      { email: world.kept, sms: world.kept },
      { restored: config.restored, report: () => undefined, now: () => clock.now() },
    ),
    logger: createLogger(options.logLevel ?? 'silent', options.log),
    projecting: failingRows(
      folder
        ? await projectIntoFile(
            join(folder, 'read-models.db'),
            { identity: credentials!.organizationId, head: (await persistent.head()) ?? -1n },
            persistent,
          )
        : projectInMemory(),
      world.failing,
    ),
  });
  await coordinator.app.listen(0, '127.0.0.1');
  const url = await coordinator.app.getUrl();
  const root = { apiPrivateKey: '', authProxyConfigId: '', ...credentials!, apiUrl: url, authProxyUrl: url };
  const { organizationId } = root;
  const clientFor = (key: ApiKeyPair, organization = organizationId) =>
    new StampingClient(url, organization, key, clock);
  const newKey = () => generateApiKeyPair((count) => randomness.bytes(count));
  const client = clientFor(root.apiPrivateKey ? apiKeyPairFromPrivate(root.apiPrivateKey) : newKey());

  return {
    url,
    organizationId,
    root,
    client,
    clock,
    clientFor,
    newKey,
    async createUser(userName, { userTags = [], userEmail } = {}) {
      const key = newKey();
      const { result } = await client.submit('ACTIVITY_TYPE_CREATE_USERS_V4', {
        users: [
          {
            userName,
            ...(userEmail ? { userEmail } : {}),
            apiKeys: [{ apiKeyName: `${userName}'s key`, publicKey: key.publicKey, curveType: key.curve }],
            authenticators: [],
            oauthProviders: [],
            userTags,
          },
        ],
      });
      const { userIds } = result['createUsersResult'] as { userIds: string[] };
      return { userId: userIds[0]!, key, client: clientFor(key) };
    },
    async createPolicy({ effect = 'EFFECT_ALLOW', ...policy }) {
      const { result } = await client.submit('ACTIVITY_TYPE_CREATE_POLICY_V3', { notes: '', effect, ...policy });
      return (result['createPolicyResult'] as { policyId: string }).policyId;
    },
    async events(stream = organizationStream(organizationId), from = 0) {
      const events: RecordedEvent[] = [];
      for await (const event of world.store.read(stream, from)) events.push(event);
      return events;
    },
    async recorded() {
      const head = await world.store.head();
      const events: RecordedEvent[] = [];
      await new Promise<void>((resolve, reject) => {
        const subscription = world.store.subscribe({
          after: 'start',
          onEvents(batch) {
            events.push(...batch);
            if ((batch.at(-1)?.position ?? -1n) < (head ?? -1n)) return;
            resolve();
            void subscription.close();
          },
          onError: reject,
        });
      });
      return events;
    },
    writes: () => persistent.writes,
    breakAfter: (writes, isWritten = false) => persistent.breakAfter(writes, isWritten),
    messages: () => [...world.kept.messages],
    fail(port, isFailing = true) {
      if (isFailing) world.failing.add(port);
      else world.failing.delete(port);
    },
    async restart() {
      await coordinator.close();
      if (!folder) return boot(options, config, world, credentials);
      await world.store.close();
      const store = await openEventStore('sqlite:', folder);
      return boot(options, config, { ...world, store }, credentials);
    },
    async close() {
      await coordinator.close();
      await world.store.close();
      if (folder) await rm(folder, { recursive: true, force: true });
    },
  };
}

/** The coordinator closes its store when it stops; a restart of one in memory needs what is in it. It breaks on demand. */
class SharedStore implements EventStore {
  writes = 0;
  private breaking: { readonly after: number; readonly isWritten: boolean } | undefined;

  constructor(
    private readonly store: EventStore,
    private readonly failing: ReadonlySet<Port>,
  ) {}

  breakAfter(writes: number, isWritten: boolean): void {
    this.breaking = { after: this.writes + writes, isWritten };
  }

  private async write<Result>(write: () => Promise<Result>): Promise<Result> {
    const { after = Infinity, isWritten = false } = this.breaking ?? {};
    this.writes += 1;
    if (this.writes <= after) return write();
    if (isWritten && this.writes === after + 1) await write().catch(() => undefined);
    throw new StoreUnavailable('the store was told to break here');
  }

  get exclusive(): boolean {
    return this.store.exclusive;
  }

  async append(...args: Parameters<EventStore['append']>) {
    if (this.failing.has('append')) throw new StoreUnavailable('the store does not take appends');
    return this.write(() => this.store.append(...args));
  }

  async *read(...args: Parameters<EventStore['read']>) {
    if (this.failing.has('read')) throw new StoreUnavailable('the store cannot be read');
    yield* this.store.read(...args);
  }

  subscribe(...args: Parameters<EventStore['subscribe']>) {
    return this.store.subscribe(...args);
  }

  async head() {
    if (this.failing.has('head')) throw new StoreUnavailable('the store does not say where it ends');
    return this.store.head();
  }

  async delete(stream: string) {
    if (this.failing.has('delete')) throw new StoreUnavailable('the store does not take deletions');
    return this.write(() => this.store.delete(stream));
  }

  async check(): Promise<void> {
    await this.store.check?.();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** Does not jump but when it is told that it has. */
class SteeredClock extends ManualClock {
  constructor(
    time: number,
    private readonly failing: ReadonlySet<Port>,
  ) {
    super(time);
  }

  jumped(): number {
    return this.failing.has('clock') ? 60_000 : 0;
  }
}

class FailingRandomness extends SeededRandomness {
  constructor(
    seed: string,
    private readonly failing: ReadonlySet<Port>,
  ) {
    super(seed);
  }

  override bytes(count: number): Uint8Array {
    if (this.failing.has('randomness')) throw new Error('there are no random bytes');
    return super.bytes(count);
  }
}

class FailingKeyEncryption implements KeyEncryption {
  constructor(
    private readonly keys: KeyEncryption,
    private readonly failing: ReadonlySet<Port>,
  ) {}

  get currentId() {
    return this.keys.currentId;
  }

  get knownIds() {
    return this.keys.knownIds;
  }

  async wrap(...args: Parameters<KeyEncryption['wrap']>) {
    this.check();
    return this.keys.wrap(...args);
  }

  async unwrap(...args: Parameters<KeyEncryption['unwrap']>) {
    this.check();
    return this.keys.unwrap(...args);
  }

  private check(): void {
    if (this.failing.has('key-encryption')) throw new KeyEncryptionError('the key-encryption key is out of reach');
  }
}

/** Rows that can be neither made nor read, each when it is told so. */
function failingRows(projecting: Projecting, failing: ReadonlySet<Port>): Projecting {
  const { rows } = projecting;
  const readable = (): Rows => {
    if (failing.has('rows')) throw new Error('the rows cannot be read');
    return rows;
  };
  return {
    rows: {
      run: (...args) => readable().run(...args),
      get: (...args) => readable().get(...args),
      all: (...args) => readable().all(...args),
    },
    progress: () => projecting.progress(),
    async project(events) {
      if (failing.has('feed')) throw new Error('the events do not arrive');
      await projecting.project(events);
    },
    close: () => projecting.close(),
  };
}
