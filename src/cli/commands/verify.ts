import type { CliCommand } from '../command.js';
import { withStore } from '../stores.js';
import type { VerifyOptions } from '../verify.js';

/** `countersign verify`. */
export function mountVerify(parent: CliCommand): void {
  withStore(parent.command('verify'))
    .summary('verify the whole history of a store')
    .description(
      'Folds every stream of the store again, checks its hash chain, verifies every stored stamp over the stored bytes, and ' +
        'makes every decision again by the rules it was made by. Rebuilds the read models beside the live ones and compares. ' +
        'Changes nothing, needs no key-encryption key, and may run beside the coordinator. ' +
        'Ends with 0 when nothing is wrong, 1 when something is, 2 when it cannot look.',
    )
    .option('--quiet', 'show no progress')
    .option('--no-rows', 'leave the read models out')
    .option(
      '--progress <file>',
      'note there how far it is, and go on from there after an interruption; the file is trusted, so keep it where nobody ' +
        'else can write',
    )
    .example(
      'countersign verify --data-dir ./data',
      'Verify the store of the coordinator that keeps its data in ./data',
    )
    .answers(async (options: VerifyOptions) => {
      const { verify } = await import('../verify.js');
      return verify(parent.terminal, options);
    });
}
