import type { ResponseOf } from '../client/activity-client.js';
import type { Outcome } from './command.js';
import { exitCodes } from './exit-codes.js';
import { printable } from './layout.js';
import type { Terminal } from './terminal.js';

type Report = ResponseOf<'lint_policies'>;

const colours = { problem: 'red', warning: 'yellow', note: 'bold' } as const;

/** What was found in policies; a failure if anything is more than a note. */
export function lintShown(terminal: Terminal, report: Report): Outcome {
  const { findings, notComplete } = report;
  const shown = findings.map((finding) => findingShown(terminal, finding));
  const rest = notComplete === undefined ? [] : [`Not complete: ${printable(notComplete)}.\n`];
  const isClean = findings.every(({ severity }) => severity === 'note');
  return {
    text: findings.length === 0 && rest.length === 0 ? 'Nothing found.\n' : [...shown, ...rest].join('\n'),
    json: report,
    exitCode: isClean ? exitCodes.done : exitCodes.failed,
  };
}

/** One finding: what, where, and what to do. */
export function findingShown(terminal: Terminal, finding: Report['findings'][number]): string {
  const { policyName, clause, line, column, code, severity, text, help } = finding;
  const place = clause === undefined ? '' : `, ${clause} ${line}:${column}`;
  const head = `${terminal.styled(colours[severity], severity)} ${code}: policy “${printable(policyName)}”${place}`;
  return `${head}\n  ${printable(text)}\n  ${printable(help)}\n`;
}
