import type { HistoryForkOptions } from '../history-fork.js';
import type { CliCommand } from '../command.js';
import { withStoreOnly } from '../stores.js';

/** `countersign history fork`. */
export function mountHistoryFork(parent: CliCommand): void {
  withStoreOnly(
    parent.command('fork'),
    'With a profile, `countersign policies what-if --profile` tries other policies on the history',
  )
    .summary('ask what would have happened, had one event been different')
    .description(
      'Leaves out one event of an organization, edits it, or inserts something before it; then decides every later signed ' +
        'request again, denied ones included. Shows the first decision that comes out differently, everything that follows ' +
        'from it, and how much stays the same. Keys and other values that came from outside are taken from the record; if ' +
        'there are none, it says so. Changes nothing, and can run while the coordinator is running. ' +
        'Opens the store, so it is for the operator: with a profile, try other policies on the history with ' +
        '`countersign policies what-if --profile`.',
    )
    .requiredOption('--organization <id>', 'the organization')
    .option('--skip <revision>', 'leave out this event; for a request, also everything that followed from it')
    .option('--edit <revision>', 'replace this event with what is in --file')
    .option('--insert <revision>', 'insert what is in --file before this event')
    .option(
      '--file <file>',
      'JSON: an event, {"type","data"}, or a request to decide, {"userId","type","parameters"}; for --edit, only the ' +
        'members that change',
    )
    .example(
      'countersign history fork --organization $ORGANIZATION --skip 6',
      'What if the seventh event had never happened?',
    )
    .example(
      'countersign history fork --organization $ORGANIZATION --insert 8 --file request.json',
      'What if somebody had requested something else as well?',
    )
    .answers(async (options: HistoryForkOptions) => {
      const { fork } = await import('../history-fork.js');
      return fork(parent.terminal, options);
    });
}
