import type { CliCommand } from '../command.js';
import type { ReplayOptions } from '../replay.js';
import { withStore } from '../stores.js';

/** `countersign replay`; see docs/how-to/debug-by-the-events.md. */
export function mountReplay(parent: CliCommand): void {
  withStore(parent.command('replay'))
    .summary('go through the history of an organization, event by event')
    .description(
      'Goes through the history of an organization: what it was at any event, position or time, what has changed between two, ' +
        'and each event beside the signed request that caused it, its stamps verified and its decision made again. In a ' +
        'terminal with the arrow keys; ? lists the keys. Changes nothing, and may run beside the coordinator.',
    )
    .argument('[organization]', 'the id of the organization; the first one of the store unless given')
    .option(
      '--at <point>',
      'a revision, position:<number>, a time such as 2026-11-23T12:00:00Z, the id of an event, or end',
      'end',
    )
    .option('--diff <point>', 'what has changed from that point to --at')
    .option('--step', 'tell every event up to --at, one after the other')
    .option('--decisions', 'as --step, but only the events that have decided something')
    .option('--from <point>', 'where --step begins')
    .option('--activity <id>', 'the whole life of an activity')
    .option('--no-tty', 'write the state, instead of asking for keys')
    .example(
      'countersign replay --data-dir ./data --no-tty --at 5',
      'What the first organization was behind its sixth event',
    )
    .example('countersign replay --data-dir ./data --diff 0 --at end', 'What has changed since the first event')
    .example('countersign replay --data-dir ./data --decisions', 'Every decision, made again')
    .answers(async (options: ReplayOptions, organization: string | undefined) => {
      const { replay } = await import('../replay.js');
      return replay(parent.terminal, options, organization);
    });
}
