import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { runInThisContext } from 'node:vm';
import { createCoordinator, type Coordinator } from '../app/create-coordinator.js';
import { readConfig, type Config } from '../config/config.js';
import { refuseMisspelled } from '../config/environment.js';
import { install, type RootCredentials } from '../app/installation.js';
import { organizationStream, type OrganizationEvent } from '../domain/organization/organization.js';
import { StoreUnavailable, type EventStore, type RecordedEvent } from '../ledger/event-store.js';
import { openEventStore, recordsFormat } from '../ledger/stores/open-event-store.js';
import { recordFormat } from '../ledger/store-format.js';
import { logConditions } from '../logging/log-conditions.js';
import { createLogger } from '../logging/logger.js';
import { Health, type OnFatal } from '../ports/health.js';
import type { Rows } from '../read-models/database.js';
import { projectInMemory, projectIntoFile, type Projecting } from '../read-models/projecting.js';
import { ReadModelRunner } from '../read-models/runner.js';
import { dueDeliveries, endpointsWithDeliveries } from '../read-models/webhooks.js';
import { generateApiKeyPair, apiKeyPairFromPrivate, type ApiKeyPair } from '../stamps/sign.js';
import type { Delivery } from '../delivery/delivery.js';
import { RetryingDelivery } from '../delivery/retrying.js';
import { VoteNotices } from '../delivery/vote-notices.js';
import { KeyEncryptionError, LocalKeyEncryption, type KeyEncryption } from '../vault/key-encryption.js';
import { Vault } from '../vault/vault.js';
import { ManualClock, SeededRandomness } from './deterministic.js';
import { importHistory, readImport, type Imported, type ReadHistory } from './import-history.js';
import { CapturedMessages } from './captured-messages.js';
import { ActivityClient, type ParametersOf } from '../client/activity-client.js';
import { WebhookSink, type DeliveredWebhook } from './webhook-sink.js';

export interface StartOptions {
  /**
   * Determines ids, keys and randomness: the same seed and the same requests give the same events, byte for byte,
   * except the documents of boot proofs.
   */
  readonly seed?: string;
  /** Time at the start; the clock stands still until it is advanced. Default 2026-01-01T00:00:00Z. */
  readonly at?: Date;
  /**
   * `memory` (default), `sqlite` (a real file in a temporary folder that is removed with the coordinator), or the
   * connection string of an EventStoreDB.
   */
  readonly store?: 'memory' | 'sqlite' | `esdb${string}`;
  /** Settings by their environment names, such as `RATE_LIMIT_PER_ADDRESS`. */
  readonly settings?: Readonly<Record<string, string>>;
  /**
   * A file from `countersign history export`, to continue from. `clientOf` stamps as its users, with keys that only
   * this coordinator accepts; wallets sign with substitutes for their keys, and its webhook endpoints receive nothing.
   * The clock starts after its last event, unless `at` is later.
   */
  readonly history?: string;
  /** Log level; nothing is logged by default. */
  readonly logLevel?: string;
  /** Where log lines go; standard error by default. */
  readonly log?: NodeJS.WritableStream;
  /**
   * Called once if the coordinator cannot continue, for example because its file was deleted. It refuses every later request; this
   * process goes on.
   */
  readonly onFatal?: OnFatal;
}

/** A member of the organization with a client that stamps as this user. */
export interface TestUser {
  readonly userId: string;
  readonly key: ApiKeyPair;
  readonly client: ActivityClient;
}

/** An event of an organization as it was recorded: its `type` tells what `data` is. */
export type RecordedOrganizationEvent = Omit<RecordedEvent, 'type' | 'data'> & OrganizationEvent;

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
 * What can be made to fail. Of the event store: `read`, `append`, `head` (the position of the last event) and `delete`
 * (shredding secrets). `feed`: the read models receive no events. `rows`: they cannot be read. `key-encryption`:
 * secrets can be neither sealed nor opened. `randomness`: there are no random bytes. `email`, `sms`, and both as
 * `messages`: nothing is delivered. `clock`: it has jumped against the monotonic clock.
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

/** A real coordinator in this process: HTTP on a free port, real stamps, a real store, a simulated clock. */
export interface TestCoordinator extends AsyncDisposable {
  /** Its base URL, such as `http://127.0.0.1:40123`. A restart changes the port. */
  readonly url: string;
  readonly organizationId: string;
  /** The root user's credentials, as in `root.json`. */
  readonly root: Required<RootCredentials>;
  /** Stamps as the root user. */
  readonly client: ActivityClient;
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
    /** When it applies, in the policy language. */
    readonly time?: string;
    readonly notes?: string;
  }): Promise<string>;
  /** Creates a user tag, as the root user, and returns its id. */
  createTag(userTagName: string, users?: readonly { readonly userId: string }[]): Promise<string>;
  /** Creates a wallet, as the root user; by default with one Ethereum account. */
  createWallet(
    walletName: string,
    accounts?: ParametersOf<'ACTIVITY_TYPE_CREATE_WALLET'>['accounts'],
  ): Promise<{ readonly walletId: string; readonly addresses: readonly string[] }>;
  /** A client that stamps as a user: of an imported history, or created by `createUser`. */
  clientOf(userId: string, organizationId?: string): ActivityClient;
  /** A client for any key. */
  clientFor(key: ApiKeyPair, organizationId?: string): ActivityClient;
  /** A new key pair, derived from the seed. */
  newKey(): ApiKeyPair;
  /** Everything recorded in the organization's stream, in order. */
  events(): Promise<readonly RecordedOrganizationEvent[]>;
  /** Everything recorded in a stream from a revision on (default: 0), in order. */
  events(stream: string | undefined, from?: number): Promise<readonly RecordedEvent[]>;
  /** Everything recorded in the whole store, in order, except what was shredded. */
  recorded(): Promise<readonly RecordedEvent[]>;
  /** Number of appends and deletions requested from the store since the start or the last restart. */
  writes(): number;
  /**
   * Lets the store accept this many more writes; for all later ones it reports an unknown outcome, as if the process
   * died there. None of them is written, except the first if it `isWritten`. A restart resets this.
   */
  breakAfter(writes: number, isWritten?: boolean): void;
  /**
   * Runs `act` before the store accepts the write after this many more, and delays that write until it is done:
   * anything may happen between two writes of a request. `act` must not wait for what that write blocks.
   */
  beforeWrite(writes: number, act: () => void | Promise<void>): void;
  /** Messages that would have been sent so far, including codes, oldest first. */
  messages(): readonly SentMessage[];
  /**
   * Creates a webhook endpoint of the organization, as the root user, that accepts every delivery: `webhooks()` returns
   * them. Needs the setting `ALLOW_PRIVATE_NETWORK: 'true'`, because it listens on loopback.
   */
  listenForWebhooks(): Promise<void>;
  /** What `listenForWebhooks` has received so far, oldest first. */
  webhooks(): readonly DeliveredWebhook[];
  /**
   * Resolves once the read models are up to date, every message has been sent or given up, and no webhook delivery is
   * due.
   * @throws {Error} after 10 s, with what is still open
   */
  settled(): Promise<void>;
  /** Makes a port fail, as its real adapter does if what it depends on is unavailable, until told to work again. */
  fail(port: Port, isFailing?: boolean): void;
  /**
   * Stops and starts again on the same store, optionally with other settings: what was only in memory is gone. The port
   * changes, and clients follow. Resolves to this coordinator.
   */
  restart(options?: { readonly settings?: Readonly<Record<string, string>> }): Promise<TestCoordinator>;
  /** Stops it. Calling it again does nothing. */
  close(): Promise<void>;
}

const optionNames: Readonly<Record<keyof StartOptions, true>> = {
  seed: true,
  at: true,
  store: true,
  settings: true,
  history: true,
  logLevel: true,
  log: true,
  onFatal: true,
};

/** A misspelled option would go unnoticed in JavaScript, and the test would be about something else. */
function refuseUnknownOptions(options: StartOptions): void {
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(optionNames, name));
  if (unknown === undefined) return;
  throw new TypeError(`startCoordinator has no option \`${unknown}\`: use ${Object.keys(optionNames).join(', ')}`);
}

/**
 * Starts a coordinator. Many can run side by side. Close each with `close()` or `await using`; one that is left open,
 * for example by a failing test, does not keep the process alive.
 */
export async function startCoordinator(options: StartOptions = {}): Promise<TestCoordinator> {
  refuseUnknownOptions(options);
  const { seed = 'countersign', store: kind = 'memory' } = options;
  refuseMisspelled(options.settings ?? {}, { only: true });
  const config = readConfig({ PORT: '0', ...options.settings });
  const history = options.history === undefined ? undefined : await readImport(options.history);
  const begins = options.at?.getTime() ?? (history ? 0 : Date.parse('2026-01-01T00:00:00Z'));
  const at = Math.max(begins, (history?.lastAt ?? -1) + 1);
  const folder = kind === 'sqlite' ? await mkdtemp(join(tmpdir(), 'countersign-')) : undefined;
  const health = healthFor(options);
  const store = await openEventStore(kind.startsWith('esdb') ? kind : `${kind}:`, folder ?? '', health);
  const failing = new Set<Port>();
  const world = {
    failing,
    clock: new SteeredClock(at, failing),
    randomness: new FailingRandomness(seed, failing),
    kek: new SeededRandomness(`kek of ${seed}`).bytes(32),
    kept: new CapturedMessages((channel) => failing.has(channel) || failing.has('messages')),
  };
  const callOff = folder === undefined ? () => undefined : removeAtExit(folder);
  try {
    if (recordsFormat(kind)) await recordFormat({ store, clock: world.clock });
    const imported = history && (await importInto(store, history, world));
    const whole = { store, health, folder, config, imported, ...world };
    const credentials = imported && credentialsOf(imported);
    return handleOf(options, whole, await held(boot(options, whole, credentials)), callOff);
  } catch (error) {
    await store.close();
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    callOff();
    throw error;
  }
}

const loggerFor = ({ logLevel = 'silent', log }: StartOptions) => createLogger(logLevel, log);

const healthFor = (options: StartOptions): Health =>
  new Health(logConditions(loggerFor(options)), undefined, options.onFatal);

async function importInto(
  store: EventStore,
  history: ReadHistory,
  { clock, randomness, kek }: Pick<World, 'clock' | 'randomness' | 'kek'>,
): Promise<Imported> {
  const vault = new Vault({ store, keyEncryption: new LocalKeyEncryption([kek], randomness), randomness, clock });
  return importHistory(history, { store, vault, randomness, now: clock.now() });
}

function credentialsOf({ organizationId, userId, keys }: Imported): Credentials {
  const key = keys.get(organizationId)?.get(userId);
  return {
    organizationId,
    userId,
    apiPublicKey: key?.publicKey ?? '',
    ...(key ? { apiPrivateKey: key.privateKey } : {}),
  };
}

/** Keeps the process alive until the work is done, because an open coordinator does not. */
async function held<Result>(work: Promise<Result>): Promise<Result> {
  const alive = setInterval(() => undefined, 60_000);
  try {
    return await work;
  } finally {
    clearInterval(alive);
  }
}

/** The real process. jest gives tests a copy, which does not receive the end. */
const realProcess = runInThisContext('process') as NodeJS.Process;

/**
 * Removes a folder when the process ends, for coordinators that were never closed. Returns a function that cancels
 * this.
 */
function removeAtExit(folder: string): () => void {
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  // vitest ends its workers with a signal.
  const removeAndEnd = (): void => {
    remove();
    if (realProcess.listenerCount('SIGTERM') === 0) realProcess.kill(realProcess.pid, 'SIGTERM');
  };
  realProcess.once('exit', remove);
  realProcess.once('SIGTERM', removeAndEnd);
  return () => {
    realProcess.off('exit', remove);
    realProcess.off('SIGTERM', removeAndEnd);
  };
}

interface World {
  store: EventStore;
  health: Health;
  config: Config;
  readonly folder: string | undefined;
  readonly clock: ManualClock;
  readonly randomness: SeededRandomness;
  readonly kek: Uint8Array;
  readonly kept: CapturedMessages;
  readonly failing: Set<Port>;
  readonly imported: Imported | undefined;
}

type Credentials = Omit<RootCredentials, 'apiUrl'>;

/** What a restart creates again. */
interface Running {
  readonly url: string;
  readonly credentials: Credentials;
  readonly coordinator: Coordinator;
  readonly persistent: SharedStore;
  readonly delivery: Delivery & { readonly open?: number };
  readonly rows: Rows;
}

async function boot(options: StartOptions, world: World, earlier: Credentials | undefined): Promise<Running> {
  const { config, folder, clock, randomness, kept, failing } = world;
  let credentials = earlier;
  const persistent = new SharedStore(world.store, failing);
  const keyEncryption = new FailingKeyEncryption(new LocalKeyEncryption([world.kek], randomness), failing);
  const takesImported = world.imported !== undefined;
  await install(config, { store: persistent, clock, randomness, keyEncryption, takesImported }, undefined, (root) => {
    credentials = root;
    return Promise.resolve();
  });
  const delivery = new RetryingDelivery({ email: kept, sms: kept }, () => undefined, { now: () => clock.now() });
  const projecting = failingRows(
    folder
      ? await projectIntoFile(
          join(folder, 'read-models.db'),
          { identity: credentials!.organizationId, head: (await persistent.head()) ?? -1n },
          persistent,
        )
      : projectInMemory(),
    failing,
  );
  const coordinator = await createCoordinator(config, {
    store: persistent,
    clock,
    randomness,
    keyEncryption,
    delivery,
    logger: loggerFor(options),
    health: world.health,
    projecting,
    takesImported,
  });
  const server = coordinator.app.getHttpServer();
  server.on('connection', (socket) => socket.unref());
  await coordinator.app.listen(0, '127.0.0.1');
  // A pending response keeps the process alive; a coordinator that a failing test has left open must not.
  server.unref();
  world.store.unref?.();
  projecting.unref?.();
  const url = await coordinator.app.getUrl();
  return { url, credentials: credentials!, coordinator, persistent, delivery, rows: projecting.rows };
}

/** Longest wait of `settled`, in milliseconds, and the pause between two checks. */
const settle = { longestMs: 10_000, pauseMs: 5 } as const;

const ethereumAccount = {
  curve: 'CURVE_SECP256K1',
  pathFormat: 'PATH_FORMAT_BIP32',
  path: "m/44'/60'/0'/0/0",
  addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
} as const;

/** Members of the handle are its own properties, so that a test can spread it and replace some. */
function handleOf(options: StartOptions, world: World, first: Running, callOff: () => void): TestCoordinator {
  const { clock, randomness, kept, failing, folder } = world;
  let running = first;
  let sink: WebhookSink | undefined;
  let closing: Promise<void> | undefined;
  const { organizationId } = first.credentials;
  const newKey = () => generateApiKeyPair((count) => randomness.bytes(count));
  const keys = new Map([...(world.imported?.keys ?? [])].map(([id, pairs]) => [id, new Map(pairs)]));
  const ownKeys = keys.get(organizationId) ?? new Map<string, ApiKeyPair>();
  keys.set(organizationId, ownKeys);
  const clientFor = (key: ApiKeyPair, organization = organizationId) =>
    new ActivityClient(() => running.url, organization, key, clock);
  const { apiPrivateKey } = first.credentials;
  const ownKey = ownKeys.get(first.credentials.userId);
  const client = clientFor(ownKey ?? (apiPrivateKey ? apiKeyPairFromPrivate(apiPrivateKey) : newKey()));
  ownKeys.set(first.credentials.userId, client.key);

  /** What has not finished yet, in words. */
  async function openWork(): Promise<string | undefined> {
    const { coordinator, delivery, rows } = running;
    await coordinator.app.get(ReadModelRunner).passed((await world.store.head()) ?? -1n, settle.longestMs);
    if (!coordinator.app.get(VoteNotices).isIdle) return 'vote notices are not counted yet';
    if (delivery.open) return `${delivery.open} messages are not delivered yet`;
    // Nothing is delivered to the endpoints of an imported history.
    for (const { endpointId } of world.imported ? [] : endpointsWithDeliveries(rows)) {
      const [due] = dueDeliveries(rows, endpointId, clock.now(), 1);
      if (due) return `a delivery to webhook endpoint ${endpointId} is due`;
    }
    return undefined;
  }

  async function restart(settings: Readonly<Record<string, string>> | undefined): Promise<TestCoordinator> {
    if (settings) {
      refuseMisspelled(settings, { only: true });
      world.config = readConfig({ PORT: '0', ...options.settings, ...settings });
    }
    await running.coordinator.close();
    if (folder) {
      await world.store.close();
      world.health = healthFor(options);
      world.store = await openEventStore('sqlite:', folder, world.health);
    }
    running = await boot(options, world, running.credentials);
    return handle;
  }

  async function end(): Promise<void> {
    await running.coordinator.close();
    await sink?.close();
    await world.store.close();
    if (folder) await rm(folder, { recursive: true, force: true });
    callOff();
  }

  async function settled(): Promise<void> {
    const deadline = performance.now() + settle.longestMs;
    for (let open = await openWork(); open !== undefined; open = await openWork()) {
      if (performance.now() > deadline) throw new Error(`not settled after ${settle.longestMs} ms: ${open}`);
      await pause(settle.pauseMs);
    }
  }

  async function readStream(stream = organizationStream(organizationId), from = 0): Promise<readonly RecordedEvent[]> {
    const events: RecordedEvent[] = [];
    for await (const event of world.store.read(stream, from)) events.push(event);
    return events;
  }

  async function readAll(): Promise<readonly RecordedEvent[]> {
    const { store } = world;
    const head = await store.head();
    const events: RecordedEvent[] = [];
    await new Promise<void>((resolve, reject) => {
      const subscription = store.subscribe({
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
  }

  const handle: TestCoordinator = {
    organizationId,
    client,
    clock,
    clientFor,
    clientOf(userId, organization = organizationId) {
      const key = keys.get(organization)?.get(userId);
      if (key) return clientFor(key, organization);
      throw new Error(
        `there is no test key for user \`${userId}\` in organization \`${organization}\`: test keys exist only for users who have an API key or a ` +
          'passkey when a history is imported, and for those made by `createUser`',
      );
    },
    newKey,
    get url() {
      return running.url;
    },
    get root() {
      const { url, credentials } = running;
      return { apiPrivateKey: '', authProxyConfigId: '', ...credentials, apiUrl: url, authProxyUrl: url };
    },
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
            userTags: [...userTags],
          },
        ],
      });
      const { userIds } = result['createUsersResult'] as { userIds: string[] };
      ownKeys.set(userIds[0]!, key);
      return { userId: userIds[0]!, key, client: clientFor(key) };
    },
    async createPolicy({ effect = 'EFFECT_ALLOW', ...policy }) {
      const { result } = await client.submit('ACTIVITY_TYPE_CREATE_POLICY_V3', { notes: '', effect, ...policy });
      return (result['createPolicyResult'] as { policyId: string }).policyId;
    },
    async createTag(userTagName, users = []) {
      const userIds = users.map(({ userId }) => userId);
      const { userTagId } = await client.perform('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName, userIds });
      return userTagId;
    },
    createWallet: (walletName, accounts = [ethereumAccount]) =>
      client.perform('ACTIVITY_TYPE_CREATE_WALLET', { walletName, accounts }),
    // Only the organization's own stream has events of known types.
    events: ((stream?: string, from?: number) => held(readStream(stream, from))) as TestCoordinator['events'],
    recorded: () => held(readAll()),
    writes: () => running.persistent.writes,
    breakAfter: (writes, isWritten = false) => running.persistent.breakAfter(writes, isWritten),
    beforeWrite: (writes, act) => running.persistent.beforeWrite(writes, act),
    messages: () => [...kept.messages],
    async listenForWebhooks() {
      if (world.imported)
        throw new Error(
          'webhooks of an imported history are not delivered, because their endpoints do not belong to this test',
        );
      if (!world.config.allowPrivateNetwork) {
        throw new Error(
          "webhooks are delivered to loopback in tests: start with settings: { ALLOW_PRIVATE_NETWORK: 'true' }",
        );
      }
      sink ??= await WebhookSink.open();
      const { url } = sink;
      await client.perform('ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT', { url, name: `test ${url}` });
    },
    webhooks: () => [...(sink?.delivered ?? [])],
    settled: () => held(settled()),
    fail(port, isFailing = true) {
      if (!ports.includes(port)) throw new TypeError(`there is no port \`${port as string}\`: use ${ports.join(', ')}`);
      if (isFailing) failing.add(port);
      else failing.delete(port);
    },
    restart: ({ settings } = {}) => held(restart(settings)),
    close: () => (closing ??= held(end())),
    [Symbol.asyncDispose]: () => handle.close(),
  };
  return handle;
}

/**
 * The coordinator closes its store when it stops, but restarting one in memory needs the contents. It fails on demand.
 */
class SharedStore implements EventStore {
  writes = 0;
  private breaking: { readonly after: number; readonly isWritten: boolean } | undefined;
  private interlude: { readonly after: number; readonly act: () => void | Promise<void> } | undefined;

  constructor(
    private readonly store: EventStore,
    private readonly failing: ReadonlySet<Port>,
  ) {}

  breakAfter(writes: number, isWritten: boolean): void {
    this.breaking = { after: this.writes + writes, isWritten };
  }

  beforeWrite(writes: number, act: () => void | Promise<void>): void {
    this.interlude = { after: this.writes + writes, act };
  }

  private async write<Result>(write: () => Promise<Result>): Promise<Result> {
    const { after = Infinity, isWritten = false } = this.breaking ?? {};
    this.writes += 1;
    const { interlude } = this;
    if (interlude && this.writes > interlude.after) {
      this.interlude = undefined;
      await interlude.act();
    }
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

  async last(...args: Parameters<EventStore['last']>) {
    if (this.failing.has('read')) throw new StoreUnavailable('the store cannot be read');
    return this.store.last(...args);
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

  get remote() {
    return this.store.remote;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** Jumps only when told to. */
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

/** Rows that can be made to fail on opening or on reading. */
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
      lost: (complaint) => readable().lost(complaint),
    },
    progress: () => projecting.progress(),
    leftOut: () => projecting.leftOut(),
    async project(events) {
      if (failing.has('feed')) throw new Error('the events do not arrive');
      await projecting.project(events);
    },
    onStopped: (tell) => projecting.onStopped?.(tell),
    unref: () => projecting.unref?.(),
    close: () => projecting.close(),
  };
}
