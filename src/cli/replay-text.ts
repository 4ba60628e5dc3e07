import { becauseOf, printable } from './layout.js';
import { quoted } from '../audit/timeline/compare-states.js';
import type { ActivityStep, DecisionTold, EventTold } from '../audit/explain/event-story.js';

/** What `countersign replay` prints for people. Whatever history contains, no line of it can control the terminal. */

const labelWidth = 10;

/** A label with its lines, indented. */
export const labelled = (label: string, lines: readonly string[]): string[] =>
  lines.map((line, index) => `  ${(index === 0 ? label : '').padEnd(labelWidth)}${line}`);

/** An event with its cause and its changes, in lines. */
export function eventLines(told: EventTold, last: number): string[] {
  const { revision, position, type, recordedAt, decision, changes, eventId } = told;
  return [
    `${revision} of ${last}  ${type}  ${recordedAt}`,
    ...labelled('event', [`${eventId} at position ${position}`]),
    ...(decision ? decisionLines(decision, revision) : labelled('cause', ['no request to this organization'])),
    ...labelled('changes', changes.length > 0 ? changes.map(({ text }) => text) : ['none']),
  ].map(printable);
}

function decisionLines(decision: DecisionTold, at: number): string[] {
  const { revision, activityId, activityType, request, outcome, by, rules, policies, votes, again } = decision;
  return [
    ...labelled('activity', [`${activityType} ${activityId}${revision === at ? '' : `, decided at ${revision}`}`]),
    ...labelled('request', [request]),
    ...labelled(
      'votes',
      votes.map(({ userName, userId, selection, credential, at: when, problem }) => {
        const said = selection === 'VOTE_SELECTION_APPROVED' ? 'approved' : 'rejected';
        const stamp = problem === undefined ? 'stamp verified' : `STAMP DOES NOT VERIFY: ${problem}`;
        return `${userName === undefined ? userId : quoted(userName)} ${said} with ${quoted(credential)} at ${when}: ${stamp}`;
      }),
    ),
    ...labelled('decision', [
      `${outcome} by ${by}, rules ${rules}; made again: ${again}`,
      ...policies.map(({ policyId, policyName, outcome: each, error, clause }) => {
        const name = policyName === undefined ? policyId : quoted(policyName);
        return `${name} ${each}${becauseOf(clause)}${error === undefined ? '' : `: ${error}`}`;
      }),
    ]),
  ];
}

/** The life of an activity, in lines. */
export function activityLines(activityId: string, steps: readonly ActivityStep[]): string[] {
  return [
    `activity ${activityId}`,
    ...steps.flatMap(({ revision, recordedAt, after, type, decision, changes }) => [
      '',
      `${recordedAt}  ${type} @ ${revision}${after > 0 ? `  ${duration(after)} later` : ''}`,
      ...(decision ? decisionLines(decision, revision) : []),
      ...(changes.length > 0
        ? labelled(
            'changes',
            changes.map(({ text }) => text),
          )
        : []),
    ]),
  ].map(printable);
}

function duration(ms: number): string {
  if (ms < 1_000) return `${ms} ms`;
  const units = [
    ['d', 86_400],
    ['h', 3_600],
    ['min', 60],
    ['s', 1],
  ] as const;
  let rest = Math.round(ms / 1_000);
  const parts = units.flatMap(([unit, seconds]) => {
    const count = Math.floor(rest / seconds);
    rest -= count * seconds;
    return count > 0 ? [`${count} ${unit}`] : [];
  });
  return parts.slice(0, 2).join(' ');
}

/** Values as an outline: a line for each member, with its contents indented. */
export function outline(value: unknown, indent = ''): string[] {
  if (typeof value !== 'object' || value === null) return [printable(`${indent}${JSON.stringify(value)}`)];
  return Object.entries(value).flatMap(([name, member]: [string, unknown]) => {
    const label = Array.isArray(value) ? '-' : `${name}:`;
    if (typeof member !== 'object' || member === null) {
      return [printable(`${indent}${label} ${typeof member === 'string' ? member : JSON.stringify(member)}`)];
    }
    if (Object.keys(member).length === 0) return [printable(`${indent}${label} none`)];
    return [printable(`${indent}${label}`), ...outline(member, `${indent}  `)];
  });
}
