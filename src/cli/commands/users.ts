import type { ActivityClient } from '../../client/activity-client.js';
import { profileClient, withProfile, type ProfileOptions } from '../callers.js';
import type { CliCommand, Outcome } from '../command.js';
import { table } from '../layout.js';
import { idsOf, wholeList } from '../list-pages.js';
import type { Terminal } from '../terminal.js';

interface User {
  readonly userId: string;
  readonly userName: string;
  readonly userEmail?: string;
  readonly userTags: readonly string[];
  readonly apiKeys: readonly object[];
  readonly authenticators: readonly object[];
}

interface CreateOptions extends ProfileOptions {
  readonly publicKey?: string;
  readonly email?: string;
  readonly tag?: readonly string[];
}

interface DeleteOptions extends ProfileOptions {
  readonly yes?: boolean;
}

/** `countersign users` and its subcommands. */
export function mountUsers(users: CliCommand): void {
  const { terminal } = users;
  withProfile(users.command('list', { isDefault: true }))
    .summary('list the users of the organization')
    .description('Lists the users of the organization.')
    .example('countersign users', 'List the users')
    .answers((options: ProfileOptions) => list(terminal, options));

  withProfile(users.command('create'))
    .argument('<name>', 'name of the user')
    .summary('create a user')
    .description('Creates a user, who logs in with the key that belongs to the given public key.')
    .option('--public-key <hex>', 'P-256 public key, as printed by `countersign login --new-key`')
    .option('--email <address>', 'e-mail address')
    .option('--tag <names...>', 'tags of the user, by name or id')
    .example('countersign users create Bob --public-key "$PUBLIC_KEY"', 'Create a user who already has a key')
    .answers((options: CreateOptions, name: string) => create(terminal, options, name));

  withProfile(users.command('delete'))
    .argument('<users...>', 'by name or id')
    .summary('delete users with their credentials')
    .description('Deletes users with their credentials. Asks for confirmation.')
    .option('--yes', 'do not ask for confirmation')
    .example('countersign users delete Carol --yes', 'Delete a user in a script')
    .answers((options: DeleteOptions, names: readonly string[]) => remove(terminal, options, names));
}

/** Every user. */
function listUsers(client: ActivityClient): Promise<readonly User[]> {
  return wholeList<User>(client, 'list_users', 'users', ({ userId }) => userId);
}

async function list(terminal: Terminal, options: ProfileOptions): Promise<Outcome> {
  const client = await profileClient(terminal, options);
  const [users, tags] = [await listUsers(client), await listTags(client)];
  const nameOf = new Map(tags.map(({ id, name }) => [id, name]));
  const rows = users.map(({ userName, userId, userEmail = '', userTags, apiKeys, authenticators }) => [
    userName,
    userId,
    userEmail,
    userTags.map((tag) => nameOf.get(tag) ?? tag).join(', '),
    String(apiKeys.length + authenticators.length),
  ]);
  return { text: table(terminal, ['NAME', 'USER', 'E-MAIL', 'TAGS', 'KEYS'], rows), json: { users } };
}

async function listTags(client: ActivityClient) {
  const tags = await wholeList<{ readonly tagId: string; readonly tagName: string }>(
    client,
    'list_user_tags',
    'userTags',
    ({ tagId }) => tagId,
  );
  return tags.map(({ tagId, tagName }) => ({ id: tagId, name: tagName }));
}

async function create(terminal: Terminal, options: CreateOptions, userName: string): Promise<Outcome> {
  const { submitted } = await import('../activities.js');
  const { publicKey, email, tag = [] } = options;
  const client = await profileClient(terminal, options);
  const userTags = tag.length > 0 ? [...idsOf('tag', tag, await listTags(client))] : [];
  const apiKeys =
    publicKey === undefined
      ? []
      : [{ apiKeyName: 'Command line', publicKey, curveType: 'API_KEY_CURVE_P256' as const }];
  const activity = await client.submit('ACTIVITY_TYPE_CREATE_USERS_V4', {
    users: [
      {
        userName,
        apiKeys,
        authenticators: [],
        oauthProviders: [],
        userTags,
        ...(email === undefined ? {} : { userEmail: email }),
      },
    ],
  });
  const { userIds } = (activity.result['createUsersResult'] ?? {}) as { readonly userIds?: readonly string[] };
  return submitted(terminal, activity, `Created user ${userName} (${userIds?.[0]}).\n`);
}

async function remove(terminal: Terminal, options: DeleteOptions, names: readonly string[]): Promise<Outcome> {
  const { submitted } = await import('../activities.js');
  const client = await profileClient(terminal, options);
  const all = (await listUsers(client)).map(({ userId, userName }) => ({ id: userId, name: userName }));
  const userIds = [...idsOf('user', names, all)];
  if (!options.yes && !(await terminal.confirm(`Delete ${names.join(', ')} with all credentials?`))) {
    return { text: 'Nothing was changed.\n', json: { deleted: false } };
  }
  const activity = await client.submit('ACTIVITY_TYPE_DELETE_USERS', { userIds });
  return submitted(terminal, activity, `Deleted ${names.join(', ')}.\n`);
}
