import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { analysisPackage } from '../analysis-package.js';
import { BadUsage } from '../bad-usage.js';
import type { Terminal } from '../terminal.js';
import type { Stage } from './stage.js';

const policies = `
quorum: { members: [Root user] }
users: [Root user, Alice, Bob]
tags: [treasurers]
wallets: [Treasury]
policies:
  - name: Two treasurers sign
    condition: activity.action == 'SIGN' && wallet.id == '<wallet Treasury>'
    consensus: approvers.filter(user, user.tags.contains('<tag treasurers>')).count() >= 2
`;

const questions = `
users: { Alice: [treasurers], Bob: [treasurers] }
questions:
  - { name: Alice or Bob signs alone, can: one non-root credential, do: SIGN, expect: never }
  - { name: Alice and Bob sign together, can: [Alice, Bob], do: SIGN, expect: possible }
`;

interface Answers {
  readonly questions: readonly {
    readonly name: string;
    readonly expected: string;
    readonly got: string;
    readonly execution?: { readonly outcome: string; readonly why?: string };
  }[];
}

/** Asks of the policy on the wallet, for all requests, what can never happen. Goes on without the solver. */
export async function analysed({ title, say, note, green, red }: Stage, terminal: Terminal): Promise<void> {
  title('Could one of them ever sign alone? An answer for all requests');
  note('countersign policies analyze, on a folder with this policy; docs/how-to/analyze-your-policies.md');
  const folder = await mkdtemp(join(tmpdir(), 'countersign-tour-'));
  try {
    await writeFile(join(folder, 'policies.yaml'), policies);
    await writeFile(join(folder, 'tour.analysis.yaml'), questions);
    const { json } = await (await analysisPackage()).analyzeFolder(terminal, folder, { limit: '30' });
    for (const { name, expected, got, execution } of (json as Answers).questions) {
      const isExecuted = execution?.outcome === 'executed';
      say(`   ${name}: ${(got === expected ? green : red)(got)}${isExecuted ? ', and executed in a coordinator' : ''}`);
      if (execution && !isExecuted) note(`not executed: ${execution.why}`);
    }
  } catch (error) {
    if (!(error instanceof BadUsage)) throw error;
    note(`not here: ${error.message}`);
  } finally {
    await rm(folder, { recursive: true });
  }
}
