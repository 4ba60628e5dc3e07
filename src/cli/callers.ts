import { ActivityClient } from '../client/activity-client.js';
import type { CliCommand } from './command.js';
import { Profiles, type Profile } from './profiles.js';
import type { Terminal } from './terminal.js';

/** Options of commands that call a coordinator. */
export interface ProfileOptions {
  readonly profile?: string;
  readonly organization?: string;
}

/** Longest wait for a response: a decision takes less, and a server that is gone never responds. */
const answerWithinMs = 60_000;

/** Adds the options that choose the caller. */
export function withProfile<SomeCommand extends CliCommand>(command: SomeCommand): SomeCommand {
  return command
    .option('--profile <name>', 'profile to use; default: COUNTERSIGN_PROFILE, or the one chosen with `profiles use`')
    .option('--organization <id>', "a sub-organization to act in, instead of the profile's organization");
}

/**
 * A client for the chosen profile.
 * @throws {BadUsage} if there is no such profile
 */
export async function profileClient(terminal: Terminal, options: ProfileOptions): Promise<ActivityClient> {
  const profiles = Profiles.of(terminal);
  const profile = await profiles.read(options.profile ?? (await profiles.current()));
  return clientOf({ ...profile, organizationId: options.organization ?? profile.organizationId });
}

/** A client with the key of a profile. */
export function clientOf({ address, organizationId, key }: Profile): ActivityClient {
  return new ActivityClient(address, organizationId, key, Date, answerWithinMs);
}
