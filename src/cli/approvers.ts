import type { ResponseOf } from '../client/activity-client.js';
import { printable } from './layout.js';
import type { Terminal } from './terminal.js';

/** Who could make an activity pass, and who could keep it from passing. */
export function approversShown(terminal: Terminal, approvers: ResponseOf<'list_minimal_approvers'>): string {
  const { text, minimalSets, blockingSets, notComplete } = approvers;
  const listed = (title: string, sets: typeof minimalSets) =>
    sets.length === 0 ? [] : ['', terminal.styled('bold', title), ...sets.map((set) => `  ${printable(set.text)}`)];
  const lines = [
    printable(text),
    ...listed('It passes with', minimalSets),
    ...(minimalSets.length === 0 ? [] : listed('It cannot pass if all of these refuse', blockingSets ?? [])),
    ...(notComplete === undefined ? [] : ['', terminal.styled('yellow', `Not complete: ${printable(notComplete)}.`)]),
  ];
  return `${lines.join('\n')}\n`;
}
