import { encryptOauth2ClientSecret, encryptOnRampSecret, formatHpkeBuf, hpkeEncrypt } from '@turnkey/crypto';
import type { ApiKeyPair, StampingClient, TestCoordinator, TestUser } from '../../src/testing/index.js';
import { SoftwareAuthenticator } from '../stamps/software-authenticator.js';
import { clientSecret, IdentityProvider } from './identity-provider.js';
import { invitationLinkOf, type InvitationLink } from './invitation-links.js';
import { clientSignature, codeOf } from './one-time-codes.js';

/** Where the people of samples log in. */
export const identities = await IdentityProvider.start();

/** What a coordinator that is to be furnished is started with. */
export const sampleSettings = identities.settings;

/** An organization with one of everything, for samples to name. */
export interface Furnished {
  readonly coordinator: TestCoordinator;
  readonly alice: TestUser;
  /** Somebody whose loss nobody minds. */
  readonly carol: TestUser;
  readonly apiKeyId: string;
  readonly authenticatorId: string;
  readonly userTagId: string;
  readonly policyId: string;
  /** Ethereum address of a wallet account. */
  readonly signWith: string;
  /** The wallet of that account. */
  readonly walletId: string;
  readonly walletAccountId: string;
  /** A mnemonic for the import of a wallet that the root user has begun. */
  readonly walletBundle: string;
  readonly privateKeyId: string;
  readonly privateKeyTagId: string;
  /** A private key for the import that waits for Alice. */
  readonly privateKeyBundle: string;
  readonly smartContractInterfaceId: string;
  /** Told of nothing but its own creation, where nobody listens. */
  readonly webhookEndpointId: string;
  /** Ephemeral key of the coordinator's boot. */
  readonly bootKey: string;
  /** A code that has been sent to Alice's phone, for otp_auth. */
  readonly login: { readonly otpId: string; readonly otpCode: string };
  /** A code that has been sent to somebody, sealed to the key that came with it. */
  readonly sealedCode: { readonly otpId: string; readonly encryptedOtpBundle: string };
  /** A verification token of Alice's phone, which is her verified contact, and the key that it is bound to. */
  readonly proof: { readonly verificationToken: string; readonly key: ApiKeyPair };
  /** An identity of Alice at an OpenID provider, tokens that prove it with the keys that they are bound to, and another. */
  readonly oidc: {
    readonly providerId: string;
    readonly oauth: { readonly oidcToken: string; readonly targetPublicKey: string };
    readonly login: { readonly oidcToken: string; readonly publicKey: string };
    readonly other: string;
  };
  /** An application at an OAuth 2.0 provider, a code that it was sent, and its secret, sealed. */
  readonly oauth2: {
    readonly oauth2CredentialId: string;
    readonly grant: { readonly authCode: string; readonly redirectUri: string; readonly codeVerifier: string };
    readonly encryptedClientSecret: string;
  };
  /** An account at a fiat on-ramp, and a key of it, sealed. */
  readonly onRamp: { readonly fiatOnRampCredentialId: string; readonly encryptedSecretApiKey: string };
  /** An invitation that is open. */
  readonly invited: InvitationLink;
  /** The root user of a sub-organization; of the organization itself if it can have none. */
  readonly child: StampingClient;
  /** Waits for Alice's approval. */
  readonly waiting: Awaited<ReturnType<StampingClient['submit']>>;
}

/** Puts one of everything into the organization. */
export async function furnish(coordinator: TestCoordinator): Promise<Furnished> {
  const { client, newKey } = coordinator;
  const alice = await coordinator.createUser('Alice', { userEmail: 'alice@example.com' });
  const carol = await coordinator.createUser('Carol');
  const key = newKey();
  const { result: keys } = await client.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', {
    userId: alice.userId,
    apiKeys: [
      { apiKeyName: 'spare', publicKey: key.publicKey, curveType: 'API_KEY_CURVE_P256', expirationSeconds: '3600' },
    ],
  });
  const { result: passkeys } = await client.submit('ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', {
    userId: alice.userId,
    authenticators: [{ authenticatorName: 'passkey', ...new SoftwareAuthenticator().register() }],
  });
  const { result: tag } = await client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', {
    userTagName: 'staff',
    userIds: [alice.userId],
  });
  const { result: signing } = await client.submit('ACTIVITY_TYPE_CREATE_WALLET', {
    walletName: 'Signing',
    accounts: [
      {
        curve: 'CURVE_SECP256K1',
        pathFormat: 'PATH_FORMAT_BIP32',
        path: "m/44'/60'/0'/0/0",
        addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
      },
    ],
  });
  const { accounts } = await client.query<{ accounts: { walletId: string; walletAccountId: string }[] }>(
    'list_wallet_accounts',
  );
  const { result: started } = await client.submit('ACTIVITY_TYPE_INIT_IMPORT_WALLET', {
    userId: coordinator.root.userId,
  });
  const { importBundle } = started['initImportWalletResult'] as { importBundle: string };
  const policyId = await coordinator.createPolicy({
    policyName: 'Carol asks, Alice agrees',
    condition: "activity.kind == 'UPDATE_USER_NAME'",
    consensus: `approvers.any(user, user.id == '${alice.userId}') && approvers.any(user, user.id == '${carol.userId}')`,
  });
  const { result: privateKeys } = await client.submit('ACTIVITY_TYPE_CREATE_PRIVATE_KEYS_V2', {
    privateKeys: [
      {
        privateKeyName: 'cold',
        curve: 'CURVE_SECP256K1',
        privateKeyTags: [],
        addressFormats: ['ADDRESS_FORMAT_ETHEREUM'],
      },
    ],
  });
  const { privateKeyIds } = privateKeys['createPrivateKeysResultV2'] as { privateKeyIds: string[] };
  const { result: keyTag } = await client.submit('ACTIVITY_TYPE_CREATE_PRIVATE_KEY_TAG', {
    privateKeyTagName: 'vault',
    privateKeyIds,
  });
  const { result: keyImport } = await client.submit('ACTIVITY_TYPE_INIT_IMPORT_PRIVATE_KEY', { userId: alice.userId });
  const { importBundle: keyBundle } = keyImport['initImportPrivateKeyResult'] as { importBundle: string };
  const { result: contract } = await client.submit('ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE', {
    smartContractAddress: '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48',
    smartContractInterface: abi,
    type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
    label: 'USDC',
  });
  const { result: hooked } = await client.submit('ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT', {
    ...webhook,
    subscriptions: [{ ...subscription, filtersJson: '{"types":["ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT"]}' }],
  });
  const phone = `+1555${BigInt(`0x${newKey().privateKey}`).toString().slice(-7)}`;
  // A sub-organization sends to contacts of its users only.
  await client.submit('ACTIVITY_TYPE_UPDATE_USER_PHONE_NUMBER', { userId: alice.userId, userPhoneNumber: phone });
  const { otpId: provedId } = await initOtp(client, 'ACTIVITY_TYPE_INIT_OTP_V3', phone);
  const proofKey = newKey();
  const { result: verified } = await client.submit('ACTIVITY_TYPE_VERIFY_OTP', {
    otpId: provedId,
    otpCode: await codeOf(coordinator, provedId),
    publicKey: proofKey.publicKey,
  });
  const { verificationToken } = verified['verifyOtpResult'] as { verificationToken: string };
  await client.submit('ACTIVITY_TYPE_UPDATE_USER_PHONE_NUMBER', {
    userId: alice.userId,
    userPhoneNumber: phone,
    verificationToken,
  });
  const { otpId: loginId } = await initOtp(client, 'ACTIVITY_TYPE_INIT_OTP_AUTH_V3', phone);
  const { otpId: sealedId, otpEncryptionTargetBundle } = await initOtp(client, 'ACTIVITY_TYPE_INIT_OTP_V3', phone);
  const sealed = { otp_code: await codeOf(coordinator, sealedId), public_key: newKey().publicKey };
  const waiting = await carol.client.submit('ACTIVITY_TYPE_UPDATE_USER_NAME', {
    userId: carol.userId,
    userName: 'Caroline',
  });
  const booted = await client.query<{ bootProof: { ephemeralPublicKeyHex: string } }>('get_latest_boot_proof', {
    appName: 'countersign',
  });
  return {
    coordinator,
    alice,
    carol,
    apiKeyId: (keys['createApiKeysResult'] as { apiKeyIds: string[] }).apiKeyIds[0]!,
    authenticatorId: (passkeys['createAuthenticatorsResult'] as { authenticatorIds: string[] }).authenticatorIds[0]!,
    userTagId: (tag['createUserTagResult'] as { userTagId: string }).userTagId,
    policyId,
    signWith: (signing['createWalletResult'] as { addresses: string[] }).addresses[0]!,
    walletId: accounts[0]!.walletId,
    walletAccountId: accounts[0]!.walletAccountId,
    walletBundle: sealedTo(importBundle, 'test test test test test test test test test test test junk'),
    privateKeyId: privateKeyIds[0]!,
    privateKeyTagId: (keyTag['createPrivateKeyTagResult'] as { privateKeyTagId: string }).privateKeyTagId,
    privateKeyBundle: sealedTo(keyBundle, Buffer.alloc(32, 1)),
    smartContractInterfaceId: (contract['createSmartContractInterfaceResult'] as { smartContractInterfaceId: string })
      .smartContractInterfaceId,
    bootKey: booted.bootProof.ephemeralPublicKeyHex,
    webhookEndpointId: (hooked['createWebhookEndpointResult'] as { endpointId: string }).endpointId,
    login: { otpId: loginId, otpCode: await codeOf(coordinator, loginId) },
    sealedCode: {
      otpId: sealedId,
      encryptedOtpBundle: sealedTo(otpEncryptionTargetBundle, JSON.stringify(sealed)),
    },
    proof: { verificationToken, key: proofKey },
    oidc: await oidcOf(coordinator, alice.userId),
    oauth2: await oauth2Of(coordinator),
    onRamp: await onRampOf(coordinator),
    invited: await invitedTo(coordinator),
    child: await childOf(coordinator),
    waiting,
  };
}

async function childOf(coordinator: TestCoordinator): Promise<StampingClient> {
  const { client, newKey, organizationId, root } = coordinator;
  if (organizationId !== root.organizationId) return client;
  const childKey = newKey();
  const { result: founded } = await client.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
    subOrganizationName: 'child',
    rootUsers: [
      {
        userName: 'Child',
        userEmail: 'child@example.com',
        apiKeys: [{ apiKeyName: 'child', publicKey: childKey.publicKey, curveType: childKey.curve }],
        authenticators: [],
        oauthProviders: [],
      },
    ],
    rootQuorumThreshold: 1,
  });
  const { subOrganizationId } = founded['createSubOrganizationResultV8'] as { subOrganizationId: string };
  return coordinator.clientFor(childKey, subOrganizationId);
}

async function oidcOf({ client, clock, newKey }: TestCoordinator, userId: string): Promise<Furnished['oidc']> {
  const [key, subject] = [newKey().publicKey, `alice ${newKey().publicKey}`];
  const token = (of = subject) => identities.idToken({ subject: of, publicKey: key, at: clock.now() });
  const { result } = await client.submit('ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS_V2', {
    userId,
    oauthProviders: [{ providerName: 'provider', oidcToken: await token() }],
  });
  return {
    providerId: (result['createOauthProvidersResultV2'] as { providerIds: string[] }).providerIds[0]!,
    oauth: { oidcToken: await token(), targetPublicKey: key },
    login: { oidcToken: await token(), publicKey: key },
    other: await token(`other ${newKey().publicKey}`),
  };
}

async function oauth2Of({ url, client, newKey }: TestCoordinator): Promise<Furnished['oauth2']> {
  const keys = (await (await fetch(`${url}/public/v1/discovery/keys`)).json()) as { oauthSecretEncryption: string };
  const encryptedClientSecret = await encryptOauth2ClientSecret(clientSecret, keys.oauthSecretEncryption);
  const clientId = `app ${newKey().publicKey}`;
  const { result } = await client.submit('ACTIVITY_TYPE_CREATE_OAUTH2_CREDENTIAL', {
    provider: 'OAUTH2_PROVIDER_X',
    clientId,
    encryptedClientSecret,
  });
  const grant = { redirectUri: 'https://app.example/back', codeVerifier: 'v'.repeat(43) };
  return {
    ...(result['createOauth2CredentialResult'] as { oauth2CredentialId: string }),
    grant: { ...grant, authCode: identities.newCode({ ...grant, clientId, personId: '123456789' }) },
    encryptedClientSecret,
  };
}

async function onRampOf({ url, client }: TestCoordinator): Promise<Furnished['onRamp']> {
  const keys = (await (await fetch(`${url}/public/v1/discovery/keys`)).json()) as { onRampEncryption: string };
  const encryptedSecretApiKey = encryptOnRampSecret('sk_sample', keys.onRampEncryption);
  const { result } = await client.submit('ACTIVITY_TYPE_CREATE_FIAT_ON_RAMP_CREDENTIAL', {
    onrampProvider: 'FIAT_ON_RAMP_PROVIDER_BETA',
    publishableApiKey: 'pk_sample',
    encryptedSecretApiKey,
  });
  return {
    ...(result['createFiatOnRampCredentialResult'] as { fiatOnRampCredentialId: string }),
    encryptedSecretApiKey,
  };
}

async function invitedTo(coordinator: TestCoordinator): Promise<InvitationLink> {
  const { client, newKey, root } = coordinator;
  const receiverUserEmail = `${newKey().publicKey.slice(-12)}@example.com`;
  await client.submit('ACTIVITY_TYPE_CREATE_INVITATIONS', {
    invitations: [
      {
        receiverUserName: 'Frank',
        receiverUserEmail,
        receiverUserTags: [],
        accessType: 'ACCESS_TYPE_ALL',
        senderUserId: root.userId,
      },
    ],
  });
  return invitationLinkOf(coordinator, receiverUserEmail);
}

/** Has a code sent, counted against nobody else. */
async function initOtp(client: StampingClient, type: string, contact: string) {
  const { result } = await client.submit(type, {
    otpType: 'OTP_TYPE_SMS',
    contact,
    appName: 'Sample',
    userIdentifier: `${type} ${contact}`,
  });
  return Object.values(result)[0] as { otpId: string; otpEncryptionTargetBundle: string };
}

const abi = JSON.stringify([
  {
    type: 'function',
    name: 'transfer',
    inputs: [
      { name: 'to', type: 'address' },
      { name: 'value', type: 'uint256' },
    ],
  },
]);

const webhook = { url: 'http://127.0.0.1:9/hooks', name: 'sample' };
const subscription = { eventType: 'ACTIVITY_UPDATES', isActive: true };

/** A secret as a client seals it to the target key of an import bundle (docs/protocol.md, import bundles). */
export function sealedTo(importBundle: string, secret: string | Uint8Array): string {
  const { data } = JSON.parse(importBundle) as { data: string };
  const { targetPublic } = JSON.parse(Buffer.from(data, 'hex').toString()) as { targetPublic: string };
  return formatHpkeBuf(
    hpkeEncrypt({ plainTextBuf: Buffer.from(secret), targetKeyBuf: Buffer.from(targetPublic, 'hex') }),
  );
}

/** Parameters that the root user may submit in a furnished organization, for each activity's newest version. */
export function submitSamples(furnished: Furnished) {
  const { coordinator, alice, carol, apiKeyId, authenticatorId, userTagId, policyId, signWith, waiting } = furnished;
  const { walletId, walletAccountId, walletBundle } = furnished;
  const { privateKeyId, privateKeyTagId, privateKeyBundle, smartContractInterfaceId } = furnished;
  const { login, sealedCode, proof, oidc, oauth2, onRamp, invited, webhookEndpointId: endpointId } = furnished;
  const { root, newKey } = coordinator;
  const otp = { otpType: 'OTP_TYPE_EMAIL', appName: 'Sample', otpLength: 6, alphanumeric: false };
  const account = {
    curve: 'CURVE_SECP256K1',
    pathFormat: 'PATH_FORMAT_BIP32',
    path: "m/44'/60'/0'/0/1",
    addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
  };
  const key = () => ({ apiKeyName: 'a key', publicKey: newKey().publicKey, curveType: 'API_KEY_CURVE_P256' });
  const passkey = () => ({ authenticatorName: 'a passkey', ...new SoftwareAuthenticator().register() });
  const policy = { effect: 'EFFECT_DENY', condition: "activity.resource == 'RECOVERY'", notes: 'a note' };
  return {
    ACTIVITY_TYPE_ACCEPT_INVITATION: {
      invitationId: invited.invitationId,
      authenticators: [passkey()],
      apiKeys: [key()],
    },
    ACTIVITY_TYPE_APPROVE_ACTIVITY: { fingerprint: waiting.fingerprint },
    ACTIVITY_TYPE_CREATE_API_KEYS_V2: { userId: alice.userId, apiKeys: [{ ...key(), expirationSeconds: '60' }] },
    ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2: { userId: alice.userId, authenticators: [passkey()] },
    ACTIVITY_TYPE_CREATE_POLICIES: { policies: [{ policyName: 'sample one', ...policy }] },
    ACTIVITY_TYPE_CREATE_POLICY_V3: { policyName: 'sample two', ...policy },
    ACTIVITY_TYPE_CREATE_PRIVATE_KEYS_V2: {
      privateKeys: [
        {
          privateKeyName: 'sample',
          curve: 'CURVE_ED25519',
          privateKeyTags: [privateKeyTagId],
          addressFormats: ['ADDRESS_FORMAT_SOLANA'],
        },
      ],
    },
    ACTIVITY_TYPE_CREATE_PRIVATE_KEY_TAG: { privateKeyTagName: 'sample', privateKeyIds: [privateKeyId] },
    ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE: {
      smartContractAddress: '0xdAC17F958D2ee523a2206206994597C13D831ec7',
      smartContractInterface: abi,
      type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
      label: 'a contract',
      notes: 'a note',
    },
    ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT: { ...webhook, subscriptions: [{ ...subscription, filtersJson: '{}' }] },
    ACTIVITY_TYPE_DELETE_WEBHOOK_ENDPOINT: { endpointId },
    ACTIVITY_TYPE_UPDATE_WEBHOOK_ENDPOINT: { endpointId, url: webhook.url, name: 'renamed', isActive: true },
    ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8: {
      subOrganizationName: 'sample',
      rootUsers: [
        {
          userName: 'Erin',
          userEmail: 'erin@example.com',
          userPhoneNumber: '+13214567891',
          apiKeys: [{ ...key(), expirationSeconds: '60' }],
          authenticators: [passkey()],
          oauthProviders: [],
        },
      ],
      rootQuorumThreshold: 1,
      wallet: { walletName: 'first', accounts: [{ ...account, name: 'main' }], mnemonicLength: 12 },
      disableEmailRecovery: true,
    },
    ACTIVITY_TYPE_CREATE_API_ONLY_USERS: {
      apiOnlyUsers: [
        {
          userName: 'Frank',
          userEmail: 'frank@example.com',
          apiKeys: [{ apiKeyName: 'a key', publicKey: newKey().publicKey }],
          userTags: [userTagId],
        },
      ],
    },
    ACTIVITY_TYPE_CREATE_USERS_V4: {
      users: [
        {
          userName: 'Dave',
          userEmail: 'dave@example.com',
          userPhoneNumber: '+13214567890',
          apiKeys: [key()],
          authenticators: [passkey()],
          oauthProviders: [],
          userTags: [userTagId],
        },
      ],
    },
    ACTIVITY_TYPE_CREATE_USER_TAG: { userTagName: 'sample', userIds: [alice.userId] },
    ACTIVITY_TYPE_CREATE_WALLET: { walletName: 'sample', accounts: [account], mnemonicLength: 24 },
    ACTIVITY_TYPE_CREATE_WALLET_ACCOUNTS: { walletId, accounts: [{ ...account, name: 'second' }], persist: true },
    ACTIVITY_TYPE_DELETE_API_KEYS: { userId: alice.userId, apiKeyIds: [apiKeyId] },
    ACTIVITY_TYPE_DELETE_AUTHENTICATORS: { userId: alice.userId, authenticatorIds: [authenticatorId] },
    ACTIVITY_TYPE_DELETE_POLICIES: { policyIds: [policyId] },
    ACTIVITY_TYPE_DELETE_POLICY: { policyId },
    ACTIVITY_TYPE_DELETE_PRIVATE_KEYS: { privateKeyIds: [privateKeyId], deleteWithoutExport: true },
    ACTIVITY_TYPE_DELETE_PRIVATE_KEY_TAGS: { privateKeyTagIds: [privateKeyTagId] },
    ACTIVITY_TYPE_DELETE_SMART_CONTRACT_INTERFACE: { smartContractInterfaceId },
    ACTIVITY_TYPE_DELETE_SUB_ORGANIZATION: { deleteWithoutExport: true },
    ACTIVITY_TYPE_DELETE_USERS: { userIds: [carol.userId] },
    ACTIVITY_TYPE_DELETE_USER_TAGS: { userTagIds: [userTagId] },
    ACTIVITY_TYPE_EXPORT_PRIVATE_KEY: { privateKeyId, targetPublicKey: newKey().publicKey },
    ACTIVITY_TYPE_IMPORT_PRIVATE_KEY: {
      userId: alice.userId,
      privateKeyName: 'imported',
      encryptedBundle: privateKeyBundle,
      curve: 'CURVE_SECP256K1',
      addressFormats: ['ADDRESS_FORMAT_COMPRESSED'],
    },
    ACTIVITY_TYPE_INIT_IMPORT_PRIVATE_KEY: { userId: alice.userId },
    ACTIVITY_TYPE_DELETE_WALLETS: { walletIds: [walletId], deleteWithoutExport: true },
    ACTIVITY_TYPE_DELETE_WALLET_ACCOUNTS: { walletAccountIds: [walletAccountId], deleteWithoutExport: true },
    ACTIVITY_TYPE_EXPORT_WALLET: {
      walletId,
      targetPublicKey: newKey().publicKey,
      language: 'MNEMONIC_LANGUAGE_ENGLISH',
    },
    ACTIVITY_TYPE_EXPORT_WALLET_ACCOUNT: { address: signWith, targetPublicKey: newKey().publicKey },
    ACTIVITY_TYPE_IMPORT_WALLET: {
      userId: root.userId,
      walletName: 'imported',
      encryptedBundle: walletBundle,
      accounts: [account],
    },
    ACTIVITY_TYPE_INIT_IMPORT_WALLET: { userId: alice.userId },
    ACTIVITY_TYPE_DISABLE_AUTH_PROXY: {},
    ACTIVITY_TYPE_ENABLE_AUTH_PROXY: {},
    ACTIVITY_TYPE_EMAIL_AUTH_V3: {
      email: 'alice@example.com',
      targetPublicKey: newKey().publicKey,
      emailCustomization: { appName: 'Sample' },
      expirationSeconds: '600',
    },
    ACTIVITY_TYPE_INIT_OTP_V3: {
      ...otp,
      contact: 'somebody@example.com',
      expirationSeconds: '60',
      emailCustomization: { magicLinkTemplate: 'https://example.com/%s', templateVariables: '{"userName":"Ann"}' },
      sendFromEmailAddress: 'no-reply@example.com',
      sendFromEmailSenderName: 'Sample',
      replyToEmailAddress: 'help@example.com',
    },
    ACTIVITY_TYPE_INIT_OTP_AUTH_V3: { ...otp, contact: 'nobody@example.com' },
    ACTIVITY_TYPE_OTP_AUTH: { ...login, targetPublicKey: newKey().publicKey, invalidateExisting: true },
    ACTIVITY_TYPE_OTP_LOGIN_V2: {
      verificationToken: proof.verificationToken,
      publicKey: proof.key.publicKey,
      clientSignature: clientSignature(proof.key, proof.verificationToken, 'USAGE_TYPE_LOGIN', {
        login: { publicKey: proof.key.publicKey },
      }),
    },
    ACTIVITY_TYPE_CREATE_FIAT_ON_RAMP_CREDENTIAL: {
      onrampProvider: 'FIAT_ON_RAMP_PROVIDER_ALPHA',
      projectId: 'sample',
      publishableApiKey: 'pk',
      encryptedSecretApiKey: onRamp.encryptedSecretApiKey,
      encryptedPrivateApiKey: onRamp.encryptedSecretApiKey,
      sandboxMode: true,
    },
    ACTIVITY_TYPE_CREATE_INVITATIONS: {
      invitations: [
        {
          receiverUserName: 'Grace',
          receiverUserEmail: 'grace@example.com',
          receiverUserTags: [userTagId],
          accessType: 'ACCESS_TYPE_WEB',
          senderUserId: alice.userId,
        },
      ],
    },
    ACTIVITY_TYPE_CREATE_OAUTH2_CREDENTIAL: {
      provider: 'OAUTH2_PROVIDER_DISCORD',
      clientId: 'sample',
      encryptedClientSecret: oauth2.encryptedClientSecret,
    },
    ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS_V2: {
      userId: alice.userId,
      oauthProviders: [{ providerName: 'another', oidcToken: oidc.other }],
    },
    ACTIVITY_TYPE_CREATE_READ_ONLY_SESSION: {},
    ACTIVITY_TYPE_CREATE_READ_WRITE_SESSION_V2: { targetPublicKey: newKey().publicKey, invalidateExisting: true },
    ACTIVITY_TYPE_DELETE_FIAT_ON_RAMP_CREDENTIAL: { fiatOnrampCredentialId: onRamp.fiatOnRampCredentialId },
    ACTIVITY_TYPE_DELETE_INVITATION: { invitationId: invited.invitationId },
    ACTIVITY_TYPE_DELETE_OAUTH2_CREDENTIAL: { oauth2CredentialId: oauth2.oauth2CredentialId },
    ACTIVITY_TYPE_DELETE_OAUTH_PROVIDERS: { userId: alice.userId, providerIds: [oidc.providerId] },
    ACTIVITY_TYPE_OAUTH: { ...oidc.oauth, apiKeyName: 'sample' },
    ACTIVITY_TYPE_OAUTH2_AUTHENTICATE: {
      ...oauth2.grant,
      oauth2CredentialId: oauth2.oauth2CredentialId,
      nonce: 'ab'.repeat(32),
    },
    ACTIVITY_TYPE_OAUTH_LOGIN: { ...oidc.login, expirationSeconds: '60' },
    ACTIVITY_TYPE_STAMP_LOGIN: { publicKey: newKey().publicKey, expirationSeconds: '60' },
    ACTIVITY_TYPE_UPDATE_FIAT_ON_RAMP_CREDENTIAL: {
      fiatOnrampCredentialId: onRamp.fiatOnRampCredentialId,
      onrampProvider: 'FIAT_ON_RAMP_PROVIDER_BETA',
      publishableApiKey: 'pk_2',
      encryptedSecretApiKey: onRamp.encryptedSecretApiKey,
    },
    ACTIVITY_TYPE_UPDATE_OAUTH2_CREDENTIAL: {
      oauth2CredentialId: oauth2.oauth2CredentialId,
      provider: 'OAUTH2_PROVIDER_X',
      clientId: 'renamed',
      encryptedClientSecret: oauth2.encryptedClientSecret,
    },
    ACTIVITY_TYPE_REJECT_ACTIVITY: { fingerprint: waiting.fingerprint },
    ACTIVITY_TYPE_RELEASE_CONTACT: { contact: 'child@example.com' },
    ACTIVITY_TYPE_REMOVE_ORGANIZATION_FEATURE: { name: 'FEATURE_NAME_SMS_AUTH' },
    ACTIVITY_TYPE_SET_ORGANIZATION_FEATURE: { name: 'FEATURE_NAME_SMS_AUTH', value: '' },
    ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2: {
      signWith,
      payload: 'hello',
      encoding: 'PAYLOAD_ENCODING_TEXT_UTF8',
      hashFunction: 'HASH_FUNCTION_KECCAK256',
    },
    ACTIVITY_TYPE_SIGN_RAW_PAYLOADS: {
      signWith,
      payloads: ['aa'.repeat(32), `0x${'BB'.repeat(32)}`],
      encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
      hashFunction: 'HASH_FUNCTION_NO_OP',
    },
    ACTIVITY_TYPE_SIGN_TRANSACTION_V2: {
      signWith,
      unsignedTransaction: '02df018001028252089400000000000000000000000000000000000000aa0180c0',
      type: 'TRANSACTION_TYPE_ETHEREUM',
    },
    ACTIVITY_TYPE_UPDATE_AUTH_PROXY_CONFIG: {
      allowedOrigins: ['https://app.example.com'],
      allowedAuthMethods: ['email', 'oauth'],
      emailCustomizationParams: { appName: 'Sample' },
      walletKitSettings: { enabledSocialProviders: ['google'], oauthClientIds: { google: 'client' } },
      otpLength: 6,
    },
    ACTIVITY_TYPE_UPDATE_ORGANIZATION_NAME: { organizationName: 'Sample' },
    ACTIVITY_TYPE_UPDATE_POLICY_V2: { policyId, policyName: 'renamed', policyNotes: 'another note' },
    ACTIVITY_TYPE_UPDATE_PRIVATE_KEY_TAG: { privateKeyTagId, newPrivateKeyTagName: 'renamed' },
    ACTIVITY_TYPE_UPDATE_ROOT_QUORUM: { threshold: 1, userIds: [root.userId] },
    ACTIVITY_TYPE_UPDATE_USER: { userId: alice.userId, userName: 'Alicia', userTagIds: [] },
    ACTIVITY_TYPE_UPDATE_USER_EMAIL: { userId: alice.userId, userEmail: 'alicia@example.com' },
    ACTIVITY_TYPE_UPDATE_USER_NAME: { userId: alice.userId, userName: 'Alina' },
    ACTIVITY_TYPE_UPDATE_USER_PHONE_NUMBER: { userId: alice.userId, userPhoneNumber: '+13214567890' },
    ACTIVITY_TYPE_UPDATE_USER_TAG: { userTagId, newUserTagName: 'renamed', addUserIds: [], removeUserIds: [] },
    ACTIVITY_TYPE_UPDATE_WALLET: { walletId, walletName: 'renamed' },
    ACTIVITY_TYPE_VERIFY_OTP_V2: { ...sealedCode, expirationSeconds: '60' },
  };
}

/** What every query of a furnished organization is asked, by its path; the organization's id is added. */
export function querySamples(furnished: Furnished): Readonly<Record<string, object>> {
  const { coordinator, alice, apiKeyId, authenticatorId, policyId, waiting, walletId, signWith } = furnished;
  const { privateKeyId, smartContractInterfaceId, webhookEndpointId } = furnished;
  const activity = { activityId: waiting.id };
  const user = { userId: alice.userId };
  return {
    compare_states: { from: { revision: '0' }, to: { revision: '5' } },
    dry_run: {
      timestampMs: String(coordinator.clock.now()),
      activity: { type: 'ACTIVITY_TYPE_CREATE_USER_TAG', parameters: { userTagName: 'tried', userIds: [] } },
    },
    explain_activity: activity,
    get_active_policies: {},
    get_activity: activity,
    get_api_key: { apiKeyId },
    get_api_keys: user,
    get_auth_proxy_config: {},
    get_authenticator: { authenticatorId },
    get_authenticators: user,
    get_boot_proof: { ephemeralKey: furnished.bootKey },
    get_event: { revision: '0' },
    get_latest_boot_proof: { appName: 'countersign' },
    get_mfa_policies: user,
    get_mfa_status: activity,
    get_oauth2_credential: { oauth2CredentialId: furnished.oauth2.oauth2CredentialId },
    get_oauth_providers: user,
    get_organization: {},
    get_organization_configs: {},
    get_organization_state: { at: { revision: '3' }, lists: ['users', 'policies'] },
    get_policy: { policyId },
    get_policy_evaluations: activity,
    get_private_key: { privateKeyId },
    get_session_profiles: {},
    get_smart_contract_interface: { smartContractInterfaceId },
    get_user: user,
    get_wallet: { walletId },
    get_wallet_account: { walletId, address: signWith },
    lint_policies: {},
    list_activities: { paginationOptions: { limit: '5' }, filterByStatus: ['ACTIVITY_STATUS_CONSENSUS_NEEDED'] },
    list_activity_events: activity,
    list_app_proofs: activity,
    list_denials: { paginationOptions: { limit: '5' } },
    list_events: { limit: '5' },
    list_fiat_on_ramp_credentials: {},
    list_invitations: { paginationOptions: { limit: '5' } },
    list_minimal_approvers: activity,
    list_oauth2_credentials: {},
    list_policies: {},
    list_private_key_tags: {},
    list_private_keys: {},
    list_smart_contract_interfaces: {},
    list_suborgs: { filterType: 'NAME', filterValue: 'child' },
    list_user_tags: {},
    list_users: {},
    list_verified_suborgs: {
      filterType: 'EMAIL',
      filterValue: 'nobody@example.com',
      paginationOptions: { limit: '5' },
    },
    list_wallet_accounts: { walletId, includeWalletDetails: true, paginationOptions: { limit: '5' } },
    list_wallets: {},
    list_webhook_deliveries: {
      endpointId: webhookEndpointId,
      filterByState: 'pending',
      paginationOptions: { limit: '5' },
    },
    list_webhook_endpoints: {},
    what_if: { draft: { withoutUsers: ['nobody'] } },
    whoami: {},
  };
}
