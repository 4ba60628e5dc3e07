import { Inject } from '@nestjs/common';
import { Query, QueryHandler, type IQueryHandler } from '@nestjs/cqrs';
import type { OidcPort } from '../ports/oidc.js';
import { organizationPath } from '../fairness/fair-queue.js';
import { largeBody, thisThread } from '../fairness/turns.js';
import { activityEnvelope } from '../domain/activity/envelope.js';
import { CoordinatorError } from '../domain/errors.js';
import { checkAuthProxyQuery } from '../domain/organization/auth-proxy.js';
import { limitsInForce, limitsSetFor, type LimitsOfOperator } from '../domain/organization/limits.js';
import { organizationStream, type OrganizationView } from '../domain/organization/organization.js';
import type { EventStore } from '../ledger/event-store.js';
import type { Rows } from '../read-models/database.js';
import type { AnyQuery, QueryContext } from '../read-models/define-query.js';
import { answerText, pageWriter } from '../read-models/pages.js';
import { answerRoom, smallAnswer } from './answer-room.js';
import { StateThread } from '../replay/state-thread.js';
import { ReadModelRunner } from '../read-models/runner.js';
import { TellingThread } from '../read-models/telling-thread.js';
import type { SessionHeader } from '../stamps/session-header.js';
import type { Stamp } from '../stamps/verify.js';
import { Meter } from '../domain/steps.js';
import { canonicalUuid } from '../wire/fields.js';
import { parseStrictJson } from '../wire/strict-json.js';
import { decisionTime } from '../decide/decision-time.js';
import { Driver } from './drive.js';
import type { Unread, VotingRights } from './voting-rights.js';
import { OrganizationLoader } from '../ledger/load-organization.js';
import { verifyPasskey } from './passkeys.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import { DRIVER_METRICS, type DriverMetrics } from '../ports/driver-metrics.js';
import { EVENT_STORE, LIMITS, REGISTRY, ROWS } from '../ports/engine.js';
import { OIDC } from '../ports/oidc.js';
import { COUNTERS, PASSKEY_ORIGINS, type PasskeyCounters } from '../ports/passkeys.js';
import type { Registry } from '../decide/registry.js';
import { ReadSessions, type Reader } from './read-sessions.js';
import { checkMayRead } from '../decide/caller.js';
import { attestedElsewhere } from '../decide/refusals.js';
import { resolveCaller, type Caller } from '../decide/resolve-caller.js';
import { validate } from '../wire/validate.js';
import { OrganizationLookup } from './organization-lookup.js';

/** Longest wait of a query for the read models, in milliseconds. */
export const readWaitMs = 2_000;

/** The JSON of an answer. */
export interface WrittenAnswer {
  readonly text: string;
  /** To be called when it has been read, or never will be. */
  readonly gone: () => void;
}

/** A question as it came in, and who asks. A stamp's signature over `body` has been verified, but for a passkey's. */
interface QueryRequest {
  readonly body: Uint8Array;
  readonly by: Stamp | SessionHeader;
}

/** A request to a query path, to be answered from a state that has seen `minPosition`. */
export class RunQuery extends Query<WrittenAnswer> {
  constructor(
    readonly definition: AnyQuery,
    readonly request: QueryRequest,
    readonly minPosition: bigint,
  ) {
    super();
  }
}

@QueryHandler(RunQuery)
export class RunQueryHandler implements IQueryHandler<RunQuery> {
  constructor(
    @Inject(REGISTRY) private readonly registry: Registry,
    @Inject(CLOCK) readonly clock: Clock,
    @Inject(ROWS) private readonly rows: Rows,
    @Inject(EVENT_STORE) private readonly store: EventStore,
    private readonly runner: ReadModelRunner,
    private readonly loader: OrganizationLoader,
    private readonly lookup: OrganizationLookup,
    private readonly sessions: ReadSessions,
    private readonly driver: Driver,
    @Inject(DRIVER_METRICS) private readonly metrics: Pick<DriverMetrics, 'spent'>,
    private readonly telling: TellingThread,
    private readonly stateThread: StateThread,
    @Inject(OIDC) private readonly oidc: OidcPort,
    @Inject(COUNTERS) readonly counters: PasskeyCounters,
    @Inject(PASSKEY_ORIGINS) readonly passkeyOrigins: readonly string[],
    @Inject(LIMITS) private readonly limits: LimitsOfOperator,
  ) {}

  async execute({ definition, request, minPosition }: RunQuery): Promise<WrittenAnswer> {
    const { body } = request;
    const asked = validate(definition.request, parseStrictJson(body).value);
    const { organization, caller } = await this.reader(
      definition,
      request,
      canonicalUuid(asked.organizationId),
      minPosition,
    );
    const { organizationId } = organization;
    const question = { ...asked, organizationId };
    if (definition.readsHistory) await this.checkReadsHistory(definition.path, request.by, organization, caller);
    await this.runner.passed(minPosition, readWaitMs);
    const failed = this.runner.failures();
    if (failed.length > 0) {
      throw new CoordinatorError(
        'UNAVAILABLE',
        `read models have stopped (${failed.join(', ')}): the log of the server says why`,
      );
    }
    const { organizationId: payer } = caller;
    const isOwn = payer === organizationId;
    const turn = organizationPath(payer, isOwn ? organization.parentOrganizationId : undefined);
    const ownTurn = thisThread.next(turn);
    if (ownTurn) await ownTurn;
    const now = this.clock.now();
    let gone: (() => void) | undefined;
    // For the whole request, also when it is answered again once more was read.
    const meter = new Meter();
    const answer = (unread: Unread) => {
      let rights: ReturnType<VotingRights['onPage']> | undefined;
      const enter = async () => void (gone = await answerRoom.enter(turn));
      const page = pageWriter({
        room: (bytes) => (bytes > smallAnswer && !gone ? enter() : undefined),
        turn: (bytes) => thisThread.next(turn, { alone: bytes > largeBody }),
      });
      const context: QueryContext = {
        rows: this.rows,
        page,
        now,
        callerOrganizationId: caller.organizationId,
        callerUserId: caller.user.userId,
        verifyOidc: (token) => this.oidc.verify(token, 'registration'),
        limits: async () => {
          const parent = (await this.loader.parentOf(organization))?.organization;
          const set = limitsSetFor(organization, parent, this.limits);
          return limitsInForce(organization.parentOrganizationId !== undefined, set?.organization);
        },
        told: async (organizationId, from, limit) => {
          const family = organization.parentOrganizationId ?? organizationId;
          const told = await this.telling.told(family, { organizationId, from, limit, now });
          const bytes = told.texts.reduce((sum, text) => sum + text.length, 0);
          if (bytes > smallAnswer) gone ??= await answerRoom.enter(turn);
          return told;
        },
        states: async (organizationId, question) => {
          const family = organization.parentOrganizationId ?? organizationId;
          const asked = { organizationId, question, now };
          const answered = await this.stateThread.answer(family, asked, () => thisThread.next(turn));
          const bytes = answered.elements.texts.reduce((sum, text) => sum + text.length, 0);
          if (bytes > smallAnswer) gone ??= await answerRoom.enter(turn);
          return answered;
        },
        history: (organizationId, from) => this.store.read(organizationStream(organizationId), from),
        envelope: (record) => {
          rights ??= this.driver.rights.onPage(organization, caller.user.userId, meter, unread);
          const { keys } = this.registry.versions.get(record.type)!;
          return activityEnvelope(record, { now, keys, rights: rights(record.activityId) });
        },
        explained: (record) => {
          const { keys } = this.registry.versions.get(record.type)!;
          const { userId } = caller.user;
          const rights = this.driver.rights.ifRead(organization, record.activityId, userId, meter, unread);
          return activityEnvelope(record, { now, keys, rights });
        },
        saysNow: (activityId) =>
          this.driver.rights.saysNow(organization, activityId, caller.user.userId, meter, unread),
      };
      return definition.answer(question, context);
    };
    try {
      const unread: Unread = [];
      let answered = await answer(unread);
      if (unread.length > 0) {
        // Rights in an activity that takes long to read, and was not read since the start.
        await this.driver.rights.readUnread(unread, meter);
        answered = await answer([]);
      }
      // Put together from a few large texts, it is copied once more.
      if (gone) await thisThread.next(turn, { alone: true });
      return { text: answerText(answered), gone: gone ?? (() => undefined) };
    } catch (error) {
      gone?.();
      throw error;
    } finally {
      this.metrics.spent('query', meter);
    }
  }

  /**
   * All of a history shows who did what, and when: that is for those who stand above everything, and with their key.
   * @throws {CoordinatorError} PERMISSION_DENIED
   */
  private async checkReadsHistory(
    path: string,
    { kind }: QueryRequest['by'],
    organization: OrganizationView,
    caller: Caller,
  ): Promise<void> {
    const refuse = (why: string) =>
      new CoordinatorError('PERMISSION_DENIED', `query ${path}: ${why}`, { category: 'REQUEST_NOT_AUTHORIZED' });
    if (kind === 'session') throw refuse('needs a stamp: a read-only session does not read whole histories');
    const { organizationId, parentOrganizationId } = organization;
    const parent = (await this.loader.parentOf(organization))?.organization;
    const home = caller.organizationId === organizationId ? organization : parent;
    const { userId } = caller.user;
    if (!home?.rootQuorum.userIds.includes(userId)) {
      throw refuse(`user \`${userId}\` is not in the root quorum of organization \`${caller.organizationId}\``);
    }
    if (home === organization && parent && !parent.features.has('FEATURE_NAME_SUB_ORGANIZATION_EVENTS')) {
      throw refuse(
        `its parent \`${parentOrganizationId}\` has not switched FEATURE_NAME_SUB_ORGANIZATION_EVENTS on (set_organization_feature)`,
      );
    }
  }

  /** Who reads, and which organization: the named one, or the one where the credential lives. */
  private async reader(
    { path, whereTheCredentialLives }: AnyQuery,
    { by, body }: QueryRequest,
    name: string,
    minPosition: bigint,
  ): Promise<Reader> {
    if (by.kind === 'attested') throw attestedElsewhere(`query ${path}`);
    if (by.kind === 'session') {
      const { organization, caller } = await this.sessions.callerOf(by.token, name, whereTheCredentialLives === true);
      checkAuthProxyQuery(organization, caller.user.userId, path);
      return { organization, caller };
    }
    const { organization: named } = await this.loader.load(name);
    const organization = whereTheCredentialLives ? await this.home(by, named, minPosition) : named;
    // The organization's own key needs no word of the parent.
    const isOwn = by.kind === 'api-key' && organization.apiKeyOwners.has(by.publicKey);
    const parent = isOwn ? undefined : (await this.loader.parentOf(organization))?.organization;
    // Who may read is decided on the stream's state, so that a revoked credential reads nothing from now on.
    const now = decisionTime(this.clock, organization, parent);
    const caller = resolveCaller(by, organization, parent, now);
    checkMayRead(path, caller, organization, parent, now);
    if (by.kind === 'webauthn') await verifyPasskey(by, body, { organization, parent }, this);
    return { organization, caller };
  }

  private async home(
    by: Parameters<OrganizationLookup['placeOf']>[0],
    named: OrganizationView,
    minPosition: bigint,
  ): Promise<OrganizationView> {
    const { organizationId } = await this.lookup.placeOf(by, named, minPosition);
    return organizationId === named.organizationId ? named : (await this.loader.load(organizationId)).organization;
  }
}
