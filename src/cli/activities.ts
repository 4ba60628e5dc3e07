import type { ActivityClient, ResponseOf } from '../client/activity-client.js';
import type { Decoded } from '../domain/policy/decoded/account.js';
import type { ActivityEnvelope } from '../wire/envelope.js';
import { BadUsage } from './bad-usage.js';
import type { Outcome } from './command.js';
import { exitCodes, type ExitCode } from './exit-codes.js';
import type { DecodedRequest } from './decoded-request.js';
import { policyLine } from './explain.js';
import { lines, printable } from './layout.js';
import type { Terminal } from './terminal.js';
import { NotAsSigned, signedRequest, type SignedRequest } from './signed-request.js';
import { isUuid } from '../domain/uuid.js';

/** Exit code of a command that has submitted something, by the status of the activity. */
const endings: Readonly<Record<string, ExitCode>> = {
  ACTIVITY_STATUS_COMPLETED: exitCodes.done,
  ACTIVITY_STATUS_CONSENSUS_NEEDED: exitCodes.waiting,
  ACTIVITY_STATUS_CREATED: exitCodes.waiting,
  ACTIVITY_STATUS_PENDING: exitCodes.waiting,
  ACTIVITY_STATUS_REJECTED: exitCodes.denied,
};

/** The outcome of a submit: a sentence, the result, and what to do if it waits. */
export function submitted(terminal: Terminal, activity: ActivityEnvelope, done?: string): Outcome {
  const { type, status, failure, waitsFor } = activity;
  const [id, fingerprint, name] = [activity.id, activity.fingerprint, shortType(type)].map(printable);
  const exitCode = endings[status] ?? exitCodes.failed;
  const result = Object.values(activity.result)[0] as Readonly<Record<string, unknown>> | undefined;
  const text = {
    ACTIVITY_STATUS_COMPLETED:
      done?.split('\n').map(printable).join('\n') ??
      `${terminal.styled('green', 'Completed')} ${name}, activity ${id}.\n${members(terminal, result ?? {})}`,
    ACTIVITY_STATUS_CONSENSUS_NEEDED:
      `${terminal.styled('yellow', 'Waiting for approvals')}: ${name}, activity ${id}.` +
      `${waitsFor ? ` ${printable(waitsFor.text)}` : ''} Do not submit it again; others approve it with\n\n` +
      `  countersign approve ${fingerprint}\n`,
    ACTIVITY_STATUS_REJECTED: `${terminal.styled('red', 'Rejected')}: ${name}, activity ${id}.\n`,
    ACTIVITY_STATUS_FAILED: `${terminal.styled('red', 'Failed')}: ${name}, activity ${id}: ${printable(failure?.message ?? 'no reason given')}\n`,
  }[status as string];
  return { text: text ?? `${name}, activity ${id}, is ${printable(status)}.\n`, json: { activity }, exitCode };
}

/** `create policy` of `ACTIVITY_TYPE_CREATE_POLICY_V3`. */
export function shortType(type: string): string {
  return type
    .replace(/^ACTIVITY_TYPE_/, '')
    .replace(/_V\d+$/, '')
    .toLowerCase();
}

/** `waiting` and the like, for a status. */
export function shortStatus(status: string): string {
  return status === 'ACTIVITY_STATUS_CONSENSUS_NEEDED'
    ? 'waiting'
    : status.replace(/^ACTIVITY_STATUS_/, '').toLowerCase();
}

/** The time of an activity in RFC 3339, in whichever form the coordinator sends it. */
export function timeText(time: ActivityEnvelope['createdAt']): string {
  if (typeof time === 'string') return time;
  return new Date(Number(time.seconds) * 1_000 + Number(time.nanos) / 1_000_000).toISOString();
}

/** Members of an object with their names; anything but strings as JSON. */
function members(terminal: Terminal, value: object): string {
  return lines(
    terminal,
    Object.entries(value).map(([name, member]) => [name, typeof member === 'string' ? member : JSON.stringify(member)]),
  );
}

/** A decision on an activity, as `get_policy_evaluations` explains it. */
export type DecisionShown = ResponseOf<'get_policy_evaluations'>['policyEvaluations'][number];

/** An activity for someone who decides on it: who asks for what, who has voted, and why that was allowed or waits. */
export function described(
  terminal: Terminal,
  { activity, request, decoded }: Reviewed,
  decisions: readonly DecisionShown[],
): string {
  const { id, type, status, fingerprint, createdAt, votes, failure, waitsFor } = activity;
  const [submission, ...others] = votes;
  const coordinators = (activity.decoded ?? []) as readonly Decoded[];
  return [
    lines(terminal, [
      ['Activity', id],
      ['Type', shortType(type)],
      ['Status', shortStatus(status) + (failure ? `: ${failure.message}` : '')],
      ['Submitted', `${timeText(createdAt)} by ${submission?.user?.userName ?? submission?.userId ?? 'nobody'}`],
      ['Fingerprint', fingerprint],
      ['Signed', request ? 'yes: fingerprint, parameters and stamp were verified' : undefined],
      ['Votes', others.length > 0 ? others.map(voteWords).join(', ') : undefined],
      ['Waits for', waitsFor?.text.replace(/^Waiting for /, '')],
    ]),
    ...(request ? [] : [`\n${terminal.styled('red', 'Not verified')}: ${notVerified}.\n`]),
    `\n${terminal.styled('bold', 'Parameters')}\n`,
    indented(members(terminal, request?.parameters ?? (Object.values(activity.intent)[0] as object))),
    ...(decoded
      ? decoded.map((one) =>
          decodedPart(terminal, status === 'ACTIVITY_STATUS_COMPLETED' ? 'It signed' : 'It would sign', one),
        )
      : coordinators.map((one) =>
          decodedPart(
            terminal,
            `According to the coordinator, not verified${one.changes ? ', it would change' : ''}`,
            one,
          ),
        )),
    ...(decisions.length > 0 ? [`\n${terminal.styled('bold', 'Decisions')}\n`] : []),
    ...decisions.map((decision) => indented(decisionLines(activity, decision))),
  ].join('');
}

const notVerified =
  'secrets are left out of the signed request, so what is shown cannot be compared with its fingerprint, and is only what the coordinator says';

/** A decision with the policies that said something; of those that did not apply, their number. */
function decisionLines({ votes }: ActivityEnvelope, decision: DecisionShown): string {
  const { voteId, outcome, decidedBy, policyEvaluations } = decision;
  const vote = votes.find(({ id }) => id === voteId);
  const by = decidedBy === 'none' ? '' : ` by ${decidedBy.replaceAll('-', ' ')}`;
  const silent = policyEvaluations.filter((one) => one.outcome === 'OUTCOME_DENY_IMPLICIT');
  const said = policyEvaluations.filter((one) => !silent.includes(one)).map(policyLine);
  return [
    `${vote ? `${voteWords(vote)}: ` : ''}${outcome.replaceAll('-', ' ')}${by}`,
    ...said.map((line) => `  ${line}`),
    ...(silent.length > 0
      ? [`  ${silent.length === 1 ? '1 policy that does' : `${silent.length} policies that do`} not apply`]
      : []),
  ]
    .map((line) => `${printable(line)}\n`)
    .join('');
}

/** One thing that an activity would sign or change. */
function decodedPart(
  terminal: Terminal,
  title: string,
  { payload, text, facts, changes = [], notDecoded, byInterfaces = [] }: Decoded & Partial<DecodedRequest>,
): string {
  const whole = terminal.styled('bold', `${title}${payload === undefined ? '' : ` (${printable(payload)})`}`);
  const said = [text, ...(notDecoded === undefined ? [] : [notDecoded])].map((line) => `${printable(line)}\n`).join('');
  const pairs = (some: Decoded['facts']) =>
    lines(
      terminal,
      some.map(({ name, value }) => [name, value]),
    );
  const differences = lines(
    terminal,
    changes.flatMap(({ name, before, after }) => [
      [name, before && `- ${before}`] as const,
      [before ? '' : name, after && `+ ${after}`] as const,
    ]),
  );
  const byInterface =
    byInterfaces.length === 0
      ? ''
      : `By an interface that the coordinator returned, not verified\n${indented(pairs(byInterfaces))}`;
  return `\n${whole}\n${indented(said + pairs(facts) + differences + byInterface)}`;
}

const indented = (text: string): string => text.replace(/^(?=.)/gm, '  ');

function voteWords({ selection, userId, user }: ActivityEnvelope['votes'][number]): string {
  const verb = selection === 'VOTE_SELECTION_APPROVED' ? 'approved' : 'rejected';
  return `${verb} by ${user?.userName ?? userId}`;
}

/** An activity, and what its submitter signed: undefined if that could not be verified. */
export interface Reviewed {
  readonly activity: ActivityEnvelope;
  readonly request: SignedRequest | undefined;
  /** What the verified request would sign; undefined if it signs nothing. */
  readonly decoded: readonly DecodedRequest[] | undefined;
}

/** An activity by its id, verified before it is shown or voted on. @throws {NotAsSigned} */
export async function reviewed(client: ActivityClient, activityId: string): Promise<Reviewed> {
  const activity = await activityOf(client, activityId);
  const request = await signedRequest(activity, client.organizationId);
  if (!request) return { activity, request, decoded: undefined };
  const { decodedRequest } = await import('./decoded-request.js');
  return { activity, request, decoded: await decodedRequest(client, request) };
}

const isFingerprint = (text: string): boolean => /^sha256:[0-9a-f]{64}$/.test(text);

/**
 * The fingerprint to vote on. It says itself what it stands for; of an id, only the coordinator says so. What has that id is
 * therefore shown, and voted on if the user confirms.
 * @returns undefined if the user does not
 * @throws {BadUsage}
 */
export async function confirmedFingerprint(
  terminal: Terminal,
  client: ActivityClient,
  named: string,
  { question, yes, unverified }: { readonly question: string; readonly yes?: boolean; readonly unverified?: boolean },
): Promise<string | undefined> {
  if (isFingerprint(named)) return named;
  if (!isUuid(named)) {
    throw new BadUsage(
      `\`${named}\` does not identify an activity: use its id or its fingerprint (sha256: and 64 hex digits)`,
    );
  }
  const found = await reviewed(client, named);
  const { fingerprint } = found.activity;
  if (!isFingerprint(fingerprint)) throw new NotAsSigned(`\`${fingerprint}\` is not a fingerprint`);
  if (!found.request && !unverified) {
    throw new BadUsage(`${notVerified}: use the fingerprint that its submitter gives you, or add --unverified`);
  }
  if (yes) return fingerprint;
  terminal.error(`${described(terminal, found, [])}\n`);
  return (await terminal.confirm(question)) ? fingerprint : undefined;
}

export async function activityOf(client: ActivityClient, activityId: string): Promise<ActivityEnvelope> {
  const { activity } = await client.query<{ readonly activity: ActivityEnvelope }>('get_activity', { activityId });
  if (activity.id === activityId.toLowerCase()) return activity;
  throw new NotAsSigned(`it has the id \`${activity.id}\`, not \`${activityId}\``);
}

export async function decisionsOn(client: ActivityClient, activityId: string): Promise<readonly DecisionShown[]> {
  const { policyEvaluations } = await client.query('get_policy_evaluations', { activityId });
  return policyEvaluations;
}
