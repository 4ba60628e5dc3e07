import type { CliCommand } from '../command.js';
import type { ReplayOptions } from '../replay-options.js';
import { orProfile, withStore } from '../stores.js';

/** `countersign replay`; see docs/how-to/debug-by-the-events.md. */
export function mountReplay(parent: CliCommand): void {
  orProfile(withStore(parent.command('replay')), 'no interactive session, and no decision made again')
    .summary('step through the history of an organization, event by event')
    .description(
      'Steps through the history of an organization: its state at any event, position or time, what changed between two of them, ' +
        'and each event with the signed request that caused it, its stamps verified and its decision made again. In a ' +
        'terminal, use the arrow keys; ? lists all keys. Changes nothing, and can run while the coordinator is running.',
    )
    .argument('[organization]', 'id of the organization; default: the first one in the store')
    .option(
      '--at <point>',
      'a revision, position:<number>, a time such as 2026-11-23T12:00:00Z, the id of an event, or end',
      'end',
    )
    .option('--diff <point>', 'show what changed between this point and --at')
    .option('--step', 'print every event up to --at, one after the other')
    .option('--decisions', 'like --step, but only events that decided something')
    .option('--from <point>', 'where --step starts')
    .option('--activity <id>', 'print the whole lifecycle of an activity')
    .option('--no-tty', 'print the state instead of starting an interactive session')
    .example(
      'countersign replay --data-dir ./data --no-tty --at 5',
      'Show the first organization after its sixth event',
    )
    .example('countersign replay --data-dir ./data --diff 0 --at end', 'Show what has changed since the first event')
    .example('countersign replay --data-dir ./data --decisions', 'Make every decision again')
    .example(
      'countersign replay --profile default --diff 0',
      'Ask a coordinator what has changed since the first event',
    )
    .answers(async (options: ReplayOptions, organization: string | undefined) => {
      const { replay } = await import('../replay.js');
      return replay(parent.terminal, options, organization);
    });
}
