import { profileClient, withProfile, type ProfileOptions } from '../callers.js';
import type { CliCommand } from '../command.js';

/** `countersign approve`. */
export function mountApprove(parent: CliCommand): void {
  withProfile(parent.command('approve'))
    .argument('<activity>', 'its id or its fingerprint')
    .summary('approve a waiting activity')
    .description(
      'Approves an activity that is waiting for approvals. `countersign activities show` shows what it would do. Exits with 4 ' +
        'if it needs further approvals.',
    )
    .example('countersign approve "$FINGERPRINT" --profile bob', 'Approve, as Bob, what Alice submitted')
    .answers((options: ProfileOptions, named: string) => vote('approve', parent, options, named));
}

/** `countersign reject`. */
export function mountReject(parent: CliCommand): void {
  withProfile(parent.command('reject'))
    .argument('<activity>', 'its id or its fingerprint')
    .summary('reject a waiting activity')
    .description('Rejects an activity that is waiting for approvals. Exits with 0 if the vote counts.')
    .example('countersign reject "$ACTIVITY" --profile bob', 'Reject, as Bob, what Alice submitted')
    .answers(async (options: ProfileOptions, named: string) => {
      const { exitCode: _asked, ...outcome } = await vote('reject', parent, options, named);
      return outcome;
    });
}

async function vote(verb: 'approve' | 'reject', { terminal }: CliCommand, options: ProfileOptions, named: string) {
  const { fingerprintOf, submitted } = await import('../activities.js');
  const client = await profileClient(terminal, options);
  return submitted(terminal, await client[verb](await fingerprintOf(client, named)));
}
