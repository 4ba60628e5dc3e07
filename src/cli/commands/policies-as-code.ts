import { Option } from 'commander';
import { withProfile } from '../callers.js';
import type { CliCommand } from '../command.js';
import type { ApplyOptions } from '../policy-apply.js';
import type { PlanOptions } from '../policy-plan.js';
import { failures } from '../what-if-options.js';

interface TestOptions {
  readonly junit?: string;
  readonly watch?: boolean;
  readonly json?: boolean;
}

/** `countersign policies check`, `test`, `plan` and `apply`; see docs/how-to/policies-as-code.md. */
export function mountPoliciesAsCode(policies: CliCommand): void {
  const { terminal } = policies;
  policies
    .command('check')
    .argument('[folder]', 'with policies.yaml', '.')
    .summary('check a folder of policies')
    .description(
      'Checks the policies of a folder, with the line and column of every mistake. No coordinator is needed.',
    )
    .example('countersign policies check examples/policies/treasury', 'Check the policies of a folder')
    .answers(async (_options: object, folder: string) =>
      (await import('../policy-folder.js')).checkFolder(terminal, folder),
    );

  policies
    .command('test')
    .argument('[folder]', 'with policies.yaml and files that end in .test.yaml', '.')
    .option('--junit <file>', 'also write the results for a CI server')
    .option('--watch', 'run again whenever a file of the folder changes, until Ctrl-C')
    .summary('test a folder of policies')
    .description(
      'Decides the requests of the tests by the policies of a folder, with the code that decides. No coordinator is needed.',
    )
    .example('countersign policies test examples/policies/treasury', 'Run the tests of a folder')
    .answers(async (options: TestOptions, folder: string) => {
      const { testFolder } = await import('../policy-folder.js');
      const run = () => testFolder(terminal, folder, options.junit);
      return options.watch ? (await import('../policy-watch.js')).watched(terminal, folder, options, run) : run();
    });

  withProfile(policies.command('plan'))
    .argument('[folder]', 'with policies.yaml', '.')
    .addOption(failOn())
    .addOption(rebind())
    .option('--from <revision>', 'have the changes hold in the history from this event on, instead of from the start')
    .option('--exit-code', 'end with 7 if there are changes, as `git diff --exit-code` does with 1')
    .summary('show the changes needed to match a policy folder')
    .description(
      'Compares the policies, tags and root quorum of a folder with those of the organization, and shows what to do in which ' +
        'order, what it would have changed in the whole history, and what becomes of waiting activities. Changes nothing. What ' +
        'is asked of the history, only members of the root quorum are told.',
    )
    .example('countersign policies plan examples/policies/treasury', 'See what differs')
    .example(
      'countersign policies plan examples/policies/treasury --fail-on new-allow',
      'In CI, stop what would have allowed what was not allowed',
    )
    .answers(async (options: PlanOptions, folder: string) =>
      (await import('../policy-plan.js')).planFolder(terminal, options, folder),
    );

  withProfile(policies.command('apply'))
    .argument('[folder]', 'with policies.yaml', '.')
    .addOption(failOn())
    .addOption(rebind())
    .option('--from <revision>', 'have the changes hold in the history from this event on, instead of from the start')
    .option('--wait [seconds]', 'wait for votes on each activity: 600 seconds, or as many as given')
    .option('--yes', 'do not ask for confirmation')
    .summary('make an organization like a folder')
    .description(
      'Shows the plan, asks, and submits its activities one after the other. Whatever passes meanwhile would pass before or ' +
        'after. Where one waits for votes, it says who approves it how, and ends with 4; applying the folder again, by anybody, goes on ' +
        'from there. Stops if somebody else has changed policies, tags or quorum since the plan was shown. Binds names to ids in ' +
        'policies.lock.json, and refuses a name that means something else than before.',
    )
    .example('countersign policies apply examples/policies/treasury --yes', 'Apply a folder in a script')
    .answers(async (options: ApplyOptions, folder: string) =>
      (await import('../policy-apply.js')).applyFolder(terminal, options, folder),
    );
}

const failOn = (): Option =>
  new Option('--fail-on <kind>', 'end with 1 if the history would have had such a difference').choices(
    Object.keys(failures),
  );

const rebind = (): Option =>
  new Option(
    '--rebind <name>',
    'accept that a name stands for another user, tag, wallet or key than when the folder was applied; can be repeated',
  )
    .argParser((name: string, before: readonly string[]) => [...before, name])
    .default([]);
