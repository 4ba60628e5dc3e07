import type { ActivityClient } from '../../client/activity-client.js';
import { BadUsage } from '../bad-usage.js';
import { profileClient, withProfile, type ProfileOptions } from '../callers.js';
import type { CliCommand, Outcome } from '../command.js';
import { lines, table } from '../layout.js';
import { idsOf, wholeList } from '../list-pages.js';
import type { Terminal } from '../terminal.js';
import { mountAnalyze } from './policies-analyze.js';

interface Policy {
  readonly policyId: string;
  readonly policyName: string;
  readonly effect: string;
  readonly condition?: string;
  readonly consensus?: string;
  readonly time?: string;
  readonly notes?: string;
}

interface CreateOptions extends ProfileOptions {
  readonly effect: string;
  readonly condition?: string;
  readonly consensus?: string;
  readonly time?: string;
  readonly notes?: string;
}

interface DeleteOptions extends ProfileOptions {
  readonly yes?: boolean;
}

/** `countersign policies` and its subcommands. */
export function mountPolicies(policies: CliCommand): void {
  const { terminal } = policies;
  withProfile(policies.command('list', { isDefault: true }))
    .summary('list the policies of the organization')
    .description('Lists the policies of the organization.')
    .example('countersign policies', 'List the policies')
    .answers((options: ProfileOptions) => list(terminal, options));

  withProfile(policies.command('create'))
    .argument('<name>', 'name of the policy')
    .summary('create a policy')
    .description('Creates a policy, written in the policy language (docs/reference/policy-language.md).')
    .option('--effect <effect>', 'allow or deny', 'allow')
    .option('--condition <expression>', 'when it applies; default: always')
    .option('--consensus <expression>', 'who must approve; default: the submitter alone is enough')
    .option('--time <expression>', 'when it is active; default: always')
    .option('--notes <text>', 'a note for people')
    .example(
      `countersign policies create "two people rename" --condition "activity.kind == 'UPDATE_USER_NAME'" --consensus "approvers.count() >= 2"`,
      'Require two people to rename a user',
    )
    .answers((options: CreateOptions, name: string) => create(terminal, options, name));

  mountAnalyze(policies);

  withProfile(policies.command('lint'))
    .summary('look for policies without effect, and for traps')
    .description(
      'Looks for policies that cannot do what they say, and for those that may do something else than they seem to. Exits with 1 for ' +
        'problems and warnings. Only members of the root quorum may ask.',
    )
    .example('countersign policies lint', 'Look at all policies of the organization')
    .answers(async (options: ProfileOptions) => {
      const { lintShown } = await import('../lint.js');
      const report = await (await profileClient(terminal, options)).query('lint_policies');
      return lintShown(terminal, report);
    });

  withProfile(policies.command('show'))
    .argument('<policy>', 'by name or id')
    .summary('show what a policy says')
    .description('Shows a policy: its effect, condition, consensus and time.')
    .example('countersign policies show "two people rename"', 'Show a policy by its name')
    .answers((options: ProfileOptions, name: string) => show(terminal, options, name));

  withProfile(policies.command('delete'))
    .argument('<policies...>', 'by name or id')
    .summary('delete policies')
    .description('Deletes policies. Asks for confirmation.')
    .option('--yes', 'do not ask for confirmation')
    .example('countersign policies delete "an old rule" --yes', 'Delete a policy in a script')
    .answers((options: DeleteOptions, names: readonly string[]) => remove(terminal, options, names));
}

function listPolicies(client: ActivityClient): Promise<readonly Policy[]> {
  return wholeList<Policy>(client, 'list_policies', 'policies', ({ policyId }) => policyId);
}

const namesOf = (policies: readonly Policy[]) =>
  policies.map(({ policyId, policyName }) => ({ id: policyId, name: policyName }));

const shortEffect = (effect: string): string => effect.replace(/^EFFECT_/, '').toLowerCase();

async function list(terminal: Terminal, options: ProfileOptions): Promise<Outcome> {
  const policies = await listPolicies(await profileClient(terminal, options));
  const rows = policies.map(({ policyName, policyId, effect, condition }) => [
    policyName,
    policyId,
    shortEffect(effect),
    shortened(condition ?? 'always'),
  ]);
  const text = rows.length > 0 ? table(terminal, ['NAME', 'POLICY', 'EFFECT', 'CONDITION'], rows) : 'No policies.\n';
  return { text, json: { policies } };
}

const shortened = (text: string): string => (text.length > 60 ? `${text.slice(0, 59)}…` : text);

async function show(terminal: Terminal, options: ProfileOptions, name: string): Promise<Outcome> {
  const policies = await listPolicies(await profileClient(terminal, options));
  const [policyId] = idsOf('policy', [name], namesOf(policies));
  const policy = policies.find((one) => one.policyId === policyId)!;
  const text = lines(terminal, [
    ['Policy', `${policy.policyName} (${policy.policyId})`],
    ['Effect', shortEffect(policy.effect)],
    ['Condition', policy.condition || 'always'],
    ['Consensus', policy.consensus || 'the submitter alone'],
    ['Time', policy.time || 'always'],
    ['Notes', policy.notes || undefined],
  ]);
  return { text, json: { policy } };
}

async function create(terminal: Terminal, options: CreateOptions, policyName: string): Promise<Outcome> {
  const { submitted } = await import('../activities.js');
  const { effect: input, condition, consensus, time, notes } = options;
  const effect = ({ allow: 'EFFECT_ALLOW', deny: 'EFFECT_DENY' } as const)[input.toLowerCase()];
  if (effect === undefined) throw new BadUsage(`--effect ${input}: must be allow or deny`);
  const client = await profileClient(terminal, options);
  const activity = await client.submit('ACTIVITY_TYPE_CREATE_POLICY_V3', {
    policyName,
    effect,
    ...(condition === undefined ? {} : { condition }),
    ...(consensus === undefined ? {} : { consensus }),
    ...(time === undefined ? {} : { time }),
    ...(notes === undefined ? {} : { notes }),
  });
  const { policyId } = (activity.result['createPolicyResult'] ?? {}) as { readonly policyId?: string };
  if (policyId !== undefined) await warnOf(terminal, client, policyId);
  return submitted(terminal, activity, `Created policy ${policyName} (${policyId}).\n`);
}

/** Writes what lint finds in a policy that was just written; nothing for those who may not ask. */
async function warnOf(terminal: Terminal, client: ActivityClient, policyId: string): Promise<void> {
  const { findingShown } = await import('../lint.js');
  // The policy is written: that it could not be looked at is no failure.
  const { findings } = await client.query('lint_policies').catch(() => ({ findings: [] }));
  for (const finding of findings) {
    if (finding.policyId === policyId && finding.severity !== 'note') terminal.error(findingShown(terminal, finding));
  }
}

async function remove(terminal: Terminal, options: DeleteOptions, names: readonly string[]): Promise<Outcome> {
  const { submitted } = await import('../activities.js');
  const client = await profileClient(terminal, options);
  const policyIds = [...idsOf('policy', names, namesOf(await listPolicies(client)))];
  if (!options.yes && !(await terminal.confirm(`Delete ${names.join(', ')}?`))) {
    return { text: 'Nothing was changed.\n', json: { deleted: false } };
  }
  const activity = await client.submit('ACTIVITY_TYPE_DELETE_POLICIES', { policyIds });
  return submitted(terminal, activity, `Deleted ${names.join(', ')}.\n`);
}
