import { InvalidArgumentError } from 'commander';
import type { ActivityEnvelope } from '../../wire/envelope.js';
import { profileClient, withProfile, type ProfileOptions } from '../callers.js';
import type { CliCommand, Outcome } from '../command.js';
import { printable, table } from '../layout.js';
import { pagesOf } from '../list-pages.js';
import type { Terminal } from '../terminal.js';

interface ListOptions extends ProfileOptions {
  readonly waitingForMe?: boolean;
  readonly status?: string;
  readonly limit: number;
}

/** `countersign activities list`. */
export function mountActivitiesList(parent: CliCommand): void {
  withProfile(parent.command('list', { isDefault: true }))
    .summary('list activities, newest first')
    .description('Lists activities, newest first.')
    .option('--waiting-for-me', 'only activities that are waiting for your vote')
    .option(
      '--status <status>',
      'only activities with this status: waiting, completed, failed, rejected, created or pending',
    )
    .option('--limit <number>', 'maximum number to list', wholeNumber, 20)
    .example('countersign activities --waiting-for-me', 'List what is waiting for your vote')
    .answers((options: ListOptions) => list(parent.terminal, options));
}

/** `countersign activities show`. */
export function mountActivitiesShow(parent: CliCommand): void {
  withProfile(parent.command('show'))
    .argument('<activity>', 'its id')
    .summary('show what an activity does and who has voted')
    .description(
      'Shows an activity: who requested what, what it would sign or change, every vote, and why it was allowed or waits. Verifies ' +
        'first that its fingerprint and parameters are those that the submitter signed, and exits with 1 if they are not.',
    )
    .example('countersign activities show "$ACTIVITY"', 'Review an activity before approving it')
    .answers(async (options: ProfileOptions, id: string) => {
      const { decisionsOn, described, reviewed } = await import('../activities.js');
      const client = await profileClient(parent.terminal, options);
      const found = await reviewed(client, id);
      const decisions = await decisionsOn(client, id);
      const { activity, request, decoded } = found;
      const json = { activity, verified: request !== undefined, decoded, decisions };
      return { text: described(parent.terminal, found, decisions), json };
    });
}

/** `countersign activities explain`. */
export function mountActivitiesExplain(parent: CliCommand): void {
  withProfile(parent.command('explain'))
    .argument('<activity>', 'its id, or that of a denial')
    .summary('prove a decision: every policy, every value, and what would change it')
    .description(
      'Proves the last decision on an activity; for one that waits, how it would be decided now. Shows the rules in their order, ' +
        'each policy, each part of its text with its value and the event that set it, and the smallest changes that would flip the ' +
        'decision. For members of the root quorum, and for users who may vote on it while it waits. A denial is proved, too, for every ' +
        'member: its id is in the response to the denied request, and in `countersign query list_denials`.',
    )
    .example('countersign activities explain "$ACTIVITY"', 'See why an activity waits, and who could let it pass')
    .example('countersign activities explain "$DENIAL"', 'See which policies denied a request, as they were then')
    .answers(async (options: ProfileOptions, id: string) => {
      const { proofText } = await import('../proof-text.js');
      const client = await profileClient(parent.terminal, options);
      const answer = await client.query('explain_activity', { activityId: id });
      const text = answer.proof
        ? proofText(parent.terminal, answer.proof)
        : `No proof: ${printable(answer.notExplained ?? '')}.\n`;
      return { text, json: answer };
    });
}

/** `countersign activities approvers`. */
export function mountActivitiesApprovers(parent: CliCommand): void {
  withProfile(parent.command('approvers'))
    .argument('<activity>', 'its id')
    .summary('say whose approvals would make a waiting activity pass')
    .description(
      'Lists the smallest sets of users whose approvals would make a waiting activity pass today, and the smallest sets without whom it ' +
        'cannot pass. Only members of the root quorum may ask.',
    )
    .example('countersign activities approvers "$ACTIVITY"', 'Whom to ask, and who can stop it')
    .answers(async (options: ProfileOptions, activityId: string) => {
      const { approversShown } = await import('../approvers.js');
      const client = await profileClient(parent.terminal, options);
      const approvers = await client.query('list_minimal_approvers', { activityId });
      return { text: approversShown(parent.terminal, approvers), json: approvers };
    });
}

function wholeNumber(input: string): number {
  if (/^[1-9]\d{0,3}$/.test(input)) return Number(input);
  throw new InvalidArgumentError('It must be a whole number from 1 to 9999.');
}

async function list(terminal: Terminal, options: ListOptions): Promise<Outcome> {
  const { shortStatus, shortType, timeText } = await import('../activities.js');
  const client = await profileClient(terminal, options);
  const status = options.waitingForMe ? 'waiting' : options.status?.toLowerCase();
  const wire = status === 'waiting' ? 'CONSENSUS_NEEDED' : status?.toUpperCase();
  const found: ActivityEnvelope[] = [];
  const filter = wire === undefined ? {} : { filterByStatus: [`ACTIVITY_STATUS_${wire}`] };
  const pages = pagesOf<ActivityEnvelope>(client, 'list_activities', 'activities', ({ id }) => id, filter);
  for await (const page of pages) {
    found.push(...page.filter((one) => !options.waitingForMe || one.canApprove || one.canReject));
    if (found.length > options.limit) break;
  }
  const shown = found.slice(0, options.limit);
  const rows = shown.map(({ id, type, status: state, createdAt, votes }) => [
    id,
    shortType(type),
    shortStatus(state),
    votes[0]?.user?.userName ?? '',
    timeText(createdAt),
  ]);
  const none = options.waitingForMe ? 'Nothing is waiting for you.\n' : 'No activities.\n';
  const more = found.length > shown.length ? 'There are more: see them with --limit.\n' : '';
  return {
    text: rows.length > 0 ? table(terminal, ['ACTIVITY', 'TYPE', 'STATUS', 'BY', 'SUBMITTED'], rows) + more : none,
    json: { activities: shown },
  };
}
