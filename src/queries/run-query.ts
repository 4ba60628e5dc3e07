import { Inject } from '@nestjs/common';
import { Query, QueryHandler, type IQueryHandler } from '@nestjs/cqrs';
import type { Config } from '../config/config.js';
import { CONFIG } from '../config/config.token.js';
import { REGISTRY, type Registry } from '../decide/registry.js';
import type { Caller } from '../decide/resolve-caller.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import { Meter } from '../domain/steps.js';
import type { Slot } from '../fairness/fair-slots.js';
import { thisThread } from '../fairness/turns.js';
import { EVENT_STORE, type EventStore } from '../ledger/event-store.js';
import { OrganizationLoader } from '../ledger/load-organization.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import { DRIVER_METRICS, type DriverMetrics } from '../ports/driver-metrics.js';
import { OIDC, type OidcPort } from '../ports/oidc.js';
import type { Rows } from '../read-models/database.js';
import { ROWS } from '../read-models/define-query.js';
import type { AnyQuery } from '../read-models/index.js';
import { answerPieces } from '../read-models/pages.js';
import { ReadModelRunner } from '../read-models/runner.js';
import { canonicalUuid } from '../wire/fields.js';
import { joined } from '../wire/json-pieces.js';
import { parseStrictJson } from '../wire/strict-json.js';
import { validate } from '../wire/validate.js';
import { Children } from '../coordinator/children.js';
import { Driver } from '../coordinator/execute-activity.js';
import { QueryReaders, type QueryRequest } from './query-readers.js';
import { payerPath, QueryScope, type QueryScopePorts } from './query-scope.js';
import { QueryTasks } from './query-tasks.js';

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

/** Finds who asks, waits until the read models have seen enough, and has the query answered. */
@QueryHandler(RunQuery)
export class RunQueryHandler implements IQueryHandler<RunQuery> {
  private readonly ports: QueryScopePorts;

  constructor(
    @Inject(REGISTRY) registry: Registry,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(ROWS) private readonly rows: Rows,
    @Inject(EVENT_STORE) store: EventStore,
    private readonly runner: ReadModelRunner,
    loader: OrganizationLoader,
    private readonly children: Children,
    private readonly readers: QueryReaders,
    private readonly driver: Driver,
    @Inject(DRIVER_METRICS) private readonly metrics: Pick<DriverMetrics, 'spent'>,
    tasks: QueryTasks,
    @Inject(OIDC) oidc: OidcPort,
    @Inject(CONFIG) { limits }: Pick<Config, 'limits'>,
  ) {
    const readable = () => this.runner.readable(this.rows);
    this.ports = { registry, store, loader, readers, driver, tasks, oidc, limits, readable };
  }

  async execute({ definition, request, minPosition }: RunQuery): Promise<WrittenAnswer> {
    const parsed = validate(definition.request, parseStrictJson(request.body).value);
    const named = canonicalUuid(parsed.organizationId);
    const { organization, caller } = await this.readers.readerOf(definition, request, named, minPosition);
    const { organizationId } = organization;
    request.onKnown?.(organizationId, caller.credential.id);
    const query = { ...parsed, organizationId };
    // For the whole request, also when it is answered again once more was read.
    const meter = new Meter();
    if (definition.readsHistory) {
      try {
        await this.readers.checkReadsHistory(definition.path, request.by, organization, caller);
      } catch (error) {
        await this.runner.current(minPosition);
        const isFor = definition.isForReaders?.(query, this.ports.readable()) ?? false;
        if (!isFor && !(await this.isForVoter(definition, request, query, organization, caller, meter))) throw error;
      }
    }
    // The organization may have been founded just now, after `minPosition`.
    const { finishedUpTo } = this.children;
    await this.runner.current(finishedUpTo > minPosition ? finishedUpTo : minPosition);
    const path = payerPath(organization, caller);
    const turn = thisThread.next(path);
    if (turn) await turn;
    const scope = new QueryScope(this.ports, { request, organization, caller, now: this.clock.now(), meter, path });
    try {
      const answer = await scope.answer(definition, query);
      if (scope.slot || scope.isLarge) await thisThread.next(path, { alone: true });
      const json = await joined(answerPieces(answer), () => thisThread.next(path));
      return { json, slot: scope.slot };
    } catch (error) {
      scope.slot?.leave();
      throw error;
    } finally {
      this.metrics.spent('query', meter);
    }
  }

  /** Whether it is about an activity on which the caller may vote. */
  private async isForVoter(
    { isForVoters }: AnyQuery,
    { by }: QueryRequest,
    query: object,
    organization: OrganizationView,
    { organizationId, user }: Caller,
    meter: Meter,
  ): Promise<boolean> {
    const { activityId } = query as { readonly activityId?: string };
    if (!isForVoters || activityId === undefined || by.kind === 'session') return false;
    if (organizationId !== organization.organizationId) return false;
    return this.driver.rights.hasAny(organization, activityId, user.userId, meter);
  }
}
