import { createHash } from 'node:crypto';
import type { Organization, OrganizationView } from '../../domain/organization/organization.js';
import {
  addition,
  authProxy,
  contractInterface,
  invitation,
  oauth2Credential,
  onRampCredential,
  openActivity,
  otp,
  pendingImport,
  plain,
  policy,
  privateKey,
  tag,
  time,
  told,
  untold,
  user,
  wallet,
  walletAccount,
  webhookEndpoint,
  type Members,
} from './state-members.js';

/* How each slice of an organization's state is described to people. The compiler requires a description of every slice. */

/** How to describe the things of one slice. `Key` is the key that they are stored under. */
export interface SliceTold<Key, Value> {
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

export type Maps = {
  readonly [
    Slice in keyof Organization as Organization[Slice] extends ReadonlyMap<infer _Key, infer _Value> ? Slice : never
  ]: Organization[Slice] extends ReadonlyMap<infer Key, infer Value> ? SliceTold<Key, Value> | 'told elsewhere' : never;
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
export const maps: Maps = {
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
    // Whoever has the id of a live code can end it by wrong guesses.
    id: (otpId) => createHash('sha256').update(otpId).digest('hex').slice(0, 16),
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

export type Scalars = Omit<OrganizationView, keyof Maps>;

/** The organization itself, without its maps. */
export const scalars: Members<Scalars> = {
  organizationId: plain,
  name: plain,
  parentOrganizationId: plain,
  parentRevision: plain,
  createdBy: plain,
  signUp: plain,
  createdAt: time,
  rootQuorum: plain,
  isDeleted: plain,
  authProxy: (value, now) => told(authProxy, value, now),
  // Only between the events of one append: on whose authority those that follow were recorded.
  acting: plain,
  // Only in a test harness, which knows them.
  testKeys: untold,
  clockMends: plain,
  // It changes with every activity.
  recorded: untold,
};
