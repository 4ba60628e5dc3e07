import type { ResponseOf } from '../client/activity-client.js';
import { shortType } from './activities.js';
import type { Outcome } from './command.js';
import { exitCodes, type ExitCode } from './exit-codes.js';
import { policyLine } from './explain.js';
import { printable } from './layout.js';
import { proofText } from './proof-text.js';
import type { Terminal } from './terminal.js';

/** What a submit would come to, and the exit code that it would end with. */
export function triedText(terminal: Terminal, type: string, told: ResponseOf<'dry_run'>): Outcome {
  const { outcome, policyEvaluations, waitsFor, refusal, needsWorld, proof, notExplained } = told;
  const name = shortType(type);
  const isDenied = outcome.startsWith('deny');
  const said = policyEvaluations.filter((one) => one.outcome !== 'OUTCOME_DENY_IMPLICIT').map(policyLine);
  const text = [
    terminal.styled('bold', `${headline(name, told)}\n`),
    ...(refusal ? [`${printable(refusal.message)}\n`] : []),
    ...(waitsFor ? [`${printable(waitsFor.text)}\n`] : []),
    ...(needsWorld ? ['Its result depends on codes, tokens, keys or other servers, which were not asked.\n'] : []),
    ...(isDenied ? said.map((line) => `  ${printable(line)}\n`) : []),
    'Nothing was recorded.\n',
    ...(proof ? [`\n${proofText(terminal, proof)}`] : []),
    ...(notExplained === undefined ? [] : [`\nNo proof: ${printable(notExplained)}.\n`]),
  ].join('');
  return { text, json: told, exitCode: exitCodeOf(told) };
}

function headline(name: string, { outcome, refusal }: ResponseOf<'dry_run'>): string {
  if (outcome.startsWith('deny')) return `It would be denied: ${name}.`;
  if (refusal) return `It would be allowed, and refused: ${name}.`;
  return outcome === 'allow' ? `It would be allowed: ${name}.` : `It would wait for approvals: ${name}.`;
}

function exitCodeOf({ outcome, refusal }: ResponseOf<'dry_run'>): ExitCode {
  if (outcome.startsWith('deny')) return exitCodes.denied;
  if (refusal) return exitCodes.refused;
  return outcome === 'allow' ? exitCodes.done : exitCodes.waiting;
}
