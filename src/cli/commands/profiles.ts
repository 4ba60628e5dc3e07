import { BadUsage } from '../bad-usage.js';
import type { CliCommand, Outcome } from '../command.js';
import { printable, table } from '../layout.js';
import { Profiles } from '../profiles.js';
import type { Terminal } from '../terminal.js';

/** `countersign profiles list`. */
export function mountProfilesList(parent: CliCommand): void {
  parent
    .command('list', { isDefault: true })
    .summary('list the profiles')
    .description('Lists the profiles in the configuration folder; the current one has a star.')
    .example('countersign profiles list', 'List them')
    .answers(() => list(parent.terminal));
}

/** `countersign profiles use`. */
export function mountProfilesUse(parent: CliCommand): void {
  parent
    .command('use')
    .argument('<name>', 'the profile')
    .summary('choose the profile that commands use')
    .description('Chooses the profile that commands use by default. --profile and COUNTERSIGN_PROFILE override it.')
    .example('countersign profiles use default', 'Use the profile `default` from now on')
    .answers(async (_options: object, name: string) => {
      await Profiles.of(parent.terminal).use(name);
      return { text: `Commands now use the profile \`${name}\`.\n`, json: { profile: name } };
    });
}

/** `countersign profiles key`. */
export function mountProfilesKey(parent: CliCommand): void {
  parent
    .command('key')
    .argument('[name]', 'the profile; default: the current one')
    .summary('print the public key of a profile')
    .description(
      'Prints the public key of a profile, so that somebody can register it. No command prints a private key.',
    )
    .example('countersign profiles key alice', 'Print the key that Alice needs to have registered')
    .answers(async (_options: object, name: string | undefined) => {
      const profiles = Profiles.of(parent.terminal);
      const { key } = await profiles.read(name ?? (await profiles.current()));
      return { text: `${key.publicKey}\n`, json: { publicKey: key.publicKey } };
    });
}

async function list(terminal: Terminal): Promise<Outcome> {
  const profiles = Profiles.of(terminal);
  const current = await profiles.current();
  const all = await Promise.all(
    (await profiles.names()).map(async (name) => {
      const about = { name, isCurrent: name === current };
      try {
        const { address, organizationId, key } = await profiles.read(name);
        return { ...about, address, organizationId, publicKey: key.publicKey };
      } catch (error) {
        // One that cannot be used hides none of the others.
        if (error instanceof BadUsage) return { ...about, problem: error.message };
        throw error;
      }
    }),
  );
  const rows = all.map((profile) => [
    `${profile.isCurrent ? '*' : ' '} ${profile.name}`,
    ...('problem' in profile ? ['cannot be used'] : [profile.address, profile.organizationId, profile.publicKey]),
  ]);
  const problems = all.flatMap((profile) => ('problem' in profile ? [`${printable(profile.problem)}\n`] : []));
  return {
    text:
      rows.length > 0
        ? table(terminal, ['  PROFILE', 'ADDRESS', 'ORGANIZATION', 'KEY'], rows) + problems.join('')
        : 'No profiles yet: create one with countersign login.\n',
    json: { profiles: all },
  };
}
