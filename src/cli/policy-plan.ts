import type { ActivityClient, ResponseOf } from '../client/activity-client.js';
import { ApiError } from '../client/stamping-client.js';
import { isUuid } from '../domain/uuid.js';
import { isNothing, policyChanges, type PolicyChanges, type WantedSet } from '../audit/policies/policy-changes.js';
import { policySteps, unsafeQuorum, type PolicyStep } from '../audit/policies/policy-steps.js';
import { draftOf } from '../audit/simulate/draft-of-changes.js';
import type { Mistake } from '../audit/policies/yaml-file.js';
import { profileClient, type ProfileOptions } from './callers.js';
import type { Outcome } from './command.js';
import { exitCodes } from './exit-codes.js';
import { typedRevision } from './input-files.js';
import { lines, printable } from './layout.js';
import { organizationPolicies, trimmed, type Named, type OrganizationPolicies } from './organization-policies.js';
import { changesShown, quorumText, stepText } from './policy-diff.js';
import { mayReachUsers, mistakesShown, policyText, readPolicies } from './policy-folder.js';
import { PolicyLock, type NewName } from './policy-lock.js';
import type { Terminal } from './terminal.js';
import { failures } from './what-if-options.js';
import { waitingLine, whatIfLines } from './what-if.js';

export interface PlanOptions extends ProfileOptions {
  readonly from?: string;
  readonly failOn?: string;
  readonly exitCode?: boolean;
  readonly rebind?: readonly string[];
}

/** How an organization differs from a folder, and what makes it like the folder. */
export interface Plan {
  readonly held: OrganizationPolicies;
  readonly wanted: WantedSet;
  readonly changes: PolicyChanges;
  /** In groups: within one, the order does not matter. */
  readonly groups: readonly (readonly PolicyStep[])[];
  /** The names in the folder and what they stand for, without tags that are still to be created. */
  readonly names: readonly Named[];
  /** Those that the lock file of the folder does not have. */
  readonly newNames: readonly NewName[];
  /** Why there is no plan: nothing else counts then. */
  readonly mistakes: readonly Mistake[];
}

/** Compares the text of a file of policies with an organization. */
export async function planOf(client: ActivityClient, text: string, lock: PolicyLock): Promise<Plan> {
  const held = await organizationPolicies(client);
  const names: Named[] = [];
  const file = readPolicies(text, (kind, name) => {
    const found = held.idOf(kind, name);
    const isMissing = kind === 'tag' && !held.tags.some(({ tagId }) => tagId === found);
    if (typeof found === 'string' && !isMissing && !isUuid(name)) names.push({ kind, name, id: found });
    return lock.checked({ kind, name }, found, isMissing);
  });
  const wanted: WantedSet = {
    policies: file.policies.map(trimmed),
    tags: [...file.names.get('tag')!.keys()].filter((name) => !held.tags.some(({ tagId }) => tagId === name)),
    ...(file.hasQuorum ? { quorum: file.quorum } : {}),
  };
  const changes = policyChanges(held, wanted);
  const wrong =
    file.hasQuorum && file.quorum.userIds.length === 0
      ? 'the root quorum needs members'
      : unsafeQuorum(changes, held.policies, mayReachUsers);
  if (file.mistakes.length === 0 && wrong !== undefined) file.wrongQuorum(wrong);
  const groups = policySteps(changes, mayReachUsers);
  return { held, wanted, changes, groups, names, newNames: lock.newNames(names), mistakes: file.mistakes };
}

type WhatIfReport = ResponseOf<'what_if'>;

/** What a history says about a plan: the report, or why there is none. */
export interface Tried {
  readonly whatIf?: WhatIfReport;
  /** Activities that wait now, and will have another prospect. */
  readonly afterwards?: WhatIfReport['waiting'];
  readonly notAsked?: string;
}

/** Asks what the changes would have made of the history. */
export async function tried(client: ActivityClient, { changes }: Plan, input: string | undefined): Promise<Tried> {
  const from = input === undefined ? undefined : typedRevision('from', input);
  const draft = draftOf(changes);
  if (draft === undefined) return { notAsked: 'nothing that is decided on changes' };
  if (Object.values(draft).some((list) => Array.isArray(list) && list.length > 100)) {
    return { notAsked: 'more than 100 policies change: the question takes no more' };
  }
  try {
    const whatIf = await client.query('what_if', { draft, ...(from === undefined ? {} : { from }) });
    if (whatIf.notComplete !== undefined) return { whatIf };
    const { waiting: afterwards } = await client.query('what_if', { draft, from: whatIf.last + 1 });
    return { whatIf, afterwards };
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 403) throw error;
    return { notAsked: `${error.body.message}` };
  }
}

/** Whether a plan must not go on, by `--fail-on`. What was not asked or not answered whole may be what it is to stop. */
export function isStopped({ whatIf, notAsked }: Tried, plan: Plan, failOn: string | undefined): boolean {
  if (failOn === undefined || draftOf(plan.changes) === undefined) return false;
  if (notAsked !== undefined || whatIf?.notComplete !== undefined) return true;
  return (failures[failOn] ?? []).some((kind) => (whatIf?.counts[kind] ?? 0) > 0);
}

/** `countersign policies plan`. */
export async function planFolder(terminal: Terminal, options: PlanOptions, folder: string): Promise<Outcome> {
  const client = await profileClient(terminal, options);
  const file = await policyText(terminal, folder);
  const lock = await PolicyLock.read(terminal, folder, client.organizationId, options.rebind);
  const plan = await planOf(client, file, lock);
  if (plan.mistakes.length > 0) return mistaken(plan.mistakes);
  if (isNothing(plan.changes)) return { text: planShown(terminal, client, plan, {}), json: planJson(client, plan) };
  const found = await tried(client, plan, options.from);
  const changed = options.exitCode ? exitCodes.changes : exitCodes.done;
  return {
    text: planShown(terminal, client, plan, found),
    json: planJson(client, plan, found),
    exitCode: isStopped(found, plan, options.failOn) ? exitCodes.failed : changed,
  };
}

export const asFolderSays = 'The organization is as the folder says.\n';

/** The names that would be bound; nothing if there are none. */
function newNamesShown(terminal: Terminal, { newNames }: Plan): string {
  if (newNames.length === 0) return '';
  const shown = newNames.map(
    ({ kind, name, id, was }) => [`  ${kind} ${name}`, was === undefined ? id : `${was} → ${id}`] as const,
  );
  return `\n${terminal.styled('bold', 'Names to bind to ids')}\n${lines(terminal, shown)}`;
}

/** The mistakes of a folder as an outcome. */
export function mistaken(mistakes: readonly Mistake[]): Outcome {
  return { text: mistakesShown(mistakes), json: { mistakes }, exitCode: exitCodes.failed };
}

/** A plan for people. */
export function planShown(
  terminal: Terminal,
  client: ActivityClient,
  plan: Plan,
  { whatIf, afterwards = [], notAsked }: Tried,
): string {
  const names = newNamesShown(terminal, plan);
  if (isNothing(plan.changes)) return `${asFolderSays}${names}`;
  const steps = plan.groups.flat().map((step, index) => `  ${index + 1}. ${stepText(step)}\n`);
  const history =
    whatIf === undefined
      ? [`What it would have changed was not asked: ${printable(notAsked ?? '')}.`]
      : whatIfLines(whatIf).slice(1).map(printable);
  return [
    `organization ${client.organizationId}\n\n`,
    changesShown(terminal, plan.changes, plan.held),
    names,
    `\n${terminal.styled('bold', 'Steps')}\n`,
    ...steps,
    ...(afterwards.length > 0 ? [`\n${terminal.styled('bold', 'Waiting activities afterwards')}\n`] : []),
    ...afterwards.map((one) => `${waitingLine(one)}\n`),
    `\n${terminal.styled('bold', whatIf === undefined ? 'In the history' : `If it had held since revision ${whatIf.from}`)}\n`,
    history.filter((line, index) => index > 0 || line !== '').join('\n'),
    '\n',
  ].join('');
}

/** A plan for programs. */
export function planJson(client: ActivityClient, { held, changes, groups, newNames }: Plan, found: Tried = {}): object {
  const { tags, added, changed, removed, quorum } = changes;
  return {
    organizationId: client.organizationId,
    tags,
    policies: [
      ...added.map((is) => ({ change: 'create', policyName: is.policyName, is })),
      ...changed.map(({ was, is }) => ({
        change: 'update',
        policyName: is.policyName,
        policyId: was.policyId,
        was,
        is,
      })),
      ...removed.map((was) => ({ change: 'delete', policyName: was.policyName, policyId: was.policyId, was })),
    ],
    ...(quorum
      ? { rootQuorum: { ...quorum, text: [quorum.was, quorum.is].map((one) => quorumText(one, held)).join(' → ') } }
      : {}),
    steps: groups.flat().map(({ type, names }) => ({ type, names })),
    names: [...held.resolved.values()],
    newNames,
    ...found,
  };
}
