import type { ActivityClient } from '../client/activity-client.js';
import { canonicalJson } from '../domain/canonical-json.js';
import { afterStep, firstDifference } from '../audit/policies/policy-after.js';
import { isNothing, type HeldSet } from '../audit/policies/policy-changes.js';
import type { PolicyStep } from '../audit/policies/policy-steps.js';
import type { ActivityEnvelope } from '../wire/envelope.js';
import { BadUsage } from './bad-usage.js';
import { activityOf } from './activities.js';
import { profileClient } from './callers.js';
import type { Outcome } from './command.js';
import { exitCodes, type ExitCode } from './exit-codes.js';
import { printable } from './layout.js';
import { wholeList } from './list-pages.js';
import { stepText } from './policy-diff.js';
import { policyText } from './policy-folder.js';
import { PolicyLock } from './policy-lock.js';
import {
  asFolderSays,
  isStopped,
  mistaken,
  planOf,
  planShown,
  tried,
  type Plan,
  type PlanOptions,
} from './policy-plan.js';
import { NotAsSigned, signedRequest, type SignedRequest } from './signed-request.js';
import type { Terminal } from './terminal.js';

export interface ApplyOptions extends Omit<PlanOptions, 'exitCode'> {
  readonly yes?: boolean;
  readonly wait?: string | boolean;
  readonly json?: boolean;
}

/** How long `--wait` waits for the votes on one activity, in seconds, unless told. */
const waitsFor = 600;
const pollEveryMs = 1_000;

/** A step that was taken, by an activity of now or of before. */
interface Taken {
  readonly step: PolicyStep;
  readonly activity: ActivityEnvelope;
  readonly isFound: boolean;
}

/** `countersign policies apply`. */
export async function applyFolder(terminal: Terminal, options: ApplyOptions, folder: string): Promise<Outcome> {
  const patience = patienceOf(options.wait);
  const client = await profileClient(terminal, options);
  // Read once: what is applied is what was shown.
  const file = await policyText(terminal, folder);
  const lock = await PolicyLock.read(terminal, folder, client.organizationId, options.rebind);
  const plan = await planOf(client, file, lock);
  if (plan.mistakes.length > 0) return mistaken(plan.mistakes);
  if (isNothing(plan.changes) && plan.newNames.length === 0) {
    await lock.bind(plan.names);
    return { text: asFolderSays, json: { steps: [] } };
  }
  const found = await tried(client, plan, options.from);
  const shown = planShown(terminal, client, plan, found);
  if (options.json) terminal.error(shown);
  else terminal.out(`${shown}\n`);
  if (isStopped(found, plan, options.failOn)) {
    const text = `Nothing was changed: --fail-on ${options.failOn} stops this plan.\n`;
    return { text, json: { steps: [] }, exitCode: exitCodes.failed };
  }
  if (!options.yes && !(await terminal.confirm('Apply this?'))) {
    return { text: 'Nothing was changed.\n', json: { steps: [] } };
  }
  await lock.bind(plan.names);
  return new Application(terminal, client, file, lock, patience).goOn(plan.held);
}

function patienceOf(wait: string | boolean | undefined): number {
  if (wait === undefined || wait === false) return 0;
  const seconds = wait === true ? waitsFor : Number(wait);
  if (Number.isInteger(seconds) && seconds >= 1 && seconds <= 86_400) return seconds * 1_000;
  throw new BadUsage(`--wait takes a number of seconds from 1 to 86400, not \`${String(wait)}\``);
}

/** Takes one group of steps after the other, from what the organization has at that moment. */
class Application {
  private readonly taken: Taken[] = [];

  constructor(
    private readonly terminal: Terminal,
    private readonly client: ActivityClient,
    private readonly file: string,
    private readonly lock: PolicyLock,
    private readonly patienceMs: number,
  ) {}

  async goOn(shown: HeldSet): Promise<Outcome> {
    for (let expected = shown; ;) {
      const plan = await planOf(this.client, this.file, this.lock);
      if (plan.mistakes.length > 0) return mistaken(plan.mistakes);
      const difference = firstDifference(expected, plan.held);
      if (difference !== undefined) return this.changedMeanwhile(difference);
      await this.lock.bind(plan.names);
      const [group] = plan.groups;
      if (!group) return this.ended(asFolderSays, exitCodes.done);
      const ended = await this.take(group);
      const unfinished = ended.find(({ activity }) => activity.status !== 'ACTIVITY_STATUS_COMPLETED');
      if (unfinished) return this.stopped(unfinished, ended);
      expected = ended.reduce<HeldSet>((held, { step, activity }) => afterStep(held, step, idsIn(activity)), plan.held);
    }
  }

  /** Submits what nobody has submitted yet; then waits for votes, if told so. */
  private async take(group: Plan['groups'][number]): Promise<readonly Taken[]> {
    const waiting = await waitingFor(this.client, group);
    const taken: Taken[] = [];
    for (const step of group) {
      const found = waiting.get(requestText(step));
      const activity = found ?? (await this.client.submit(step.type, step.parameters));
      taken.push({ step, activity, isFound: found !== undefined });
    }
    const ended: Taken[] = [];
    for (const one of taken) {
      const activity = await this.voted(one);
      ended.push({ ...one, activity });
      this.taken.push({ ...one, activity });
      this.terminal.error(`${stepLine({ ...one, activity })}\n`);
    }
    return ended;
  }

  private async voted({ step, activity }: Taken): Promise<ActivityEnvelope> {
    const until = Date.now() + this.patienceMs;
    let current = activity;
    if (isWaiting(current) && this.patienceMs > 0) {
      this.terminal.error(`waiting for votes on ${stepText(step)}: countersign approve ${current.fingerprint}\n`);
    }
    while (isWaiting(current) && Date.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, Math.min(pollEveryMs, until - Date.now())));
      const { fingerprint } = current;
      current = await activityOf(this.client, activity.id);
      if (current.fingerprint !== fingerprint) throw new NotAsSigned('its fingerprint has changed');
    }
    return current;
  }

  private stopped({ step, activity }: Taken, ended: readonly Taken[]): Outcome {
    if (activity.status === 'ACTIVITY_STATUS_REJECTED') {
      return this.ended(`Rejected: ${stepText(step)}, activity ${activity.id}.\n`, exitCodes.denied);
    }
    if (!isWaiting(activity)) {
      const reason = printable(activity.failure?.message ?? activity.status);
      return this.ended(`Failed: ${stepText(step)}, activity ${activity.id}: ${reason}\n`, exitCodes.failed);
    }
    const commands = ended
      .filter((one) => isWaiting(one.activity))
      .map((one) => `  countersign approve ${one.activity.fingerprint}\n`);
    const text = printable(activity.waitsFor?.text ?? 'Waiting for approvals.');
    return this.ended(
      `${text} Others approve with\n\n${commands.join('')}\nThen apply the folder again: it continues from there.\n`,
      exitCodes.waiting,
    );
  }

  private changedMeanwhile(difference: string): Outcome {
    const what = this.taken.length === 0 ? 'Nothing was changed' : 'Stopped';
    return this.ended(
      `${what}: somebody else has changed the organization since the plan was shown: ${printable(difference)}. Apply again to see the plan for this.\n`,
      exitCodes.failed,
    );
  }

  private ended(text: string, exitCode: ExitCode): Outcome {
    const steps = this.taken.map(({ step: { type, names }, activity: { id, status, fingerprint }, isFound }) => ({
      type,
      names,
      activityId: id,
      status,
      fingerprint,
      isFound,
    }));
    return { text, json: { steps, message: text.trim() }, exitCode };
  }
}

const isWaiting = ({ status }: ActivityEnvelope): boolean => status === 'ACTIVITY_STATUS_CONSENSUS_NEEDED';

function stepLine({ step, activity, isFound }: Taken): string {
  const state = { ACTIVITY_STATUS_COMPLETED: 'done', ACTIVITY_STATUS_CONSENSUS_NEEDED: 'waits' }[
    activity.status as string
  ];
  const by = isFound
    ? `, submitted before by ${activity.votes[0]?.user?.userName ?? activity.votes[0]?.userId ?? 'somebody'}`
    : '';
  return printable(`${(state ?? 'failed').padEnd(6)}  ${stepText(step)}${by}`);
}

/**
 * The activities of these types that wait for votes, by what their submitters signed: others are asked to approve their
 * fingerprints.
 */
async function waitingFor(
  client: ActivityClient,
  group: Plan['groups'][number],
): Promise<ReadonlyMap<string, ActivityEnvelope>> {
  const waiting = await wholeList<ActivityEnvelope>(client, 'list_activities', 'activities', ({ id }) => id, {
    filterByStatus: ['ACTIVITY_STATUS_CONSENSUS_NEEDED'],
    filterByType: [...new Set(group.map(({ type }) => type))],
  });
  const byRequest = new Map<string, ActivityEnvelope>();
  for (const activity of waiting) {
    const request = await signedRequest(activity, client.organizationId);
    if (request) byRequest.set(requestText(request), activity);
  }
  return byRequest;
}

/** Two requests with the same text ask for the same. */
const requestText = ({ type, parameters }: SignedRequest): string => canonicalJson({ type, parameters });

/** The ids of what an activity has made. */
function idsIn({ result }: ActivityEnvelope): readonly string[] {
  const { policyIds, userTagId } = (Object.values(result)[0] ?? {}) as {
    readonly policyIds?: readonly string[];
    readonly userTagId?: string;
  };
  return policyIds ?? (userTagId === undefined ? [] : [userTagId]);
}
