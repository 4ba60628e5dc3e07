import { profileClient, withProfile, type ProfileOptions } from '../callers.js';
import type { CliCommand, Outcome } from '../command.js';

interface VoteOptions extends ProfileOptions {
  readonly yes?: boolean;
  readonly unverified?: boolean;
}

/** `countersign approve`. */
export function mountApprove(parent: CliCommand): void {
  withVoteOptions(parent.command('approve'))
    .argument('<activity>', 'its fingerprint, or its id')
    .summary('approve a waiting activity')
    .description(
      'Approves an activity that is waiting for approvals: by the fingerprint that its submitter gave you or that `countersign ' +
        'activities show` has verified. By its id, shows what it would do, verified, and asks first. Exits with 4 if it needs further ' +
        'approvals.',
    )
    .example('countersign approve "$FINGERPRINT" --profile bob', 'Approve, as Bob, what Alice submitted')
    .answers((options: VoteOptions, named: string) => vote('approve', parent, options, named));
}

/** `countersign reject`. */
export function mountReject(parent: CliCommand): void {
  withVoteOptions(parent.command('reject'))
    .argument('<activity>', 'its fingerprint, or its id')
    .summary('reject a waiting activity')
    .description(
      'Rejects an activity that is waiting for approvals. By its id, shows what it would do, verified, and asks first. Exits with 0 ' +
        'if the vote counts.',
    )
    .example('countersign reject "$ACTIVITY" --profile bob --yes', 'Reject, as Bob, what Alice submitted')
    .answers(async (options: VoteOptions, named: string) => {
      const { exitCode: _asked, ...outcome } = await vote('reject', parent, options, named);
      return outcome;
    });
}

function withVoteOptions<SomeCommand extends CliCommand>(command: SomeCommand): SomeCommand {
  return withProfile(command)
    .option('--yes', 'with an id: do not ask for confirmation')
    .option(
      '--unverified',
      'with an id: vote even where secrets are left out, so that what is shown cannot be verified',
    );
}

async function vote(
  verb: 'approve' | 'reject',
  { terminal }: CliCommand,
  options: VoteOptions,
  named: string,
): Promise<Outcome> {
  const { confirmedFingerprint, submitted } = await import('../activities.js');
  const client = await profileClient(terminal, options);
  const question = verb === 'approve' ? 'Approve this?' : 'Reject this?';
  const fingerprint = await confirmedFingerprint(terminal, client, named, { question, ...options });
  if (fingerprint === undefined) return { text: 'Nothing was changed.\n', json: { voted: false } };
  return submitted(terminal, await client[verb](fingerprint));
}
