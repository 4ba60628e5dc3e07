import { randomBytes, randomUUID } from 'node:crypto';
import { encryptOauth2ClientSecret, encryptOnRampSecret } from '@turnkey/crypto';
import {
  generateApiKeyPair,
  startCoordinator,
  type ApiKeyPair,
  type StampingClient,
  type TestCoordinator,
  type TestUser,
} from '../../src/testing/index.js';
import { exchange } from '../e2e/exchange.js';
import { clientSecret, IdentityProvider } from '../e2e/identity-provider.js';
import { resultOf } from '../e2e/login-world.js';
import { codeOf } from '../e2e/one-time-codes.js';
import { SoftwareAuthenticator } from '../stamps/software-authenticator.js';
import type { Resource } from './specification/shape.js';

export const ethereumAccount = {
  curve: 'CURVE_SECP256K1',
  pathFormat: 'PATH_FORMAT_BIP32',
  path: "m/44'/60'/0'/0/0",
  addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
};
export const solanaAccount = {
  curve: 'CURVE_ED25519',
  pathFormat: 'PATH_FORMAT_BIP32',
  path: "m/44'/501'/0'/0'",
  addressFormat: 'ADDRESS_FORMAT_SOLANA',
};

/** CJK ideographs begin here. */
const firstLetter = 0x4e00;

interface Account {
  readonly walletId: string;
  readonly walletAccountId: string;
  readonly address: string;
}

/** A running server with everything that the specification's requests are about. Whatever a fixture uses up is made anew. */
export class World {
  private count = 0;
  /** Events that `recorded` has told. */
  private known = 0;

  private constructor(
    readonly coordinator: TestCoordinator,
    readonly provider: IdentityProvider,
    /** A passkey of the root user. */
    readonly passkey: SoftwareAuthenticator,
    /** The root user of a sub-organization. */
    readonly child: StampingClient,
    /** The root user of another sub-organization. */
    readonly sibling: StampingClient,
    /** A user of the organization who may do nothing. */
    readonly stranger: StampingClient,
    /** What the first sub-organization has, by what it is. */
    readonly foreign: Readonly<Record<Resource, string>>,
  ) {}

  static async start(): Promise<World> {
    const provider = await IdentityProvider.start();
    const coordinator = await startCoordinator({
      seed: 'conformance',
      settings: {
        ...provider.settings,
        PROXY_RATE_LIMIT_PER_ADDRESS: '0',
        PROXY_RATE_LIMIT_PER_CONFIGURATION: '0',
        PROXY_RATE_LIMIT_SIGN_UPS_PER_ADDRESS: '0',
        PROXY_RATE_LIMIT_CODES_PER_ADDRESS: '0',
        PROXY_RATE_LIMIT_PER_CONTACT: '0',
      },
    });
    const { client, root } = coordinator;
    const passkey = new SoftwareAuthenticator();
    await client.submit('ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', {
      userId: root.userId,
      authenticators: [{ authenticatorName: 'passkey', ...passkey.register() }],
    });
    await client.submit('ACTIVITY_TYPE_UPDATE_AUTH_PROXY_CONFIG', {
      allowedAuthMethods: ['email', 'sms', 'passkey', 'wallet', 'oauth'],
      verificationTokenRequiredForGetAccountPii: false,
      otpAlphanumeric: false,
      otpLength: 6,
      walletKitSettings: {
        enabledSocialProviders: ['google'],
        oauthClientIds: { google: 'app' },
        oauthRedirectUrl: 'https://app.example.com/back',
      },
    });
    const [child, sibling] = [
      await subOrganizationOf(coordinator, 'child'),
      await subOrganizationOf(coordinator, 'sibling'),
    ];
    const { client: stranger } = await coordinator.createUser('Stranger');
    const foreign = await resourcesOf(child.client, child.userId, `${provider.issuer}/hook`);
    return new World(coordinator, provider, passkey, child.client, sibling.client, stranger, foreign);
  }

  /** What the organization's stream has got since the last time that this was asked. */
  async recorded(): Promise<Awaited<ReturnType<TestCoordinator['events']>>> {
    const events = await this.coordinator.events(undefined, this.known);
    this.known += events.length;
    return events;
  }

  async close(): Promise<void> {
    await this.coordinator.close();
    await this.provider.close();
  }

  get client(): StampingClient {
    return this.coordinator.client;
  }

  get rootUserId(): string {
    return this.coordinator.root.userId;
  }

  newKey(curve?: ApiKeyPair['curve']): ApiKeyPair {
    return generateApiKeyPair(randomBytes, curve);
  }

  /** A text of that length that nothing else is called. */
  unique(length: number): string {
    // A letter of which there are enough for one to be a name.
    return String.fromCodePoint(firstLetter + this.count++).padEnd(length, '-');
  }

  newEmail(): string {
    return `person-${this.count++}@example.com`;
  }

  newPhone(): string {
    return `+1321${String(1_000_000 + this.count++)}`;
  }

  /** The result of what the root user submits. */
  async submit<Result = Readonly<Record<string, string>>>(type: string, parameters: object): Promise<Result> {
    return resultOf<Result>(await this.client.submit(type, parameters));
  }

  async newUser(userEmail = this.newEmail()): Promise<TestUser & { readonly userEmail: string }> {
    return { ...(await this.coordinator.createUser(userEmail, { userEmail })), userEmail };
  }

  newPolicy(): Promise<string> {
    return this.coordinator.createPolicy({
      policyName: this.unique(12),
      effect: 'EFFECT_DENY',
      condition: "activity.kind == 'RECOVER_USER'",
    });
  }

  /** The accounts of a new wallet, in the order asked. */
  newWallet(accounts: readonly object[] = [ethereumAccount]): Promise<readonly Account[]> {
    return walletOf(this.client, this.unique(12), accounts);
  }

  /** An account that was exported, so that it may be deleted. */
  async newExportedAccount(): Promise<Account> {
    const [account] = await this.newWallet();
    await this.submit('ACTIVITY_TYPE_EXPORT_WALLET_ACCOUNT', {
      address: account!.address,
      targetPublicKey: this.newKey().publicKey,
    });
    return account!;
  }

  async newPrivateKey(): Promise<string> {
    return privateKeyOf(this.client, this.unique(12));
  }

  /** The first address of a private key. */
  async addressOf(privateKeyId: string): Promise<string> {
    const { privateKey } = await this.client.query<{ privateKey: { addresses: { address: string }[] } }>(
      'get_private_key',
      { privateKeyId },
    );
    return privateKey.addresses[0]!.address;
  }

  async newUserTag(userIds: readonly string[] = []): Promise<string> {
    const { userTagId } = await this.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: this.unique(12), userIds });
    return userTagId!;
  }

  async newWebhookEndpoint(): Promise<string> {
    const { endpointId } = await this.submit('ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT', {
      url: `${this.provider.issuer}/hook`,
      name: this.unique(12),
    });
    return endpointId!;
  }

  /** A code for otp_auth, and the user whom it logs in. */
  async newLoginCode(): Promise<{ readonly userId: string; readonly otpId: string; readonly otpCode: string }> {
    const { userId, userEmail } = await this.newUser();
    const { otpId } = await this.submit('ACTIVITY_TYPE_INIT_OTP_AUTH_V3', {
      otpType: 'OTP_TYPE_EMAIL',
      contact: userEmail,
      appName: 'Walk',
      alphanumeric: false,
    });
    return { userId, otpId: otpId!, otpCode: await codeOf(this.coordinator, otpId!) };
  }

  /** A verification token for a contact, bound to the key if there is one. */
  async newVerificationToken(otpType: string, contact: string, key?: ApiKeyPair): Promise<string> {
    const { otpId } = await this.submit('ACTIVITY_TYPE_INIT_OTP_V3', {
      otpType,
      contact,
      appName: 'Walk',
      alphanumeric: false,
    });
    const { verificationToken } = await this.submit('ACTIVITY_TYPE_VERIFY_OTP', {
      otpId,
      otpCode: await codeOf(this.coordinator, otpId!),
      ...(key ? { publicKey: key.publicKey } : {}),
    });
    return verificationToken!;
  }

  /** A token of the identity provider, asked for with the key if there is one. */
  idToken(subject: string, publicKey?: string): Promise<string> {
    const at = this.coordinator.clock.now();
    return this.provider.idToken({ subject, at, ...(publicKey === undefined ? {} : { publicKey }) });
  }

  /** An identity of a new user. */
  async newIdentity(): Promise<{ readonly userId: string; readonly subject: string }> {
    const { userId } = await this.newUser();
    const subject = `subject ${this.unique(8)}`;
    await this.submit('ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS_V2', {
      userId,
      oauthProviders: [{ providerName: 'provider', oidcToken: await this.idToken(subject) }],
    });
    return { userId, subject };
  }

  /** A sub-organization of one person, whose contact has been proved and who has an identity. */
  async newAccount() {
    const userEmail = this.newEmail();
    const userPhoneNumber = this.newPhone();
    const key = this.newKey();
    const subject = `subject ${this.unique(8)}`;
    const userName = this.unique(12);
    const passkey = new SoftwareAuthenticator();
    const { subOrganizationId } = await this.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V7', {
      subOrganizationName: userName,
      rootUsers: [
        {
          userName,
          userEmail,
          userPhoneNumber,
          apiKeys: [{ apiKeyName: 'key', publicKey: key.publicKey, curveType: key.curve }],
          authenticators: [{ authenticatorName: 'passkey', ...passkey.register() }],
          oauthProviders: [{ providerName: 'provider', oidcToken: await this.idToken(subject) }],
        },
      ],
      rootQuorumThreshold: 1,
      verificationToken: await this.newVerificationToken('OTP_TYPE_EMAIL', userEmail),
    });
    return { organizationId: subOrganizationId!, userName, userEmail, userPhoneNumber, key, passkey, subject };
  }

  /** An application at an OAuth 2.0 provider, and a code that it was sent. */
  async newGrant(oauth2Provider: string) {
    const clientId = `app ${this.unique(8)}`;
    await this.submit('ACTIVITY_TYPE_CREATE_OAUTH2_CREDENTIAL', {
      provider: oauth2Provider,
      clientId,
      encryptedClientSecret: await encryptOauth2ClientSecret(
        clientSecret,
        await this.discovered('oauthSecretEncryption'),
      ),
    });
    const exchanged = { redirectUri: 'https://app.example.com/back', codeVerifier: 'v'.repeat(43) };
    return { clientId, ...exchanged, authCode: this.provider.newCode({ personId: '1234', clientId, ...exchanged }) };
  }

  /** A secret of an on-ramp provider, sealed to this server (client protocol 7.7). */
  async onRampSecret(): Promise<string> {
    return encryptOnRampSecret(`secret ${randomUUID()}`, await this.discovered('onRampEncryption'));
  }

  private async discovered(name: string): Promise<string> {
    const { body } = await exchange(`${this.coordinator.url}/public/v1/discovery/keys`);
    const key = (body as Readonly<Record<string, string>>)[name];
    if (key === undefined) throw new Error(`/public/v1/discovery/keys has no ${name}`);
    return key;
  }
}

async function subOrganizationOf({ client, newKey, clientFor }: TestCoordinator, name: string) {
  const key = newKey();
  const { subOrganizationId, rootUserIds } = resultOf<{ subOrganizationId: string; rootUserIds: string[] }>(
    await client.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
      subOrganizationName: name,
      rootUsers: [
        {
          userName: name,
          userEmail: `${name}@example.com`,
          apiKeys: [{ apiKeyName: name, publicKey: key.publicKey, curveType: key.curve }],
          authenticators: [],
          oauthProviders: [],
        },
      ],
      rootQuorumThreshold: 1,
    }),
  );
  return { client: clientFor(key, subOrganizationId), userId: rootUserIds[0]! };
}

async function walletOf(
  client: StampingClient,
  walletName: string,
  accounts: readonly object[],
): Promise<readonly Account[]> {
  const { walletId } = resultOf(await client.submit('ACTIVITY_TYPE_CREATE_WALLET', { walletName, accounts }));
  const answer = await client.query<{ accounts: Account[] }>('list_wallet_accounts', {
    walletId,
    paginationOptions: { limit: '100' },
  });
  return answer.accounts;
}

async function privateKeyOf(client: StampingClient, privateKeyName: string): Promise<string> {
  const { privateKeyIds } = resultOf<{ privateKeyIds: string[] }>(
    await client.submit('ACTIVITY_TYPE_CREATE_PRIVATE_KEYS_V2', {
      privateKeys: [
        {
          privateKeyName,
          curve: 'CURVE_SECP256K1',
          privateKeyTags: [],
          addressFormats: ['ADDRESS_FORMAT_ETHEREUM'],
        },
      ],
    }),
  );
  return privateKeyIds[0]!;
}

/** One of everything in an organization of its own. */
async function resourcesOf(
  client: StampingClient,
  userId: string,
  hookUrl: string,
): Promise<Readonly<Record<Resource, string>>> {
  const submit = async (type: string, parameters: object) => resultOf(await client.submit(type, parameters));
  const [account] = await walletOf(client, 'wallet', [ethereumAccount]);
  const { policyId } = await submit('ACTIVITY_TYPE_CREATE_POLICY_V3', {
    policyName: 'policy',
    effect: 'EFFECT_DENY',
    condition: "activity.kind == 'RECOVER_USER'",
  });
  const { userTagId } = await submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'tag', userIds: [] });
  const { otpId } = await submit('ACTIVITY_TYPE_INIT_OTP_AUTH_V3', {
    otpType: 'OTP_TYPE_EMAIL',
    contact: 'child@example.com',
    appName: 'Walk',
  });
  const { endpointId } = await submit('ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT', {
    url: hookUrl,
    name: 'endpoint',
  });
  return {
    policy: policyId!,
    'webhook endpoint': endpointId!,
    wallet: account!.walletId,
    'wallet account': account!.walletAccountId,
    'wallet account address': account!.address,
    user: userId,
    'user tag': userTagId!,
    'private key': await privateKeyOf(client, 'key'),
    otp: otpId!,
  };
}

/** The curve that an address format of the specification is usual on. */
export const curveOf = (format: string): string =>
  /SOLANA|SUI|APTOS|XLM|TON/.test(format) ? 'CURVE_ED25519' : 'CURVE_SECP256K1';
