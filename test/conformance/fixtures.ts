import { randomBytes } from 'node:crypto';
import { base58 } from '@scure/base';
import { clientSignature, codeOf } from '../e2e/one-time-codes.js';
import { SoftwareAuthenticator } from '../stamps/software-authenticator.js';
import { ethereumAccount, solanaAccount, type World } from './world.js';

export type Body = Readonly<Record<string, unknown>>;

/** A value that a request is to have somewhere, for fixtures whose other members follow from it. */
export interface Wanted {
  /** Path of the field, such as `policies[0].effect`. */
  readonly at: string;
  readonly value: unknown;
}

/** A request with every field of its table, which succeeds once. What it is about is made anew each time. */
export type Fixture = (world: World, wanted?: Wanted) => Promise<Body>;

const abi = JSON.stringify([{ type: 'function', name: 'pause', inputs: [] }]);
const idl = JSON.stringify({
  address: base58.encode(new Uint8Array(32).fill(7)),
  metadata: { name: 'walk', version: '0.1.0', spec: '0.1.0' },
  instructions: [],
});
const typedData = JSON.stringify({
  types: { EIP712Domain: [{ name: 'name', type: 'string' }], Mail: [{ name: 'text', type: 'string' }] },
  domain: { name: 'walk' },
  primaryType: 'Mail',
  message: { text: 'hello' },
});
const authorization = JSON.stringify({ address: `0x${'12'.repeat(20)}`, chainId: 1, nonce: 0 });

/** Payload, encoding and hash function that go together. */
const payloads = {
  PAYLOAD_ENCODING_HEXADECIMAL: ['aa'.repeat(32), 'HASH_FUNCTION_NO_OP'],
  PAYLOAD_ENCODING_TEXT_UTF8: ['hello', 'HASH_FUNCTION_SHA256'],
  PAYLOAD_ENCODING_EIP712: [typedData, 'HASH_FUNCTION_NO_OP'],
  PAYLOAD_ENCODING_EIP7702_AUTHORIZATION: [authorization, 'HASH_FUNCTION_NO_OP'],
} as const;

const sampleCondition = "activity.kind == 'RECOVER_USER'";
const sampleConsensus = 'approvers.count() >= 1';

/** For every submit of the specification, by its path: parameters. */
export const submitFixtures: Readonly<Record<string, Fixture>> = {
  async oauth(world) {
    const { subject } = await world.newIdentity();
    const { publicKey } = world.newKey();
    return {
      oidcToken: await world.idToken(subject, publicKey),
      targetPublicKey: publicKey,
      apiKeyName: 'walk',
      expirationSeconds: '600',
      invalidateExisting: true,
    };
  },

  async otp_auth(world) {
    const { otpId, otpCode } = await world.newLoginCode();
    return {
      otpId,
      otpCode,
      targetPublicKey: world.newKey().publicKey,
      apiKeyName: 'walk',
      expirationSeconds: '600',
      invalidateExisting: true,
    };
  },

  async init_otp_auth(world, wanted) {
    const isSms = wanted?.value === 'OTP_TYPE_SMS';
    return {
      otpType: isSms ? 'OTP_TYPE_SMS' : 'OTP_TYPE_EMAIL',
      contact: isSms ? world.newPhone() : world.newEmail(),
      otpLength: 8,
      appName: 'Walk',
      emailCustomization: {
        logoUrl: 'https://app.example.com/logo.png',
        magicLinkTemplate: 'https://app.example.com/%s',
        templateVariables: '{"userName":"Ann"}',
        templateId: 'welcome',
      },
      smsCustomization: { template: 'Your code: {{.OtpCode}}' },
      userIdentifier: world.unique(12),
      sendFromEmailAddress: 'no-reply@example.com',
      alphanumeric: false,
      sendFromEmailSenderName: 'Walk',
      expirationSeconds: '300',
      replyToEmailAddress: 'help@example.com',
    };
  },

  update_policy: async (world) => ({
    policyId: await world.newPolicy(),
    policyName: world.unique(12),
    policyEffect: 'EFFECT_DENY',
    policyCondition: sampleCondition,
    policyConsensus: sampleConsensus,
    policyNotes: 'a note',
  }),

  create_policies: async (world, wanted) => ({
    policies: [
      {
        policyName: world.unique(12),
        effect: wanted?.at === 'policies[0].effect' ? wanted.value : 'EFFECT_ALLOW',
        condition: sampleCondition,
        consensus: sampleConsensus,
        notes: 'a note',
      },
    ],
  }),

  delete_policy: async (world) => ({ policyId: await world.newPolicy() }),

  async create_smart_contract_interface(world, wanted) {
    const isSolana = wanted?.value === 'SMART_CONTRACT_INTERFACE_TYPE_SOLANA';
    return {
      smartContractAddress: isSolana ? base58.encode(randomBytes(32)) : `0x${world.newKey().publicKey.slice(2, 42)}`,
      smartContractInterface: isSolana ? idl : abi,
      type: isSolana ? 'SMART_CONTRACT_INTERFACE_TYPE_SOLANA' : 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
      label: world.unique(12),
      notes: 'a note',
    };
  },

  delete_webhook_endpoint: async (world) => ({ endpointId: await world.newWebhookEndpoint() }),

  create_fiat_on_ramp_credential: async (world, wanted) => ({
    onrampProvider: wanted?.at === 'onrampProvider' ? wanted.value : 'FIAT_ON_RAMP_PROVIDER_ALPHA',
    projectId: world.unique(12),
    publishableApiKey: 'pk_walk',
    encryptedSecretApiKey: await world.onRampSecret(),
    encryptedPrivateApiKey: await world.onRampSecret(),
    sandboxMode: true,
  }),

  async delete_wallet_accounts(world) {
    const { walletAccountId } = await world.newExportedAccount();
    return { walletAccountIds: [walletAccountId], deleteWithoutExport: true };
  },

  delete_user_tags: async (world) => ({ userTagIds: [await world.newUserTag([world.rootUserId])] }),

  async update_wallet(world) {
    const [account] = await world.newWallet();
    return { walletId: account!.walletId, walletName: world.unique(12) };
  },

  async sign_raw_payloads(world, wanted) {
    const isMessage = wanted?.value === 'HASH_FUNCTION_NOT_APPLICABLE';
    const encoding =
      wanted?.at === 'encoding'
        ? (wanted.value as keyof typeof payloads)
        : wanted?.at === 'hashFunction' && wanted.value !== 'HASH_FUNCTION_NO_OP'
          ? 'PAYLOAD_ENCODING_TEXT_UTF8'
          : 'PAYLOAD_ENCODING_HEXADECIMAL';
    const [payload, hashFunction] = payloads[encoding];
    const [account] = await world.newWallet([isMessage ? solanaAccount : ethereumAccount]);
    return {
      signWith: account!.address,
      payloads: [payload],
      encoding,
      hashFunction: wanted?.at === 'hashFunction' ? wanted.value : hashFunction,
    };
  },

  async update_user_phone_number(world) {
    const { userId } = await world.newUser();
    const userPhoneNumber = world.newPhone();
    const verificationToken = await world.newVerificationToken('OTP_TYPE_SMS', userPhoneNumber);
    return { userId, userPhoneNumber, verificationToken };
  },

  create_private_key_tag: async (world) => ({
    privateKeyTagName: world.unique(12),
    privateKeyIds: [await world.newPrivateKey()],
  }),

  export_private_key: async (world) => ({
    privateKeyId: await world.newPrivateKey(),
    targetPublicKey: world.newKey().publicKey,
  }),

  create_invitations: async (world, wanted) => ({
    invitations: [
      {
        receiverUserName: world.unique(12),
        receiverUserEmail: world.newEmail(),
        receiverUserTags: [await world.newUserTag()],
        accessType: wanted?.at === 'invitations[0].accessType' ? wanted.value : 'ACCESS_TYPE_WEB',
        senderUserId: world.rootUserId,
      },
    ],
  }),
};

/** What the specification says beside the tables: parameters, and the field that a refusal names where they are refused. */
interface Remark {
  readonly name: string;
  readonly parameters: Fixture;
  readonly refused?: string;
}

export const submitRemarks: Readonly<Record<string, readonly Remark[]>> = {
  delete_wallet_accounts: [
    {
      name: 'an account that was never exported, with deleteWithoutExport',
      async parameters(world) {
        const [account] = await world.newWallet();
        return { walletAccountIds: [account!.walletAccountId], deleteWithoutExport: true };
      },
    },
    {
      name: 'an account that was never exported, without deleteWithoutExport',
      async parameters(world) {
        const [account] = await world.newWallet();
        return { walletAccountIds: [account!.walletAccountId] };
      },
      refused: 'deleteWithoutExport',
    },
    {
      name: 'an exported account, with deleteWithoutExport false',
      async parameters(world) {
        const { walletAccountId } = await world.newExportedAccount();
        return { walletAccountIds: [walletAccountId], deleteWithoutExport: false };
      },
    },
  ],
  sign_raw_payloads: [
    {
      name: 'signWith a private key identifier, several payloads',
      parameters: async (world) => ({
        signWith: await world.newPrivateKey(),
        payloads: ['one', 'two', 'three'],
        encoding: 'PAYLOAD_ENCODING_TEXT_UTF8',
        hashFunction: 'HASH_FUNCTION_KECCAK256',
      }),
    },
    {
      name: 'signWith a private key address',
      parameters: async (world) => ({
        signWith: await world.addressOf(await world.newPrivateKey()),
        payloads: ['one'],
        encoding: 'PAYLOAD_ENCODING_TEXT_UTF8',
        hashFunction: 'HASH_FUNCTION_SHA256',
      }),
    },
  ],
  update_user_phone_number: [
    {
      name: 'without a verificationToken',
      parameters: async (world) => ({
        userId: (await world.newUser()).userId,
        userPhoneNumber: world.newPhone(),
      }),
    },
    {
      name: 'a verificationToken of another contact',
      parameters: async (world) => ({
        userId: (await world.newUser()).userId,
        userPhoneNumber: world.newPhone(),
        verificationToken: await world.newVerificationToken('OTP_TYPE_SMS', world.newPhone()),
      }),
      refused: 'parameters.verificationToken',
    },
  ],
};

/** For every query: its body without organizationId. */
export const queryFixtures: Readonly<Record<string, Fixture>> = {
  async list_wallet_accounts(world) {
    const path = (index: number) => ({ ...ethereumAccount, path: `m/44'/60'/0'/0/${index}` });
    const accounts = await world.newWallet([path(0), path(1), path(2)]);
    return {
      walletId: accounts[0]!.walletId,
      includeWalletDetails: true,
      paginationOptions: {
        limit: '2',
        after: accounts[0]!.walletAccountId,
        before: accounts[2]!.walletAccountId,
      },
    };
  },

  async get_oauth_providers(world) {
    return { userId: (await world.newIdentity()).userId };
  },

  async get_boot_proof(world) {
    const { bootProof } = await world.client.query<{ bootProof: { ephemeralPublicKeyHex: string } }>(
      'get_latest_boot_proof',
      { appName: 'countersign' },
    );
    return { ephemeralKey: bootProof.ephemeralPublicKeyHex };
  },
};

/** What the client signs for a sign-up asks for what the request does (client protocol 8.2). */
async function signup(world: World, wanted?: Wanted): Promise<Body> {
  const key = world.newKey();
  const userEmail = world.newEmail();
  const userPhoneNumber = world.newPhone();
  const verificationToken = await world.newVerificationToken('OTP_TYPE_EMAIL', userEmail, key);
  const { value, at = '' } = wanted ?? {};
  const curve = (at === 'apiKeys[0].curveType' ? value : 'API_KEY_CURVE_P256') as typeof key.curve;
  const { attestation, challenge } = new SoftwareAuthenticator().register();
  const transports = at.includes('transports') ? [value] : attestation.transports;
  const asked = {
    apiKeys: [
      {
        apiKeyName: 'key',
        publicKey: world.newKey(curve).publicKey,
        curveType: curve,
        expirationSeconds: '600',
      },
    ],
    authenticators: [{ authenticatorName: 'passkey', challenge, attestation: { ...attestation, transports } }],
    oauthProviders: [{ providerName: 'provider', oidcToken: await world.idToken(`subject ${world.unique(8)}`) }],
  };
  return {
    userEmail,
    userPhoneNumber,
    userTag: 'tag',
    userName: world.unique(12),
    organizationName: world.unique(12),
    verificationToken,
    ...asked,
    wallet: { walletName: 'first', accounts: [{ ...ethereumAccount, name: 'main' }], mnemonicLength: 12 },
    clientSignature: clientSignature(key, verificationToken, 'USAGE_TYPE_SIGNUP', {
      signup: { ...asked, email: userEmail, phoneNumber: userPhoneNumber },
    }),
  };
}

/** The value of a filter that finds the account. */
async function account(world: World, wanted?: Wanted): Promise<Body> {
  const filterType = String(wanted?.at === 'filterType' ? wanted.value : 'EMAIL');
  const { userEmail, userPhoneNumber, userName, subject, key, passkey } = await world.newAccount();
  const iss = world.provider.issuer;
  const values: Readonly<Record<string, string>> = {
    EMAIL: userEmail,
    PHONE_NUMBER: userPhoneNumber,
    OIDC_TOKEN: await world.idToken(subject),
    OIDC_CLAIMS: JSON.stringify({ iss, sub: subject, aud: 'app' }),
    PUBLIC_KEY: key.publicKey,
    CREDENTIAL_ID: passkey.credentialId,
    NAME: userName,
    USERNAME: userName,
  };
  return {
    filterType,
    filterValue: values[filterType],
    verificationToken: await world.newVerificationToken('OTP_TYPE_EMAIL', userEmail),
    oidcToken: await world.idToken(subject),
  };
}

/** Required fields that go together where those of the full request do not. */
export const minimalFixtures: Readonly<Record<string, Fixture>> = {
  // The other provider needs a project and a private key too.
  create_fiat_on_ramp_credential: async (world) => ({
    onrampProvider: 'FIAT_ON_RAMP_PROVIDER_BETA',
    publishableApiKey: 'pk_walk',
    encryptedSecretApiKey: await world.onRampSecret(),
  }),

  // A token that is bound to no key needs no clientSignature.
  async otp_login(world) {
    const { userEmail } = await world.newAccount();
    return {
      verificationToken: await world.newVerificationToken('OTP_TYPE_EMAIL', userEmail),
      publicKey: world.newKey().publicKey,
    };
  },
};

/** For every endpoint of the auth proxy: its body. */
export const proxyFixtures: Readonly<Record<string, Fixture>> = {
  signup,
  account,

  otp_init: async (world, wanted) => {
    const isSms = wanted?.value === 'OTP_TYPE_SMS';
    return {
      otpType: isSms ? 'OTP_TYPE_SMS' : 'OTP_TYPE_EMAIL',
      contact: isSms ? world.newPhone() : world.newEmail(),
      emailCustomization: { templateId: 'welcome' },
    };
  },

  async otp_verify(world) {
    const { otpId } = await world.submit('ACTIVITY_TYPE_INIT_OTP_V3', {
      otpType: 'OTP_TYPE_EMAIL',
      contact: world.newEmail(),
      appName: 'Walk',
      alphanumeric: false,
    });
    return { otpId, otpCode: await codeOf(world.coordinator, otpId!), publicKey: world.newKey().publicKey };
  },

  async otp_login(world) {
    const { organizationId, userEmail } = await world.newAccount();
    const key = world.newKey();
    const { publicKey } = world.newKey();
    const verificationToken = await world.newVerificationToken('OTP_TYPE_EMAIL', userEmail, key);
    return {
      verificationToken,
      publicKey,
      invalidateExisting: true,
      organizationId,
      clientSignature: clientSignature(key, verificationToken, 'USAGE_TYPE_LOGIN', { login: { publicKey } }),
    };
  },

  async oauth2_authenticate(world, wanted) {
    const provider = String(wanted?.at === 'provider' ? wanted.value : 'OAUTH2_PROVIDER_X');
    return { provider, ...(await world.newGrant(provider)), nonce: 'ab'.repeat(32) };
  },

  async oauth_login(world) {
    const { organizationId, subject } = await world.newAccount();
    const { publicKey } = world.newKey();
    return {
      oidcToken: await world.idToken(subject, publicKey),
      publicKey,
      invalidateExisting: true,
      organizationId,
    };
  },

  wallet_kit_config: async () => ({}),
};
