import { readdirSync, readFileSync } from 'node:fs';
import { activities } from '../../src/activities/index.js';
import type { AnyDefinition, SubmittedBy } from '../../src/activities/define-activity.js';
import { buildRegistry, isVote } from '../../src/decide/registry.js';
import { fieldsOfShape, schemaOf } from '../../src/wire/json-schema.js';

const registry = buildRegistry(activities);
const definitions: readonly AnyDefinition[] = activities;

/** Under the names of other versions too: `@turnkey/core` 1.x sends the second version and reads the result of the first. */
const alsoUnder: Readonly<Record<string, readonly string[]>> = {
  ACTIVITY_TYPE_CREATE_READ_WRITE_SESSION_V2: ['createReadWriteSessionResult'],
};

/** Submit path, wire version, intent key and result key, as published clients send and read them (docs/protocol.md, versions). */
const families: readonly (readonly [path: string, type: string, intentKey: string, resultKey: string])[] = [
  ['approve_activity', 'ACTIVITY_TYPE_APPROVE_ACTIVITY', 'approveActivityIntent', ''],
  ['create_api_keys', 'ACTIVITY_TYPE_CREATE_API_KEYS_V2', 'createApiKeysIntentV2', 'createApiKeysResult'],
  ['create_api_keys', 'ACTIVITY_TYPE_CREATE_API_KEYS', 'createApiKeysIntent', 'createApiKeysResult'],
  [
    'create_authenticators',
    'ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2',
    'createAuthenticatorsIntentV2',
    'createAuthenticatorsResult',
  ],
  [
    'create_authenticators',
    'ACTIVITY_TYPE_CREATE_AUTHENTICATORS',
    'createAuthenticatorsIntent',
    'createAuthenticatorsResult',
  ],
  [
    'create_api_only_users',
    'ACTIVITY_TYPE_CREATE_API_ONLY_USERS',
    'createApiOnlyUsersIntent',
    'createApiOnlyUsersResult',
  ],
  ['create_policies', 'ACTIVITY_TYPE_CREATE_POLICIES', 'createPoliciesIntent', 'createPoliciesResult'],
  ['create_policy', 'ACTIVITY_TYPE_CREATE_POLICY_V3', 'createPolicyIntentV3', 'createPolicyResult'],
  ['create_policy', 'ACTIVITY_TYPE_CREATE_POLICY_V2', 'createPolicyIntentV2', 'createPolicyResult'],
  ['create_policy', 'ACTIVITY_TYPE_CREATE_POLICY', 'createPolicyIntent', 'createPolicyResult'],
  [
    'create_private_keys',
    'ACTIVITY_TYPE_CREATE_PRIVATE_KEYS_V2',
    'createPrivateKeysIntentV2',
    'createPrivateKeysResultV2',
  ],
  ['create_private_keys', 'ACTIVITY_TYPE_CREATE_PRIVATE_KEYS', 'createPrivateKeysIntent', 'createPrivateKeysResult'],
  [
    'create_private_key_tag',
    'ACTIVITY_TYPE_CREATE_PRIVATE_KEY_TAG',
    'createPrivateKeyTagIntent',
    'createPrivateKeyTagResult',
  ],
  [
    'create_smart_contract_interface',
    'ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE',
    'createSmartContractInterfaceIntent',
    'createSmartContractInterfaceResult',
  ],
  [
    'create_sub_organization',
    'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8',
    'createSubOrganizationIntentV8',
    'createSubOrganizationResultV8',
  ],
  [
    'create_sub_organization',
    'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V7',
    'createSubOrganizationIntentV7',
    'createSubOrganizationResultV7',
  ],
  [
    'create_sub_organization',
    'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V6',
    'createSubOrganizationIntentV6',
    'createSubOrganizationResultV6',
  ],
  [
    'create_sub_organization',
    'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V5',
    'createSubOrganizationIntentV5',
    'createSubOrganizationResultV5',
  ],
  [
    'create_sub_organization',
    'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V4',
    'createSubOrganizationIntentV4',
    'createSubOrganizationResultV4',
  ],
  [
    'create_sub_organization',
    'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V3',
    'createSubOrganizationIntentV3',
    'createSubOrganizationResultV3',
  ],
  [
    'create_sub_organization',
    'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V2',
    'createSubOrganizationIntentV2',
    'createSubOrganizationResult',
  ],
  [
    'create_sub_organization',
    'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION',
    'createSubOrganizationIntent',
    'createSubOrganizationResult',
  ],
  [
    'delete_sub_organization',
    'ACTIVITY_TYPE_DELETE_SUB_ORGANIZATION',
    'deleteSubOrganizationIntent',
    'deleteSubOrganizationResult',
  ],
  ['release_contact', 'ACTIVITY_TYPE_RELEASE_CONTACT', 'releaseContactIntent', 'releaseContactResult'],
  ['create_user_tag', 'ACTIVITY_TYPE_CREATE_USER_TAG', 'createUserTagIntent', 'createUserTagResult'],
  ['create_users', 'ACTIVITY_TYPE_CREATE_USERS_V4', 'createUsersIntentV4', 'createUsersResult'],
  ['create_users', 'ACTIVITY_TYPE_CREATE_USERS_V3', 'createUsersIntentV3', 'createUsersResult'],
  ['create_users', 'ACTIVITY_TYPE_CREATE_USERS_V2', 'createUsersIntentV2', 'createUsersResult'],
  ['create_users', 'ACTIVITY_TYPE_CREATE_USERS', 'createUsersIntent', 'createUsersResult'],
  ['delete_api_keys', 'ACTIVITY_TYPE_DELETE_API_KEYS', 'deleteApiKeysIntent', 'deleteApiKeysResult'],
  [
    'delete_authenticators',
    'ACTIVITY_TYPE_DELETE_AUTHENTICATORS',
    'deleteAuthenticatorsIntent',
    'deleteAuthenticatorsResult',
  ],
  ['delete_policies', 'ACTIVITY_TYPE_DELETE_POLICIES', 'deletePoliciesIntent', 'deletePoliciesResult'],
  ['delete_policy', 'ACTIVITY_TYPE_DELETE_POLICY', 'deletePolicyIntent', 'deletePolicyResult'],
  ['delete_private_keys', 'ACTIVITY_TYPE_DELETE_PRIVATE_KEYS', 'deletePrivateKeysIntent', 'deletePrivateKeysResult'],
  [
    'delete_private_key_tags',
    'ACTIVITY_TYPE_DELETE_PRIVATE_KEY_TAGS',
    'deletePrivateKeyTagsIntent',
    'deletePrivateKeyTagsResult',
  ],
  [
    'delete_smart_contract_interface',
    'ACTIVITY_TYPE_DELETE_SMART_CONTRACT_INTERFACE',
    'deleteSmartContractInterfaceIntent',
    'deleteSmartContractInterfaceResult',
  ],
  ['delete_user_tags', 'ACTIVITY_TYPE_DELETE_USER_TAGS', 'deleteUserTagsIntent', 'deleteUserTagsResult'],
  ['delete_users', 'ACTIVITY_TYPE_DELETE_USERS', 'deleteUsersIntent', 'deleteUsersResult'],
  ['disable_auth_proxy', 'ACTIVITY_TYPE_DISABLE_AUTH_PROXY', 'disableAuthProxyIntent', 'disableAuthProxyResult'],
  ['enable_auth_proxy', 'ACTIVITY_TYPE_ENABLE_AUTH_PROXY', 'enableAuthProxyIntent', 'enableAuthProxyResult'],
  ['export_private_key', 'ACTIVITY_TYPE_EXPORT_PRIVATE_KEY', 'exportPrivateKeyIntent', 'exportPrivateKeyResult'],
  ['import_private_key', 'ACTIVITY_TYPE_IMPORT_PRIVATE_KEY', 'importPrivateKeyIntent', 'importPrivateKeyResult'],
  [
    'init_import_private_key',
    'ACTIVITY_TYPE_INIT_IMPORT_PRIVATE_KEY',
    'initImportPrivateKeyIntent',
    'initImportPrivateKeyResult',
  ],
  ['email_auth', 'ACTIVITY_TYPE_EMAIL_AUTH_V3', 'emailAuthIntentV3', 'emailAuthResult'],
  ['email_auth', 'ACTIVITY_TYPE_EMAIL_AUTH_V2', 'emailAuthIntentV2', 'emailAuthResult'],
  ['email_auth', 'ACTIVITY_TYPE_EMAIL_AUTH', 'emailAuthIntent', 'emailAuthResult'],
  ['init_otp', 'ACTIVITY_TYPE_INIT_OTP_V3', 'initOtpIntentV3', 'initOtpResultV2'],
  ['init_otp', 'ACTIVITY_TYPE_INIT_OTP_V2', 'initOtpIntentV2', 'initOtpResult'],
  ['init_otp', 'ACTIVITY_TYPE_INIT_OTP', 'initOtpIntent', 'initOtpResult'],
  ['init_otp_auth', 'ACTIVITY_TYPE_INIT_OTP_AUTH_V3', 'initOtpAuthIntentV3', 'initOtpAuthResultV2'],
  ['init_otp_auth', 'ACTIVITY_TYPE_INIT_OTP_AUTH_V2', 'initOtpAuthIntentV2', 'initOtpAuthResultV2'],
  ['init_otp_auth', 'ACTIVITY_TYPE_INIT_OTP_AUTH', 'initOtpAuthIntent', 'initOtpAuthResult'],
  ['otp_auth', 'ACTIVITY_TYPE_OTP_AUTH', 'otpAuthIntent', 'otpAuthResult'],
  ['otp_login', 'ACTIVITY_TYPE_OTP_LOGIN_V2', 'otpLoginIntentV2', 'otpLoginResult'],
  ['otp_login', 'ACTIVITY_TYPE_OTP_LOGIN', 'otpLoginIntent', 'otpLoginResult'],
  ['accept_invitation', 'ACTIVITY_TYPE_ACCEPT_INVITATION', 'acceptInvitationIntent', 'acceptInvitationResult'],
  ['create_invitations', 'ACTIVITY_TYPE_CREATE_INVITATIONS', 'createInvitationsIntent', 'createInvitationsResult'],
  ['delete_invitation', 'ACTIVITY_TYPE_DELETE_INVITATION', 'deleteInvitationIntent', 'deleteInvitationResult'],
  [
    'create_fiat_on_ramp_credential',
    'ACTIVITY_TYPE_CREATE_FIAT_ON_RAMP_CREDENTIAL',
    'createFiatOnRampCredentialIntent',
    'createFiatOnRampCredentialResult',
  ],
  [
    'delete_fiat_on_ramp_credential',
    'ACTIVITY_TYPE_DELETE_FIAT_ON_RAMP_CREDENTIAL',
    'deleteFiatOnRampCredentialIntent',
    'deleteFiatOnRampCredentialResult',
  ],
  [
    'update_fiat_on_ramp_credential',
    'ACTIVITY_TYPE_UPDATE_FIAT_ON_RAMP_CREDENTIAL',
    'updateFiatOnRampCredentialIntent',
    'updateFiatOnRampCredentialResult',
  ],
  [
    'create_oauth2_credential',
    'ACTIVITY_TYPE_CREATE_OAUTH2_CREDENTIAL',
    'createOauth2CredentialIntent',
    'createOauth2CredentialResult',
  ],
  [
    'create_oauth_providers',
    'ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS_V2',
    'createOauthProvidersIntentV2',
    'createOauthProvidersResultV2',
  ],
  [
    'create_oauth_providers',
    'ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS',
    'createOauthProvidersIntent',
    'createOauthProvidersResult',
  ],
  [
    'create_read_only_session',
    'ACTIVITY_TYPE_CREATE_READ_ONLY_SESSION',
    'createReadOnlySessionIntent',
    'createReadOnlySessionResult',
  ],
  [
    'create_read_write_session',
    'ACTIVITY_TYPE_CREATE_READ_WRITE_SESSION_V2',
    'createReadWriteSessionIntentV2',
    'createReadWriteSessionResultV2',
  ],
  [
    'create_read_write_session',
    'ACTIVITY_TYPE_CREATE_READ_WRITE_SESSION',
    'createReadWriteSessionIntent',
    'createReadWriteSessionResult',
  ],
  [
    'delete_oauth2_credential',
    'ACTIVITY_TYPE_DELETE_OAUTH2_CREDENTIAL',
    'deleteOauth2CredentialIntent',
    'deleteOauth2CredentialResult',
  ],
  [
    'delete_oauth_providers',
    'ACTIVITY_TYPE_DELETE_OAUTH_PROVIDERS',
    'deleteOauthProvidersIntent',
    'deleteOauthProvidersResult',
  ],
  ['oauth', 'ACTIVITY_TYPE_OAUTH', 'oauthIntent', 'oauthResult'],
  ['oauth2_authenticate', 'ACTIVITY_TYPE_OAUTH2_AUTHENTICATE', 'oauth2AuthenticateIntent', 'oauth2AuthenticateResult'],
  ['oauth_login', 'ACTIVITY_TYPE_OAUTH_LOGIN', 'oauthLoginIntent', 'oauthLoginResult'],
  ['stamp_login', 'ACTIVITY_TYPE_STAMP_LOGIN', 'stampLoginIntent', 'stampLoginResult'],
  [
    'update_oauth2_credential',
    'ACTIVITY_TYPE_UPDATE_OAUTH2_CREDENTIAL',
    'updateOauth2CredentialIntent',
    'updateOauth2CredentialResult',
  ],
  ['reject_activity', 'ACTIVITY_TYPE_REJECT_ACTIVITY', 'rejectActivityIntent', ''],
  ['verify_otp', 'ACTIVITY_TYPE_VERIFY_OTP_V2', 'verifyOtpIntentV2', 'verifyOtpResult'],
  ['verify_otp', 'ACTIVITY_TYPE_VERIFY_OTP', 'verifyOtpIntent', 'verifyOtpResult'],
  [
    'remove_organization_feature',
    'ACTIVITY_TYPE_REMOVE_ORGANIZATION_FEATURE',
    'removeOrganizationFeatureIntent',
    'removeOrganizationFeatureResult',
  ],
  [
    'set_organization_feature',
    'ACTIVITY_TYPE_SET_ORGANIZATION_FEATURE',
    'setOrganizationFeatureIntent',
    'setOrganizationFeatureResult',
  ],
  ['sign_raw_payload', 'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', 'signRawPayloadIntentV2', 'signRawPayloadResult'],
  ['sign_raw_payload', 'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD', 'signRawPayloadIntent', 'signRawPayloadResult'],
  ['sign_raw_payloads', 'ACTIVITY_TYPE_SIGN_RAW_PAYLOADS', 'signRawPayloadsIntent', 'signRawPayloadsResult'],
  ['sign_transaction', 'ACTIVITY_TYPE_SIGN_TRANSACTION_V2', 'signTransactionIntentV2', 'signTransactionResult'],
  ['sign_transaction', 'ACTIVITY_TYPE_SIGN_TRANSACTION', 'signTransactionIntent', 'signTransactionResult'],
  [
    'update_auth_proxy_config',
    'ACTIVITY_TYPE_UPDATE_AUTH_PROXY_CONFIG',
    'updateAuthProxyConfigIntent',
    'updateAuthProxyConfigResult',
  ],
  [
    'update_organization_name',
    'ACTIVITY_TYPE_UPDATE_ORGANIZATION_NAME',
    'updateOrganizationNameIntent',
    'updateOrganizationNameResult',
  ],
  ['update_policy', 'ACTIVITY_TYPE_UPDATE_POLICY_V2', 'updatePolicyIntentV2', 'updatePolicyResultV2'],
  ['update_policy', 'ACTIVITY_TYPE_UPDATE_POLICY', 'updatePolicyIntent', 'updatePolicyResult'],
  [
    'update_private_key_tag',
    'ACTIVITY_TYPE_UPDATE_PRIVATE_KEY_TAG',
    'updatePrivateKeyTagIntent',
    'updatePrivateKeyTagResult',
  ],
  ['update_root_quorum', 'ACTIVITY_TYPE_UPDATE_ROOT_QUORUM', 'updateRootQuorumIntent', 'updateRootQuorumResult'],
  ['update_user', 'ACTIVITY_TYPE_UPDATE_USER', 'updateUserIntent', 'updateUserResult'],
  ['update_user_email', 'ACTIVITY_TYPE_UPDATE_USER_EMAIL', 'updateUserEmailIntent', 'updateUserEmailResult'],
  ['update_user_name', 'ACTIVITY_TYPE_UPDATE_USER_NAME', 'updateUserNameIntent', 'updateUserNameResult'],
  [
    'update_user_phone_number',
    'ACTIVITY_TYPE_UPDATE_USER_PHONE_NUMBER',
    'updateUserPhoneNumberIntent',
    'updateUserPhoneNumberResult',
  ],
  ['update_user_tag', 'ACTIVITY_TYPE_UPDATE_USER_TAG', 'updateUserTagIntent', 'updateUserTagResult'],
  ['create_wallet', 'ACTIVITY_TYPE_CREATE_WALLET', 'createWalletIntent', 'createWalletResult'],
  [
    'create_wallet_accounts',
    'ACTIVITY_TYPE_CREATE_WALLET_ACCOUNTS',
    'createWalletAccountsIntent',
    'createWalletAccountsResult',
  ],
  ['delete_wallets', 'ACTIVITY_TYPE_DELETE_WALLETS', 'deleteWalletsIntent', 'deleteWalletsResult'],
  [
    'delete_wallet_accounts',
    'ACTIVITY_TYPE_DELETE_WALLET_ACCOUNTS',
    'deleteWalletAccountsIntent',
    'deleteWalletAccountsResult',
  ],
  ['export_wallet', 'ACTIVITY_TYPE_EXPORT_WALLET', 'exportWalletIntent', 'exportWalletResult'],
  [
    'export_wallet_account',
    'ACTIVITY_TYPE_EXPORT_WALLET_ACCOUNT',
    'exportWalletAccountIntent',
    'exportWalletAccountResult',
  ],
  ['import_wallet', 'ACTIVITY_TYPE_IMPORT_WALLET', 'importWalletIntent', 'importWalletResult'],
  ['init_import_wallet', 'ACTIVITY_TYPE_INIT_IMPORT_WALLET', 'initImportWalletIntent', 'initImportWalletResult'],
  ['update_wallet', 'ACTIVITY_TYPE_UPDATE_WALLET', 'updateWalletIntent', 'updateWalletResult'],
  ...['create', 'delete', 'update'].map(
    (verb) =>
      [
        `${verb}_webhook_endpoint`,
        `ACTIVITY_TYPE_${verb.toUpperCase()}_WEBHOOK_ENDPOINT`,
        `${verb}WebhookEndpointIntent`,
        `${verb}WebhookEndpointResult`,
      ] as const,
  ),
];

/** Resource and action that policies name a verb by, or none (docs/protocol.md, order of evaluation and resources and actions). */
const resources: Readonly<Record<string, string>> = {
  CREATE_API_KEYS: 'CREDENTIAL CREATE',
  CREATE_AUTHENTICATORS: 'CREDENTIAL CREATE',
  CREATE_POLICIES: 'POLICY CREATE',
  CREATE_POLICY: 'POLICY CREATE',
  CREATE_PRIVATE_KEY_TAG: 'PRIVATE_KEY CREATE',
  CREATE_PRIVATE_KEYS: 'PRIVATE_KEY CREATE',
  CREATE_SMART_CONTRACT_INTERFACE: 'SMART_CONTRACT_INTERFACE CREATE',
  CREATE_SUB_ORGANIZATION: 'ORGANIZATION CREATE',
  CREATE_USER_TAG: 'USER CREATE',
  CREATE_USERS: 'USER CREATE',
  CREATE_WEBHOOK_ENDPOINT: 'WEBHOOK_ENDPOINT CREATE',
  DELETE_API_KEYS: 'CREDENTIAL DELETE',
  DELETE_AUTHENTICATORS: 'CREDENTIAL DELETE',
  DELETE_POLICIES: 'POLICY DELETE',
  DELETE_POLICY: 'POLICY DELETE',
  DELETE_PRIVATE_KEY_TAGS: 'PRIVATE_KEY DELETE',
  DELETE_PRIVATE_KEYS: 'PRIVATE_KEY DELETE',
  DELETE_SMART_CONTRACT_INTERFACE: 'SMART_CONTRACT_INTERFACE DELETE',
  DELETE_SUB_ORGANIZATION: 'ORGANIZATION DELETE',
  DELETE_USER_TAGS: 'USER DELETE',
  DELETE_USERS: 'USER DELETE',
  EXPORT_PRIVATE_KEY: 'PRIVATE_KEY EXPORT',
  IMPORT_PRIVATE_KEY: 'PRIVATE_KEY IMPORT',
  INIT_IMPORT_PRIVATE_KEY: 'PRIVATE_KEY IMPORT',
  ACCEPT_INVITATION: 'INVITATION UPDATE',
  CREATE_INVITATIONS: 'INVITATION CREATE',
  DELETE_INVITATION: 'INVITATION DELETE',
  CREATE_FIAT_ON_RAMP_CREDENTIAL: 'ON_RAMP_CREDENTIALS CREATE',
  DELETE_FIAT_ON_RAMP_CREDENTIAL: 'ON_RAMP_CREDENTIALS DELETE',
  UPDATE_FIAT_ON_RAMP_CREDENTIAL: 'ON_RAMP_CREDENTIALS UPDATE',
  CREATE_OAUTH2_CREDENTIAL: 'AUTH CREATE',
  CREATE_OAUTH_PROVIDERS: 'CREDENTIAL CREATE',
  CREATE_READ_ONLY_SESSION: 'AUTH CREATE',
  CREATE_READ_WRITE_SESSION: 'AUTH CREATE',
  DELETE_OAUTH2_CREDENTIAL: 'AUTH DELETE',
  DELETE_OAUTH_PROVIDERS: 'CREDENTIAL DELETE',
  OAUTH: 'AUTH CREATE',
  OAUTH2_AUTHENTICATE: 'AUTH CREATE',
  OAUTH_LOGIN: 'AUTH CREATE',
  STAMP_LOGIN: 'AUTH CREATE',
  UPDATE_OAUTH2_CREDENTIAL: 'AUTH UPDATE',
  RELEASE_CONTACT: 'CONTACT DELETE',
  REMOVE_ORGANIZATION_FEATURE: 'root-quorum-only',
  SET_ORGANIZATION_FEATURE: 'root-quorum-only',
  SIGN_RAW_PAYLOAD: 'PRIVATE_KEY SIGN',
  SIGN_RAW_PAYLOADS: 'PRIVATE_KEY SIGN',
  SIGN_TRANSACTION: 'PRIVATE_KEY SIGN',
  UPDATE_ORGANIZATION_NAME: 'root-quorum-only',
  UPDATE_POLICY: 'POLICY UPDATE',
  UPDATE_PRIVATE_KEY_TAG: 'PRIVATE_KEY UPDATE',
  UPDATE_ROOT_QUORUM: 'root-quorum-only',
  UPDATE_USER: 'USER UPDATE',
  UPDATE_USER_EMAIL: 'USER UPDATE',
  UPDATE_USER_NAME: 'USER UPDATE',
  UPDATE_USER_PHONE_NUMBER: 'USER UPDATE',
  UPDATE_USER_TAG: 'USER UPDATE',
  CREATE_WALLET: 'WALLET CREATE',
  CREATE_WALLET_ACCOUNTS: 'WALLET CREATE',
  DELETE_WALLETS: 'WALLET DELETE',
  DISABLE_AUTH_PROXY: 'AUTH_PROXY DELETE',
  ENABLE_AUTH_PROXY: 'AUTH_PROXY CREATE',
  UPDATE_AUTH_PROXY_CONFIG: 'AUTH_PROXY UPDATE',
  DELETE_WALLET_ACCOUNTS: 'WALLET DELETE',
  DELETE_WEBHOOK_ENDPOINT: 'WEBHOOK_ENDPOINT DELETE',
  EMAIL_AUTH: 'AUTH CREATE',
  EXPORT_WALLET: 'WALLET EXPORT',
  EXPORT_WALLET_ACCOUNT: 'WALLET EXPORT',
  IMPORT_WALLET: 'WALLET IMPORT',
  INIT_IMPORT_WALLET: 'WALLET IMPORT',
  INIT_OTP: 'OTP CREATE',
  INIT_OTP_AUTH: 'AUTH CREATE',
  OTP_AUTH: 'AUTH CREATE',
  OTP_LOGIN: 'AUTH CREATE',
  VERIFY_OTP: 'OTP VERIFY',
  UPDATE_WALLET: 'WALLET UPDATE',
  UPDATE_WEBHOOK_ENDPOINT: 'WEBHOOK_ENDPOINT UPDATE',
};

/** Every file under a folder of the source tree that declares a verb, without its suffix. */
function verbFiles(): string[] {
  const root = new URL('../../src/activities/', import.meta.url);
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter(
      (file) =>
        file.includes('/') &&
        file.endsWith('.ts') &&
        !/-params\.ts$|\/(?:new-users|organization-features|session-keys|social-linking|token-uses|verification)\.ts$/.test(
          file,
        ),
    )
    .map((file) => file.slice(0, -'.ts'.length));
}

const camelCase = (file: string) =>
  file
    .split('/')
    .at(-1)!
    .replace(/-(.)/g, (_dash, letter: string) => letter.toUpperCase());

describe('the list of activities', () => {
  it.each(families)('%s takes %s', (path, type, intentKey, resultKey) => {
    const resultKeys = resultKey === '' ? [] : [...(alsoUnder[type] ?? []), resultKey];
    expect(registry.versions.get(type)).toMatchObject({ type, keys: { intentKey, resultKeys } });
    expect(registry.paths.get(path)?.map((version) => version.type)).toEqual(
      families.filter(([other]) => other === path).map(([, one]) => one),
    );
  });

  it('lists no version twice', () => {
    const types = definitions.flatMap((one) => [
      one.type,
      ...(isVote(one) ? [] : (one.olderVersions ?? [])).map((older) => older.type),
    ]);
    expect(new Set(types).size).toBe(types.length);
    expect(registry.versions.size).toBe(types.length);
  });

  it('is in alphabetical order', () => {
    const kinds = definitions.map(({ type }) => registry.versions.get(type)!.kind);
    expect(kinds).toEqual([...kinds].sort());
  });

  it.each(verbFiles())('%s is listed under the name of its file', async (file) => {
    const exported = (await import(`../../src/activities/${file}.js`)) as Record<string, unknown>;
    expect(activities).toContain(exported[camelCase(file)]);
  });

  it('has one file for each verb', () => expect(verbFiles()).toHaveLength(activities.length));

  it.each(Object.entries(resources))('policies know %s as %s', (kind, expected) => {
    const [version] = registry.paths.get(kind.toLowerCase()) ?? [];
    const { definition } = version!;
    if (isVote(definition)) throw new Error(`${kind} is a vote`);
    const { policy } = definition;
    expect(policy === 'root-quorum-only' ? policy : `${policy.resource} ${policy.action}`).toBe(expected);
  });

  it('lets users manage their own credentials, and only those', () => {
    const own = definitions.flatMap((one) => (!isVote(one) && one.ownCredentialsOf ? [one] : []));
    expect(own.map(({ type }) => registry.versions.get(type)!.kind)).toEqual([
      'CREATE_API_KEYS',
      'CREATE_AUTHENTICATORS',
      'CREATE_OAUTH_PROVIDERS',
      'DELETE_API_KEYS',
      'DELETE_AUTHENTICATORS',
      'DELETE_OAUTH_PROVIDERS',
    ]);
    for (const one of own) expect(one.ownCredentialsOf!({ userId: 'u' })).toBe('u');
  });

  it('lets others than users of the organization submit only what says so', () => {
    const by = (rule: SubmittedBy) =>
      definitions.flatMap((one) =>
        !isVote(one) && one.submittedBy === rule ? [registry.versions.get(one.type)!.kind] : [],
      );
    expect(by('user')).toEqual([]);
    expect(by('user-or-parent')).toEqual([
      'CREATE_OAUTH_PROVIDERS',
      'EMAIL_AUTH',
      'INIT_OTP_AUTH',
      'OAUTH',
      'OAUTH_LOGIN',
      'OTP_AUTH',
      'OTP_LOGIN',
    ]);
    expect(by('user-who-logs-in')).toEqual(['CREATE_READ_ONLY_SESSION', 'CREATE_READ_WRITE_SESSION', 'STAMP_LOGIN']);
    expect(by('parent')).toEqual(['RELEASE_CONTACT']);
    expect(by('invitee')).toEqual(['ACCEPT_INVITATION']);
  });

  it('takes other stamps than API keys and passkeys only where it says so', () => {
    const others = definitions.flatMap((one) => (!isVote(one) && one.stamps ? [[one.type, one.stamps.join()]] : []));
    expect(Object.fromEntries(others)).toEqual({
      ACTIVITY_TYPE_ACCEPT_INVITATION: 'api-key',
      ACTIVITY_TYPE_CREATE_INVITATIONS: 'api-key',
      ACTIVITY_TYPE_INIT_OTP_AUTH_V3: 'api-key',
      ACTIVITY_TYPE_STAMP_LOGIN: 'api-key,webauthn,attested',
    });
  });

  it('shows policies the published parameters, read from the intent', () => {
    const users = { userId: 'u', userIds: ['u', 'v'], apiKeyIds: ['k'], privateKeyIds: ['p'] };
    const keys = {
      encoding: 'e',
      hashFunction: 'h',
      type: 't',
      walletId: 'w',
      targetPublicKey: '02aa',
      endpointId: 'x',
      contact: 'ANN@example.com',
    };
    const intent = { ...users, ...keys, otpLength: 6, sessionProfileId: 's' };
    const shown = definitions.flatMap((one) =>
      isVote(one)
        ? []
        : Object.entries(one.params ?? {}).map(([name, { type, from }]) => [
            registry.versions.get(one.type)!.kind,
            name,
            type.kind,
            from(intent),
          ]),
    );
    expect(shown).toEqual([
      ['CREATE_API_KEYS', 'user_id', 'string', 'u'],
      ['CREATE_AUTHENTICATORS', 'user_id', 'string', 'u'],
      ['CREATE_OAUTH_PROVIDERS', 'user_id', 'string', 'u'],
      ['DELETE_API_KEYS', 'user_id', 'string', 'u'],
      ['DELETE_API_KEYS', 'api_key_ids', 'list', ['k']],
      ['DELETE_AUTHENTICATORS', 'user_id', 'string', 'u'],
      ['DELETE_OAUTH_PROVIDERS', 'user_id', 'string', 'u'],
      ['DELETE_PRIVATE_KEYS', 'private_key_ids', 'list', ['p']],
      ['DELETE_USERS', 'user_ids', 'list', ['u', 'v']],
      ['DELETE_WEBHOOK_ENDPOINT', 'endpoint_id', 'string', 'x'],
      ['EXPORT_PRIVATE_KEY', 'target_public_key', 'string', '02aa'],
      ['EXPORT_WALLET', 'target_public_key', 'string', '02aa'],
      ['EXPORT_WALLET_ACCOUNT', 'target_public_key', 'string', '02aa'],
      ['INIT_OTP_AUTH', 'otp_length', 'int', 6n],
      ['OAUTH_LOGIN', 'session_profile_id', 'string', 's'],
      ['OTP_LOGIN', 'session_profile_id', 'string', 's'],
      ['RELEASE_CONTACT', 'contact', 'string', 'ann@example.com'],
      ['RELEASE_CONTACT', 'leave_unreachable', 'bool', false],
      ['SIGN_RAW_PAYLOAD', 'encoding', 'string', 'e'],
      ['SIGN_RAW_PAYLOAD', 'hash_function', 'string', 'h'],
      ['SIGN_RAW_PAYLOADS', 'encoding', 'string', 'e'],
      ['SIGN_RAW_PAYLOADS', 'hash_function', 'string', 'h'],
      ['SIGN_TRANSACTION', 'type', 'string', 't'],
      ['STAMP_LOGIN', 'session_profile_id', 'string', 's'],
      ...['', '_EMAIL', '_NAME', '_PHONE_NUMBER'].map((what) => [`UPDATE_USER${what}`, 'user_id', 'string', 'u']),
      ['UPDATE_WALLET', 'wallet_id', 'string', 'w'],
      ['UPDATE_WEBHOOK_ENDPOINT', 'endpoint_id', 'string', 'x'],
    ]);
  });

  // What an activity may record is found in the sources; the reference says it, and a test that it is not stale.
  it('shows policies whose credentials, contacts or identities an activity changes, wherever the intent says so', () => {
    const reference = readFileSync(new URL('../../docs/reference/activities.md', import.meta.url), 'utf8');
    const changing = reference.split(/^## /m).flatMap((section) => {
      const events = /^- Events: (.*)$/m.exec(section)?.[1] ?? '';
      const isChange =
        /User(?:Updated|ContactVerified|Deleted)|(?:ApiKey|Authenticator|OauthProvider)(?:Created|Deleted)/;
      return isChange.test(events) ? [section.split('\n', 1)[0]!] : [];
    });
    const silent = changing.filter((path) => {
      const { definition } = registry.paths.get(path)![0]!;
      return isVote(definition) || !(definition.params && /user_ids?/.test(Object.keys(definition.params).join()));
    });
    expect(changing.length).toBeGreaterThan(20);
    // These make users, or log in who proves it, or are about tags. A new one shows `user_id`, or says here why it does not.
    expect(silent).toEqual([
      'accept_invitation',
      'create_api_only_users',
      'create_read_write_session',
      'create_user_tag',
      'create_users',
      'delete_user_tags',
      'disable_auth_proxy',
      'email_auth',
      'enable_auth_proxy',
      'oauth',
      'oauth_login',
      'otp_auth',
      'otp_login',
      'stamp_login',
      'update_user_tag',
    ]);
  });

  describe('reference', () => {
    const components: Parameters<typeof schemaOf>[1] = new Map();
    for (const { intent } of registry.versions.values()) schemaOf(intent, components);
    const shapesOfIntents = [...components.values()].map(({ shape }) => shape as abstract new () => object);
    for (const one of definitions) if (!isVote(one)) schemaOf(one.result, components);

    const takesNothing: readonly string[] = [
      'CreateReadOnlySessionIntent',
      'DisableAuthProxyIntent',
      'EnableAuthProxyIntent',
    ];

    it.each(shapesOfIntents.map((shape) => [shape.name, shape] as const))(
      'says of every field of %s what it is',
      (_name, shape) => {
        const fields = [...fieldsOfShape(shape)];
        const silent = fields.filter(([, { schema }]) => typeof schema.description !== 'string').map(([name]) => name);
        expect(fields.length === 0).toBe(takesNothing.includes(shape.name));
        expect(silent).toEqual([]);
      },
    );
  });
});

test('a type that does not follow the pattern of names is a defect', () => {
  const [first] = definitions as [AnyDefinition];
  expect(() => buildRegistry([{ ...first, type: 'CREATE_SOMETHING' }])).toThrow(
    'activity type `CREATE_SOMETHING` does not follow ACTIVITY_TYPE_<KIND>[_V<n>]',
  );
});
