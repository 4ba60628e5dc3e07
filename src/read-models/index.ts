import {
  activitiesModel,
  getActivity,
  getPolicyEvaluations,
  listActivities,
  listActivityEvents,
  listAppProofs,
  type EnvelopesPort,
  type HistoryPort,
} from './activities.js';
import { authProxiesModel, getAuthProxyConfig } from './auth-proxies.js';
import { bootProofsModel, getBootProof, getLatestBootProof } from './boot-proofs.js';
import {
  contractInterfacesModel,
  getSmartContractInterface,
  listSmartContractInterfaces,
} from './contract-interfaces.js';
import { listMinimalApprovers, type ApproversPort } from './approvers.js';
import { claimsModel } from './claims.js';
import type { OrganizationRequest, QueryDefinition } from './define-query.js';
import { dryRun, type DryRunPort } from './dry-run.js';
import { getEvent, listEvents, type EventsPort } from './events.js';
import { explainActivity, type ProofsPort } from './explanations.js';
import { denialsModel, listDenials } from './denials.js';
import { endedVaultsModel } from './destroyed-vaults.js';
import { lintPolicies, type LintPort } from './lint.js';
import { invitationsModel, listInvitations } from './invitations.js';
import { getOauth2Credential, listOauth2Credentials, oauth2CredentialsModel } from './oauth2-credentials.js';
import { getOauthProviders } from './oauth-providers.js';
import { listFiatOnRampCredentials, onRampCredentialsModel } from './on-ramp-credentials.js';
import {
  getOrganization,
  getOrganizationConfigs,
  organizationsModel,
  whoami,
  type LimitsPort,
} from './organizations.js';
import { getMfaPolicies, getMfaStatus, getSessionProfiles } from './mfa.js';
import { getActivePolicies, getPolicy, listPolicies, policiesModel } from './policies.js';
import { getPrivateKey, listPrivateKeys, listPrivateKeyTags, privateKeysModel } from './private-keys.js';
import type { ReadModel } from './read-model.js';
import type { ReasonsPort } from './reasons.js';
import { compareStates, getOrganizationState, type StatesPort } from './states.js';
import { listSuborgs, listVerifiedSuborgs, subOrganizationsModel, type VerifyOidcPort } from './sub-organizations.js';
import { unnamedVaultsModel } from './unnamed-vaults.js';
import { tokenUsesModel } from './token-uses.js';
import { listUserTags, userTagsModel } from './user-tags.js';
import { getApiKey, getApiKeys, getAuthenticator, getAuthenticators, getUser, listUsers, usersModel } from './users.js';
import { getWallet, getWalletAccount, listWalletAccounts, listWallets, walletsModel } from './wallets.js';
import { whatIf, type WhatIfPort } from './what-if.js';
import { listWebhookDeliveries, listWebhookEndpoints, webhooksModel } from './webhooks.js';

/** Every read model. Users come before the models that show them. */
export const readModels: readonly ReadModel[] = [
  organizationsModel,
  usersModel,
  userTagsModel,
  policiesModel,
  activitiesModel,
  denialsModel,
  privateKeysModel,
  contractInterfacesModel,
  walletsModel,
  authProxiesModel,
  endedVaultsModel,
  unnamedVaultsModel,
  oauth2CredentialsModel,
  onRampCredentialsModel,
  invitationsModel,
  subOrganizationsModel,
  claimsModel,
  tokenUsesModel,
  webhooksModel,
  bootProofsModel,
];

const listed = [
  compareStates,
  dryRun,
  explainActivity,
  getActivePolicies,
  getActivity,
  getApiKey,
  getApiKeys,
  getAuthProxyConfig,
  getAuthenticator,
  getAuthenticators,
  getBootProof,
  getEvent,
  getLatestBootProof,
  getMfaPolicies,
  getMfaStatus,
  getOauth2Credential,
  getOauthProviders,
  getOrganization,
  getOrganizationConfigs,
  getOrganizationState,
  getPolicy,
  getPolicyEvaluations,
  getPrivateKey,
  getSessionProfiles,
  getSmartContractInterface,
  getUser,
  getWallet,
  getWalletAccount,
  lintPolicies,
  listActivities,
  listActivityEvents,
  listAppProofs,
  listDenials,
  listEvents,
  listFiatOnRampCredentials,
  listInvitations,
  listMinimalApprovers,
  listOauth2Credentials,
  listPolicies,
  listPrivateKeyTags,
  listPrivateKeys,
  listSmartContractInterfaces,
  listSuborgs,
  listUserTags,
  listUsers,
  listVerifiedSuborgs,
  listWalletAccounts,
  listWallets,
  listWebhookDeliveries,
  listWebhookEndpoints,
  whatIf,
  whoami,
] as const satisfies readonly AnyQuery[];

/** What some queries use besides the rows. */
export type QueryPorts = ApproversPort &
  DryRunPort &
  EnvelopesPort &
  EventsPort &
  HistoryPort &
  LimitsPort &
  LintPort &
  ProofsPort &
  ReasonsPort &
  StatesPort &
  VerifyOidcPort &
  WhatIfPort;

export type AnyQuery = QueryDefinition<OrganizationRequest, object, string, QueryPorts>;

/** Every query of the Activity API, in alphabetical order. Being listed is being registered. */
export const queries: readonly AnyQuery[] = listed;

/** One of them, with the types of its request and its response. */
export type Query = (typeof listed)[number];
