import { CoordinatorError } from '../errors.js';
import type { Organization, OrganizationEvent, OrganizationView } from './organization.js';
import type { User } from './users.js';
import { put, remove } from './slices.js';

/** What a limit applies to: an organization, each of its users, or each thing that is written. */
type Whose = 'organization' | 'user' | 'submitter' | 'text';

/** One limit of what is stored. Decisions, the reference and `get_organization` use this table. */
interface Limit {
  /** What it counts, in the words of refusals and of the reference. */
  readonly what: string;
  readonly whose: Whose;
  readonly value: number;
  /** If different for sub-organizations. */
  readonly ofSubOrganization?: number;
  /** Neither the operator nor a parent can change it. */
  readonly isFixed?: true;
  readonly reason: string;
  /** What so many cost; memory as V8 takes it for a folded organization, names of 255 characters included. */
  readonly cost: string;
  /** How to make room. */
  readonly help: string;
}

const enough = 'memory: all of it is in the folded organization';

/** Every limit of what is stored, by its name in settings and responses. */
export const limitTable = {
  users: {
    what: 'users',
    whose: 'organization',
    value: 100,
    reason: 'a question about votes may examine all of them',
    cost: '90 KB of memory; 20 ms of a decision in which consensuses examine them',
    help: 'delete some with delete_users, or create a sub-organization for them',
  },
  longLivedApiKeys: {
    what: 'API keys that never expire',
    whose: 'user',
    value: 10,
    reason: 'each is another way in',
    cost: '9 KB of memory for each user',
    help: 'delete one with delete_api_keys, or send expirationSeconds',
  },
  expiringApiKeys: {
    what: 'API keys that expire',
    whose: 'user',
    value: 10,
    reason: 'each is another way in; a new one replaces the oldest',
    cost: '9 KB of memory for each user',
    help: 'send fewer at once',
  },
  authenticators: {
    what: 'authenticators',
    whose: 'user',
    value: 10,
    reason: 'each is another way in',
    cost: '14 KB of memory for each user',
    help: 'delete one with delete_authenticators',
  },
  oauthProviders: {
    what: 'OAuth providers',
    whose: 'user',
    value: 10,
    reason: 'each is another way in',
    cost: '13 KB of memory for each user',
    help: 'delete one with delete_oauth_providers',
  },
  userTags: {
    what: 'user tags',
    whose: 'organization',
    value: 100,
    ofSubOrganization: 10,
    reason: 'policies look through them',
    cost: '70 KB of memory',
    help: 'delete one with delete_user_tags',
  },
  privateKeyTags: {
    what: 'private key tags',
    whose: 'organization',
    value: 100,
    ofSubOrganization: 10,
    reason: 'policies look through them',
    cost: '70 KB of memory',
    help: 'delete one with delete_private_key_tags',
  },
  policies: {
    what: 'policies',
    whose: 'organization',
    value: 100,
    reason:
      'every decision reads their conditions, and evaluates those that could apply: 1 600 steps in addition to their clauses',
    cost: '0.2 MB of memory; 0.2 ms of each decision, beside their clauses',
    help: 'delete one with delete_policies',
  },
  policyCharacters: {
    what: 'characters of the clauses of all policies',
    whose: 'organization',
    value: 131_072,
    reason: 'a request reads all of them: 280 000 steps if they consist of the shortest parts',
    cost: '28 ms of each decision',
    help: 'shorten or delete some with update_policy or delete_policies',
  },
  wallets: {
    what: 'wallets',
    whose: 'organization',
    value: 100,
    reason: enough,
    cost: '80 KB of memory',
    help: 'delete one with delete_wallets',
  },
  walletAccounts: {
    what: 'wallet accounts',
    whose: 'organization',
    value: 10_000,
    reason: enough,
    cost: '14 MB of memory',
    help: 'delete some with delete_wallet_accounts, or create a sub-organization for them',
  },
  privateKeys: {
    what: 'private keys',
    whose: 'organization',
    value: 1_000,
    reason: enough,
    cost: '1.7 MB of memory',
    help: 'delete some with delete_private_keys',
  },
  imports: {
    what: 'imports in progress',
    whose: 'organization',
    value: 100,
    reason: 'each has a key in the vault until it ends',
    cost: '30 KB of memory, and a key each in the vault',
    help: 'finish one with import_wallet or import_private_key; starting a new one cancels the previous one of the user',
  },
  smartContractInterfaces: {
    what: 'smart contract interfaces',
    whose: 'organization',
    value: 100,
    reason: enough,
    cost: 'what their characters cost',
    help: 'delete one with delete_smart_contract_interface',
  },
  smartContractInterfaceCharacters: {
    what: 'characters of all smart contract interfaces with their notes',
    whose: 'organization',
    value: 4_000_000,
    reason: `${enough}; ten of the longest`,
    cost: '4 MB of memory, 8 MB beyond Latin-1; to read the longest, a sixth of a second of a thread',
    help: 'delete one with delete_smart_contract_interface',
  },
  smartContractInterfaceFunctions: {
    what: 'functions of one smart contract interface',
    whose: 'text',
    value: 2_048,
    isFixed: true,
    reason: 'transactions are looked up in them',
    cost: 'a sixth of a second of a thread to read',
    help: 'upload only those that policies refer to',
  },
  smartContractInterfaceTypes: {
    what: 'types of one smart contract interface, including those built from others',
    whose: 'text',
    value: 4_096,
    isFixed: true,
    reason: 'types can be built from other types; read in a worker thread',
    cost: '13 ms of a thread to make them, as reckoned',
    help: 'upload only the functions that policies refer to',
  },
  oauth2Credentials: {
    what: 'OAuth 2.0 credentials',
    whose: 'organization',
    value: 100,
    reason: 'each has a secret in the vault',
    cost: '80 KB of memory, and a secret each in the vault',
    help: 'delete one with delete_oauth2_credential',
  },
  fiatOnRampCredentials: {
    what: 'fiat on-ramp credentials',
    whose: 'organization',
    value: 100,
    reason: 'each has secrets in the vault',
    cost: '90 KB of memory, and secrets in the vault',
    help: 'delete one with delete_fiat_on_ramp_credential',
  },
  invitations: {
    what: 'open invitations',
    whose: 'organization',
    value: 100,
    reason: 'each is another way in, and a mail',
    cost: 'a mail each',
    help: 'delete some with delete_invitation',
  },
  webhookEndpoints: {
    what: 'webhook endpoints',
    whose: 'organization',
    value: 10,
    reason: 'each is notified of every event',
    cost: '30 KB of memory; ten deliveries of each event',
    help: 'delete one with delete_webhook_endpoint',
  },
  waitingActivities: {
    what: 'activities waiting for votes',
    whose: 'organization',
    value: 1_000,
    reason: enough,
    cost: 'what their characters cost',
    help: 'have some approved or rejected',
  },
  waitingCharacters: {
    what: 'characters of the signed bodies of activities waiting for votes',
    whose: 'organization',
    value: 32 * 1024 * 1024,
    reason: enough,
    cost: '34 MB of memory, 67 MB beyond Latin-1',
    help: 'have some approved or rejected',
  },
  waitingActivitiesOfSubmitter: {
    what: 'activities waiting for votes',
    whose: 'submitter',
    value: 100,
    reason: 'one submitter leaves room for the others',
    cost: 'what their characters cost',
    help: 'have some approved or rejected',
  },
  waitingCharactersOfSubmitter: {
    what: 'characters of the signed bodies of activities waiting for votes',
    whose: 'submitter',
    value: 8 * 1024 * 1024,
    reason: 'one submitter leaves room for the others',
    cost: '8 MB of memory, 17 MB beyond Latin-1',
    help: 'have some approved or rejected',
  },
  subOrganizationsPerMinute: {
    what: 'sub-organizations founded in a minute',
    whose: 'submitter',
    value: 1_000,
    reason: 'their number is not limited, and each has a stream of its own',
    cost: 'a stream each, and 6 KB of memory while it is folded',
    help: 'wait a minute',
  },
  recordedBytesPerDay: {
    what: 'bytes of signed bodies recorded in a day',
    whose: 'organization',
    value: 50_000_000_000,
    ofSubOrganization: 100_000_000,
    reason: 'anyone may have a sub-organization, and what is recorded stays',
    cost: 'three times as many bytes on the disk: events, rows, and their logs',
    help: 'wait until the next day (UTC), or have the parent organization do it',
  },
  nameCharacters: {
    what: 'characters of a display name',
    whose: 'text',
    value: 255,
    isFixed: true,
    reason: 'each is copied into lists and messages',
    cost: 'a few hundred bytes wherever it is shown',
    help: 'send a shorter one',
  },
} as const satisfies Readonly<Record<string, Limit>>;

export type LimitName = keyof typeof limitTable;

const rows: Readonly<Record<LimitName, Limit>> = limitTable;

/** Names of all limits, in the order of the reference. */
export const limitNames = Object.keys(limitTable) as readonly LimitName[];

/** The limits in force for a decision. */
export type Limits = Readonly<Record<LimitName, number>>;

/** Limits that someone has changed. */
export type LimitsSet = Readonly<Partial<Record<LimitName, number>>>;

/**
 * What was set for an organization, and for its sub-organizations, at the time of a decision, and is recorded with it.
 */
export interface LimitsOfDecision {
  readonly organization?: LimitsSet;
  readonly subOrganizations?: LimitsSet;
}

/** What the operator of the installation has set: for organizations without a parent, and for sub-organizations. */
export interface LimitsOfOperator {
  readonly organizations: LimitsSet;
  readonly subOrganizations: LimitsSet;
}

/** The operator can raise a limit up to this many times its usual value: more has not been tried. */
const mostTimes = 10;

/** The feature by which a parent's members lower the limits of its sub-organizations. */
export const limitsFeature = 'FEATURE_NAME_SUB_ORGANIZATION_LIMITS';

function usual(name: LimitName, isSubOrganization: boolean): number {
  const { value, ofSubOrganization } = rows[name];
  return isSubOrganization ? (ofSubOrganization ?? value) : value;
}

const [usualLimits, usualLimitsOfSubOrganization] = [false, true].map((isSubOrganization): Limits => {
  const values = limitNames.map((name) => [name, usual(name, isSubOrganization)]);
  return Object.freeze(Object.fromEntries(values) as Record<LimitName, number>);
}) as [Limits, Limits];

/** The limits of an organization. */
export function limitsInForce(isSubOrganization: boolean, set?: LimitsSet): Limits {
  const limits = isSubOrganization ? usualLimitsOfSubOrganization : usualLimits;
  return set ? { ...limits, ...set } : limits;
}

/**
 * What is set for an organization, and for its sub-organizations: by the operator, and lower by its parent if it has
 * one; undefined if nothing is set.
 */
export function limitsSetFor(
  { parentOrganizationId, features }: Pick<OrganizationView, 'parentOrganizationId' | 'features'>,
  parent: Pick<OrganizationView, 'features'> | undefined,
  operator: LimitsOfOperator | undefined,
): LimitsOfDecision | undefined {
  const ofOperator = operator?.subOrganizations;
  const isSubOrganization = parentOrganizationId !== undefined;
  const organization = isSubOrganization
    ? lowered(ofOperator, parent?.features.get(limitsFeature))
    : operator?.organizations;
  const subOrganizations = isSubOrganization ? undefined : lowered(ofOperator, features.get(limitsFeature));
  const hasOwn = organization && !isEmpty(organization);
  const hasTheirs = subOrganizations && !isEmpty(subOrganizations);
  if (!hasOwn && !hasTheirs) return undefined;
  return { ...(hasOwn ? { organization } : {}), ...(hasTheirs ? { subOrganizations } : {}) };
}

function isEmpty(set: LimitsSet): boolean {
  return Object.keys(set).length === 0;
}

function lowered(ofOperator: LimitsSet = {}, text: string | undefined): LimitsSet {
  if (text === undefined) return ofOperator;
  const lower = Object.entries(readLimits(text)) as [LimitName, number][];
  const most = (name: LimitName) => ofOperator[name] ?? usual(name, true);
  return { ...ofOperator, ...Object.fromEntries(lower.map(([name, value]) => [name, Math.min(value, most(name))])) };
}

/** The text of a limits setting is invalid. */
export class BadLimits extends Error {
  constructor(why: string) {
    super(`must be limits and numbers such as \`users=20, wallets=5\`: ${why}`);
  }
}

/**
 * Parses limits as they are set: `users=20, wallets=5`.
 * @throws {BadLimits} that says which part is wrong, and how
 */
export function readLimits(text: string): LimitsSet {
  const set: Partial<Record<LimitName, number>> = {};
  for (const part of text.split(',').map((one) => one.trim())) {
    const [, name = '', digits = ''] = /^(\w{1,64})\s*=\s*(\d{1,12})$/.exec(part) ?? [];
    if (name === '') throw new BadLimits(`\`${part.slice(0, 64)}\` is not one`);
    if (!isLimitName(name) || rows[name].isFixed) {
      const all = limitNames.filter((one) => !rows[one].isFixed).join(', ');
      throw new BadLimits(`\`${name}\` is not a limit that can be set: use one of ${all}`);
    }
    if (set[name] !== undefined) throw new BadLimits(`\`${name}\` appears twice`);
    const [value, most] = [Number(digits), rows[name].value * mostTimes];
    if (value < 1 || value > most) throw new BadLimits(`${name} may be from 1 to ${most}`);
    set[name] = value;
  }
  return set;
}

/** Whether recorded limits could have been set. */
export function isLimitsSet(set: LimitsSet): boolean {
  return Object.entries(set).every(
    ([name, value]) =>
      isLimitName(name) &&
      !rows[name].isFixed &&
      Number.isInteger(value) &&
      value >= 1 &&
      value <= rows[name].value * mostTimes,
  );
}

function isLimitName(name: string): name is LimitName {
  return Object.hasOwn(limitTable, name);
}

const owners: Readonly<Record<Whose, string>> = {
  organization: 'an organization',
  user: 'a user',
  submitter: 'one user',
  text: 'one',
};

/** @throws {CoordinatorError} RESOURCE_EXHAUSTED if there may not be so many more: with the limit, and what to do */
export function checkLimit(limits: Limits, name: LimitName, held: number, more: number): void {
  if (more <= 0 || held + more <= limits[name]) return;
  const { what, whose, help } = rows[name];
  throw new CoordinatorError(
    'RESOURCE_EXHAUSTED',
    `${owners[whose]} may have ${limits[name]} ${what} (the limit ${name}): there are ${held}, and this request adds ${more}; ` +
      `${help}`,
  );
}

/** The current count for each limit that events count. */
const heldByOrganization = {
  users: ({ users }) => users.size,
  userTags: ({ userTags }) => userTags.size,
  privateKeyTags: ({ privateKeyTags }) => privateKeyTags.size,
  policies: ({ policies }) => policies.size,
  wallets: ({ wallets }) => wallets.size,
  walletAccounts: ({ walletAccounts }) => walletAccounts.size,
  privateKeys: ({ privateKeys }) => privateKeys.size,
  imports: ({ imports }) => imports.size,
  smartContractInterfaces: ({ contractInterfaces }) => contractInterfaces.size,
  oauth2Credentials: ({ oauth2Credentials }) => oauth2Credentials.size,
  fiatOnRampCredentials: ({ onRampCredentials }) => onRampCredentials.size,
  webhookEndpoints: ({ webhookEndpoints }) => webhookEndpoints.size,
} as const satisfies Partial<Record<LimitName, (organization: OrganizationView) => number>>;

const heldByUser = {
  longLivedApiKeys: ({ apiKeys }) => apiKeys.filter(({ expirationSeconds }) => expirationSeconds === undefined).length,
  expiringApiKeys: ({ apiKeys }) => apiKeys.filter(({ expirationSeconds }) => expirationSeconds !== undefined).length,
  authenticators: ({ authenticators }) => authenticators.length,
  oauthProviders: ({ oauthProviders }) => oauthProviders.length,
} as const satisfies Partial<Record<LimitName, (user: User) => number>>;

/** How many an event adds or removes. */
interface Change {
  readonly name: keyof typeof heldByOrganization | keyof typeof heldByUser;
  readonly by: number;
  readonly userId?: string;
}

function changeOf(event: OrganizationEvent, organization: OrganizationView): Change | undefined {
  switch (event.type) {
    case 'UserCreated':
      return { name: 'users', by: 1 };
    case 'UserDeleted':
      return { name: 'users', by: -1 };
    case 'ApiKeyCreated': {
      const { userId, expirationSeconds } = event.data;
      return { name: expirationSeconds === undefined ? 'longLivedApiKeys' : 'expiringApiKeys', by: 1, userId };
    }
    case 'ApiKeyDeleted': {
      const { userId, apiKeyId } = event.data;
      const key = organization.users.get(userId)?.apiKeys.find((one) => one.apiKeyId === apiKeyId);
      return (
        key && { name: key.expirationSeconds === undefined ? 'longLivedApiKeys' : 'expiringApiKeys', by: -1, userId }
      );
    }
    case 'AuthenticatorCreated':
      return { name: 'authenticators', by: 1, userId: event.data.userId };
    case 'AuthenticatorDeleted':
      return { name: 'authenticators', by: -1, userId: event.data.userId };
    case 'OauthProviderCreated':
      return { name: 'oauthProviders', by: 1, userId: event.data.userId };
    case 'OauthProviderDeleted':
      return { name: 'oauthProviders', by: -1, userId: event.data.userId };
    case 'UserTagCreated':
      return { name: 'userTags', by: 1 };
    case 'PrivateKeyTagCreated':
      return { name: 'privateKeyTags', by: 1 };
    case 'PolicyCreated':
      return { name: 'policies', by: 1 };
    case 'WalletCreated':
      return { name: 'wallets', by: 1 };
    case 'WalletAccountsCreated':
      return { name: 'walletAccounts', by: event.data.accounts.length };
    case 'PrivateKeyCreated':
      return { name: 'privateKeys', by: 1 };
    case 'ImportStarted':
      return { name: 'imports', by: 1 };
    case 'ImportClosed':
      return { name: 'imports', by: -1 };
    case 'SmartContractInterfaceCreated':
      return { name: 'smartContractInterfaces', by: 1 };
    case 'Oauth2CredentialCreated':
      return { name: 'oauth2Credentials', by: 1 };
    case 'FiatOnRampCredentialCreated':
      return { name: 'fiatOnRampCredentials', by: 1 };
    case 'WebhookEndpointCreated':
      return { name: 'webhookEndpoints', by: 1 };
  }
}

/**
 * Refuses events that would exceed a limit, whichever verb they come from. If there are already more, as when the
 * operator has lowered a limit, only adding is refused.
 * @throws {CoordinatorError} RESOURCE_EXHAUSTED
 */
export function checkLimits(
  organization: OrganizationView,
  events: readonly OrganizationEvent[],
  limits: Limits,
): void {
  let changes: Map<string, Change> | undefined;
  for (const event of events) {
    const change = changeOf(event, organization);
    if (!change) continue;
    changes ??= new Map();
    const key = change.userId === undefined ? change.name : `${change.name} ${change.userId}`;
    changes.set(key, { ...change, by: change.by + (changes.get(key)?.by ?? 0) });
  }
  for (const { name, by, userId } of changes?.values() ?? [])
    checkLimit(limits, name, held(organization, name, userId), by);
}

function held(organization: OrganizationView, name: Change['name'], userId: string | undefined): number {
  if (userId === undefined)
    return (
      (heldByOrganization as Partial<Record<LimitName, (of: OrganizationView) => number>>)[name]?.(organization) ?? 0
    );
  const user = organization.users.get(userId);
  return user ? ((heldByUser as Partial<Record<LimitName, (of: User) => number>>)[name]?.(user) ?? 0) : 0;
}

/** How long a founding counts, in milliseconds. */
const minute = 60_000;

/**
 * Whether a submitter may found another sub-organization now.
 * @throws {CoordinatorError} RESOURCE_EXHAUSTED
 */
export function checkFoundings(
  { foundings }: OrganizationView,
  submitterId: string,
  now: number,
  limits: Limits,
): void {
  const lately = (foundings.get(submitterId) ?? []).filter((at) => at > now - minute).length;
  checkLimit(limits, 'subOrganizationsPerMinute', lately, 1);
}

/** Tracks when sub-organizations were founded in the last minute, by submitter. */
export function noteFounding(organization: Organization, submitterId: string, at: number): void {
  for (const [userId, times] of organization.foundings) {
    const lately = times.filter((time) => time > at - minute);
    if (lately.length === times.length) continue;
    if (lately.length > 0) put(organization, 'foundings', userId, lately);
    else remove(organization, 'foundings', userId);
  }
  put(organization, 'foundings', submitterId, [...(organization.foundings.get(submitterId) ?? []), at]);
}

const dayMs = 24 * 60 * minute;

/**
 * Whether a body may be recorded in the organization today.
 * @throws {CoordinatorError} RESOURCE_EXHAUSTED
 */
export function checkRecordedBytes({ recorded }: OrganizationView, body: string, now: number, limits: Limits): void {
  checkLimit(limits, 'recordedBytesPerDay', recordedOn(dayOf(now), recorded), Buffer.byteLength(body));
}

/** Counts a signed body that was recorded. */
export function noteRecorded(organization: Organization, body: string, at: number): void {
  const day = dayOf(at);
  organization.recorded = { day, bytes: recordedOn(day, organization.recorded) + Buffer.byteLength(body) };
}

/** Days since the epoch (UTC) at a time in milliseconds since the epoch. */
function dayOf(at: number): number {
  return Math.floor(at / dayMs);
}

function recordedOn(day: number, recorded: OrganizationView['recorded']): number {
  return recorded?.day === day ? recorded.bytes : 0;
}

/** The limits in force for an organization, as responses list them. */
export function limitList(limits: Limits): { name: LimitName; value: number }[] {
  return limitNames.map((name) => ({ name, value: limits[name] }));
}
