import { profileClient, withProfile, type ProfileOptions } from '../callers.js';
import type { CliCommand } from '../command.js';

/** `countersign approve`. */
export function mountApprove(parent: CliCommand): void {
  withProfile(parent.command('approve'))
    .argument('<activity>', 'its id or its fingerprint')
    .summary('approve an activity that waits')
    .description(
      'Approves an activity that waits for approvals. `countersign activities show` tells first what it would do. Ends with 4 ' +
        'when it waits for others still.',
    )
    .example('countersign approve "$FINGERPRINT" --profile bob', 'Approve as Bob what Alice has submitted')
    .answers((options: ProfileOptions, named: string) => vote('approve', parent, options, named));
}

/** `countersign reject`. */
export function mountReject(parent: CliCommand): void {
  withProfile(parent.command('reject'))
    .argument('<activity>', 'its id or its fingerprint')
    .summary('reject an activity that waits')
    .description('Rejects an activity that waits for approvals. Ends with 0 when the vote counts.')
    .example('countersign reject "$ACTIVITY" --profile bob', 'Reject as Bob what Alice has submitted')
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
