import type { Caller } from '../decide/resolve-caller.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import type { Meter } from '../domain/steps.js';
import { thisThread } from '../fairness/turns.js';
import type { Whose } from '../fairness/families.js';
import type { QueuePath } from '../fairness/fair-queue.js';
import { lintTask } from '../audit/lint/lint-task.js';
import type { Finding } from '../audit/lint/lint-subject.js';
import { type OrganizationLoader } from '../ledger/load-organization.js';
import type { QueryContext } from '../read-models/define-query.js';
import type { ReasonsAnswer, ReasonsQuestion } from '../read-models/reasons.js';
import { smallResponse } from './response-capacity.js';
import { askApprovers } from './ask-approvers.js';
import { type Driver } from './drive.js';
import type { QueryTasks } from './query-tasks.js';

/** Who asks what organization, and what a large answer needs. */
interface Asking {
  readonly organization: OrganizationView;
  readonly caller: Caller;
  readonly turn: QueuePath;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly meter: Meter;
  /** Waits for a slot for a large answer, unless the answer has one. */
  readonly enter: () => Promise<void>;
}

type InThreads = Pick<QueryContext, 'told' | 'states' | 'reasons' | 'proofs' | 'approvers' | 'lint' | 'whatIf'>;

/** What queries ask of other threads, each family of organizations in its turn. */
export class QueryThreads {
  constructor(
    private readonly driver: Driver,
    private readonly loader: OrganizationLoader,
    private readonly tasks: QueryTasks,
  ) {}

  for({ organization, caller, turn, now, meter, enter }: Asking): InThreads {
    const { organizationId, parentOrganizationId } = organization;
    const family = parentOrganizationId ?? organizationId;
    // Places are those of who asks: what sub-organizations ask about themselves keeps no parent from asking about them.
    const whose = { family, organizationId: caller.organizationId };
    const nextTurn = () => thisThread.next(turn);
    const makeRoom = async (texts: readonly string[] = []) => {
      if (texts.reduce((sum, text) => sum + text.length, 0) > smallResponse) await enter();
    };
    let reasons: Promise<ReasonsAnswer> | undefined;
    return {
      told: async (ofOrganization, from, limit) => {
        const asked = { organizationId: ofOrganization, readerOrganizationId: caller.organizationId, from, limit, now };
        const told = await this.tasks.page(family, asked);
        await makeRoom(told.texts);
        return told;
      },
      states: async (ofOrganization, question) => {
        const answered = await this.tasks.states(whose, { organizationId: ofOrganization, question, now }, nextTurn);
        await makeRoom(answered.elements.texts);
        return answered;
      },
      proofs: async (question) => {
        const answered = await this.tasks.proof(whose, question, nextTurn);
        await makeRoom(answered.proof?.parts.texts);
        return answered;
      },
      approvers: async (activityId) => {
        const asked = await askApprovers(this.driver.rights, organization, activityId, meter);
        if (typeof asked === 'string') return asked;
        const told = await this.tasks.approvers(whose, asked);
        await enter();
        return told;
      },
      lint: async () => {
        const subject = lintTask({ ...this.driver.rights.assembleContext(organization, meter), now });
        const { findings, ...rest } = await this.tasks.lint(whose, subject);
        await enter();
        return { ...rest, findings: findings.map(located) };
      },
      whatIf: async (question) => {
        const answered = await this.tasks.whatIf(whose, question, nextTurn);
        await enter();
        return answered;
      },
      reasons: (question) => (reasons ??= this.reasonsFor(question, organization, caller, whose, nextTurn)),
    };
  }

  private async reasonsFor(
    question: ReasonsQuestion,
    organization: OrganizationView,
    { organizationId, user }: Caller,
    whose: Whose,
    nextTurn: () => Promise<void> | undefined,
  ): Promise<ReasonsAnswer> {
    const isOwn = organizationId === organization.organizationId;
    const home = isOwn ? organization : (await this.loader.parentOf(organization))?.organization;
    const isConcerned = question.isConcerned || home?.rootQuorum.userIds.includes(user.userId) === true;
    return this.tasks.reasons(whose, { ...question, isConcerned }, nextTurn);
  }
}

/** A finding as the answer has it: numbers are decimal strings. */
function located({ line, column, ...said }: Finding) {
  return {
    ...said,
    ...(line === undefined ? {} : { line: String(line) }),
    ...(column === undefined ? {} : { column: String(column) }),
  };
}
