import { profileClient, withProfile, type ProfileOptions } from '../callers.js';
import { type CliCommand, type Outcome } from '../command.js';
import { asJson } from '../../wire/terminal-json.js';
import { withParameters, type ParameterOptions } from '../parameters.js';
import type { Terminal } from '../terminal.js';

type QueryOptions = ProfileOptions & ParameterOptions;

/** `countersign query`. */
export function mountQuery(parent: CliCommand): void {
  withParameters(withProfile(parent.command('query')))
    .argument('<name>', 'name of the query, such as list_users; see docs/reference/queries.md')
    .summary('send any query')
    .description('Sends a query, stamped with the key of the profile, and prints the response as JSON.')
    .example('countersign query get_organization_configs', 'Show the settings of the organization')
    .example('countersign query list_activities --set paginationOptions.limit=2', 'Send a query with parameters')
    .answers((options: QueryOptions, name: string) => query(parent.terminal, name, options));
}

async function query(terminal: Terminal, name: string, options: QueryOptions): Promise<Outcome> {
  const [{ queryNamed }, { givenParameters }, { validate }] = await Promise.all([
    import('../wire-names.js'),
    import('../parameters.js'),
    import('../../wire/validate.js'),
  ]);
  const { path, request } = queryNamed(name);
  const client = await profileClient(terminal, options);
  const parameters = { organizationId: client.organizationId, ...(await givenParameters(terminal, request, options)) };
  validate(request, parameters);
  const answer = await client.query(path, parameters);
  return { text: `${asJson(answer, 2)}\n`, json: answer };
}
