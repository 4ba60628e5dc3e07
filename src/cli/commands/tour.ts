import type { CliCommand } from '../command.js';
import type { TourOptions } from '../tour.js';

/** `countersign tour`. */
export function mountTour(parent: CliCommand): void {
  parent
    .command('tour')
    .summary('see what a running coordinator does')
    .description(
      'Plays a story against a running coordinator, with real signatures: two colleagues, a policy that asks for both, a ' +
        'denial, the events behind it, a wallet, a login; then all of it again by `replay`, and `verify`. Uses the root API ' +
        'key of root.json in DATA_DIR (./data), and adds users and policies to the root organization.',
    )
    .option('--data-dir <folder>', 'data folder of the coordinator, instead of DATA_DIR')
    .example('countersign tour --data-dir ./data', 'Take the tour on the coordinator whose data is in ./data')
    .answers(async (options: TourOptions) => {
      const { tour } = await import('../tour.js');
      return tour(parent.terminal, options);
    });
}
