import type { CliCommand } from '../command.js';
import { withStore, type StoreOptions } from '../stores.js';

/** `countersign doctor`. */
export function mountDoctor(parent: CliCommand): void {
  withStore(parent.command('doctor'))
    .summary('check an installation for common problems')
    .description(
      'Checks an installation: settings, permissions, key-encryption key and unfinished rotations, event store and its append ' +
        'limit, clock, proxy secret, mail, disk, and versions. Says what to do about each problem, and changes nothing. Exits ' +
        'with 1 if there is a problem; warnings do not count.',
    )
    .example('countersign doctor --data-dir ./data', 'Check the coordinator whose data is in ./data')
    .answers(async (options: StoreOptions) => {
      const { examine } = await import('../doctor.js');
      return examine(parent.terminal, options);
    });
}
