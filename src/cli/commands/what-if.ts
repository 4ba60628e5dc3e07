import { Option } from 'commander';
import type { CliCommand } from '../command.js';
import { orProfile, withStore } from '../stores.js';
import { failures, type WhatIfCommandOptions } from '../what-if-options.js';

/** `countersign policies what-if`; see docs/how-to/debug-by-the-events.md. */
export function mountWhatIf(policies: CliCommand): void {
  orProfile(
    withStore(policies.command('what-if')),
    'only members of the root quorum may ask, and long histories are cut short',
  )
    .argument('[organization]', 'id of the organization; default: the first one in the store, or that of the profile')
    .summary('what a draft of policies would have changed in the whole history')
    .description(
      'Decides every request of an organization again, and every denied one, as if a draft had held from the start: other ' +
        'policies, another root quorum, tags of other users, users who are gone. Each decision is made on the state that the ' +
        'ones before it lead to. Lists what is newly allowed first. Changes nothing, and can run while the coordinator is running.',
    )
    .requiredOption('--file <file>', 'the draft, as JSON or YAML (docs/how-to/debug-by-the-events.md)')
    .option('--from <revision>', 'have the draft hold from this event on, instead of from the start')
    .addOption(
      new Option('--fail-on <kind>', 'end with 1 if there is such a difference').choices(Object.keys(failures)),
    )
    .example('countersign policies what-if --data-dir ./data --file draft.json', 'See what a draft would have changed')
    .example('countersign policies what-if --profile main --file draft.json', 'Ask a coordinator instead of its store')
    .example(
      'countersign policies what-if --data-dir ./data --file draft.json --fail-on new-allow',
      'In CI, stop a draft that would have allowed what was not allowed',
    )
    .answers(async (options: WhatIfCommandOptions, organization: string | undefined) => {
      const { askWhatIf } = await import('../what-if.js');
      return askWhatIf(policies.terminal, options, organization);
    });
}
