import type { HistoryForkOptions } from '../history-fork.js';
import type { CliCommand } from '../command.js';
import { withStore } from '../stores.js';

/** `countersign history fork`. */
export function mountHistoryFork(parent: CliCommand): void {
  withStore(parent.command('fork'))
    .summary('what would have happened, had one event been otherwise')
    .description(
      'Folds the history of an organization up to an event, leaves it out, edits it or puts something before it, and decides ' +
        'every signed request that follows again, and every one that was denied: what comes out otherwise first, then all ' +
        'that follows from it, and what stays as it was. What a verb took from outside, such as a new key, is taken from the ' +
        'record; where there is none, it says so. Changes nothing, and may run beside the coordinator.',
    )
    .requiredOption('--organization <id>', 'organization to export')
    .option('--skip <revision>', 'leave that event out; a request with all that followed from it')
    .option('--edit <revision>', 'have what --file says there instead')
    .option('--insert <revision>', 'have what --file says before that event')
    .option(
      '--file <file>',
      'JSON: an event, {"type","data"}, or a request that is decided, {"userId","type","parameters"}; an edit leaves out ' +
        'what stays',
    )
    .example(
      'countersign history fork --organization $ORGANIZATION --skip 6',
      'What if the seventh event had not been?',
    )
    .example(
      'countersign history fork --organization $ORGANIZATION --insert 8 --file request.json',
      'What if somebody had asked for something more?',
    )
    .answers(async (options: HistoryForkOptions) => {
      const { fork } = await import('../history-fork.js');
      return fork(parent.terminal, options);
    });
}
