import type { ProfileOptions } from '../callers.js';
import { clientOf } from '../callers.js';
import type { CliCommand, Outcome } from '../command.js';
import { explained } from '../explain.js';
import { Profiles } from '../profiles.js';
import type { Terminal } from '../terminal.js';

interface LogoutOptions extends Pick<ProfileOptions, 'profile'> {
  readonly yes?: boolean;
}

/** `countersign logout`. */
export function mountLogout(parent: CliCommand): void {
  parent
    .command('logout')
    .summary('remove a profile and its key')
    .description(
      'Deletes the API key that `login` registered at the coordinator, then the profile, which holds the only copy. A key that somebody ' +
        'else registered remains known to the coordinator, but nobody has it any more. Asks for confirmation.',
    )
    .option(
      '--profile <name>',
      'profile to remove; default: COUNTERSIGN_PROFILE, or the one chosen with `profiles use`',
    )
    .option('--yes', 'do not ask for confirmation')
    .example('countersign logout --profile laptop --yes', 'Remove a profile in a script')
    .answers((options: LogoutOptions) => logout(parent.terminal, options));
}

async function logout(terminal: Terminal, options: LogoutOptions): Promise<Outcome> {
  const profiles = Profiles.of(terminal);
  const name = options.profile ?? (await profiles.current());
  const profile = await profiles.read(name);
  const { apiKeyId, userId, address, key } = profile;
  const question = `Remove the profile \`${name}\` (${address}) and its key ${key.publicKey.slice(0, 12)}…?`;
  if (!options.yes && !(await terminal.confirm(question))) {
    return { text: 'Nothing was changed.\n', json: { profile: name, removed: false } };
  }
  let left = 'The coordinator still knows the key, but nobody has the private key any more.';
  let isDeleted = false;
  if (apiKeyId !== undefined && userId !== undefined) {
    try {
      await clientOf(profile).perform('ACTIVITY_TYPE_DELETE_API_KEYS', { userId, apiKeyIds: [apiKeyId] });
      isDeleted = true;
    } catch (error) {
      left = `The coordinator still knows the key, because deleting it there failed: ${explained(error).message}`;
    }
  }
  await profiles.remove(name);
  return {
    text: `Removed profile \`${name}\`.${isDeleted ? ' Its key was deleted at the coordinator.' : ` ${left}`}\n`,
    json: { profile: name, removed: true, keyDeleted: isDeleted },
  };
}
