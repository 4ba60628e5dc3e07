import type { Addition } from '../../domain/organization/additions.js';
import type { AuthProxy } from '../../domain/organization/auth-proxy.js';
import type { ContractInterface } from '../../domain/organization/contract-interfaces.js';
import type { ApiKey, Authenticator, OauthProvider } from '../../domain/organization/credentials.js';
import type { PendingImport } from '../../domain/organization/imports.js';
import type { Invitation } from '../../domain/organization/invitations.js';
import type { Oauth2Credential } from '../../domain/organization/oauth2-credentials.js';
import type { OnRampCredential } from '../../domain/organization/on-ramp-credentials.js';
import type { OpenActivity } from '../../domain/organization/open-activities.js';
import type { Otp } from '../../domain/organization/otps.js';
import type { PrivateKey, PrivateKeyTag } from '../../domain/organization/private-keys.js';
import type { UserTag } from '../../domain/organization/tags.js';
import type { User } from '../../domain/organization/users.js';
import type { Wallet, WalletAccount } from '../../domain/organization/wallets.js';
import type { WebhookEndpoint } from '../../domain/organization/webhook-endpoints.js';
import type { Policy } from '../../domain/policy/types.js';

/*
 * How each member of what an organization has is described to people: in the words of the wire, without secrets and anything
 * still usable as proof. The compiler requires a description of every member.
 */

/**
 * The description of a member; undefined omits it. `now` decides which tokens are still live, milliseconds since the
 * epoch.
 */
type Teller<Value> = (value: Value, now: number) => unknown;

/** How to describe each member of a thing. */
export type Members<Thing> = { readonly [Member in keyof Thing]-?: Teller<Exclude<Thing[Member], undefined>> };

export const plain = <Value>(value: Value): Value => value;
export const time = (ms: number): string => new Date(ms).toISOString();
/** Secrets, digests that would allow guessing, and names within vaults. */
export const untold = (): undefined => undefined;

export function told<Thing extends object>(
  members: Members<Thing>,
  thing: Thing,
  now: number,
): Record<string, unknown> {
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

export const user: Members<User> = {
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

export const policy: Members<Policy> = {
  policyId: plain,
  policyName: plain,
  effect: plain,
  condition: plain,
  consensus: plain,
  time: plain,
  notes: plain,
  ...dated,
};

export const tag: Members<UserTag & PrivateKeyTag> = { tagId: plain, tagName: plain, ...dated };

export const wallet: Members<Wallet> = {
  walletId: plain,
  walletName: plain,
  vaultId: untold,
  exported: plain,
  imported: plain,
  ...dated,
};

export const walletAccount: Members<WalletAccount> = {
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

export const privateKey: Members<PrivateKey> = {
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

export const contractInterface: Members<ContractInterface> = {
  smartContractInterfaceId: plain,
  smartContractAddress: plain,
  smartContractInterface: plain,
  type: plain,
  label: plain,
  notes: plain,
  ...dated,
};

export const pendingImport: Members<PendingImport> = {
  importId: plain,
  userId: plain,
  kind: plain,
  vaultId: untold,
  createdAt: time,
};

export const invitation: Members<Invitation> = {
  invitationId: plain,
  userId: plain,
  receiverUserName: plain,
  receiverUserEmail: plain,
  receiverUserTags: plain,
  accessType: plain,
  senderUserId: plain,
  submitterId: plain,
  publicKey: plain,
  expiresAt: time,
  createdAt: time,
  acceptedAt: time,
};

export const otp: Members<Otp> = {
  otpId: untold,
  purpose: plain,
  otpType: plain,
  contact: plain,
  codeHash: untold,
  expiresAt: time,
  userIdentifier: plain,
  vaultId: untold,
  requestedBy: plain,
  failedGuesses: plain,
  sentAt: time,
};

export const oauth2Credential: Members<Oauth2Credential> = {
  oauth2CredentialId: plain,
  provider: plain,
  clientId: plain,
  vaultId: untold,
  ...dated,
};

export const onRampCredential: Members<OnRampCredential> = {
  fiatOnRampCredentialId: plain,
  onrampProvider: plain,
  projectId: plain,
  publishableApiKey: plain,
  vaultId: untold,
  sandboxMode: plain,
  ...dated,
};

export const authProxy: Members<AuthProxy> = {
  configId: plain,
  userId: plain,
  policyId: plain,
  vaultId: untold,
  publicKey: plain,
  settings: plain,
  ...dated,
};

export const webhookEndpoint: Members<WebhookEndpoint> = {
  endpointId: plain,
  url: plain,
  name: plain,
  isActive: plain,
  subscriptions: plain,
};

export const addition: Members<Addition> = { userId: plain, what: plain, addedBy: plain };

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

export const openActivity: Members<OpenActivity> = {
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
