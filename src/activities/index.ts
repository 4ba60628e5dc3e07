import type { AnyDefinition } from './define-activity.js';
import { disableAuthProxy } from './auth-proxy/disable-auth-proxy.js';
import { enableAuthProxy } from './auth-proxy/enable-auth-proxy.js';
import { updateAuthProxyConfig } from './auth-proxy/update-auth-proxy-config.js';
import { createReadOnlySession } from './auth/create-read-only-session.js';
import { createReadWriteSession } from './auth/create-read-write-session.js';
import { emailAuth } from './auth/email-auth.js';
import { initOtp } from './auth/init-otp.js';
import { initOtpAuth } from './auth/init-otp-auth.js';
import { oauth } from './auth/oauth.js';
import { oauthLogin } from './auth/oauth-login.js';
import { oauth2Authenticate } from './auth/oauth2-authenticate.js';
import { otpAuth } from './auth/otp-auth.js';
import { otpLogin } from './auth/otp-login.js';
import { stampLogin } from './auth/stamp-login.js';
import { verifyOtp } from './auth/verify-otp.js';
import { approveActivity } from './consensus/approve-activity.js';
import { rejectActivity } from './consensus/reject-activity.js';
import { createSmartContractInterface } from './contract-interfaces/create-smart-contract-interface.js';
import { deleteSmartContractInterface } from './contract-interfaces/delete-smart-contract-interface.js';
import { createApiKeys } from './credentials/create-api-keys.js';
import { createAuthenticators } from './credentials/create-authenticators.js';
import { createOauthProviders } from './credentials/create-oauth-providers.js';
import { createOauth2Credential } from './credentials/create-oauth2-credential.js';
import { deleteApiKeys } from './credentials/delete-api-keys.js';
import { deleteAuthenticators } from './credentials/delete-authenticators.js';
import { deleteOauthProviders } from './credentials/delete-oauth-providers.js';
import { deleteOauth2Credential } from './credentials/delete-oauth2-credential.js';
import { updateOauth2Credential } from './credentials/update-oauth2-credential.js';
import { acceptInvitation } from './invitations/accept-invitation.js';
import { createInvitations } from './invitations/create-invitations.js';
import { deleteInvitation } from './invitations/delete-invitation.js';
import { createFiatOnRampCredential } from './on-ramp/create-fiat-on-ramp-credential.js';
import { deleteFiatOnRampCredential } from './on-ramp/delete-fiat-on-ramp-credential.js';
import { updateFiatOnRampCredential } from './on-ramp/update-fiat-on-ramp-credential.js';
import { createSubOrganization } from './organization/create-sub-organization.js';
import { deleteSubOrganization } from './organization/delete-sub-organization.js';
import { releaseContact } from './organization/release-contact.js';
import { removeOrganizationFeature } from './organization/remove-organization-feature.js';
import { setOrganizationFeature } from './organization/set-organization-feature.js';
import { updateOrganizationName } from './organization/update-organization-name.js';
import { updateRootQuorum } from './organization/update-root-quorum.js';
import { createPolicies } from './policies/create-policies.js';
import { createPolicy } from './policies/create-policy.js';
import { deletePolicies } from './policies/delete-policies.js';
import { deletePolicy } from './policies/delete-policy.js';
import { updatePolicy } from './policies/update-policy.js';
import { createPrivateKeyTag } from './private-keys/create-private-key-tag.js';
import { createPrivateKeys } from './private-keys/create-private-keys.js';
import { deletePrivateKeyTags } from './private-keys/delete-private-key-tags.js';
import { deletePrivateKeys } from './private-keys/delete-private-keys.js';
import { exportPrivateKey } from './private-keys/export-private-key.js';
import { importPrivateKey } from './private-keys/import-private-key.js';
import { initImportPrivateKey } from './private-keys/init-import-private-key.js';
import { updatePrivateKeyTag } from './private-keys/update-private-key-tag.js';
import { signRawPayload } from './signing/sign-raw-payload.js';
import { signRawPayloads } from './signing/sign-raw-payloads.js';
import { signTransaction } from './signing/sign-transaction.js';
import { createUserTag } from './tags/create-user-tag.js';
import { deleteUserTags } from './tags/delete-user-tags.js';
import { updateUserTag } from './tags/update-user-tag.js';
import { createApiOnlyUsers } from './users/create-api-only-users.js';
import { createUsers } from './users/create-users.js';
import { deleteUsers } from './users/delete-users.js';
import { updateUser } from './users/update-user.js';
import { updateUserEmail } from './users/update-user-email.js';
import { updateUserName } from './users/update-user-name.js';
import { updateUserPhoneNumber } from './users/update-user-phone-number.js';
import { createWallet } from './wallets/create-wallet.js';
import { createWalletAccounts } from './wallets/create-wallet-accounts.js';
import { deleteWalletAccounts } from './wallets/delete-wallet-accounts.js';
import { deleteWallets } from './wallets/delete-wallets.js';
import { exportWallet } from './wallets/export-wallet.js';
import { exportWalletAccount } from './wallets/export-wallet-account.js';
import { importWallet } from './wallets/import-wallet.js';
import { initImportWallet } from './wallets/init-import-wallet.js';
import { updateWallet } from './wallets/update-wallet.js';
import { createWebhookEndpoint } from './webhooks/create-webhook-endpoint.js';
import { deleteWebhookEndpoint } from './webhooks/delete-webhook-endpoint.js';
import { updateWebhookEndpoint } from './webhooks/update-webhook-endpoint.js';

/** Every verb of the Activity API, in alphabetical order. Listing a verb registers it. */
export const activities = [
  acceptInvitation,
  approveActivity,
  createApiKeys,
  createApiOnlyUsers,
  createAuthenticators,
  createFiatOnRampCredential,
  createInvitations,
  createOauth2Credential,
  createOauthProviders,
  createPolicies,
  createPolicy,
  createPrivateKeys,
  createPrivateKeyTag,
  createReadOnlySession,
  createReadWriteSession,
  createSmartContractInterface,
  createSubOrganization,
  createUsers,
  createUserTag,
  createWallet,
  createWalletAccounts,
  createWebhookEndpoint,
  deleteApiKeys,
  deleteAuthenticators,
  deleteFiatOnRampCredential,
  deleteInvitation,
  deleteOauth2Credential,
  deleteOauthProviders,
  deletePolicies,
  deletePolicy,
  deletePrivateKeys,
  deletePrivateKeyTags,
  deleteSmartContractInterface,
  deleteSubOrganization,
  deleteUsers,
  deleteUserTags,
  deleteWallets,
  deleteWalletAccounts,
  deleteWebhookEndpoint,
  disableAuthProxy,
  emailAuth,
  enableAuthProxy,
  exportPrivateKey,
  exportWallet,
  exportWalletAccount,
  importPrivateKey,
  importWallet,
  initImportPrivateKey,
  initImportWallet,
  initOtp,
  initOtpAuth,
  oauth,
  oauth2Authenticate,
  oauthLogin,
  otpAuth,
  otpLogin,
  rejectActivity,
  releaseContact,
  removeOrganizationFeature,
  setOrganizationFeature,
  signRawPayload,
  signRawPayloads,
  signTransaction,
  stampLogin,
  updateAuthProxyConfig,
  updateFiatOnRampCredential,
  updateOauth2Credential,
  updateOrganizationName,
  updatePolicy,
  updatePrivateKeyTag,
  updateRootQuorum,
  updateUser,
  updateUserEmail,
  updateUserName,
  updateUserPhoneNumber,
  updateUserTag,
  updateWallet,
  updateWebhookEndpoint,
  verifyOtp,
] as const satisfies readonly AnyDefinition[];

/** The newest type of every verb. */
export type ActivityType = (typeof activities)[number]['type'];
