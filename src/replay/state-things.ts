import { readableEventData } from '../domain/activity/redaction.js';
import type { Addition } from '../domain/organization/additions.js';
import type { AuthProxy } from '../domain/organization/auth-proxy.js';
import type { ContractInterface } from '../domain/organization/contract-interfaces.js';
import type { ApiKey, Authenticator, OauthProvider } from '../domain/organization/credentials.js';
import type { PendingImport } from '../domain/organization/imports.js';
import type { Invitation } from '../domain/organization/invitations.js';
import type { Oauth2Credential } from '../domain/organization/oauth2-credentials.js';
import type { OnRampCredential } from '../domain/organization/on-ramp-credentials.js';
import type { OpenActivity } from '../domain/organization/open-activities.js';
import type { Organization, OrganizationView } from '../domain/organization/organization.js';
import type { Otp } from '../domain/organization/otps.js';
import type { PrivateKey, PrivateKeyTag } from '../domain/organization/private-keys.js';
import type { UserTag } from '../domain/organization/tags.js';
import type { User } from '../domain/organization/users.js';
import type { Wallet, WalletAccount } from '../domain/organization/wallets.js';
import type { WebhookEndpoint } from '../domain/organization/webhook-endpoints.js';
import type { Policy } from '../domain/policy/types.js';

/**
 * Describes an organization's state to people: in the words of the wire, without secrets and anything still usable as
 * proof. The compiler requires a description of every slice of the state, and of every member in it.
 */

/**
 * The description of a member; undefined omits it. `now` decides which tokens are still live, milliseconds since the
 * epoch.
 */
type Teller<Value> = (value: Value, now: number) => unknown;

/** How to describe each member of a thing. */
type Members<Thing> = { readonly [Member in keyof Thing]-?: Teller<Exclude<Thing[Member], undefined>> };

/** How to describe the things of one slice. `Key` is the key that they are stored under. */
interface SliceTold<Key, Value> {
  /** Their name in a document. */
  readonly list: string;
  /** The word for one of them in a sentence. */
  readonly noun: string;
  readonly id: (key: Key, value: Value) => string;
  /** Its name for people, if it has one. */
  readonly name: (value: Value, key: Key) => string | undefined;
  readonly told: (value: Value, now: number, key: Key) => Record<string, unknown>;
  /** What a sentence says about a new one, and about a deleted one. */
  readonly begins: string;
  readonly ends: string;
}

const plain = <Value>(value: Value): Value => value;
const time = (ms: number): string => new Date(ms).toISOString();
/** Secrets, digests that would allow guessing, and names within vaults. */
const untold = (): undefined => undefined;

function told<Thing extends object>(members: Members<Thing>, thing: Thing, now: number): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const member of Object.keys(members) as (keyof Thing & string)[]) {
    const value = thing[member];
    if (value === undefined) continue;
    // The table pairs each member with its value; the compiler cannot follow an index by a runtime string.
    const said = (members[member] as Teller<unknown>)(value, now);
    if (said !== undefined) result[member] = said;
  }
  return result;
}

const dated = { createdAt: time, updatedAt: time };

const apiKey: Members<ApiKey> = {
  apiKeyId: plain,
  apiKeyName: plain,
  publicKey: plain,
  curve: plain,
  credentialType: plain,
  expirationSeconds: plain,
  ...dated,
};

const authenticator: Members<Authenticator> = {
  authenticatorId: plain,
  authenticatorName: plain,
  credentialId: plain,
  publicKey: plain,
  aaguid: plain,
  attestationType: plain,
  transports: plain,
  rpIdHash: plain,
  signCount: plain,
  ...dated,
};

const oauthProvider: Members<OauthProvider> = {
  providerId: plain,
  providerName: plain,
  issuer: plain,
  audience: plain,
  subject: plain,
  ...dated,
};

const each =
  <Thing extends object>(members: Members<Thing>): Teller<readonly Thing[]> =>
  (things, now) =>
    things.map((one) => told(members, one, now));

const user: Members<User> = {
  userId: plain,
  userName: plain,
  userEmail: plain,
  userPhoneNumber: plain,
  emailVerified: plain,
  phoneNumberVerified: plain,
  emailReleased: plain,
  phoneNumberReleased: plain,
  userTags: plain,
  apiKeys: each(apiKey),
  authenticators: each(authenticator),
  oauthProviders: each(oauthProvider),
  ...dated,
};

const policy: Members<Policy> = {
  policyId: plain,
  policyName: plain,
  effect: plain,
  condition: plain,
  consensus: plain,
  time: plain,
  notes: plain,
  ...dated,
};

const tag: Members<UserTag & PrivateKeyTag> = { tagId: plain, tagName: plain, ...dated };

const wallet: Members<Wallet> = {
  walletId: plain,
  walletName: plain,
  vaultId: untold,
  exported: plain,
  imported: plain,
  ...dated,
};

const walletAccount: Members<WalletAccount> = {
  walletAccountId: plain,
  walletId: plain,
  curve: plain,
  pathFormat: plain,
  path: plain,
  addressFormat: plain,
  address: plain,
  publicKey: plain,
  name: plain,
  exported: plain,
  ...dated,
};

const privateKey: Members<PrivateKey> = {
  privateKeyId: plain,
  privateKeyName: plain,
  curve: plain,
  publicKey: plain,
  addresses: plain,
  vaultId: untold,
  imported: plain,
  exported: plain,
  privateKeyTags: plain,
  ...dated,
};

const contractInterface: Members<ContractInterface> = {
  smartContractInterfaceId: plain,
  smartContractAddress: plain,
  smartContractInterface: plain,
  type: plain,
  label: plain,
  notes: plain,
  ...dated,
};

const pendingImport: Members<PendingImport> = {
  importId: plain,
  userId: plain,
  kind: plain,
  vaultId: untold,
  createdAt: time,
};

const invitation: Members<Invitation> = {
  invitationId: plain,
  userId: plain,
  receiverUserName: plain,
  receiverUserEmail: plain,
  receiverUserTags: plain,
  accessType: plain,
  senderUserId: plain,
  publicKey: plain,
  expiresAt: time,
  createdAt: time,
  acceptedAt: time,
};

const otp: Members<Otp> = {
  otpId: plain,
  purpose: plain,
  otpType: plain,
  contact: plain,
  codeHash: untold,
  expiresAt: time,
  userIdentifier: plain,
  vaultId: untold,
  askedBy: plain,
  failedGuesses: plain,
  sentAt: time,
};

const oauth2Credential: Members<Oauth2Credential> = {
  oauth2CredentialId: plain,
  provider: plain,
  clientId: plain,
  vaultId: untold,
  ...dated,
};

const onRampCredential: Members<OnRampCredential> = {
  fiatOnRampCredentialId: plain,
  onrampProvider: plain,
  projectId: plain,
  publishableApiKey: plain,
  vaultId: untold,
  sandboxMode: plain,
  ...dated,
};

const authProxy: Members<AuthProxy> = {
  configId: plain,
  userId: plain,
  policyId: plain,
  vaultId: untold,
  publicKey: plain,
  settings: plain,
  ...dated,
};

const webhookEndpoint: Members<WebhookEndpoint> = {
  endpointId: plain,
  url: plain,
  name: plain,
  isActive: plain,
  subscriptions: plain,
};

const addition: Members<Addition> = { userId: plain, what: plain, addedBy: plain };

type OpenVote = OpenActivity['votes'][number];

/** Who voted how. The signed bodies and their stamps are in the events, once each. */
const vote: Members<OpenVote> = {
  voteId: plain,
  userId: plain,
  selection: plain,
  message: untold,
  fingerprint: plain,
  publicKey: plain,
  signature: untold,
  scheme: plain,
  credentialId: plain,
  attestation: plain,
  webauthn: untold,
  at: time,
  voter: untold,
};

const openActivity: Members<OpenActivity> = {
  activityId: plain,
  organizationId: untold,
  type: plain,
  status: plain,
  intent: plain,
  // It has not ended: there is neither yet.
  result: untold,
  failure: untold,
  appProofs: untold,
  generateAppProofs: plain,
  fingerprint: plain,
  timestampMs: plain,
  votes: each(vote),
  decisions: (decisions) => decisions.map(({ at, ...decision }) => ({ ...decision, at: time(at) })),
  ...dated,
};

type Maps = {
  readonly [
    Slice in keyof Organization as Organization[Slice] extends Map<infer _Key, infer _Value> ? Slice : never
  ]: Organization[Slice] extends Map<infer Key, infer Value> ? SliceTold<Key, Value> | 'told elsewhere' : never;
};

/** The slice of things with an id of their own, and a name in one member. */
function kept<Thing extends object>(
  list: string,
  noun: string,
  members: Members<Thing>,
  name: (thing: Thing) => string | undefined,
): SliceTold<string, Thing> {
  const words = { noun, begins: 'was created', ends: 'was deleted' };
  return { list, ...words, id: (key) => key, name, told: (thing, now) => told(members, thing, now) };
}

/** Every map of the state, in document order. */
const maps: Maps = {
  features: {
    list: 'features',
    noun: 'feature',
    id: (name) => name,
    begins: 'was switched on',
    ends: 'was switched off',
    name: () => undefined,
    told: (value, _now, name) => ({ name, value }),
  },
  users: kept('users', 'user', user, ({ userName }) => userName),
  userTags: kept('userTags', 'user tag', tag, ({ tagName }) => tagName),
  policies: kept('policies', 'policy', policy, ({ policyName }) => policyName),
  wallets: kept('wallets', 'wallet', wallet, ({ walletName }) => walletName),
  walletAccounts: kept('walletAccounts', 'wallet account', walletAccount, ({ address }) => address),
  privateKeys: kept('privateKeys', 'private key', privateKey, ({ privateKeyName }) => privateKeyName),
  privateKeyTags: kept('privateKeyTags', 'private key tag', tag, ({ tagName }) => tagName),
  contractInterfaces: kept(
    'smartContractInterfaces',
    'smart contract interface',
    contractInterface,
    ({ label }) => label,
  ),
  invitations: kept('invitations', 'invitation', invitation, ({ receiverUserName }) => receiverUserName),
  oauth2Credentials: kept('oauth2Credentials', 'OAuth 2.0 credential', oauth2Credential, ({ provider }) => provider),
  onRampCredentials: kept(
    'fiatOnRampCredentials',
    'fiat on-ramp credential',
    onRampCredential,
    ({ onrampProvider }) => onrampProvider,
  ),
  webhookEndpoints: kept('webhookEndpoints', 'webhook endpoint', webhookEndpoint, ({ name }) => name),
  openActivities: {
    ...kept('activities', 'activity', openActivity, ({ type }) => type),
    begins: 'waits for votes',
    ends: 'no longer waits for votes',
  },
  imports: {
    ...kept('imports', 'import', pendingImport, ({ kind }) => kind),
    begins: 'was begun',
    ends: 'is over',
  },
  otps: {
    ...kept('oneTimeCodes', 'one-time code', otp, ({ contact }) => contact),
    begins: 'was sent',
    ends: 'opens nothing any more',
  },
  otpSends: {
    list: 'codeSends',
    noun: 'count of codes sent lately for',
    begins: 'began',
    ends: 'is over',
    id: (userIdentifier) => userIdentifier,
    name: (_times, userIdentifier) => userIdentifier,
    told: (times, _now, userIdentifier) => ({ userIdentifier, sentAt: times.map(time) }),
  },
  usedTokens: {
    list: 'usedTokens',
    noun: 'token',
    begins: 'was used',
    ends: 'has expired',
    id: (key) => key,
    name: () => undefined,
    told: (expiresAt, _now, key) => {
      const [tokenId, usage] = key.split(' ');
      return { tokenId, usage, expiresAt: time(expiresAt) };
    },
  },
  foundings: {
    list: 'recentFoundings',
    noun: 'count of sub-organizations founded lately by user',
    begins: 'began',
    ends: 'is over',
    id: (userId) => userId,
    name: () => undefined,
    told: (times, _now, userId) => ({ userId, foundedAt: times.map(time) }),
  },
  additions: {
    list: 'additions',
    noun: 'what others added',
    begins: 'was noted',
    ends: 'no longer stands',
    id: (ref) => ref,
    name: ({ what }) => what,
    told: (one, now, ref) => ({ ref, ...told(addition, one, now) }),
  },
  foundingContacts: {
    list: 'foundingContacts',
    noun: 'contact asserted by the parent,',
    begins: 'was noted',
    ends: 'no longer stands',
    id: (name) => name,
    name: (contact) => contact,
    told: (contact, _now, name) => {
      const [userId, kind] = name.split(' ');
      return { userId, kind, contact };
    },
  },
  // The users, accounts and keys themselves say where each of these leads.
  apiKeyOwners: 'told elsewhere',
  authenticatorOwners: 'told elsewhere',
  oauthOwners: 'told elsewhere',
  addresses: 'told elsewhere',
};

type Scalars = Omit<Organization, keyof Maps>;

/** The organization itself, without its maps. */
const scalars: Members<Scalars> = {
  organizationId: plain,
  name: plain,
  parentOrganizationId: plain,
  parentRevision: plain,
  foundedBy: plain,
  signUp: plain,
  createdAt: time,
  rootQuorum: plain,
  isDeleted: plain,
  authProxy: (value, now) => told(authProxy, value, now),
  // Only between the events of one append: on whose authority those that follow were recorded.
  acting: plain,
  // Only in a test harness, which knows them.
  testKeys: untold,
};

/** The organization itself, without its contents. */
export function organizationTold(organization: OrganizationView, now: number): Record<string, unknown> {
  return readable(told(scalars, organization as Scalars, now), now);
}

/** What was sent may still be usable until it is known to be done, wherever it was recorded. */
function readable(data: Record<string, unknown>, now: number): Record<string, unknown> {
  return readableEventData({ type: '', data }, { status: 'ACTIVITY_STATUS_PENDING' }, now) as Record<string, unknown>;
}

/** Something in the state, not described yet. */
export interface Thing {
  readonly list: string;
  readonly noun: string;
  readonly id: string;
  readonly name: string | undefined;
  readonly begins: string;
  readonly ends: string;
  /** The record itself; the same object as long as nothing has changed it. */
  readonly value: unknown;
  readonly told: (now: number) => Readonly<Record<string, unknown>>;
}

/** The things of one map. */
function* thingsOf(slice: keyof Maps, organization: OrganizationView): Generator<Thing> {
  const kind = maps[slice] as SliceTold<unknown, unknown> | 'told elsewhere';
  if (kind === 'told elsewhere') return;
  const { list, noun, begins, ends } = kind;
  for (const [key, value] of organization[slice] as ReadonlyMap<unknown, unknown>) {
    yield {
      list,
      noun,
      id: kind.id(key, value),
      name: kind.name(value, key),
      begins,
      ends,
      value,
      told: (now) => readable(kind.told(value, now, key), now),
    };
  }
}

const slices = Object.keys(maps) as readonly (keyof Maps)[];

/** Everything in an organization, in an order that is the same for the same history. */
export function* allThings(organization: OrganizationView): Generator<Thing> {
  for (const slice of slices) yield* thingsOf(slice, organization);
}

/** Names of the lists in a document. */
export const listNames: readonly string[] = slices.flatMap((slice) => {
  const kind = maps[slice];
  return kind === 'told elsewhere' ? [] : [kind.list];
});

/** The records in which two states differ, by list: what each has, and whether it is the same record. */
export function* differing(
  before: OrganizationView,
  after: OrganizationView,
): Generator<{ readonly old: Thing | undefined; readonly now: Thing | undefined }> {
  for (const slice of slices) {
    const earlier = new Map([...thingsOf(slice, before)].map((thing) => [thing.id, thing]));
    for (const thing of thingsOf(slice, after)) {
      const old = earlier.get(thing.id);
      earlier.delete(thing.id);
      if (!old || old.value !== thing.value) yield { old, now: thing };
    }
    for (const old of earlier.values()) yield { old, now: undefined };
  }
}

/** The whole state as one document: the organization, and its things by list. */
export function documentOf(organization: OrganizationView, now: number): Record<string, unknown> {
  const lists: Record<string, unknown[]> = {};
  for (const { list, told: tell } of allThings(organization)) (lists[list] ??= []).push(tell(now));
  return { organization: organizationTold(organization, now), ...lists };
}
