import type { Caller } from '../decide/resolve-caller.js';
import type { Registry } from '../decide/registry.js';
import { ReadFirst } from '../decide/decision-context.js';
import type { ActivityRecord } from '../domain/activity/record.js';
import { limitsInForce, limitsSetFor, type Limits, type LimitsOfOperator } from '../domain/organization/limits.js';
import { organizationStream, type OrganizationView } from '../domain/organization/organization.js';
import { hasTimestampObjects } from '../domain/organization/settings.js';
import type { User } from '../domain/organization/users.js';
import type { Meter } from '../domain/steps.js';
import type { Whose } from '../fairness/families.js';
import { organizationPath, type QueuePath } from '../fairness/fair-queue.js';
import type { Slot } from '../fairness/fair-slots.js';
import { largeBody, thisThread } from '../fairness/turns.js';
import { approversTask } from '../audit/approvers/approvers-task.js';
import type { Finding } from '../audit/lint/lint-subject.js';
import { lintTask } from '../audit/lint/lint-task.js';
import type { EventStore, RecordedEvent } from '../ledger/event-store.js';
import type { OrganizationLoader } from '../ledger/load-organization.js';
import type { OidcPort } from '../ports/oidc.js';
import type { ApproversAnswer } from '../read-models/approvers.js';
import type { Rows } from '../read-models/database.js';
import type { QueryContext } from '../read-models/define-query.js';
import type { DryRunTold } from '../read-models/dry-run.js';
import type { ListedEvent } from '../read-models/events.js';
import type { ProofAnswer, ProofQuestion } from '../read-models/explanations.js';
import type { AnyQuery, QueryPorts } from '../read-models/index.js';
import type { LintPoliciesResponse } from '../read-models/lint.js';
import { pageWriter, type TextPage } from '../read-models/pages.js';
import type { ReasonsAnswer, ReasonsQuestion } from '../read-models/reasons.js';
import type { StateAnswer, StateQuestion } from '../read-models/states.js';
import type { WhatIfQuestion, WhatIfResponse } from '../read-models/what-if.js';
import { activityEnvelope, type ActivityEnvelope } from '../wire/envelope.js';
import { hypothetical, sessionRefused } from '../coordinator/dry-run.js';
import type { Driver } from '../coordinator/execute-activity.js';
import type { QueryReaders, QueryRequest } from './query-readers.js';
import type { QueryTasks } from './query-tasks.js';
import { responseCapacity, smallResponse } from './response-capacity.js';
import type { Rights } from '../coordinator/rights-and-texts.js';
import type { Unread } from '../coordinator/voting-rights.js';

export interface QueryScopePorts {
  readonly registry: Registry;
  readonly store: EventStore;
  readonly loader: OrganizationLoader;
  readonly readers: QueryReaders;
  readonly driver: Driver;
  readonly tasks: QueryTasks;
  readonly oidc: OidcPort;
  readonly limits: LimitsOfOperator;
  readonly readable: () => Rows;
}

/** Who asks what, and what pays for the answer. */
interface Asked {
  readonly request: QueryRequest;
  readonly organization: OrganizationView;
  readonly caller: Caller;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly meter: Meter;
  readonly path: QueuePath;
}

/** Whoever asks pays: what sub-organizations ask about themselves keeps no parent from asking about them. */
export function payerPath({ organizationId, parentOrganizationId }: OrganizationView, caller: Caller): QueuePath {
  const isOwn = caller.organizationId === organizationId;
  return organizationPath(caller.organizationId, isOwn ? parentOrganizationId : undefined);
}

/** One query while it is answered: what it may use, and what its response has taken. */
export class QueryScope implements QueryContext, QueryPorts {
  readonly now: number;
  readonly callerOrganizationId: string;
  readonly callerUserId: string;
  /** Room for a large response, to be left when it has been read, or never will be. */
  slot: Slot | undefined;
  /** Something large was read for it. */
  isLarge = false;
  page: QueryContext['page'];
  private unread: Unread = [];
  private readonly path: QueuePath;
  private readonly whose: Whose;
  private reasonsRead: Promise<ReasonsAnswer> | undefined;

  constructor(
    private readonly ports: QueryScopePorts,
    private readonly asked: Asked,
  ) {
    const { organizationId, parentOrganizationId } = asked.organization;
    const { caller } = asked;
    this.now = asked.now;
    this.callerOrganizationId = caller.organizationId;
    this.callerUserId = caller.user.userId;
    this.path = asked.path;
    this.page = this.newPage();
    this.whose = { family: parentOrganizationId ?? organizationId, organizationId: caller.organizationId };
  }

  /** Answers, and once more if rights depend on what takes long to read and was not read since the start. */
  async answer(definition: AnyQuery, request: { readonly organizationId: string }): Promise<object> {
    const answer = await definition.answer(request, this);
    if (this.unread.length === 0) return answer;
    await this.ports.driver.rights.readUnread(this.unread, this.asked.meter);
    this.unread = [];
    this.page = this.newPage();
    return definition.answer(request, this);
  }

  get rows(): Rows {
    return this.ports.readable();
  }

  readonly turn = (bytes: number): Promise<void> | undefined => {
    this.isLarge ||= bytes > largeBody;
    return bytes > largeBody ? thisThread.next(this.path, { alone: true }) : undefined;
  };

  verifyOidc(token: string) {
    return this.ports.oidc.verify(token, 'registration');
  }

  async limits(): Promise<Limits> {
    const { organization } = this.asked;
    const parent = (await this.ports.loader.parentOf(organization))?.organization;
    const set = limitsSetFor(organization, parent, this.ports.limits);
    return limitsInForce(organization.parentOrganizationId !== undefined, set?.organization);
  }

  history(organizationId: string, fromRevision: number): AsyncIterable<RecordedEvent> {
    return this.ports.store.read(organizationStream(organizationId), fromRevision);
  }

  async events(organizationId: string, from: number, limit: number): Promise<TextPage<ListedEvent>> {
    const requested = { organizationId, readerOrganizationId: this.callerOrganizationId, from, limit, now: this.now };
    const page = await this.ports.tasks.page(this.whose.family, requested);
    await this.makeRoom(page.texts);
    return page;
  }

  async states<Question extends StateQuestion>(
    organizationId: string,
    question: Question,
  ): Promise<StateAnswer<Question['asks']>> {
    const answer = await this.ports.tasks.states(
      this.whose,
      { organizationId, question, now: this.now },
      this.nextTurn,
    );
    await this.makeRoom(answer.elements.texts);
    return answer;
  }

  async reasons(question: ReasonsQuestion): Promise<ReasonsAnswer> {
    const { organization, caller } = this.asked;
    const isOwn = caller.organizationId === organization.organizationId;
    const home = isOwn ? organization : (await this.ports.loader.parentOf(organization))?.organization;
    const isConcerned = question.isConcerned || home?.rootQuorum.userIds.includes(this.callerUserId) === true;
    return (this.reasonsRead ??= this.ports.tasks.reasons(this.whose, { ...question, isConcerned }, this.nextTurn));
  }

  async approvers(activityId: string): Promise<ApproversAnswer> {
    const { organization, meter } = this.asked;
    const { rights } = this.ports.driver;
    const open = organization.isDeleted ? undefined : organization.openActivities.get(activityId);
    if (!open) return 'not waiting';
    for (const isRead of [false, true]) {
      try {
        const task = approversTask(rights.assembleContext(organization, meter), open);
        const answer = await this.ports.tasks.approvers(this.whose, task);
        await this.enter();
        return answer;
      } catch (error) {
        if (!(error instanceof ReadFirst)) throw error;
        if (!isRead) await rights.readUnread([{ ahead: error.ahead, organization }], meter);
      }
    }
    return 'not read';
  }

  async proofs(question: ProofQuestion): Promise<ProofAnswer> {
    const answer = await this.ports.tasks.proof(this.whose, question, this.nextTurn);
    await this.makeRoom(answer.proof?.parts.texts ?? []);
    return answer;
  }

  async lint(): Promise<LintPoliciesResponse> {
    const { organization, meter } = this.asked;
    const subject = lintTask({ ...this.ports.driver.rights.assembleContext(organization, meter), now: this.now });
    const { findings, ...rest } = await this.ports.tasks.lint(this.whose, subject);
    await this.enter();
    return { ...rest, findings: findings.map(located) };
  }

  async whatIf(question: WhatIfQuestion): Promise<WhatIfResponse> {
    const answer = await this.ports.tasks.whatIf(this.whose, question, this.nextTurn);
    await this.enter();
    return answer;
  }

  async dryRun(activity: Parameters<QueryPorts['dryRun']>[0], withProof: boolean): Promise<DryRunTold & ProofAnswer> {
    const { request, organization, caller, meter } = this.asked;
    const { by } = request;
    if (by.kind === 'session') throw sessionRefused('dry_run');
    if (withProof) await this.ports.readers.checkReadsHistory('dry_run', by, organization, caller);
    const outcome = await this.ports.driver.dryRuns.of({ ...activity, stamp: by }, organization, meter);
    if (!withProof) return outcome;
    return { ...outcome, ...(await this.proofs(hypothetical(activity, organization, caller, this.now))) };
  }

  explained(record: ActivityRecord<User | undefined>): ActivityEnvelope {
    const { organization, meter } = this.asked;
    const { rights } = this.ports.driver;
    return this.envelope(record, rights.ifRead(organization, record.activityId, this.callerUserId, meter, this.unread));
  }

  envelopes(activityIds: readonly string[]): (record: ActivityRecord<User | undefined>) => ActivityEnvelope {
    const { organization, meter } = this.asked;
    const rights = this.ports.driver.rights.onPage(organization, activityIds, this.callerUserId, meter, this.unread);
    return (record) => this.envelope(record, rights(record.activityId));
  }

  saysNow(activityId: string) {
    const { organization, meter } = this.asked;
    return this.ports.driver.rights.saysNow(organization, activityId, this.callerUserId, meter, this.unread);
  }

  private envelope(record: ActivityRecord<User | undefined>, rights: Rights): ActivityEnvelope {
    const { keys } = this.ports.registry.versions.get(record.type)!;
    const { request, organization } = this.asked;
    const timestampObjects = request.timestampObjects || hasTimestampObjects(organization);
    return activityEnvelope(record, { now: this.now, keys, rights, readerId: this.callerUserId, timestampObjects });
  }

  private readonly nextTurn = (): Promise<void> | undefined => thisThread.next(this.path);

  private newPage(): QueryContext['page'] {
    return pageWriter({
      room: (bytes) => (bytes > smallResponse && !this.slot ? this.enter() : undefined),
      turn: (bytes) => thisThread.next(this.path, { alone: bytes > largeBody }),
    });
  }

  /** Waits for a slot for a large answer, unless the answer has one. */
  private async enter(): Promise<void> {
    this.slot ??= await responseCapacity.enter(this.path);
  }

  private async makeRoom(texts: readonly string[]): Promise<void> {
    if (texts.reduce((sum, text) => sum + text.length, 0) > smallResponse) await this.enter();
  }
}

/** A finding as the answer has it: numbers are decimal strings. */
function located({ line, column, ...finding }: Finding) {
  return {
    ...finding,
    ...(line === undefined ? {} : { line: String(line) }),
    ...(column === undefined ? {} : { column: String(column) }),
  };
}
