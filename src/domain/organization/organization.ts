import { CoordinatorError } from '../errors.js';
import type { ActivityEvent } from '../activity/events.js';
import type { Policy } from '../policy/types.js';
import { noteAdditions, type Acting, type Addition } from './additions.js';
import { evolveClockMends, type ClockMend, type ClockMendedEvent } from './clock-mends.js';
import { evolveCredentials, type CredentialEvent } from './credentials.js';
import {
  evolveContractInterfaces,
  type ContractInterface,
  type ContractInterfaceEvent,
} from './contract-interfaces.js';
import { evolveAuthProxy, type AuthProxy, type AuthProxyEvent } from './auth-proxy.js';
import type { Evolvers } from './event.js';
import { evolveOauth2Credentials, type Oauth2Credential, type Oauth2CredentialEvent } from './oauth2-credentials.js';
import { evolveOnRampCredentials, type OnRampCredential, type OnRampCredentialEvent } from './on-ramp-credentials.js';
import { evolveOtps, type Otp, type OtpEvent } from './otps.js';
import { evolveImports, type ImportEvent, type PendingImport } from './imports.js';
import { evolveImported, type ImportedEvent, type TestKey } from './imported.js';
import { evolveInvitations, type Invitation, type InvitationEvent } from './invitations.js';
import { evolveOpenActivities, type OpenActivity } from './open-activities.js';
import { evolvePolicies, type PolicyEvent } from './policies.js';
import { evolvePrivateKeys, type PrivateKey, type PrivateKeyEvent, type PrivateKeyTag } from './private-keys.js';
import type { AddressOwner } from './signing-keys.js';
import type { AddressFormat } from '../key-formats.js';
import { nothing } from './slices.js';
import { evolveSettings, type FeatureName, type RootQuorum, type SettingsEvent } from './settings.js';
import { evolveTags, type TagEvent, type UserTag } from './tags.js';
import { evolveUsers, type User, type UserEvent } from './users.js';
import { evolveWallets, type Wallet, type WalletAccount, type WalletEvent } from './wallets.js';
import { evolveWebhookEndpoints, type WebhookEndpoint, type WebhookEndpointEvent } from './webhook-endpoints.js';

declare const isAccumulator: unique symbol;

/**
 * The state of one organization: everything that a decision may look at. It is the accumulator of a fold; only `evolve`
 * writes to it. Finished activities are not in it, or it would grow forever.
 */
export interface Organization {
  /** For the compiler alone: what decisions see is not to be changed. */
  readonly [isAccumulator]: true;
  organizationId: string;
  name: string;
  parentOrganizationId: string | undefined;
  /** Revision of the event in the parent's stream that it was founded from; undefined without a parent. */
  parentRevision: number | undefined;
  /** Whose key founded it, if not that of one of the parent's own members. */
  createdBy: 'auth-proxy' | undefined;
  /** For a public sign-up, whether something was proved in it; undefined for all others. */
  signUp: 'unproved' | 'proved' | undefined;
  createdAt: number;
  rootQuorum: RootQuorum;
  users: ReadonlyMap<string, User>;
  /** API key (lower-case hex) to the id of its user. */
  apiKeyOwners: ReadonlyMap<string, string>;
  /** WebAuthn credential id (base64url) to the id of its user. */
  authenticatorOwners: ReadonlyMap<string, string>;
  userTags: ReadonlyMap<string, UserTag>;
  policies: ReadonlyMap<string, Policy>;
  features: ReadonlyMap<FeatureName, string>;
  /** Identity at an OpenID provider (see `oauthIdentity`) to the id of its user. */
  oauthOwners: ReadonlyMap<string, string>;
  /** A deleted sub-organization; its history stays. */
  isDeleted: boolean;
  /** Activities waiting for votes, by id. */
  openActivities: ReadonlyMap<string, OpenActivity>;
  wallets: ReadonlyMap<string, Wallet>;
  walletAccounts: ReadonlyMap<string, WalletAccount>;
  privateKeys: ReadonlyMap<string, PrivateKey>;
  privateKeyTags: ReadonlyMap<string, PrivateKeyTag>;
  /** Address (hexadecimal ones in lower case) to its owners, oldest first. */
  addresses: ReadonlyMap<string, readonly (AddressOwner & { readonly format: AddressFormat })[]>;
  /** Imports waiting for their bundle, by id. */
  imports: ReadonlyMap<string, PendingImport>;
  contractInterfaces: ReadonlyMap<string, ContractInterface>;
  /** One-time codes that can still be used, by id. */
  otps: ReadonlyMap<string, Otp>;
  /** When codes were sent recently, by user identifier; milliseconds since the epoch. */
  otpSends: ReadonlyMap<string, readonly number[]>;
  /** Used verification tokens (see `usedTokenKey`), and when they expire. */
  usedTokens: ReadonlyMap<string, number>;
  oauth2Credentials: ReadonlyMap<string, Oauth2Credential>;
  onRampCredentials: ReadonlyMap<string, OnRampCredential>;
  /** Open and recently accepted invitations, by id. */
  invitations: ReadonlyMap<string, Invitation>;
  authProxy: AuthProxy | undefined;
  webhookEndpoints: ReadonlyMap<string, WebhookEndpoint>;
  /** On whose authority the events being folded were recorded; undefined between activities. */
  acting: Acting | undefined;
  /** What users were given by others (see `additions.ts`), by id, or as `contactName` says. */
  additions: ReadonlyMap<string, Addition>;
  /** When users founded sub-organizations in the last minute, by their id; milliseconds since the epoch. */
  foundings: ReadonlyMap<string, readonly number[]>;
  /** Bytes of the signed bodies recorded on a day, counted from the epoch (UTC): the day of the last of them; undefined for none. */
  recorded: { readonly day: number; readonly bytes: number } | undefined;
  /** Contacts that the parent's own members asserted when they founded the organization, by `contactName`. */
  foundingContacts: ReadonlyMap<string, string>;
  /** For a history imported into a test harness, by public key; undefined for any other. */
  testKeys: ReadonlyMap<string, TestKey> | undefined;
  /** False times that an operator has ended, oldest first; undefined for none. */
  clockMends: readonly ClockMend[] | undefined;
}

/** The organization as decisions see it. */
export type OrganizationView = Readonly<Omit<Organization, typeof isAccumulator>>;

export type OrganizationEvent =
  | UserEvent
  | CredentialEvent
  | TagEvent
  | PolicyEvent
  | SettingsEvent
  | WalletEvent
  | PrivateKeyEvent
  | ImportEvent
  | ContractInterfaceEvent
  | OtpEvent
  | Oauth2CredentialEvent
  | OnRampCredentialEvent
  | InvitationEvent
  | AuthProxyEvent
  | WebhookEndpointEvent
  | ImportedEvent
  | ClockMendedEvent
  | ActivityEvent;

const evolvers: Evolvers<OrganizationEvent> = {
  ...evolveSettings,
  ...evolveUsers,
  ...evolveCredentials,
  ...evolveTags,
  ...evolvePolicies,
  ...evolveWallets,
  ...evolvePrivateKeys,
  ...evolveImports,
  ...evolveContractInterfaces,
  ...evolveOtps,
  ...evolveOauth2Credentials,
  ...evolveOnRampCredentials,
  ...evolveInvitations,
  ...evolveAuthProxy,
  ...evolveWebhookEndpoints,
  ...evolveImported,
  ...evolveClockMends,
  ...evolveOpenActivities,
};

/** Names of all events of an organization's stream. */
export const organizationEventTypes = Object.keys(evolvers) as readonly OrganizationEvent['type'][];

/** An event of an organization's stream as the compiler knows it; its data is in the current shape of its type. */
export function organizationEvent({
  type,
  data,
}: {
  readonly type: string;
  readonly data: unknown;
}): OrganizationEvent {
  return { type, data } as OrganizationEvent;
}

/** The organization before its first event. */
export function emptyOrganization(): Organization {
  const empty: OrganizationView = {
    organizationId: '',
    name: '',
    parentOrganizationId: undefined,
    parentRevision: undefined,
    createdBy: undefined,
    signUp: undefined,
    createdAt: 0,
    rootQuorum: { threshold: 1, userIds: [] },
    users: nothing,
    apiKeyOwners: nothing,
    authenticatorOwners: nothing,
    userTags: nothing,
    policies: nothing,
    features: nothing,
    openActivities: nothing,
    wallets: nothing,
    walletAccounts: nothing,
    privateKeys: nothing,
    privateKeyTags: nothing,
    addresses: nothing,
    imports: nothing,
    contractInterfaces: nothing,
    oauthOwners: nothing,
    isDeleted: false,
    otps: nothing,
    otpSends: nothing,
    usedTokens: nothing,
    oauth2Credentials: nothing,
    onRampCredentials: nothing,
    invitations: nothing,
    authProxy: undefined,
    webhookEndpoints: nothing,
    acting: undefined,
    additions: nothing,
    foundings: nothing,
    recorded: undefined,
    foundingContacts: nothing,
    testKeys: undefined,
    clockMends: undefined,
  };
  return empty as Organization;
}

/**
 * Applies one recorded event to the accumulator. `at` is its recorded time in milliseconds since the epoch.
 * @throws if the type is unknown: no decision may be based on a partly understood history
 */
export function evolve(organization: Organization, event: { type: string; data: unknown }, at: number): void {
  if (!Object.hasOwn(evolvers, event.type)) {
    throw new Error(
      `unknown event \`${event.type}\` in the history of organization \`${organization.organizationId}\``,
    );
  }
  // The table pairs each type with its data; the compiler cannot follow an index by a runtime string.
  const apply = evolvers[event.type as OrganizationEvent['type']] as (
    organization: Organization,
    data: unknown,
    at: number,
  ) => void;
  noteAdditions(organization, event as OrganizationEvent, at);
  apply(organization, event.data, at);
}

const prefix = 'organization-';

/** The name of an organization's stream. */
export function organizationStream(organizationId: string): string {
  return `${prefix}${organizationId}`;
}

/** The organization of a stream; undefined for a stream of another kind. */
export function organizationOf(stream: string): string | undefined {
  return stream.startsWith(prefix) ? stream.slice(prefix.length) : undefined;
}

export function noSuchOrganization(organizationId: string): CoordinatorError {
  return new CoordinatorError('NOT_FOUND', `no organization found with the given ID \`${organizationId}\``, {
    category: 'ORGANIZATION_NOT_FOUND',
  });
}
