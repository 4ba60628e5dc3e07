import { randomBytes, X509Certificate } from 'node:crypto';
import { hostname } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import { Module, type DynamicModule, type Provider } from '@nestjs/common';
import { APP_FILTER, NestFactory } from '@nestjs/core';
import { CqrsModule } from '@nestjs/cqrs';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { activities } from './activities/index.js';
import { AuthProxyModule } from './auth-proxy/auth-proxy.module.js';
import { endpoints } from './auth-proxy/endpoints.js';
import type { Config } from './config.js';
import { messageSender } from './domain/organization/message-senders.js';
import type { OrganizationView } from './domain/organization/organization.js';
import { activityEnvelope } from './wire/envelope.js';
import { contactKey } from './domain/organization/users.js';
import { ActivityAnswers } from './engine/answers.js';
import { AuthProxies } from './engine/auth-proxies.js';
import { CastVoteHandler } from './engine/cast-vote.js';
import { Children, type ChildLookUps } from './engine/children.js';
import { ClaimRecorder } from './engine/claim-recorder.js';
import { DenialLog } from './engine/denials.js';
import { Driver } from './engine/drive.js';
import type { DriverPorts } from './engine/job.js';
import { uuidV7 } from './ids.js';
import { Lease } from './engine/lease.js';
import { OrganizationLoader } from './ledger/load-organization.js';
import { allowedOrigins } from './engine/passkeys.js';
import { LostVaults } from './engine/lost-vaults.js';
import type { Claims } from './ports/claims.js';
import { CLOCK, type Clock } from './ports/clock.js';
import { DRIVER_METRICS } from './ports/driver-metrics.js';
import { EVENT_STORE, REGISTRY, LIMITS, ROWS } from './ports/engine.js';
import type { KnownActivities } from './ports/known-activities.js';
import { OIDC } from './ports/oidc.js';
import { COUNTERS, PASSKEY_ORIGINS, type PasskeyCounters } from './ports/passkeys.js';
import type { ProofSigner } from './ports/proof-signer.js';
import { RANDOMNESS, type Randomness } from './ports/randomness.js';
import { buildRegistry, type Registry } from './decide/registry.js';
import { ReadingThreads } from './engine/reading-threads.js';
import { QueryReaders } from './engine/query-readers.js';
import { ReadSessions } from './engine/read-sessions.js';
import { readWaitMs, RunQueryHandler } from './engine/run-query.js';
import { findSilentPolicies } from './decide/silent-policies.js';
import { Snapshots } from './ledger/snapshots.js';
import { SubmitActivityHandler } from './engine/submit-activity.js';
import { OrganizationLookup } from './engine/organization-lookup.js';
import { organizationPath } from './fairness/fair-queue.js';
import type { EventStore } from './ledger/event-store.js';
import { CONFIG } from './http/config.token.js';
import { AuthProxyKeysController, PROXY_SECRET } from './http/auth-proxy-keys.controller.js';
import { DocsController, PROXY_ENDPOINTS } from './http/docs.controller.js';
import { bodyTooLarge, ErrorsFilter, refuseUnreadablePath } from './http/errors.filter.js';
import { Freshness } from './http/freshness.js';
import { LOGGER, nestLogger } from './http/logger.js';
import { HttpMetrics, Metrics } from './http/metrics.js';
import { ProxyMetricsController } from './http/proxy-metrics.js';
import { OperationsController } from './http/operations.controller.js';
import { ContactLimits } from './delivery/contact-limits.js';
import { deliveryFor, type Delivery } from './delivery/delivery.js';
import { VoteNotices } from './delivery/vote-notices.js';
import { ATTESTATION_ROOT, DiscoveryController } from './http/discovery.controller.js';
import { QueryController } from './http/query.controller.js';
import { RateLimits } from './http/rate-limits.js';
import { InvitationPageController } from './http/invitation-page.controller.js';
import { listeningAddress } from './http/listening-address.js';
import { SubmitController } from './http/submit.controller.js';
import { WellKnownController } from './http/well-known.controller.js';
import { InstallationKeys } from './keyring/installation-keys.js';
import { InvitationLinks } from './keyring/invitation-links.js';
import { openKeyring, type OpenKeyring } from './keyring/open-keyring.js';
import { sendDigest } from './keyring/send-digest.js';
import { OidcIssuer } from './keyring/oidc-issuer.js';
import { WebhookKey } from './keyring/webhook-key.js';
import { guardedFetch, guardedTarget } from './http-client/guarded-fetch.js';
import { Oauth2Client } from './oidc/oauth2-client.js';
import { knownOauth2Providers } from './oidc/oauth2-providers.js';
import { OidcVerifier } from './oidc/verify-token.js';
import { recordBoot } from './proofs/boot.js';
import { BootLog } from './proofs/boot-log.js';
import { EphemeralKey } from './proofs/ephemeral-key.js';
import { openSoftwareAttestor } from './proofs/software-attestor.js';
import { activityAsOf, activityOf, findByFingerprint } from './read-models/activities.js';
import {
  accountOf,
  claimsRevision,
  dueClaims,
  firstClaim,
  highestCounter,
  keysOfCredentialId,
  knowsIssuer,
  whereItLeads,
} from './read-models/claims.js';
import { tokenUsesOf } from './read-models/token-uses.js';
import { isOriginAllowedAnywhere, organizationOfConfig } from './read-models/auth-proxies.js';
import type { Rows } from './read-models/database.js';
import { denialsRevision } from './read-models/denials.js';
import { endedVaults } from './read-models/ended-vaults.js';
import type { Projecting } from './read-models/projecting.js';
import { policiesAfter } from './read-models/policies.js';
import { StateThread } from './replay/state-thread.js';
import { TellingThread } from './read-models/telling-thread.js';
import { ReadModelRunner } from './read-models/runner.js';
import { BodiesInFlight, bytesInFlight } from './rate-limits/bodies-in-flight.js';
import { callerHeader, networkOf, toldCaller } from './rate-limits/caller.js';
import { halfRecorded, recordedByParent } from './read-models/sub-organizations.js';
import { unnamedVaults } from './read-models/unnamed-vaults.js';
import { hasWebhookEndpoints, pendingDeliveries, type WebhookDelivery } from './read-models/webhooks.js';
import { securityHeaders } from './http/security-headers.js';
import { ReadGuard, StampGuard } from './stamps/stamp.guard.js';
import { verifyRegistration } from './stamps/webauthn.js';
import type { KeyEncryption } from './vault/key-encryption.js';
import { Shredder } from './vault/shredding.js';
import { WebhookDeliveries } from './webhooks/deliveries.js';
import { webhookTargets } from './webhooks/targets.js';

/** The adapters that a process chooses; everything else is made from them. */
export interface Adapters {
  readonly store: EventStore;
  /** The read models; closed with the coordinator. */
  readonly projecting: Projecting;
  /** Where folded organizations are kept between runs; none are without it. */
  readonly snapshotFolder?: string;
  readonly clock: Clock;
  readonly randomness: Randomness;
  /** Opens what the vault holds. */
  readonly keyEncryption: KeyEncryption;
  /** The way to people; closed with the coordinator. */
  readonly delivery: Delivery & { close(): Promise<void> };
  readonly logger: Logger;
  /** A test harness that goes on from an imported history: it is folded, and its webhooks are told nothing. */
  readonly takesImported?: boolean;
}

/** Largest request body, in bytes. */
const maxBody = 2 * 1024 * 1024;
/** Largest body that is read to its end only to refuse it, in bytes. */
const mostPassedOver = 32 * 1024 * 1024;
/** Bodies up to this size, in bytes, have room of their own. */
const smallBody = 64 * 1024;
/** Longest time that a start waits for the read models, in milliseconds. */
const startupWaitMs = 1_000;
/** Longest time between two looks whether a wait for the read models has become pointless, in milliseconds. */
const passedLookMs = 250;
/** Between two looks at connections whose time is up, in milliseconds. */
const checkTimesMs = 1_000;

type CorsOptions = NonNullable<Parameters<FastifyAdapter['enableCors']>[0]>;

/** What is for operators, and for no page of another origin. The auth proxy asks each configuration (`ownCors`). */
const operatorPaths = /^\/+(?:metrics|health|docs|openapi\.json|internal)(?:[/?#]|$)/i;

const SNAPSHOTS = Symbol('Snapshots');

@Module({})
class AppModule {}

function coordinatorModule(
  config: Config,
  { store, projecting, snapshotFolder, clock, randomness, delivery, logger, takesImported = false }: Adapters,
  { vault, keys, oauthSecrets, proxyKeys, tokens, within }: OpenKeyring,
  { root: attestationRoot, proofs }: { readonly root: Uint8Array; readonly proofs: ProofSigner },
  address: () => string,
  ownAddress: () => string,
  proxySecret: string | undefined,
): DynamicModule {
  const isProxyToo = config.app === 'all';
  const proxy =
    isProxyToo && proxySecret !== undefined
      ? [
          AuthProxyModule.register({
            apiUrl: () => config.apiUrl ?? ownAddress(),
            secret: proxySecret,
            limits: { ...config.proxyLimits, keys: config.rateLimitKeys },
            clock,
            isAlone: false,
          }),
        ]
      : [];
  const shredder = new Shredder(vault, {
    failed: (vaultId, err) => logger.error({ err, vaultId }, 'an ended vault could not be shredded yet'),
    caughtUp: (vaultId) => logger.warn({ vaultId }, 'an ended vault was left behind, and is shredded now'),
    stopped: (err) => logger.error({ err }, 'not all ended vaults were looked at; the next start does so again'),
  });
  const { allowPrivateNetwork, oidcIssuers: issuers, socialLinkingIssuers: emailIssuers } = config;
  const fetch = guardedFetch({ allowPrivateNetwork });
  const issuer = new OidcIssuer({ keys, randomness, address });
  const oidc = new OidcVerifier({ clock, fetch, issuers, emailIssuers, own: issuer });
  const oauth2Providers = { ...knownOauth2Providers, ...config.oauth2Providers };
  const oauth2 = new Oauth2Client({ fetch, clock, providers: oauth2Providers, secrets: oauthSecrets, issuer });
  const targets = webhookTargets(guardedTarget({ allowPrivateNetwork }));
  const page = () => config.invitationUrl ?? `${address()}/invitations/accept`;
  const invitations = new InvitationLinks({ randomness, page });
  const newId = () => uuidV7(clock, randomness);
  const contactLimits = new ContactLimits({ store, clock, newId, digest: sendDigest(keys) });
  const noticeFailed = (activityId: string, err: unknown) =>
    logger.warn({ activityId, err }, 'approvers could not be told of an activity that waits for them');
  const notices = new VoteNotices(delivery, contactLimits, noticeFailed);
  const providers: Provider[] = [
    { provide: CONFIG, useValue: config },
    { provide: LOGGER, useValue: logger },
    { provide: EVENT_STORE, useValue: store },
    { provide: CLOCK, useValue: clock },
    { provide: RANDOMNESS, useValue: randomness },
    { provide: PASSKEY_ORIGINS, useValue: config.passkeyOrigins },
    { provide: LIMITS, useValue: config.limits },
    { provide: REGISTRY, useFactory: () => buildRegistry(activities) },
    { provide: ROWS, useValue: projecting.rows },
    { provide: OIDC, useValue: oidc },
    { provide: InstallationKeys, useValue: keys },
    { provide: Shredder, useValue: shredder },
    { provide: OidcIssuer, useValue: issuer },
    { provide: WebhookKey, useValue: new WebhookKey(keys) },
    { provide: VoteNotices, useValue: notices },
    { provide: ATTESTATION_ROOT, useValue: { pem: new X509Certificate(attestationRoot).toString() } },
    Metrics,
    { provide: DRIVER_METRICS, useExisting: Metrics },
    { provide: ReadingThreads, useFactory: () => new ReadingThreads() },
    { provide: TellingThread, useFactory: () => new TellingThread(store, projecting.rows) },
    { provide: StateThread, useFactory: () => new StateThread(store) },
    {
      provide: ReadModelRunner,
      inject: [Metrics],
      useFactory: (metrics: Metrics) =>
        new ReadModelRunner(
          store,
          projecting,
          metrics.observing({
            failed: (model, position, reason) =>
              logger.error({ model, position: String(position), reason }, 'read model stopped'),
            interrupted: (error) => logger.warn({ err: error }, 'event feed interrupted, resuming'),
          }),
        ),
    },
    {
      provide: SNAPSHOTS,
      inject: [ReadModelRunner],
      useFactory: (runner: ReadModelRunner) =>
        snapshotFolder === undefined
          ? undefined
          : new Snapshots({
              folder: snapshotFolder,
              checkpoint: () => runner.checkpoint('activities'),
              ignored: (file, reason) => logger.warn({ file, reason }, 'snapshot ignored'),
              failed: (organizationId, err) => logger.warn({ organizationId, err }, 'snapshot not written'),
            }),
    },
    {
      provide: Children,
      inject: [ReadModelRunner, ROWS],
      useFactory: (runner: ReadModelRunner, rows: Rows) =>
        new Children(store, childLookUps(store, runner, rows), {
          failed: (organizationId, err) =>
            logger.error({ organizationId, err }, 'a sub-organization could not be founded yet'),
          finished: (organizationId) =>
            logger.warn({ organizationId }, 'a sub-organization was left behind unfounded, and is founded now'),
          ignored: (organizationIds) =>
            logger.warn(
              { count: organizationIds.length, organizationIds: organizationIds.slice(0, 20) },
              'no parent has recorded these sub-organizations, whose creation was refused or broke off: they do not exist',
            ),
        }),
    },
    {
      provide: OrganizationLoader,
      inject: [Metrics, SNAPSHOTS, Children],
      useFactory: (metrics: Metrics, snapshots: Snapshots | undefined, children: Children) =>
        new OrganizationLoader(store, metrics, { children, takesImported, ...(snapshots ? { snapshots } : {}) }),
    },
    {
      provide: COUNTERS,
      inject: [ReadModelRunner, ROWS, Freshness],
      useFactory: (runner: ReadModelRunner, rows: Rows, freshness: Freshness): PasskeyCounters => ({
        async highest(familyId, { credentialId, publicKey }) {
          await runner.passed(freshness.latest, readWaitMs);
          return highestCounter(rows, familyId, credentialId, publicKey);
        },
      }),
    },
    {
      provide: Driver,
      inject: [OrganizationLoader, Children, REGISTRY, ReadModelRunner, ROWS, Metrics, COUNTERS, ReadingThreads],
      useFactory: (
        loader: OrganizationLoader,
        children: Children,
        registry: Registry,
        runner: ReadModelRunner,
        rows: Rows,
        metrics: Metrics,
        counters: PasskeyCounters,
        reading: ReadingThreads,
      ) =>
        new Driver({
          store,
          loader,
          registry,
          known: knownActivities(runner, rows),
          counters,
          denials: new DenialLog(store, clock, (organizationId) => denialsRevision(rows, organizationId)),
          clock,
          randomness,
          proofs,
          passkeyOrigins: config.passkeyOrigins,
          limits: config.limits,
          prepare: (attempt) => ({
            ...within(attempt),
            verifyRegistration,
            passkeyOrigins: (organization) => allowedOrigins(organization, { loader, ...config }),
            invitations,
            tokens,
            oidc,
            oauth2,
            webhookTargets: targets,
            delivery: deliveryFor(delivery, attempt.path),
            contactLimits,
            organizations: {
              authProxySettings: async (id) => (await loader.load(id)).organization.authProxy?.settings,
              view: async (id) => (await loader.load(id)).organization,
              async tokenUses(tokenId) {
                // Everything that anybody can have read by now, whichever coordinator has recorded it.
                await runner.passed((await store.head()) ?? -1n, readWaitMs);
                return tokenUsesOf(rows, tokenId);
              },
              async homeOfContact(parentId, kind, contact) {
                await runner.passed((await store.head()) ?? -1n, readWaitMs);
                return accountOf(rows, parentId, { kind, value: contactKey(contact) }, clock.now());
              },
            },
          }),
          children,
          shred: (vaultId) => shredder.shred(vaultId),
          ...(config.voteNotices && !config.restored
            ? { votesWanted: votesWantedByMail(notices, loader, noticeFailed) }
            : {}),
          reading,
          metrics,
        }),
    },
    {
      provide: LostVaults,
      inject: [Driver, ROWS],
      useFactory: (driver: Driver, rows: Rows) =>
        new LostVaults({
          store,
          clock,
          unnamed: (after, until) => unnamedVaults(rows, after, until),
          isLive: (vaultId) => driver.isLive(vaultId),
          vault,
          reports: {
            swept: (vaultId, organizationId) =>
              logger.warn(
                { vaultId, organizationId },
                'a vault that no decision names was left behind, and is shredded',
              ),
            failed: (vaultId, err) =>
              logger.error({ err, vaultId }, 'a vault that no decision names could not be looked at'),
            stopped: (err) => logger.error({ err }, 'not all vaults were looked at; the next sweep does so again'),
          },
        }),
    },
    {
      provide: ActivityAnswers,
      inject: [Driver, ReadModelRunner, ROWS, REGISTRY, Metrics],
      useFactory: (driver: Driver, runner: ReadModelRunner, rows: Rows, registry: Registry, metrics: Metrics) =>
        new ActivityAnswers(driver, knownActivities(runner, rows), registry, { tokens, clock, metrics }),
    },
    {
      provide: OrganizationLookup,
      inject: [OrganizationLoader, ReadModelRunner, ROWS],
      useFactory: (loader: OrganizationLoader, runner: ReadModelRunner, rows: Rows) =>
        new OrganizationLookup({ loader, claims: claimsFrom(runner, rows, clock), tokens, oidc, clock }),
    },
    {
      provide: QueryReaders,
      inject: [OrganizationLoader, OrganizationLookup, COUNTERS],
      useFactory: (loader: OrganizationLoader, lookup: OrganizationLookup, counters: PasskeyCounters) =>
        new QueryReaders({
          loader,
          lookup,
          sessions: new ReadSessions({ loader, tokens, clock }),
          clock,
          counters,
          passkeyOrigins: config.passkeyOrigins,
        }),
    },
    {
      provide: AuthProxies,
      inject: [OrganizationLoader, REGISTRY, ReadModelRunner, ROWS],
      useFactory: (loader: OrganizationLoader, registry: Registry, runner: ReadModelRunner, rows: Rows) =>
        new AuthProxies({
          loader,
          registry,
          passed: (position) => runner.passed(position, readWaitMs),
          organizationOfConfig: (configId) => organizationOfConfig(rows, configId),
          isOriginAllowedAnywhere: (origin) => isOriginAllowedAnywhere(rows, origin),
          accountOf: (parentId, identifier) => accountOf(rows, parentId, identifier, clock.now()),
          keysOfCredentialId: (parentId, credentialId) => keysOfCredentialId(rows, parentId, credentialId),
          verifyOidc: (token) => oidc.verify(token, 'registration'),
          stamp: (place, body) => proxyKeys.stamp(place, body),
        }),
    },
    { provide: PROXY_ENDPOINTS, useValue: isProxyToo ? endpoints : [] },
    { provide: PROXY_SECRET, useValue: { value: proxySecret } },
    { provide: APP_FILTER, useClass: ErrorsFilter },
    SubmitActivityHandler,
    CastVoteHandler,
    RunQueryHandler,
    Freshness,
    RateLimits,
    StampGuard,
    ReadGuard,
  ];
  return {
    module: AppModule,
    imports: [CqrsModule.forRoot(), ...proxy],
    controllers: [
      AuthProxyKeysController,
      SubmitController,
      QueryController,
      DiscoveryController,
      WellKnownController,
      OperationsController,
      DocsController,
      InvitationPageController,
    ],
    providers,
  };
}

/** Mails whoever may approve and has an address. */
function votesWantedByMail(
  notices: VoteNotices,
  loader: OrganizationLoader,
  failed: (activityId: string, error: unknown) => void,
): NonNullable<DriverPorts['votesWanted']> {
  return ({ activityId, type, votes }, organization, users, wouldSign) => {
    const { organizationId } = organization;
    const path = organizationPath(organizationId, organization.parentOrganizationId);
    const addresses = users.flatMap(({ userEmail, emailReleased }) => (emailReleased ? [] : (userEmail ?? [])));
    const submitterId = votes[0]?.userId ?? '';
    const send = (parent: OrganizationView | undefined): void => {
      const approvers = addresses.map((contact) => {
        const sender = messageSender({ organization, parent, submitterId }, 'email', contact);
        return { contact, sender, organizationId };
      });
      // Names in a sub-organization may be anybody's words: the notice is the parent's.
      const words =
        organization.parentOrganizationId === undefined
          ? { organizationName: organization.name, submitterName: votes[0]?.voter?.userName ?? 'a user' }
          : { organizationName: parent?.name ?? 'your account' };
      notices.send({ ...words, activityType: type, activityId, wouldSign, approvers }, path);
    };
    loader.parentOf(organization).then(
      (parent) => send(parent?.organization),
      (error: unknown) => failed(activityId, error),
    );
  };
}

function knownActivities(runner: ReadModelRunner, rows: Rows): KnownActivities {
  return {
    checkpoint: () => runner.checkpoint('activities'),
    findByFingerprint: (organizationId, fingerprint) => findByFingerprint(rows, organizationId, fingerprint),
    async read(organizationId, activityId, position) {
      await runner.passed(position, readWaitMs);
      return activityOf(rows, organizationId, activityId);
    },
  };
}

function childLookUps(store: EventStore, runner: ReadModelRunner, rows: Rows): ChildLookUps {
  return {
    recorded: (organizationId) => recordedByParent(rows, organizationId),
    async recordedByNow(organizationId) {
      await runner.passed((await store.head()) ?? -1n, readWaitMs);
      return recordedByParent(rows, organizationId);
    },
    unfounded: () => halfRecorded(rows, 'unfounded'),
    unconfirmed: () => halfRecorded(rows, 'unconfirmed'),
  };
}

function claimsFrom(runner: ReadModelRunner, rows: Rows, clock: Clock): Claims {
  return {
    async whereItLeads(parentId, identifier, position) {
      await runner.passed(position, readWaitMs);
      return whereItLeads(rows, parentId, identifier, clock.now());
    },
    async keysOfCredentialId(parentId, credentialId, position) {
      await runner.passed(position, readWaitMs);
      return keysOfCredentialId(rows, parentId, credentialId);
    },
    async knowsIssuer(parentId, issuer, position) {
      await runner.passed(position, readWaitMs);
      return knowsIssuer(rows, parentId, issuer);
    },
  };
}

/** A server that has been put together and can listen. */
export interface Server {
  readonly app: NestFastifyApplication;
  /** Finishes what was accepted, then lets go of everything. */
  close(): Promise<void>;
}

function newAdapter({ trustProxy, requestTimeoutMs, headersTimeoutMs }: Config): FastifyAdapter {
  return new FastifyAdapter({
    bodyLimit: maxBody,
    trustProxy,
    forceCloseConnections: 'idle',
    frameworkErrors: refuseUnreadablePath,
    requestTimeout: requestTimeoutMs,
    // Node counts the larger of the two times, and looks every half minute, unless both and the interval are said.
    http: {
      headersTimeout: headersTimeoutMs,
      requestTimeout: requestTimeoutMs,
      connectionsCheckingInterval: checkTimesMs,
    },
  });
}

function prepareServer(adapter: FastifyAdapter, proxySecret: string | undefined): void {
  const fastify = adapter.getInstance();
  // The stamp is over the exact bytes, so they are kept and nothing parses them before it is verified.
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  const headers = securityHeaders();
  fastify.addHook('onRequest', (request, reply, done) => {
    void reply.headers(headers);
    const { headers: sent, url: path } = request;
    const stamp = typeof sent['x-stamp'] === 'string' ? sent['x-stamp'] : '';
    const told = toldCaller(proxySecret, sent[callerHeader], { path, stamp });
    request.caller = { network: networkOf(told ?? request.ip), isThroughProxy: told !== undefined };
    done();
  });
  limitBodies(fastify);
}

function measure(adapter: FastifyAdapter, metrics: HttpMetrics): void {
  adapter.getInstance().addHook('onResponse', (request, reply, done) => {
    metrics.answered(request.routeOptions.url ?? 'unknown', reply.statusCode, reply.elapsedTime / 1000);
    done();
  });
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set while its body is counted. */
    bodyInFlight?: { isWorkedOn: boolean; isClosed: boolean; readonly letGo: () => void };
  }
}

/** A body is counted before it is received, until it was answered and nobody works on it any more. */
function limitBodies(fastify: FastifyInstance): void {
  const most = bytesInFlight(getHeapStatistics().heap_size_limit);
  const bodies = new BodiesInFlight({ most, small: smallBody });
  fastify.decorateRequest('bodyInFlight');
  fastify.addHook('onRequest', (request, reply, done) => {
    const length = request.headers['content-length'];
    const isChunked = request.headers['transfer-encoding'] !== undefined;
    const bytes = isChunked ? maxBody : Math.min(Number(length ?? 0) || 0, maxBody);
    if (bytes === 0) return done();
    if (!isChunked && Number(length) > maxBody && Number(length) <= mostPassedOver) {
      // Whoever still writes when the connection is closed never reads why.
      request.raw.once('end', () => done(bodyTooLarge())).resume();
      return;
    }
    let letGo: () => void;
    try {
      letGo = bodies.take(request.caller.network, bytes);
    } catch (error) {
      return done(error as Error);
    }
    const one = { isWorkedOn: false, isClosed: false, letGo };
    request.bodyInFlight = one;
    reply.raw.once('close', () => {
      one.isClosed = true;
      // Whoever hangs up does not end what was begun.
      if (!one.isWorkedOn) letGo();
    });
    done();
  });
  fastify.addHook('preHandler', (request, _reply, done) => {
    if (request.bodyInFlight) request.bodyInFlight.isWorkedOn = true;
    done();
  });
  fastify.addHook('onSend', (request, _reply, payload, done) => {
    const one = request.bodyInFlight;
    if (one) one.isWorkedOn = false;
    if (one?.isClosed) one.letGo();
    done(null, payload);
  });
}

async function closeServer(app: NestFastifyApplication): Promise<void> {
  const { server } = app.getHttpAdapter().getInstance();
  // A connection whose last request ends while we close would be kept for the next one, and the process with it.
  const idle = setInterval(() => server.closeIdleConnections(), 50);
  await app.close();
  clearInterval(idle);
}

@Module({})
class ProxyModule {}

/** The auth proxy as a server of its own, which needs nothing but the address of the API and the secret. */
export async function createAuthProxy(
  config: Config,
  { secret, logger }: { readonly secret: string; readonly logger: Logger },
): Promise<Server> {
  const { apiUrl = '' } = config;
  const limits = { ...config.proxyLimits, keys: config.rateLimitKeys };
  const refused = (message: string) => logger.error(message);
  const proxy = AuthProxyModule.register({ apiUrl: () => apiUrl, secret, limits, clock: Date, isAlone: true, refused });
  const providers = [
    { provide: LOGGER, useValue: logger },
    { provide: APP_FILTER, useClass: ErrorsFilter },
    HttpMetrics,
  ];
  const adapter = newAdapter(config);
  const app = await NestFactory.create<NestFastifyApplication>(
    { module: ProxyModule, imports: [proxy], controllers: [ProxyMetricsController], providers },
    adapter,
    { logger: nestLogger(logger), bodyParser: false, abortOnError: false },
  );
  prepareServer(adapter, undefined);
  measure(adapter, app.get(HttpMetrics));
  await app.init();
  return { app, close: () => closeServer(app) };
}

/** Resolves when the read models have come so far, however long that takes, or nobody waits any more. */
async function whenPassed(runner: ReadModelRunner, position: bigint, signal: AbortSignal): Promise<void> {
  const isPassed = () =>
    runner.passed(position, passedLookMs).then(
      () => true,
      () => false,
    );
  while (!signal.aborted && !(await isPassed()));
}

/** How long others wait for whoever delivers webhooks, in milliseconds (docs/adr/0017). */
const deliveryLeaseMs = 15_000;

/**
 * Deliveries of webhooks, by one of all coordinators on the store. As long as nobody has an endpoint, nobody stands for it.
 * Resolves when they have ended.
 */
function deliverWebhooks(
  { allowPrivateNetwork }: Config,
  { store, projecting: { rows }, clock, logger }: Adapters,
  app: NestFastifyApplication,
): () => Promise<void> {
  const [metrics, runner, loader] = [app.get(Metrics), app.get(ReadModelRunner), app.get(OrganizationLoader)];
  const { versions } = app.get<Registry>(REGISTRY);
  const models = ['activities', 'users', 'webhooks'];
  const deliveries = new WebhookDeliveries({
    rows,
    store,
    clock,
    fetch: guardedFetch({ allowPrivateNetwork }),
    signer: app.get(WebhookKey),
    async endpoint(organizationId, endpointId) {
      const { organization } = await loader.load(organizationId);
      return organization.isDeleted ? undefined : organization.webhookEndpoints.get(endpointId);
    },
    async body({ sourceOrganizationId, activityId, activityType, revision, activityStatus }: WebhookDelivery) {
      const record = activityAsOf(rows, sourceOrganizationId, activityId, revision);
      // Nobody asks: it is said whether there is anything to vote on at all.
      const waits = activityStatus === 'ACTIVITY_STATUS_CONSENSUS_NEEDED';
      const { organization } = await loader.load(sourceOrganizationId);
      const decoded = waits ? await app.get(Driver).rights.decoded(organization, record) : undefined;
      const rights = { canApprove: waits, canReject: waits, ...(decoded ? { decoded } : {}) };
      // As of the event, so that every attempt says the same.
      return activityEnvelope(record, { keys: versions.get(activityType)!.keys, rights, now: record.updatedAt });
    },
    async passed(position, signal) {
      while (!signal.aborted && runner.checkpoint('webhooks') < position) {
        const failed = runner.failures().filter((model) => models.includes(model));
        if (failed.length > 0)
          throw new Error(`read models have stopped (${failed.join(', ')}): webhooks wait for them`);
        await runner.passed(position, passedLookMs).catch(() => undefined);
      }
    },
    observer: {
      settled(outcome, { endpointId, eventId, activityId }, reason) {
        metrics.deliveryEnded(outcome);
        if (outcome === 'abandoned') {
          logger.warn({ endpointId, eventId, activityId, reason }, 'a webhook was not delivered, and is given up');
        }
      },
      interrupted: (err) => logger.warn({ err }, 'a delivery of a webhook was interrupted; it is taken up again'),
    },
  });
  const lease = new Lease({
    store,
    clock,
    name: 'webhook-deliveries',
    holder: `${hostname()}:${process.pid}`,
    ttlMs: deliveryLeaseMs,
    work: (term) => deliveries.work(term),
    observer: {
      held: (name, token) => logger.debug({ name, token }, 'lease taken'),
      ended: (name, token, why) => logger.debug({ name, token, why }, 'lease ended'),
      interrupted: (name, err) => logger.warn({ name, err }, 'lease interrupted'),
    },
  });
  metrics.measureWaitingDeliveries(() => pendingDeliveries(rows));
  let isStarted = false;
  const look = (): void => {
    if (!isStarted && hasWebhookEndpoints(rows)) {
      isStarted = true;
      lease.start();
    }
    deliveries.wake();
  };
  runner.follow(look);
  look();
  return () => lease.close();
}

/** The order of proofs follows the read models. */
function recordClaims(
  { store, clock, logger, projecting: { rows } }: Adapters,
  runner: ReadModelRunner,
): ClaimRecorder {
  const recorder = new ClaimRecorder({
    known: {
      due: (most) => dueClaims(rows, most),
      first: (parentId, identifier) => firstClaim(rows, parentId, identifier),
      revision: (parentId) => claimsRevision(rows, parentId),
    },
    store,
    clock,
    passed: (position) => runner.passed(position, readWaitMs),
    failed: (err) => logger.warn({ err }, 'the order of claims was not recorded; the next event brings it up again'),
  });
  runner.follow(() => recorder.look());
  recorder.look();
  return recorder;
}

/** A coordinator that has been put together and can listen. */
export interface Coordinator extends Server {
  /** Finishes what was accepted, then lets go of everything; the store is closed too. */
  close(): Promise<void>;
}

/** Puts the parts together. The read models follow the store from here on. */
export async function createCoordinator(config: Config, adapters: Adapters): Promise<Coordinator> {
  const adapter = newAdapter(config);
  const fastify = adapter.getInstance();
  const { clock, randomness } = adapters;
  const { sandboxUntil } = config;
  if (config.allowPrivateNetwork) {
    adapters.logger.warn(
      'ALLOW_PRIVATE_NETWORK is true: OIDC issuers, OAuth 2.0 providers and webhooks may be plain http and on loopback or ' +
        'private addresses; for development only, never where strangers send requests',
    );
  }
  if (config.restored) {
    adapters.logger.warn(
      'RESTORED is true: this is a copy to look at. It sends no mail, no text message, no webhook and no notice of a vote, and ' +
        'refuses requests that need one; start without RESTORED to work with it',
    );
  }
  if (sandboxUntil !== undefined && clock.now() < sandboxUntil) {
    const until = new Date(sandboxUntil).toISOString();
    adapters.logger.warn(
      { until },
      'SANDBOX is on: anybody can log in as user@example.com and +19999999999 with 000000',
    );
  }
  const newId = () => uuidV7(clock, randomness);
  // Nothing is folded before there is an app.
  const later: { loader?: OrganizationLoader } = {};
  const familyOf = (organizationId: string) => later.loader?.familyOf(organizationId) ?? organizationId;
  const opened = await openKeyring({ ...adapters, sandboxUntil, newId, familyOf });
  const log = new BootLog({ ...adapters, newId });
  const attestor = await openSoftwareAttestor({ keys: opened.keys, log, clock });
  const proofs = EphemeralKey.make(randomness);
  await recordBoot(config, proofs, { attestor, log });
  const address = () => config.publicUrl ?? listeningAddress(fastify.server);
  const proxySecret = config.proxySecret ?? (config.app === 'all' ? randomBytes(32).toString('base64url') : undefined);
  const app = await NestFactory.create<NestFastifyApplication>(
    coordinatorModule(
      config,
      adapters,
      opened,
      { root: attestor.root, proofs },
      address,
      () => listeningAddress(fastify.server),
      proxySecret,
    ),
    adapter,
    {
      logger: nestLogger(adapters.logger),
      bodyParser: false,
      abortOnError: false,
    },
  );
  const loader = app.get(OrganizationLoader);
  later.loader = loader;

  prepareServer(adapter, proxySecret);
  const shared = {
    origin: '*',
    methods: ['GET', 'POST'],
    allowedHeaders: [
      'Content-Type',
      'Accept',
      'X-Stamp',
      'X-Stamp-WebAuthn',
      'X-Stamp-Attested',
      'X-Client-Version',
      'X-Session',
      'X-Min-Position',
      'X-Auth-Proxy-Config-ID',
      'X-Captcha-Token',
    ],
    exposedHeaders: ['X-Position', 'ratelimit-limit', 'ratelimit-remaining', 'retry-after'],
    maxAge: 7_200,
  };
  // What is for operators is for no page of another origin: a browser inside their network would read it out.
  const delegator = ({ url }: FastifyRequest, done: (error: null, options: CorsOptions) => void): void =>
    done(null, operatorPaths.test(url) ? { origin: false } : shared);
  adapter.enableCors({ delegator });
  const metrics = app.get(Metrics);
  measure(adapter, metrics);
  await app.init();
  const runner = app.get(ReadModelRunner);
  runner.watch((event) => loader.follow(event));
  runner.start();
  // Answers from before a restart were given on everything that is recorded; readers must not fall behind them.
  const head = (await adapters.store.head()) ?? -1n;
  app.get(Freshness).begin(head);
  // Usually a moment; a long rebuild goes on while the server is up, and `health/ready` says so.
  await runner.passed(head, startupWaitMs).catch(() => undefined);
  const isCopy = config.restored || adapters.takesImported === true;
  const stopDelivering = isCopy ? () => Promise.resolve() : deliverWebhooks(config, adapters, app);
  const recorder = recordClaims(adapters, runner);
  const shredder = app.get(Shredder);
  const { rows } = adapters.projecting;
  shredder.sweep(
    (signal) => whenPassed(runner, head, signal),
    () => endedVaults(rows),
  );
  const lostVaults = app.get(LostVaults);
  lostVaults.start((signal) => whenPassed(runner, head, signal));
  const stopping = new AbortController();
  const sweeping = whenPassed(runner, head, stopping.signal)
    .then(() => app.get(Children).sweep(stopping.signal))
    .catch((err: unknown) => {
      if (!stopping.signal.aborted) adapters.logger.error({ err }, 'not all sub-organizations were looked at');
    });
  const looking = whenPassed(runner, head, stopping.signal)
    .then(() =>
      findSilentPolicies(
        (after, limit) => policiesAfter(rows, after, limit),
        app.get<Registry>(REGISTRY).policyEnvironment,
        (where, mistake) => adapters.logger.warn({ ...where, mistake }, 'a policy compares with what nothing can be'),
        stopping.signal,
      ),
    )
    .catch((err: unknown) => {
      if (!stopping.signal.aborted) adapters.logger.error({ err }, 'not all policies were looked at');
    });

  return {
    app,
    async close() {
      await closeServer(app);
      await stopDelivering();
      await app.get(Driver).drain();
      await app.get(ReadingThreads).close();
      await app.get(TellingThread).close();
      await app.get(StateThread).close();
      await recorder.close();
      proofs.close();
      await shredder.close();
      await lostVaults.close();
      stopping.abort();
      await Promise.all([sweeping, looking]);
      await app.get(VoteNotices).close();
      await adapters.delivery.close();
      await runner.close();
      await app.get<Snapshots | undefined>(SNAPSHOTS)?.settled();
      await adapters.projecting.close();
      await adapters.store.close();
    },
  };
}
