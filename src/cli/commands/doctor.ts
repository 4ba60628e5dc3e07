import type { CliCommand } from '../command.js';
import { withStore, type StoreOptions } from '../stores.js';

/** `countersign doctor`. */
export function mountDoctor(parent: CliCommand): void {
  withStore(parent.command('doctor'))
    .summary('look for what goes wrong in practice')
    .description(
      'Looks at an installation: settings, permissions, key-encryption key and unfinished rotations, event store and its append ' +
        'limit, clock, proxy secret, mail, disk, and versions. Says what to do about each problem, and changes nothing. Ends ' +
        'with 1 when there is a problem; warnings alone are none.',
    )
    .example('countersign doctor --data-dir ./data', 'Examine the coordinator that keeps its data in ./data')
    .answers(async (options: StoreOptions) => {
      const { examine } = await import('../doctor.js');
      return examine(parent.terminal, options);
    });
}
