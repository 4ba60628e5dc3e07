import { activities } from '../../src/activities/index.js';
import type { PreparePorts } from '../../src/ports/prepare.js';
import { ActivityResponses, type ActivityResponse } from '../../src/coordinator/activity-responses.js';
import { Children } from '../../src/coordinator/children.js';
import { DenialLog } from '../../src/coordinator/denials.js';
import { Driver } from '../../src/coordinator/execute-activity.js';
import type { SubmitResult } from '../../src/coordinator/pending-request.js';
import { foundOrganization } from '../../src/decide/found-organization.js';
import { derivedId } from '../../src/ledger/ids.js';
import type { QueuePath } from '../../src/fairness/fair-queue.js';
import { OrganizationLoader } from '../../src/ledger/load-organization.js';
import type { DriverMetrics } from '../../src/ports/driver-metrics.js';
import type { KnownActivities } from '../../src/ports/known-activities.js';
import type { ReadingPort } from '../../src/ports/reading.js';
import { buildRegistry, type Registry } from '../../src/decide/registry.js';
import { readSubmit } from '../../src/coordinator/read-submit.js';
import type { Meter } from '../../src/domain/steps.js';
import { organizationStream, type OrganizationEvent } from '../../src/domain/organization/organization.js';
import { chainEvent, type EventMetadata } from '../../src/ledger/chain.js';
import type { EventStore, RecordedEvent } from '../../src/ledger/event-store.js';
import { EphemeralKey } from '../../src/proofs/ephemeral-key.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { createLogger } from '../../src/logging/logger.js';
import type { Rows } from '../../src/read-models/database.js';
import { highestCounter } from '../../src/read-models/claims.js';
import { activityOf, findByFingerprint } from '../../src/read-models/activities.js';
import { projectInMemory, type Projecting } from '../../src/read-models/projecting.js';
import { ReadModelRunner } from '../../src/read-models/runner.js';
import { recordedByParent, unfoundedIn } from '../../src/read-models/sub-organizations.js';
import { apiKeyPairFromPrivate, generateApiKeyPair, stampBody, type ApiKeyPair } from '../../src/stamps/sign.js';
import { readStamp, verifyApiKeyStamp } from '../../src/stamps/verify.js';
import { ManualClock, SeededRandomness } from '../../src/testing/deterministic.js';
import { preparePorts } from './prepare-ports.js';
import type { SeededPasskey } from './seeded-passkey.js';

export const organizationId = '0f9d5a5e-0000-4000-8000-000000000001';
const rootUserId = '0f9d5a5e-0000-4000-8000-000000000002';
const rootKey = apiKeyPairFromPrivate('11'.repeat(32));

/** Whatever stamps a request. */
export type Signer = ApiKeyPair | SeededPasskey;

/** A user and the key that stamps for it. */
export interface Member {
  readonly userId: string;
  readonly key: ApiKeyPair;
}

/** Exact bytes with a stamp over them: what can be sent again. */
export interface Stamped {
  readonly path: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Who takes turns; nobody in particular unless said. */
  readonly from?: QueuePath;
}

type RealPorts = Awaited<ReturnType<typeof preparePorts>>;

export interface BareOptions {
  readonly store?: EventStore;
  readonly seed?: string;
  readonly clock?: ManualClock;
  readonly prepare?: Partial<PreparePorts>;
  /** Another registry than that of the product, for verbs that only a test has. */
  readonly registry?: Registry;
  /** Without read models every fingerprint is known from folded state alone. */
  readonly readModels?: false;
  /** How long the driver decides again what others get ahead of, in milliseconds. */
  readonly patienceMs?: number;
  /** What reads what is long; without it everything is read on the main thread. */
  readonly reading?: ReadingPort;
}

export const startedAt = Date.UTC(2026, 0, 1);

/**
 * The coordinator as `app/` puts it together, less HTTP and Nest: a request goes through the real stamp
 * verification, the real reader and the real driver. Several can share one store.
 */
export class BareCoordinator {
  readonly root: Member = { userId: rootUserId, key: rootKey };
  readonly clock: ManualClock;
  readonly store: EventStore;
  readonly registry: Registry;
  readonly loader: OrganizationLoader;
  readonly driver: Driver;
  readonly projecting = projectInMemory();
  readonly runner: ReadModelRunner;
  /** What the driver told its metrics, and how many requests it was given. */
  readonly counts = { appends: [] as number[], conflicts: 0, driven: 0 };
  private readonly answers: ActivityResponses;
  private readonly keys: SeededRandomness;
  private lastTimestamp = 0;
  private policies = 0;

  private constructor(options: BareOptions & { readonly prepare: RealPorts; readonly given: Partial<PreparePorts> }) {
    const {
      store,
      seed = 'bare',
      clock,
      prepare,
      given,
      registry,
      readModels: isProjecting,
      patienceMs,
      reading,
    } = options;
    this.store = store ?? new InMemoryEventStore();
    this.keys = new SeededRandomness(`keys of ${seed}`);
    this.clock = clock ?? new ManualClock(startedAt);
    this.registry = registry ?? buildRegistry(activities);
    this.runner = runnerOn(this.store, this.projecting);
    const { runner } = this;
    const { rows } = this.projecting;
    const known: KnownActivities = {
      checkpoint: () => runner.checkpoint('activities'),
      findByFingerprint: (organization, fingerprint) => findByFingerprint(rows, organization, fingerprint),
      wasDenied: () => false,
      lastDenial: () => -1,
      async read(organization, activityId, position) {
        if (position !== undefined) await runner.passed(position, 2_000);
        return activityOf(rows, organization, activityId);
      },
    };
    const metrics: DriverMetrics = {
      decided: () => undefined,
      spent: () => undefined,
      appended: (_seconds, batch) => this.counts.appends.push(batch),
      appendFailed: () => undefined,
      conflict: () => (this.counts.conflicts += 1),
      folded: () => undefined,
    };
    const children = this.childrenIn(rows);
    this.loader = new OrganizationLoader(this.store, metrics, { children });
    this.runner.watch((event) => this.loader.follow(event));
    if (isProjecting !== false) this.runner.start();
    this.driver = new Driver({
      passkeyOrigins: [],
      store: this.store,
      loader: this.loader,
      registry: this.registry,
      known,
      denials: new DenialLog(this.store, this.clock),
      counters: {
        isStrict: true,
        notGrown: () => undefined,
        highest: (family, { credentialId, publicKey }) =>
          Promise.resolve(highestCounter(rows, family, credentialId, publicKey)),
      },
      clock: this.clock,
      randomness: new SeededRandomness(seed),
      proofs: EphemeralKey.make(new SeededRandomness(`proofs of ${seed}`)),
      // What a test puts in the place of a port stays there.
      prepare: (attempt) => ({ ...prepare, ...prepare.within(attempt), ...given }),
      children,
      shred: (vaultId) => prepare.vault.shred(vaultId),
      metrics,
      ...(patienceMs === undefined ? {} : { patienceMs }),
      ...(reading === undefined ? {} : { reading }),
    });
    this.answers = new ActivityResponses(this.driver, known, this.registry, prepare.tokens, this.clock, metrics);
  }

  /** What sees to sub-organizations. */
  private childrenIn(rows: Rows): Children {
    const index = {
      recorded: (organization: string) => recordedByParent(rows, organization),
      unfounded: () => unfoundedIn(rows),
    };
    return new Children(this.store, index, createLogger('silent'));
  }

  /** Records a fact of the organization as another process would, and forgets what was folded. */
  async record({ type, data }: OrganizationEvent): Promise<void> {
    const stream = organizationStream(organizationId);
    const { revision, metadata } = (await this.events()).at(-1)!;
    const cause = { at: this.clock.now(), schemaVersion: 1, $correlationId: type, $causationId: type };
    const fact = { id: derivedId(type, JSON.stringify(data)), type, data, metadata: cause };
    const { hash: before } = metadata as EventMetadata;
    const hash = chainEvent(before, { stream, revision: revision + 1, ...fact });
    await this.store.append(stream, [{ ...fact, metadata: { ...cause, hash } }], revision);
    this.loader.drop(organizationId);
  }

  /** On a store that has the organization already, it is left as it is. */
  static async start(options: BareOptions = {}): Promise<BareCoordinator> {
    const { prepare: asked = {} } = options;
    const isReal = (ports: object): ports is RealPorts => 'within' in ports;
    const coordinator = new BareCoordinator({
      ...options,
      prepare: isReal(asked) ? asked : await preparePorts(),
      given: isReal(asked) ? {} : asked,
    });
    await foundOrganization(coordinator.store, {
      organizationId,
      organizationName: 'Acme',
      userId: rootUserId,
      userName: 'Root user',
      apiPublicKey: rootKey.publicKey,
      curve: rootKey.curve,
      at: startedAt,
    });
    return coordinator;
  }

  /** A request in the next millisecond that no request had. */
  stamp(signer: Signer, type: string, parameters: object): Stamped {
    this.lastTimestamp = Math.max(this.clock.now(), this.lastTimestamp + 1);
    const body = JSON.stringify({ type, timestampMs: String(this.lastTimestamp), organizationId, parameters });
    const kind = /^ACTIVITY_TYPE_(.+?)(?:_V\d+)?$/.exec(type)![1]!;
    return stampedBy(signer, kind.toLowerCase(), body);
  }

  /** The same bytes with a stamp of anybody. */
  stampAgain({ key }: { readonly key: Signer }, path: string, body: string): Stamped {
    return stampedBy(key, path, body);
  }

  /** Sends a request as it is, as often as one likes. */
  async send(stamped: Stamped): Promise<ActivityResponse> {
    return this.answers.of(await this.execute(stamped));
  }

  /** As `send`, before what was recorded is made an answer. */
  async execute({ path, body, headers, from = [] }: Stamped, meter?: Meter): Promise<SubmitResult> {
    const bytes = Buffer.from(body);
    const stamp = readStamp(headers);
    if (stamp.kind === 'api-key') await verifyApiKeyStamp(stamp, bytes);
    const request = readSubmit({ path, body: bytes, stamp, from }, this.registry, this.clock.now());
    this.counts.driven += 1;
    return this.driver.execute(request, meter);
  }

  async submit(signer: Signer, type: string, parameters: object): Promise<ActivityResponse['activity']> {
    return (await this.send(this.stamp(signer, type, parameters))).activity;
  }

  newKey(): ApiKeyPair {
    return generateApiKeyPair((count) => this.keys.bytes(count));
  }

  /** Creates a user with an API key of its own, as the root user. */
  async createUser(userName: string, userTags: readonly string[] = []): Promise<Member> {
    const key = this.newKey();
    const apiKeys = [{ apiKeyName: 'key', publicKey: key.publicKey, curveType: key.curve }];
    const { result } = await this.submit(this.root.key, 'ACTIVITY_TYPE_CREATE_USERS_V4', {
      users: [{ userName, apiKeys, authenticators: [], oauthProviders: [], userTags }],
    });
    const { userIds } = result['createUsersResult'] as { userIds: [string] };
    return { userId: userIds[0], key };
  }

  /** Creates a policy, an ALLOW unless said, as the root user; its id. */
  async createPolicy(policy: {
    readonly effect?: 'EFFECT_ALLOW' | 'EFFECT_DENY';
    readonly condition?: string;
    readonly consensus?: string;
  }): Promise<string> {
    const parameters = { policyName: `policy ${++this.policies}`, effect: 'EFFECT_ALLOW', notes: '', ...policy };
    const { result } = await this.submit(this.root.key, 'ACTIVITY_TYPE_CREATE_POLICY_V3', parameters);
    return (result['createPolicyResult'] as { policyId: string }).policyId;
  }

  async createUserTag(userTagName: string, userIds: readonly string[] = []): Promise<string> {
    const { result } = await this.submit(this.root.key, 'ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName, userIds });
    return (result['createUserTagResult'] as { userTagId: string }).userTagId;
  }

  async events(stream = organizationStream(organizationId)): Promise<RecordedEvent[]> {
    const events: RecordedEvent[] = [];
    for await (const event of this.store.read(stream)) events.push(event);
    return events;
  }

  /** Resolves when the read models have seen everything recorded. */
  async projected(): Promise<void> {
    await this.runner.passed((await this.store.head()) ?? -1n, 5_000);
    expect(this.runner.failures()).toEqual([]);
  }

  async close(): Promise<void> {
    await this.driver.drain();
    await this.runner.close();
    await this.projecting.close();
  }
}

/** A runner that tells nobody anything. */
export function runnerOn(store: EventStore, projecting: Projecting): ReadModelRunner {
  const nothing = () => undefined;
  return new ReadModelRunner(store, projecting, { projected: nothing, failed: nothing, interrupted: nothing });
}

function stampedBy(signer: Signer, path: string, body: string): Stamped {
  if ('assert' in signer) return { path, body, headers: { 'x-stamp-webauthn': signer.assert(body) } };
  return { path, body, headers: { 'x-stamp': stampBody(body, signer).headerValue } };
}
