import { analysisPackage, type AnalyzeOptions } from '../analysis-package.js';
import type { CliCommand } from '../command.js';

/** `countersign policies analyze`. */
export function mountAnalyze(policies: CliCommand): void {
  const { terminal } = policies;
  policies
    .command('analyze')
    .argument('[folder]', 'with policies.yaml and files that end in .analysis.yaml', '.')
    .option('--limit <seconds>', 'time for the solver to answer a question', '30')
    .summary('prove properties of policies (needs countersign-analyze)')
    .description(
      'Answers the questions of a folder about policies for all requests, not for examples: what can never happen, whether two sets of ' +
        'policies allow the same, whether one implies another, whom the organization cannot do without. Examples are ' +
        'executed in a coordinator in memory. Exits with 1 if an answer is not the one that the file expects, or is unknown, or if the ' +
        'coordinator disagrees. Needs the package countersign-analyze.',
    )
    .example('countersign policies analyze examples/policies/treasury', 'Answer the questions of a folder')
    .answers(async (options: AnalyzeOptions, folder: string) =>
      (await analysisPackage()).analyzeFolder(terminal, folder, options),
    );
}
