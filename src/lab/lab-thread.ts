import { Families, type Whose } from '../fairness/families.js';
import { OwnThread } from '../threads/own-thread.js';
import type { LintReport } from './lint-policies.js';
import type { LintSubject } from './lint-subject.js';
import type { ToldApprovers, ToldQuestion } from './told-approvers.js';

/** Questions of one family of organizations, running or waiting. */
const mostOfFamily = 8;
/** Milliseconds until an unresponsive thread is ended; a question has ten million steps, which take a second. */
const usualLongestMs = 30_000;
/** Memory of the thread, in MiB. */
const heapMib = 512;

export type ToLabWorker =
  ({ readonly asks: 'approvers' } & ToldQuestion) | { readonly asks: 'lint'; readonly subject: LintSubject };

export type FromLabWorker =
  | { readonly kind: 'approvers'; readonly told: ToldApprovers }
  | { readonly kind: 'lint'; readonly report: LintReport }
  | { readonly kind: 'failed'; readonly reason: string };

interface LabThreadOptions {
  readonly longestMs?: number;
  /** The worker's file, by default that of this build. */
  readonly file?: URL;
}

/** Answers what takes long to find out and needs no history, in a thread of its own. */
export class LabThread {
  private readonly families = new Families(mostOfFamily, 'questions about policies in progress or waiting');
  private readonly thread: OwnThread<ToLabWorker, FromLabWorker>;

  constructor({
    longestMs = usualLongestMs,
    file = new URL('./lab-worker.js', import.meta.url),
  }: LabThreadOptions = {}) {
    this.thread = new OwnThread({
      name: 'lab',
      file,
      heapMib,
      longestMs,
      late: `the answer was not available within ${longestMs / 1_000} s`,
      ended: 'the thread that answers about policies has ended',
    });
  }

  /**
   * Who could make an activity pass.
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED if too many of the family wait; UNAVAILABLE if the thread was lost
   */
  async approvers(whose: Whose, question: ToldQuestion): Promise<ToldApprovers> {
    const said = await this.ask(whose, { asks: 'approvers', ...question });
    if (said.kind !== 'approvers') throw new Error(`the lab said \`${said.kind}\``);
    return said.told;
  }

  /**
   * What is wrong with policies, or easily misunderstood.
   * @throws {CoordinatorError} as `approvers`
   */
  async lint(whose: Whose, subject: LintSubject): Promise<LintReport> {
    const said = await this.ask(whose, { asks: 'lint', subject });
    if (said.kind !== 'lint') throw new Error(`the lab said \`${said.kind}\``);
    return said.report;
  }

  private async ask(whose: Whose, question: ToLabWorker): Promise<FromLabWorker> {
    const said = await this.families.inTurn(whose, () => this.thread.talk((say) => say(question)));
    if (said.kind === 'failed') throw new Error(said.reason);
    return said;
  }

  async close(): Promise<void> {
    await this.thread.close();
  }
}
