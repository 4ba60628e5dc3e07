import { profileClient, withProfile, type ProfileOptions } from '../callers.js';
import type { CliCommand } from '../command.js';
import { lines } from '../layout.js';

interface Whoami {
  readonly organizationId: string;
  readonly organizationName: string;
  readonly userId: string;
  readonly username: string;
}

/** `countersign whoami`. */
export function mountWhoami(parent: CliCommand): void {
  withProfile(parent.command('whoami'))
    .summary('show who you are to the coordinator')
    .description('Asks the coordinator which user the key of the profile belongs to.')
    .example('countersign whoami', 'Show the user and organization of the current profile')
    .answers(async (options: ProfileOptions) => {
      const client = await profileClient(parent.terminal, options);
      const { userId, username, organizationId, organizationName } = await client.query<Whoami>('whoami');
      const { publicKey } = client.key;
      return {
        text: lines(parent.terminal, [
          ['User', `${username} (${userId})`],
          ['Organization', `${organizationName} (${organizationId})`],
          ['Key', publicKey],
        ]),
        json: { userId, username, organizationId, organizationName, publicKey },
      };
    });
}
