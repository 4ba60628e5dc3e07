import { CoordinatorError } from '../domain/errors.js';
import { credentialChanges, type CredentialEvent } from '../domain/organization/credentials.js';
import { apiKeyResource, authenticatorResource, userResource } from '../wire/resources.js';
import { contactReleased, contactVerified, userCreated, userUpdated, type User } from '../domain/organization/users.js';
import { ListOf, Nested, Uuid } from '../wire/fields.js';
import type { Rows } from './database.js';
import { defineQuery, type ListPage, ListRequest, OrganizationRequest, PagedResponse } from './define-query.js';
import { noElement, oldestFirst, partOf, type Elements } from './pages.js';
import type { ProjectedEvent, ReadModel } from './read-model.js';
import { endVersions, putVersion, userVersionsSchema, type Placed } from './user-versions.js';
import { ApiKeyShape, AuthenticatorShape, UserShape } from '../wire/shapes.js';

/** Users as they are, and as they were at any position: a vote shows its voter as of then. */
export const usersModel: ReadModel = {
  name: 'users',
  version: 4,
  tables: ['users', 'user_versions', 'user_credentials'],
  schema: `
    CREATE TABLE users (
      organization_id TEXT NOT NULL, user_id TEXT NOT NULL, created INTEGER NOT NULL,
      whole_version INTEGER NOT NULL, parts INTEGER NOT NULL, doc TEXT NOT NULL,
      PRIMARY KEY (organization_id, user_id)
    ) WITHOUT ROWID;
    CREATE INDEX users_in_order ON users (organization_id, created, user_id);
    CREATE TABLE user_credentials (
      organization_id TEXT NOT NULL, credential_id TEXT NOT NULL, user_id TEXT NOT NULL,
      PRIMARY KEY (organization_id, credential_id)
    ) WITHOUT ROWID;
    CREATE INDEX user_credentials_of_user ON user_credentials (organization_id, user_id);
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
      noteCredential(rows, organizationId, event);
      return changed.change(organizationId, event.data.userId, position, (user) => changeCredentials(user, event, at));
    case 'UserDeleted':
      changed.forget(organizationId, event.data.userId);
      for (const table of ['users', 'user_credentials']) {
        const sql = `DELETE FROM ${table} WHERE organization_id = ? AND user_id = ?`;
        rows.run(sql, organizationId, event.data.userId);
      }
      return endVersions(rows, organizationId, event.data.userId, position);
  }
}

/** The owner of an API key, authenticator or OAuth provider, found without reading those of all users. */
function noteCredential(rows: Rows, organizationId: string, { type, data }: CredentialEvent): void {
  const credentialId =
    'apiKeyId' in data ? data.apiKeyId : 'authenticatorId' in data ? data.authenticatorId : data.providerId;
  if (type === 'ApiKeyCreated' || type === 'AuthenticatorCreated' || type === 'OauthProviderCreated') {
    const sql = 'INSERT OR REPLACE INTO user_credentials VALUES (?, ?, ?)';
    rows.run(sql, organizationId, credentialId, data.userId);
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

/** The users that a batch of events changes. */
class ChangedUsers {
  private readonly users = new Map<string, KnownUser & { readonly organizationId: string; readonly doc: string }>();

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

  forget(organizationId: string, userId: string): void {
    this.users.delete(`${organizationId}/${userId}`);
  }

  write(): void {
    for (const { organizationId, user, doc, created, placed } of this.users.values()) {
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
  return oldestFirst(rows, { table: 'users', id: 'user_id' }, organizationId, options, ({ doc }) =>
    userResource(readUser(doc)),
  );
}

/** @throws {CoordinatorError} NOT_FOUND */
export function userOf(rows: Rows, organizationId: string, userId: string): User {
  const row = rows.get('SELECT doc FROM users WHERE organization_id = ? AND user_id = ?', organizationId, userId);
  if (row) return readUser(row['doc']);
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
  readonly of: (user: User) => readonly Element[];
  readonly idOf: (element: Element) => string;
}

/**
 * One user's list, or all users' lists, one user after the other: all of it, or the requested part.
 * @throws {CoordinatorError} NOT_FOUND without the user, INVALID_ARGUMENT if a cursor names nothing in the list
 */
export function heldBy<Element extends object>(
  rows: Rows,
  organizationId: string,
  userId: string | undefined,
  { of, idOf }: Held<Element>,
  options: ListPage = {},
): Elements<Element, Iterable<Element>> {
  if (userId !== undefined) return partOf(of(userOf(rows, organizationId, userId)), idOf, options);
  const { before, after, limit } = options;
  const place = (name: 'before' | 'after', id: string | undefined) => {
    if (id === undefined) return undefined;
    const owner = ownerOf(rows, organizationId, id);
    if (!owner || !of(owner).some((one) => idOf(one) === id)) throw noElement(name, id);
    return owner;
  };
  const [first, last] = [place('after', after), place('before', before)];
  const isBackward = before !== undefined && after === undefined;
  const beside = isBackward ? { before: last!.userId } : first ? { after: first.userId } : {};
  function* users() {
    const one = isBackward ? last : first;
    if (one) yield one;
    yield* oldestFirst(rows, { table: 'users', id: 'user_id' }, organizationId, beside, ({ doc }) => readUser(doc))
      .inTurn;
  }
  function* all() {
    for (const user of users()) yield* isBackward ? of(user).toReversed() : of(user);
  }
  function* inTurn() {
    let left = limit === undefined ? Infinity : Number(limit);
    let isIn = first === undefined && !isBackward;
    for (const element of all()) {
      const id = idOf(element);
      if (id === before && !isBackward) return;
      if (isIn && left-- > 0) yield element;
      if (left <= 0) return;
      isIn ||= id === (isBackward ? before : after);
    }
  }
  return { inTurn: inTurn(), isBackward };
}
