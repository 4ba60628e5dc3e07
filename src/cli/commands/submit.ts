import { profileClient, withProfile, type ProfileOptions } from '../callers.js';
import { type CliCommand, type Outcome } from '../command.js';
import { asJson } from '../../wire/terminal-json.js';
import { withParameters, type ParameterOptions } from '../parameters.js';
import type { Terminal } from '../terminal.js';

interface SubmitOptions extends ProfileOptions, ParameterOptions {
  readonly print?: boolean;
  readonly dryRun?: boolean;
  readonly explain?: boolean;
}

/** `countersign submit`. */
export function mountSubmit(parent: CliCommand): void {
  withParameters(withProfile(parent.command('submit')))
    .argument('<activity>', 'name of the activity, such as create_policy; see docs/reference/activities.md')
    .summary('submit any activity')
    .description(
      'Submits an activity, stamped with the key of the profile. The parameters are first checked against the ' +
        'OpenAPI document. Exits with 4 if the activity is waiting for approvals, with 3 if policies deny it.',
    )
    .option('--print', 'check the parameters and print the request, but do not send it')
    .option('--dry-run', 'only ask what it would come to: nothing is recorded, sent or made')
    .option('--explain', 'with --dry-run: prove the decision, for members of the root quorum')
    .example('countersign submit create_user_tag --set userTagName=treasury', 'Create a tag')
    .example('countersign submit create_policy --file policy.json', 'Create a policy from a file')
    .example(
      'countersign submit create_user_tag --set userTagName=tried --dry-run',
      'See whether you could create a tag',
    )
    .answers((options: SubmitOptions, activity: string) => submit(parent.terminal, activity, options));
}

async function submit(terminal: Terminal, name: string, options: SubmitOptions): Promise<Outcome> {
  const [{ activityNamed }, { givenParameters }, { validateParameters }, { submitted }] = await Promise.all([
    import('../wire-names.js'),
    import('../parameters.js'),
    import('../../wire/validate.js'),
    import('../activities.js'),
  ]);
  const { type, intent } = activityNamed(name);
  const parameters = await givenParameters(terminal, intent, options);
  validateParameters(intent, parameters);
  const client = await profileClient(terminal, options);
  if (options.print) {
    const body: unknown = JSON.parse(client.submitBody(type, parameters));
    return { text: `${asJson(body, 2)}\n`, json: body };
  }
  if (options.dryRun) {
    const { triedText } = await import('../dry-run.js');
    const { timestampMs } = JSON.parse(client.submitBody(type, parameters)) as { readonly timestampMs: string };
    const withProof = options.explain === true;
    const told = await client.query('dry_run', {
      timestampMs,
      activity: { type, parameters: { ...parameters } },
      withProof,
    });
    return triedText(terminal, type, told);
  }
  return submitted(terminal, await client.submit(type, parameters));
}
