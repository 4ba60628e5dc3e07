import type { MessagePort } from 'node:worker_threads';
import { Inject, Injectable } from '@nestjs/common';
import { CoordinatorError } from '../domain/errors.js';
import { denialStream } from '../domain/activity/denial.js';
import { organizationStream } from '../domain/organization/organization.js';
import { organizationPath } from '../fairness/fair-queue.js';
import { Families, type Whose } from '../fairness/families.js';
import type { LintReport } from '../audit/lint/lint-policies.js';
import type { LintSubject } from '../audit/lint/lint-subject.js';
import type { ApproverSets, ApproversTask } from '../audit/approvers/approver-sets.js';
import { EVENT_STORE, type EventReader, type RecordedEvent } from '../ledger/event-store.js';
import { storedEvent } from '../ledger/stored-event.js';
import { HISTORY, type HistoryOptions } from '../ledger/history-options.js';
import type { Rows } from '../read-models/database.js';
import { ROWS } from '../read-models/define-query.js';
import { causesOf, type ListedEvent } from '../read-models/events.js';
import type { ProofAnswer, ProofQuestion } from '../read-models/explanations.js';
import { packEvents } from '../read-models/packed-events.js';
import { mostBytesOfPages, type TextPage } from '../read-models/pages.js';
import type { ReasonsAnswer, ReasonsQuestion } from '../read-models/reasons.js';
import type { StateAnswer } from '../read-models/states.js';
import type { WhatIfQuestion, WhatIfResponse } from '../read-models/what-if.js';
import type { StatesQuery } from '../audit/timeline/query-states.js';
import { EventsForTask } from '../audit/timeline/events-over-port.js';
import type { Kind, RunTask } from '../threads/task-pool.js';
import { CoordinatorPool, type PoolOfTasks } from '../coordinator/coordinator-pool.js';
import type * as tasks from '../coordinator/tasks.js';

/** Events between two states that are kept: so many are folded in a fraction of a second. */
const usualEvery = 10_000;

/** Is awaited between two runs of events: others may have their turn. */
type Turn = () => Promise<void> | undefined;

interface AskedPage {
  readonly organizationId: string;
  /** Whose member reads them: the organization, or its parent. */
  readonly readerOrganizationId: string;
  /** A revision. */
  readonly from: number;
  readonly limit: number;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

interface StateOptions extends Pick<StatesQuery, 'steps'>, Pick<HistoryOptions, 'stateFolder'> {
  readonly bounds?: NonNullable<StatesQuery['kept']>['bounds'];
  readonly every?: number;
}

/** A task whose family has its turn. */
type InTurn<Input, Output> = <Made>(
  whose: Whose,
  work: (start: (input: Input, ...transfer: readonly MessagePort[]) => Promise<Output>) => Promise<Made>,
) => Promise<Made>;

const inTurn =
  <Input, Output>(families: Families, run: RunTask<Input, Output>): InTurn<Input, Output> =>
  (whose, work) =>
    families.inTurn(whose, () =>
      work((input, ...transfer) => run(organizationPath(whose.family), () => input, transfer)),
    );

const usualLongestMs = 30_000;
/** The steps of a what-if take a third of this. */
const longestWhatIfMs = 45_000;

/**
 * What queries have done in threads. Each family, a parent with its sub-organizations, has one task of a kind at a time, and few
 * waiting. Every method throws {CoordinatorError} RESOURCE_EXHAUSTED if too many of the family wait, UNAVAILABLE if the
 * thread was lost, and {Error} if the history is broken.
 */
@Injectable()
export class QueryTasks {
  readonly #store: Pick<EventReader, 'read' | 'head'>;
  readonly #rows: Rows;
  readonly #states: StateOptions;
  readonly #run;

  constructor(
    @Inject(CoordinatorPool) pool: PoolOfTasks,
    @Inject(EVENT_STORE) store: Pick<EventReader, 'read' | 'head'>,
    @Inject(ROWS) rows: Rows,
    @Inject(HISTORY) states: StateOptions,
  ) {
    [this.#store, this.#rows, this.#states] = [store, rows, states];
    const kind = <Name extends keyof typeof tasks>(
      name: Name,
      noun: Kind['noun'],
      {
        ofFamily = 8,
        longestMs = usualLongestMs,
        families = new Families(ofFamily, `${noun.many} in progress or waiting`),
      } = {},
    ) => inTurn(families, pool.kind(name, { most: 1, longestMs, noun }));
    const aboutPolicies = { families: new Families(8, 'questions about policies in progress or waiting') };
    this.#run = {
      pages: kind('pages', { one: 'the page of events', many: 'pages of events' }),
      states: kind('states', { one: 'the state', many: 'questions about states' }),
      // Any member may ask for these, and must not keep the root quorum waiting, which asks about states.
      reasons: kind('reasons', { one: 'the explanation', many: 'explanations of past decisions' }),
      proofs: kind('proofs', { one: 'the explanation', many: 'proofs of decisions' }),
      approvers: kind('approvers', { one: 'the list of approvers', many: 'lists of approvers' }, aboutPolicies),
      lint: kind('lint', { one: 'the report on policies', many: 'reports on policies' }, aboutPolicies),
      whatIf: kind('whatIf', { one: 'the what-if', many: 'what-ifs' }, { ofFamily: 2, longestMs: longestWhatIfMs }),
    };
  }

  /** Events of an organization from a revision on, as they may be read now. */
  async page(
    family: string,
    { organizationId, readerOrganizationId, from, limit, now }: AskedPage,
  ): Promise<TextPage<ListedEvent>> {
    return this.#run.pages({ family, organizationId: readerOrganizationId }, async (start) => {
      const { events, hasMore } = await this.#eventsOfPage(organizationId, from, limit);
      const stream = organizationStream(organizationId);
      const causes = await causesOf(this.#rows, organizationId, events, (at) => this.#store.read(stream, at));
      const page = await start({ events: packEvents(events), causes, now, readerOrganizationId });
      return { texts: page.texts, hasMore: page.hasMore || hasMore };
    });
  }

  /** @throws {CoordinatorError} NOT_FOUND for a point that does not exist; RESOURCE_EXHAUSTED if the history is too long */
  async states(
    whose: Whose,
    requested: Pick<StatesQuery, 'organizationId' | 'question' | 'now'>,
    turn: Turn,
  ): Promise<StateAnswer> {
    const { stateFolder: folder, bounds, every = usualEvery, steps } = this.#states;
    const { family } = whose;
    const kept = folder === undefined ? {} : { kept: { folder, family, every, ...(bounds ? { bounds } : {}) } };
    const input = { ...requested, ...kept, ...(steps === undefined ? {} : { steps }) };
    return this.#run.states(whose, (start) =>
      this.#withEvents(requested, turn, (port) => start({ ...input, port }, port)),
    );
  }

  /** Past decisions explained. Never refuses: where there is no explanation, the answer says why. */
  async reasons(whose: Whose, question: ReasonsQuestion, turn: Turn): Promise<ReasonsAnswer> {
    try {
      return await this.#run.reasons(whose, (start) =>
        this.#withEvents(question, turn, (port) => start({ question, port }, port)),
      );
    } catch (error) {
      if (!(error instanceof CoordinatorError)) throw error;
      const isBusy = error.code === 'RESOURCE_EXHAUSTED';
      return { told: [], notExplained: isBusy ? 'other explanations are in progress: ask again' : error.message };
    }
  }

  async proof(whose: Whose, question: ProofQuestion, turn: Turn): Promise<ProofAnswer> {
    return this.#run.proofs(whose, (start) =>
      this.#withEvents(question, turn, (port) => start({ question, port }, port)),
    );
  }

  /** Who could make an activity pass. */
  async approvers(whose: Whose, question: ApproversTask): Promise<ApproverSets> {
    return this.#run.approvers(whose, (start) => start(question));
  }

  /** What is wrong with policies, or easily misunderstood. */
  async lint(whose: Whose, subject: LintSubject): Promise<LintReport> {
    return this.#run.lint(whose, (start) => start(subject));
  }

  /** @throws {CoordinatorError} INVALID_ARGUMENT for a draft that cannot hold; NOT_FOUND for a revision that there is not */
  async whatIf(whose: Whose, question: WhatIfQuestion, turn: Turn): Promise<WhatIfResponse> {
    const { organizationId, readsParent } = question;
    const authority = readsParent === undefined ? {} : { authority: { organizationId: readsParent } };
    return this.#run.whatIf(whose, async (start) => {
      const head = (await this.#store.head()) ?? -1n;
      return this.#withEvents({ organizationId, ...authority }, turn, (port) => start({ question, head, port }, port));
    });
  }

  /** Has a task that reads the events of an organization, and of the parent whose policies decide there. */
  async #withEvents<Answer>(
    requested: { readonly organizationId: string; readonly authority?: { readonly organizationId: string } },
    turn: Turn,
    run: (port: MessagePort) => Promise<Answer>,
  ): Promise<Answer> {
    const { organizationId, authority } = requested;
    const streams = [organizationStream(organizationId), denialStream(organizationId)];
    if (authority) streams.push(organizationStream(authority.organizationId));
    const events = new EventsForTask(this.#store, streams, turn);
    try {
      return await run(events.port);
    } catch (error) {
      throw events.failure ?? error;
    } finally {
      events.close();
    }
  }

  /** Reads no more than a page holds. */
  async #eventsOfPage(organizationId: string, from: number, limit: number) {
    const events: RecordedEvent[] = [];
    let text = 0;
    for await (const event of this.#store.read(organizationStream(organizationId), from)) {
      const { data, metadata } = storedEvent(event);
      text += data.length + metadata.length;
      if (events.length > 0 && text > mostBytesOfPages) return { events, hasMore: true };
      if (events.push(event) === limit) break;
    }
    return { events, hasMore: false };
  }
}
