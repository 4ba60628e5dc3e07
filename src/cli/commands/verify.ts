import type { CliCommand } from '../command.js';
import { orProfile, withStore } from '../stores.js';
import type { VerifyOptions } from '../verify.js';

/** `countersign verify`. */
export function mountVerify(parent: CliCommand): void {
  orProfile(
    withStore(parent.command('verify')),
    'checks only what it shows of the organization, and says what it cannot',
  )
    .summary('verify the whole history of a store')
    .description(
      'Folds every stream of the store again, checks its hash chain, verifies every stored stamp over the stored bytes, and ' +
        'makes every decision again by the rules that applied then. Looks for every vault that is still needed, rebuilds the read ' +
        'models and compares them with the live ones. ' +
        'Changes nothing, needs no key-encryption key, and can run while the coordinator is running. ' +
        'Exits with 0 if nothing is wrong, 1 if something is, and 2 if it cannot check.',
    )
    .option('--quiet', 'show no progress')
    .option('--no-rows', 'skip the read models')
    .option(
      '--progress <file>',
      'save progress there, and resume from it after an interruption; the file is trusted, so keep it where nobody ' +
        'else can write',
    )
    .option(
      '--heads <file>',
      'compare the last links that were saved there, and save those of now if nothing is wrong; keep the file where nobody ' +
        'who can write to the store can write',
    )
    .option(
      '--since <file>',
      'verify stamps and decisions of later events only: after the heads that --heads saved there; of earlier events, check only that ' +
        'the chains lead to these heads, and skip the read models',
    )
    .example('countersign verify --data-dir ./data', 'Verify the store of the coordinator whose data is in ./data')
    .example('countersign verify --data-dir ./data --heads heads.json', 'Verify it, and save the heads of its streams')
    .example(
      'countersign verify --data-dir ./data --since heads.json --heads heads.json',
      'Verify what was recorded since the last time, and save the new heads',
    )
    .example('countersign verify --profile default', 'Verify the stamps of what a coordinator shows you')
    .answers(async (options: VerifyOptions) => {
      const { verify } = await import('../verify.js');
      return verify(parent.terminal, options);
    });
}
