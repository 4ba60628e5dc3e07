import { release } from '../config/release.js';
import { CliCommand } from './command.js';
import {
  mountActivitiesApprovers,
  mountActivitiesExplain,
  mountActivitiesList,
  mountActivitiesShow,
} from './commands/activities.js';
import { mountClockMend } from './commands/clock-mend.js';
import { mountCompletion } from './commands/completion.js';
import { mountDoctor } from './commands/doctor.js';
import { mountHistoryExport } from './commands/history-export.js';
import { mountHistoryFork } from './commands/history-fork.js';
import { mountKekRotate } from './commands/kek-rotate.js';
import { mountLogin } from './commands/login.js';
import { mountLogout } from './commands/logout.js';
import { mountPolicies } from './commands/policies.js';
import { mountPoliciesAsCode } from './commands/policies-as-code.js';
import { mountProfilesKey, mountProfilesList, mountProfilesUse } from './commands/profiles.js';
import { mountProofVerify } from './commands/proof-verify.js';
import { mountQuery } from './commands/query.js';
import { mountReadModelsBuild } from './commands/read-models-build.js';
import { mountReplay } from './commands/replay.js';
import { mountStart } from './commands/start.js';
import { mountSubmit } from './commands/submit.js';
import { mountTour } from './commands/tour.js';
import { mountUsers } from './commands/users.js';
import { mountVerify } from './commands/verify.js';
import { mountApprove, mountReject } from './commands/votes.js';
import { mountWallets } from './commands/wallets.js';
import { mountWebhooksRedeliver } from './commands/webhooks-redeliver.js';
import { mountWhatIf } from './commands/what-if.js';
import { mountWhoami } from './commands/whoami.js';
import { exitCodeMeanings } from './exit-codes.js';
import type { Terminal } from './terminal.js';

/**
 * Every command, with its arguments and options. Commands load their dependencies only when they run, so that help and
 * completion are fast. For a program, whoever runs the tree says what is wrong with the arguments.
 */
export function commandTree(terminal: Terminal, { isForProgram = false } = {}): CliCommand {
  const { hasColours, columns } = terminal.surroundings;
  const tree = new CliCommand(terminal, 'countersign')
    .description('Open, self-hostable, event-sourced coordinator for signed activities.')
    .version(release())
    .exitOverride()
    .showHelpAfterError(isForProgram ? false : '(add --help for usage)')
    .configureOutput({
      writeOut: (text) => terminal.out(text),
      writeErr: (text) => terminal.error(text),
      ...(isForProgram ? { outputError: () => undefined } : {}),
      getOutHasColors: () => hasColours.out,
      getErrHasColors: () => hasColours.error,
      getOutHelpWidth: () => columns ?? 100,
      getErrHelpWidth: () => columns ?? 100,
    })
    .configureHelp({ styleTitle: (text) => terminal.styled('bold', text) });

  tree
    .example('countersign start', 'First, start a coordinator here; then, in a second terminal:')
    .example('countersign tour', 'Watch what it does')
    .example('countersign login', 'Work with it as its root user');
  const endings = Object.entries(exitCodeMeanings).map(([code, meaning]) => `  ${code}  ${meaning}\n`);
  tree.addHelpText('after', `\nExit codes:\n${endings.join('')}`);

  tree.commandsGroup('Coordinator:');
  mountStart(tree);
  mountTour(tree);
  mountDoctor(tree);

  tree.commandsGroup('Profile:');
  mountLogin(tree);
  mountLogout(tree);
  mountWhoami(tree);
  const profiles = listing(tree, 'profiles').summary('list and choose profiles');
  mountProfilesList(profiles);
  mountProfilesUse(profiles);
  mountProfilesKey(profiles);

  tree.commandsGroup('Activities:');
  mountSubmit(tree);
  mountApprove(tree);
  mountReject(tree);
  const activities = listing(tree, 'activities').summary('list, show and explain activities');
  mountActivitiesList(activities);
  mountActivitiesShow(activities);
  mountActivitiesExplain(activities);
  mountActivitiesApprovers(activities);
  mountQuery(tree);
  mountUsers(listing(tree, 'users').summary('list, create and delete users'));
  const policies = listing(tree, 'policies').summary('list, show, create, delete, test, plan, apply and try policies');
  mountPolicies(policies);
  mountPoliciesAsCode(policies);
  mountWhatIf(policies);
  mountWallets(listing(tree, 'wallets').summary('list, create and delete wallets; sign'));

  tree.commandsGroup('Store:');
  mountReplay(tree);
  mountVerify(tree);
  const history = tree.command('history').summary('the history of one organization');
  mountHistoryExport(history);
  mountHistoryFork(history);
  mountKekRotate(tree.command('kek').summary('the key-encryption key'));
  mountReadModelsBuild(tree.command('read-models').summary('the read models, which queries read'));
  mountClockMend(tree.command('clock').summary('the time of an organization'));
  mountWebhooksRedeliver(tree.command('webhooks').summary('webhook deliveries'));
  mountProofVerify(tree.command('proof').summary('boot proofs and app proofs'));

  tree.commandsGroup('Shell:');
  mountCompletion(tree);
  return tree;
}

/** A group whose name alone lists what there is. */
function listing(tree: CliCommand, name: string): CliCommand {
  return tree
    .command(name)
    .description(`\`countersign ${name}\` alone is \`countersign ${name} list\`, with its options.`);
}
