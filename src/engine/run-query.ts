import { Inject } from '@nestjs/common';
import { Query, QueryHandler, type IQueryHandler } from '@nestjs/cqrs';
import type { Config } from '../config/config.js';
import { CONFIG } from '../config/config.token.js';
import { organizationPath } from '../fairness/fair-queue.js';
import { largeBody, thisThread } from '../fairness/turns.js';
import { activityEnvelope } from '../wire/envelope.js';
import { limitsInForce, limitsSetFor } from '../domain/organization/limits.js';
import type { Caller } from '../decide/resolve-caller.js';
import { organizationStream, type OrganizationView } from '../domain/organization/organization.js';
import { hasTimestampObjects } from '../domain/organization/settings.js';
import { EVENT_STORE, type EventStore } from '../ledger/event-store.js';
import type { Rows } from '../read-models/database.js';
import { ROWS, type AnyQuery, type QueryContext } from '../read-models/define-query.js';
import { answerPieces, pageWriter } from '../read-models/pages.js';
import type { Slot } from '../fairness/fair-slots.js';
import { responseCapacity, smallResponse } from './response-capacity.js';
import { ReadModelRunner } from '../read-models/runner.js';
import { Meter } from '../domain/steps.js';
import { canonicalUuid } from '../wire/fields.js';
import { parseStrictJson } from '../wire/strict-json.js';
import { Children } from './children.js';
import { Driver } from './drive.js';
import { hypothetical, sessionRefused } from './dry-run.js';
import type { Unread } from './voting-rights.js';
import { OrganizationLoader } from '../ledger/load-organization.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import { DRIVER_METRICS, type DriverMetrics } from '../ports/driver-metrics.js';
import { OIDC, type OidcPort } from '../ports/oidc.js';
import { REGISTRY, type Registry } from '../decide/registry.js';
import { QueryReaders, type QueryRequest } from './query-readers.js';
import { QueryThreads } from './query-threads.js';
import { joined } from '../wire/json-pieces.js';
import { validate } from '../wire/validate.js';

type EnvelopeArguments = Parameters<typeof activityEnvelope>;

/** The JSON of an answer; if it is long, its UTF-8 in parts. */
export interface WrittenAnswer {
  readonly json: string | readonly Uint8Array[];
  /** Of a large one: to be left when it has been read, or never will be. */
  readonly slot: Slot | undefined;
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
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(ROWS) private readonly rows: Rows,
    @Inject(EVENT_STORE) private readonly store: EventStore,
    private readonly runner: ReadModelRunner,
    private readonly loader: OrganizationLoader,
    private readonly children: Children,
    private readonly readers: QueryReaders,
    private readonly driver: Driver,
    @Inject(DRIVER_METRICS) private readonly metrics: Pick<DriverMetrics, 'spent'>,
    private readonly threads: QueryThreads,
    @Inject(OIDC) private readonly oidc: OidcPort,
    @Inject(CONFIG) private readonly config: Pick<Config, 'limits'>,
  ) {}

  async execute({ definition, request, minPosition }: RunQuery): Promise<WrittenAnswer> {
    const { body } = request;
    const asked = validate(definition.request, parseStrictJson(body).value);
    const { organization, caller } = await this.readers.readerOf(
      definition,
      request,
      canonicalUuid(asked.organizationId),
      minPosition,
    );
    const { organizationId } = organization;
    request.onKnown?.(organizationId, caller.credential.id);
    const question = { ...asked, organizationId };
    // For the whole request, also when it is answered again once more was read.
    const meter = new Meter();
    if (definition.readsHistory) {
      try {
        await this.readers.checkReadsHistory(definition.path, request.by, organization, caller);
      } catch (error) {
        await this.runner.current(minPosition);
        const isFor = definition.isForReaders?.(question, this.runner.readable(this.rows)) ?? false;
        if (!isFor && !(await this.isForVoter(definition, request, question, organization, caller, meter))) throw error;
      }
    }
    // The organization may have been founded just now, after `minPosition`.
    const { finishedUpTo } = this.children;
    await this.runner.current(finishedUpTo > minPosition ? finishedUpTo : minPosition);
    const { organizationId: payer } = caller;
    const isOwn = payer === organizationId;
    const turn = organizationPath(payer, isOwn ? organization.parentOrganizationId : undefined);
    const ownTurn = thisThread.next(turn);
    if (ownTurn) await ownTurn;
    const now = this.clock.now();
    const timestampObjects = request.timestampObjects || hasTimestampObjects(organization);
    let slot: Slot | undefined;
    let isLarge = false;
    const enter = async () => void (slot ??= await responseCapacity.enter(turn));
    const threads = this.threads.for({ organization, caller, turn, now, meter, enter });
    const envelope = (record: EnvelopeArguments[0], rights: EnvelopeArguments[1]['rights']) => {
      const { keys } = this.registry.versions.get(record.type)!;
      return activityEnvelope(record, { now, keys, rights, readerId: caller.user.userId, timestampObjects });
    };
    const answer = (unread: Unread) => {
      const page = pageWriter({
        room: (bytes) => (bytes > smallResponse && !slot ? enter() : undefined),
        turn: (bytes) => thisThread.next(turn, { alone: bytes > largeBody }),
      });
      const context: QueryContext = {
        rows: this.runner.readable(this.rows),
        page,
        turn: (bytes) => {
          isLarge ||= bytes > largeBody;
          return bytes > largeBody ? thisThread.next(turn, { alone: true }) : undefined;
        },
        now,
        callerOrganizationId: caller.organizationId,
        callerUserId: caller.user.userId,
        verifyOidc: (token) => this.oidc.verify(token, 'registration'),
        limits: async () => {
          const parent = (await this.loader.parentOf(organization))?.organization;
          const set = limitsSetFor(organization, parent, this.config.limits);
          return limitsInForce(organization.parentOrganizationId !== undefined, set?.organization);
        },
        ...threads,
        dryRun: async (activity, withProof) => {
          if (request.by.kind === 'session') throw sessionRefused(definition.path);
          if (withProof) await this.readers.checkReadsHistory(definition.path, request.by, organization, caller);
          const told = await this.driver.dryRuns.of({ ...activity, stamp: request.by }, organization, meter);
          return withProof
            ? { ...told, ...(await context.proofs(hypothetical(activity, organization, caller, now))) }
            : told;
        },
        history: (organizationId, from) => this.store.read(organizationStream(organizationId), from),
        envelopes: (activityIds) => {
          const rights = this.driver.rights.onPage(organization, activityIds, caller.user.userId, meter, unread);
          return (record) => envelope(record, rights(record.activityId));
        },
        explained: (record) => {
          const { userId } = caller.user;
          return envelope(record, this.driver.rights.ifRead(organization, record.activityId, userId, meter, unread));
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
      if (slot || isLarge) await thisThread.next(turn, { alone: true });
      const json = await joined(answerPieces(answered), () => thisThread.next(turn));
      return { json, slot };
    } catch (error) {
      slot?.leave();
      throw error;
    } finally {
      this.metrics.spent('query', meter);
    }
  }

  /** Whether it is about an activity on which the caller may vote. */
  private async isForVoter(
    { isForVoters }: AnyQuery,
    { by }: QueryRequest,
    question: object,
    organization: OrganizationView,
    { organizationId, user }: Caller,
    meter: Meter,
  ): Promise<boolean> {
    const { activityId } = question as { readonly activityId?: string };
    if (!isForVoters || activityId === undefined || by.kind === 'session') return false;
    if (organizationId !== organization.organizationId) return false;
    return this.driver.rights.hasAny(organization, activityId, user.userId, meter);
  }
}
