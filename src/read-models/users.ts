import { CoordinatorError } from '../domain/errors.js';
import { credentialChanges, type CredentialEvent } from '../domain/organization/credentials.js';
import { apiKeyResource, authenticatorResource, userResource } from '../wire/resources.js';
import { contactReleased, contactVerified, userCreated, userUpdated, type User } from '../domain/organization/users.js';
import { presentMembers } from '../domain/organization/event.js';
import { ListOf, Nested, Uuid } from '../wire/fields.js';
import type { Rows } from './database.js';
import { defineQuery, type ListPage, ListRequest, OrganizationRequest, PagedResponse } from './define-query.js';
import { ListCursors } from './list-cursors.js';
import { noElement, oldestFirst, type Elements } from './pages.js';
import type { ProjectedEvent, ReadModel } from './read-model.js';
import { endVersions, putVersion, userVersionsSchema, type Placed } from './user-versions.js';
import { ApiKeyShape, AuthenticatorShape, UserShape } from '../wire/shapes.js';

const userPlaces = new ListCursors({ table: 'users', id: 'user_id', columns: ['created'] });
const credentialPlaces = new ListCursors({
  table: 'user_credentials',
  id: 'credential_id',
  columns: ['user_id', 'kind', 'created'],
});

/** What a credential is called in events. */
type CredentialKind = 'ApiKey' | 'Authenticator' | 'OauthProvider';

/** Users as they are, and as they were at any position: a vote shows its voter as of then. */
export const usersModel: ReadModel = {
  name: 'users',
  version: 2,
  tables: [...userPlaces.tables, 'user_versions', ...credentialPlaces.tables],
  schema: `
    CREATE TABLE users (
      organization_id TEXT NOT NULL, user_id TEXT NOT NULL, created INTEGER NOT NULL,
      whole_version INTEGER NOT NULL, parts INTEGER NOT NULL, doc TEXT NOT NULL,
      PRIMARY KEY (organization_id, user_id)
    ) WITHOUT ROWID;
    CREATE INDEX users_in_order ON users (organization_id, created, user_id);
    CREATE TABLE user_credentials (
      organization_id TEXT NOT NULL, credential_id TEXT NOT NULL, user_id TEXT NOT NULL, kind TEXT NOT NULL,
      created INTEGER NOT NULL,
      PRIMARY KEY (organization_id, credential_id)
    ) WITHOUT ROWID;
    CREATE INDEX user_credentials_of_user ON user_credentials (organization_id, user_id);
    ${userPlaces.schema}${credentialPlaces.schema}
    ${userVersionsSchema}`,

  project(rows, events) {
    // A user who changes repeatedly in one batch is read once and written once; each version is kept.
    const changed = new ChangedUsers(rows);
    for (const event of events) take(rows, changed, event);
    changed.write();
  },
};

function take(rows: Rows, changed: ChangedUsers, { organizationId, position, at, event }: ProjectedEvent): void {
  switch (event.type) {
    case 'UserCreated':
      return changed.put(organizationId, userCreated(event.data, at), position, position);
    case 'UserUpdated':
      return changed.change(organizationId, event.data.userId, position, (user) => userUpdated(user, event.data, at));
    case 'UserContactVerified':
      return changed.change(organizationId, event.data.userId, position, (user) =>
        contactVerified(user, event.data, at),
      );
    case 'UserContactReleased':
      return changed.change(organizationId, event.data.userId, position, (user) =>
        contactReleased(user, event.data, at),
      );
    case 'ApiKeyCreated':
    case 'ApiKeyDeleted':
    case 'AuthenticatorCreated':
    case 'AuthenticatorDeleted':
    case 'OauthProviderCreated':
    case 'OauthProviderDeleted':
      noteCredential(rows, organizationId, event, position);
      return changed.change(organizationId, event.data.userId, position, (user) => changeCredentials(user, event, at));
    case 'UserDeleted':
      // Its row gives the place that pages continue from.
      changed.writeOne(organizationId, event.data.userId);
      for (const table of ['users', 'user_credentials']) {
        const sql = `DELETE FROM ${table} WHERE organization_id = ? AND user_id = ?`;
        rows.run(sql, organizationId, event.data.userId);
      }
      return endVersions(rows, organizationId, event.data.userId, position);
  }
}

/** The owner of an API key, authenticator or OAuth provider, found without reading those of all users. */
function noteCredential(rows: Rows, organizationId: string, { type, data }: CredentialEvent, position: bigint): void {
  const credentialId =
    'apiKeyId' in data ? data.apiKeyId : 'authenticatorId' in data ? data.authenticatorId : data.providerId;
  if (type === 'ApiKeyCreated' || type === 'AuthenticatorCreated' || type === 'OauthProviderCreated') {
    const sql = 'INSERT OR REPLACE INTO user_credentials VALUES (?, ?, ?, ?, ?)';
    const kind: CredentialKind =
      type === 'ApiKeyCreated' ? 'ApiKey' : type === 'AuthenticatorCreated' ? 'Authenticator' : 'OauthProvider';
    rows.run(sql, organizationId, credentialId, data.userId, kind, position);
  } else {
    const sql = 'DELETE FROM user_credentials WHERE organization_id = ? AND credential_id = ?';
    rows.run(sql, organizationId, credentialId);
  }
}

/** The user with an API key, an authenticator or an OAuth provider. */
function ownerOf(rows: Rows, organizationId: string, credentialId: string): User | undefined {
  const row = rows.get(
    'SELECT user_id FROM user_credentials WHERE organization_id = ? AND credential_id = ?',
    organizationId,
    credentialId,
  );
  return row && userOf(rows, organizationId, String(row['user_id']));
}

function changeCredentials(user: User, event: CredentialEvent, at: number): User {
  // Each case pairs a type with its data, which the compiler sees only if they are named together.
  switch (event.type) {
    case 'ApiKeyCreated':
      return credentialChanges.ApiKeyCreated(user, event.data, at);
    case 'ApiKeyDeleted':
      return credentialChanges.ApiKeyDeleted(user, event.data, at);
    case 'AuthenticatorCreated':
      return credentialChanges.AuthenticatorCreated(user, event.data, at);
    case 'AuthenticatorDeleted':
      return credentialChanges.AuthenticatorDeleted(user, event.data, at);
    case 'OauthProviderCreated':
      return credentialChanges.OauthProviderCreated(user, event.data, at);
    case 'OauthProviderDeleted':
      return credentialChanges.OauthProviderDeleted(user, event.data, at);
  }
}

/** A user with the place of the last version. */
interface KnownUser {
  readonly user: User;
  readonly created: bigint;
  readonly placed: Placed;
}

/** A user whose row is still to be written. */
interface ChangedUser extends KnownUser {
  readonly organizationId: string;
  readonly doc: string;
}

/** The users that a batch of events changes. */
class ChangedUsers {
  private readonly users = new Map<string, ChangedUser>();

  constructor(private readonly rows: Rows) {}

  put(organizationId: string, user: User, created: bigint, position: bigint, before?: KnownUser): void {
    const doc = JSON.stringify(user);
    const placed = putVersion(this.rows, { organizationId, user, doc, position }, before);
    this.users.set(`${organizationId}/${user.userId}`, { organizationId, user, doc, created, placed });
  }

  change(organizationId: string, userId: string, position: bigint, apply: (user: User) => User): void {
    const known = this.users.get(`${organizationId}/${userId}`) ?? this.read(organizationId, userId);
    if (known) this.put(organizationId, apply(known.user), known.created, position, known);
  }

  /** Nothing of the user is pending afterwards. */
  writeOne(organizationId: string, userId: string): void {
    const key = `${organizationId}/${userId}`;
    const user = this.users.get(key);
    if (user) this.insert(user);
    this.users.delete(key);
  }

  write(): void {
    for (const user of this.users.values()) this.insert(user);
  }

  private insert({ organizationId, user, doc, created, placed }: ChangedUser): void {
    this.rows.run(
      'INSERT OR REPLACE INTO users VALUES (?, ?, ?, ?, ?, ?)',
      organizationId,
      user.userId,
      created,
      placed.whole,
      placed.parts,
      doc,
    );
  }

  private read(organizationId: string, userId: string): KnownUser | undefined {
    const sql = 'SELECT created, whole_version, parts, doc FROM users WHERE organization_id = ? AND user_id = ?';
    const row = this.rows.get(sql, organizationId, userId);
    if (!row) return undefined;
    const placed = { whole: BigInt(row['whole_version']!), parts: Number(row['parts']) };
    return { user: readUser(row['doc']), created: BigInt(row['created']!), placed };
  }
}

const readUser = (doc: unknown): User => JSON.parse(String(doc)) as User;

/** All users of an organization in order of creation. */
export function usersOf(
  rows: Rows,
  organizationId: string,
  options?: ListPage,
): Elements<UserShape, Iterable<UserShape>> {
  return oldestFirst(rows, userPlaces, organizationId, options, ({ doc }) => userResource(readUser(doc)));
}

/** @throws {CoordinatorError} NOT_FOUND */
export function userOf(rows: Rows, organizationId: string, userId: string): User {
  const user = userIn(rows, organizationId, userId);
  if (user) return user;
  throw new CoordinatorError('NOT_FOUND', `no user \`${userId}\` in organization \`${organizationId}\``);
}

class UserRequest extends OrganizationRequest {
  @Uuid()
  userId!: string;
}

class OptionalUserRequest extends ListRequest {
  @Uuid({ optional: true })
  userId?: string;
}

class GetUserResponse {
  @Nested(() => UserShape)
  user!: UserShape;
}

export const getUser = defineQuery({
  path: 'get_user',
  summary: 'One user, with credentials.',
  request: UserRequest,
  response: GetUserResponse,
  answer: ({ organizationId, userId }, { rows }) => ({ user: userResource(userOf(rows, organizationId, userId)) }),
});

class ListUsersResponse extends PagedResponse {
  @ListOf(() => UserShape)
  users!: readonly UserShape[];
}

export const listUsers = defineQuery({
  path: 'list_users',
  summary: 'All users of an organization, oldest first.',
  request: ListRequest,
  response: ListUsersResponse,
  answer: async ({ organizationId, paginationOptions }, { rows, page }) => ({
    users: await page(usersOf(rows, organizationId, paginationOptions)),
  }),
});

class GetApiKeysResponse extends PagedResponse {
  @ListOf(() => ApiKeyShape)
  apiKeys!: readonly ApiKeyShape[];
}

const apiKeysHeld: Held<ApiKeyShape> = {
  kind: 'ApiKey',
  of: ({ apiKeys }) => apiKeys.map(apiKeyResource),
  idOf: ({ apiKeyId }) => apiKeyId,
};

export const getApiKeys = defineQuery({
  path: 'get_api_keys',
  summary: 'The API keys of one user, or of all users.',
  request: OptionalUserRequest,
  response: GetApiKeysResponse,
  answer: async ({ organizationId, userId, paginationOptions }, { rows, page }) => ({
    apiKeys: await page(heldBy(rows, organizationId, userId, apiKeysHeld, paginationOptions)),
  }),
});

class ApiKeyRequest extends OrganizationRequest {
  @Uuid()
  apiKeyId!: string;
}

class GetApiKeyResponse {
  @Nested(() => ApiKeyShape)
  apiKey!: ApiKeyShape;
}

export const getApiKey = defineQuery({
  path: 'get_api_key',
  summary: 'One API key.',
  request: ApiKeyRequest,
  response: GetApiKeyResponse,
  answer({ organizationId, apiKeyId }, { rows }) {
    const { apiKeys = [] } = ownerOf(rows, organizationId, apiKeyId) ?? {};
    const key = apiKeys.find((one) => one.apiKeyId === apiKeyId);
    if (!key)
      throw new CoordinatorError('NOT_FOUND', `no API key \`${apiKeyId}\` in organization \`${organizationId}\``);
    return { apiKey: apiKeyResource(key) };
  },
});

class GetAuthenticatorsResponse {
  @ListOf(() => AuthenticatorShape)
  authenticators!: readonly AuthenticatorShape[];
}

export const getAuthenticators = defineQuery({
  path: 'get_authenticators',
  summary: 'The passkeys of one user.',
  request: UserRequest,
  response: GetAuthenticatorsResponse,
  answer: ({ organizationId, userId }, { rows }) => ({
    authenticators: userOf(rows, organizationId, userId).authenticators.map(authenticatorResource),
  }),
});

class AuthenticatorRequest extends OrganizationRequest {
  @Uuid()
  authenticatorId!: string;
}

class GetAuthenticatorResponse {
  @Nested(() => AuthenticatorShape)
  authenticator!: AuthenticatorShape;
}

export const getAuthenticator = defineQuery({
  path: 'get_authenticator',
  summary: 'One passkey.',
  request: AuthenticatorRequest,
  response: GetAuthenticatorResponse,
  answer({ organizationId, authenticatorId }, { rows }) {
    const { authenticators = [] } = ownerOf(rows, organizationId, authenticatorId) ?? {};
    const found = authenticators.find((one) => one.authenticatorId === authenticatorId);
    if (!found) {
      throw new CoordinatorError(
        'NOT_FOUND',
        `no authenticator \`${authenticatorId}\` in organization \`${organizationId}\``,
      );
    }
    return { authenticator: authenticatorResource(found) };
  },
});

/** Part of one user's list, or of all users' lists, one user after the other. */
interface Held<Element extends object> {
  readonly kind: CredentialKind;
  readonly of: (user: User) => readonly Element[];
  readonly idOf: (element: Element) => string;
}

/** Where a credential is, or was, in such a list: the place of its owner, and its own among the owner's. */
interface HeldPlace {
  readonly userId: string;
  readonly owner: bigint;
  readonly created: bigint;
}

/**
 * One user's list, or all users' lists, one user after the other: all of it, or the requested part.
 * @throws {CoordinatorError} NOT_FOUND without the user, INVALID_ARGUMENT if a cursor names nothing in the list
 */
export function heldBy<Element extends object>(
  rows: Rows,
  organizationId: string,
  userId: string | undefined,
  { kind, of, idOf }: Held<Element>,
  options: ListPage = {},
): Elements<Element, Iterable<Element>> {
  const place = (name: 'before' | 'after'): HeldPlace | undefined => {
    const id = options[name];
    if (id === undefined) return undefined;
    const row = credentialPlaces.of(rows, organizationId, id);
    const isHere = row?.['kind'] === kind && (userId === undefined || row['user_id'] === userId);
    const owner = row && userPlaces.of(rows, organizationId, String(row['user_id']));
    if (!isHere || !owner) throw noElement(name, id);
    const [created, ownerCreated] = [BigInt(row['created']!), BigInt(owner['created']!)];
    return { userId: String(row['user_id']), owner: ownerCreated, created };
  };
  const only = userId === undefined ? undefined : userOf(rows, organizationId, userId);
  const [first, last] = [place('after'), place('before')];
  const isBackward = last !== undefined && first === undefined;
  function* users(): Iterable<User> {
    if (only) {
      yield only;
      return;
    }
    const [after, before] = [first?.userId, last?.userId];
    // Two cursors at one user have nobody between them.
    const between =
      after === before && after !== undefined
        ? []
        : oldestFirst(rows, userPlaces, organizationId, presentMembers({ after, before }), ({ doc }) => readUser(doc))
            .inTurn;
    const [from, to] = [userIn(rows, organizationId, after), userIn(rows, organizationId, before)];
    if (isBackward && to) yield to;
    if (from) yield from;
    yield* between;
    if (!isBackward && to && to.userId !== from?.userId) yield to;
  }
  /** Without those beyond a cursor. */
  function heldIn(user: User): readonly Element[] {
    const held = of(user);
    if (user.userId !== first?.userId && user.userId !== last?.userId) return held;
    return held.filter((element) => {
      const created = BigInt(credentialPlaces.of(rows, organizationId, idOf(element))!['created']!);
      const isAfter = user.userId !== first?.userId || created > first.created;
      return isAfter && (user.userId !== last?.userId || created < last.created);
    });
  }
  function* inTurn() {
    if (first && last && first.owner > last.owner) return;
    let left = options.limit === undefined ? Infinity : Number(options.limit);
    for (const user of users()) {
      const held = heldIn(user);
      for (const element of isBackward ? held.toReversed() : held) {
        if (left-- <= 0) return;
        yield element;
      }
    }
  }
  return { inTurn: inTurn(), isBackward };
}

function userIn(rows: Rows, organizationId: string, userId: string | undefined): User | undefined {
  if (userId === undefined) return undefined;
  const row = rows.get('SELECT doc FROM users WHERE organization_id = ? AND user_id = ?', organizationId, userId);
  return row && readUser(row['doc']);
}
