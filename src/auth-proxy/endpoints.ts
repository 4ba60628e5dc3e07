import { createHash } from 'node:crypto';
import { CoordinatorError, invalidField } from '../domain/errors.js';
import type { Api, Configuration } from './api.js';
import type { Limits } from './limits.js';
import { provenContact } from './verification-token.js';

/** One request that has passed the checks of origin, configuration and rate. */
interface Call {
  readonly api: Api;
  readonly limits: Limits;
  readonly configuration: Configuration;
  readonly body: Readonly<Record<string, unknown>>;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

type Endpoint = (call: Call) => object | Promise<object>;

/** Every endpoint by the last segment of its path (client protocol 5.2 and 5.3). Members of a request that none of these
 * names are not forwarded: published clients send some that are for nobody. */
export const endpoints: ReadonlyMap<string, Endpoint> = new Map<string, Endpoint>([
  ['signup', (call) => signup(call, 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V7')],
  ['signup_v2', (call) => signup(call, 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8')],
  ['otp_init', (call) => initOtp(call, 'ACTIVITY_TYPE_INIT_OTP_V2')],
  ['otp_init_v2', (call) => initOtp(call, 'ACTIVITY_TYPE_INIT_OTP_V3')],
  ['otp_verify', (call) => verifyOtp(call, 'ACTIVITY_TYPE_VERIFY_OTP', ['otpCode'], ['publicKey'])],
  ['otp_verify_v2', (call) => verifyOtp(call, 'ACTIVITY_TYPE_VERIFY_OTP_V2', ['encryptedOtpBundle'], [])],
  ['otp_login', (call) => otpLogin(call, 'ACTIVITY_TYPE_OTP_LOGIN')],
  ['otp_login_v2', (call) => otpLogin(call, 'ACTIVITY_TYPE_OTP_LOGIN_V2')],
  ['oauth2_authenticate', oauth2Authenticate],
  ['oauth_login', oauthLogin],
  ['account', account],
  ['wallet_kit_config', walletKitConfig],
  // There is no captcha, so there is no key of one.
  ['wallet_kit_client_params', () => ({})],
]);

async function signup({ api, configuration, body }: Call, type: string): Promise<object> {
  const authenticators = listOf(body, 'authenticators');
  const oauthProviders = listOf(body, 'oauthProviders');
  const apiKeys = listOf(body, 'apiKeys');
  if (authenticators.length > 0) checkMethod(configuration, 'passkey');
  if (oauthProviders.length > 0) checkMethod(configuration, 'oauth');
  const { userName, organizationName, ...contacts } = {
    userName: textOf(body, 'userName'),
    organizationName: textOf(body, 'organizationName'),
    userEmail: textOf(body, 'userEmail'),
    userPhoneNumber: textOf(body, 'userPhoneNumber'),
  };
  const name = userName ?? contacts.userEmail ?? contacts.userPhoneNumber ?? 'User';
  const { result, appProofs } = await api.submit<{
    subOrganizationId: string;
    wallet?: object;
    rootUserIds?: readonly string[];
  }>(configuration, type, {
    subOrganizationName: organizationName ?? name,
    rootUsers: [{ userName: name, ...contacts, apiKeys, authenticators, oauthProviders }],
    rootQuorumThreshold: 1,
    ...picked(body, ['wallet', 'verificationToken', 'clientSignature']),
  });
  return {
    organizationId: result.subOrganizationId,
    userId: result.rootUserIds?.[0],
    ...(result.wallet ? { wallet: result.wallet } : {}),
    ...(appProofs ? { appProofs } : {}),
  };
}

async function initOtp({ api, limits, configuration, body }: Call, type: string): Promise<object> {
  const { settings, configId, organizationName } = configuration;
  const otpType = requiredText(body, 'otpType');
  const contact = requiredText(body, 'contact').trim();
  const method = { OTP_TYPE_EMAIL: 'email', OTP_TYPE_SMS: 'sms' }[otpType];
  if (method === undefined) throw invalidField('otpType', 'must be OTP_TYPE_EMAIL or OTP_TYPE_SMS');
  checkMethod(configuration, method);
  await limits.countContact(configId, contact.toLowerCase());
  const { templateId = settings.otpTemplateId, ...custom } = {
    ...settings.emailCustomizationParams,
    ...picked(objectOf(body, 'emailCustomization'), ['templateId']),
  } as Readonly<Record<string, string>>;
  const { appName = organizationName, ...emailCustomization } = { ...custom, ...(templateId ? { templateId } : {}) };
  const isEmail = method === 'email';
  const { result } = await api.submit<object>(configuration, type, {
    otpType,
    contact,
    appName,
    ...(isEmail && Object.keys(emailCustomization).length > 0 ? { emailCustomization } : {}),
    ...(!isEmail && settings.smsCustomizationParams ? { smsCustomization: settings.smsCustomizationParams } : {}),
    ...(isEmail ? picked(settings, ['sendFromEmailAddress', 'replyToEmailAddress', 'sendFromEmailSenderName']) : {}),
    ...(settings.otpLength === undefined ? {} : { otpLength: Number(settings.otpLength) }),
    ...(settings.otpAlphanumeric === undefined ? {} : { alphanumeric: settings.otpAlphanumeric }),
    ...lifeOf(settings.otpExpirationSeconds),
    // One contact of one configuration, and nothing that could be read back.
    userIdentifier: createHash('sha256').update(`${configId} ${contact.toLowerCase()}`).digest('hex').slice(0, 32),
  });
  return picked(result, ['otpId', 'otpEncryptionTargetBundle']);
}

async function verifyOtp(
  { api, configuration, body }: Call,
  type: string,
  required: readonly string[],
  optional: readonly string[],
): Promise<object> {
  const { verificationTokenExpirationSeconds } = configuration.settings;
  const { result } = await api.submit<object>(configuration, type, {
    ...requiredTexts(body, ['otpId', ...required]),
    ...picked(body, optional),
    ...lifeOf(verificationTokenExpirationSeconds),
  });
  return picked(result, ['verificationToken']);
}

async function otpLogin(call: Call, type: string): Promise<object> {
  const { api, configuration, body, now } = call;
  const login = requiredTexts(body, ['verificationToken', 'publicKey']);
  const organizationId = await subOrganization(call, async () => {
    const { contact, kind } = provenContact(
      login['verificationToken']!,
      await api.verificationKey(),
      configuration.organizationId,
      now,
    );
    return found(api, configuration, 'list_verified_suborgs', kind, contact);
  });
  const { result } = await api.submit<object>(
    configuration,
    type,
    { ...login, ...picked(body, ['invalidateExisting', 'clientSignature']), ...sessionLife(configuration) },
    organizationId,
  );
  return picked(result, ['session']);
}

async function oauthLogin(call: Call): Promise<object> {
  const { api, configuration, body } = call;
  checkMethod(configuration, 'oauth');
  const login = requiredTexts(body, ['oidcToken', 'publicKey']);
  const organizationId = await subOrganization(call, () =>
    found(api, configuration, 'list_suborgs', 'OIDC_TOKEN', login['oidcToken']!),
  );
  const { result } = await api.submit<object>(
    configuration,
    'ACTIVITY_TYPE_OAUTH_LOGIN',
    { ...login, ...picked(body, ['invalidateExisting']), ...sessionLife(configuration) },
    organizationId,
  );
  return picked(result, ['session']);
}

async function oauth2Authenticate({ api, configuration, body }: Call): Promise<object> {
  checkMethod(configuration, 'oauth');
  const { provider, clientId, ...exchange } = requiredTexts(body, [
    'provider',
    'authCode',
    'redirectUri',
    'codeVerifier',
    'nonce',
    'clientId',
  ]);
  const { oauth2Credentials } = await api.query<{ oauth2Credentials: readonly Readonly<Record<string, string>>[] }>(
    configuration,
    'list_oauth2_credentials',
    {},
  );
  const credential = oauth2Credentials.find((one) => one['provider'] === provider && one['clientId'] === clientId);
  if (!credential) {
    throw new CoordinatorError(
      'NOT_FOUND',
      `no OAuth 2.0 credential for provider \`${provider!.slice(0, 100)}\` and client id \`${clientId!.slice(0, 200)}\`: ` +
        'register it with create_oauth2_credential',
      { category: 'OAUTH2_CREDENTIAL_NOT_FOUND' },
    );
  }
  const { oauth2CredentialId } = credential;
  const { result } = await api.submit<object>(configuration, 'ACTIVITY_TYPE_OAUTH2_AUTHENTICATE', {
    oauth2CredentialId,
    ...exchange,
  });
  return picked(result, ['oidcToken']);
}

/** Filters that tell nothing of a person to who does not have the credential. The others do. */
const credentialFilters: readonly string[] = ['OIDC_TOKEN', 'OIDC_CLAIMS', 'PUBLIC_KEY', 'CREDENTIAL_ID'];
const contactFilters: readonly string[] = ['EMAIL', 'PHONE_NUMBER'];
const nameFilters: readonly string[] = ['NAME', 'USERNAME'];

async function account({ api, configuration, body, now }: Call): Promise<object> {
  const { verificationTokenRequiredForGetAccountPii: isGated = true } = configuration.settings;
  const { filterType, filterValue } = requiredTexts(body, ['filterType', 'filterValue']) as {
    filterType: string;
    filterValue: string;
  };
  const known = [...contactFilters, ...credentialFilters, ...nameFilters];
  if (!known.includes(filterType)) throw invalidField('filterType', `must be one of ${known.join(', ')}`);
  if (isGated && nameFilters.includes(filterType)) {
    throw new CoordinatorError(
      'PERMISSION_DENIED',
      `accounts are not looked up by \`${filterType}\`, since nothing proves it: look up by contact, or have ` +
        'verificationTokenRequiredForGetAccountPii switched off',
    );
  }
  if (isGated && contactFilters.includes(filterType)) {
    const verificationToken = textOf(body, 'verificationToken');
    const proof =
      verificationToken === undefined
        ? undefined
        : provenContact(verificationToken, await api.verificationKey(), configuration.organizationId, now);
    if (proof?.kind !== filterType || proof.contact.toLowerCase() !== filterValue.toLowerCase()) {
      throw new CoordinatorError(
        'PERMISSION_DENIED',
        'a verificationToken for this very contact is required: verify it with otp_init and otp_verify first',
      );
    }
  }
  const path = contactFilters.includes(filterType) ? 'list_verified_suborgs' : 'list_suborgs';
  const organizationId = await found(api, configuration, path, filterType, filterValue);
  return organizationId === undefined ? {} : { organizationId };
}

function walletKitConfig({ configuration }: Call): object {
  const { organizationId, settings } = configuration;
  const { allowedAuthMethods, walletKitSettings = {}, sessionExpirationSeconds = '900' } = settings;
  const { enabledSocialProviders = [], oauthClientIds, oauthRedirectUrl } = walletKitSettings;
  const social = allowedAuthMethods.includes('oauth') ? enabledSocialProviders : [];
  return {
    enabledProviders: [...social, ...allowedAuthMethods.filter((method) => method !== 'oauth')],
    sessionExpirationSeconds,
    organizationId,
    ...(oauthClientIds ? { oauthClientIds } : {}),
    ...(oauthRedirectUrl ? { oauthRedirectUrl } : {}),
    ...picked(settings, ['otpAlphanumeric', 'otpLength']),
  };
}

/** The sub-organization that somebody logs in to: the one that is named, or the one that is found. */
async function subOrganization(
  { configuration, body }: Call,
  find: () => Promise<string | undefined>,
): Promise<string> {
  const named = textOf(body, 'organizationId');
  // The proxy is for users of sub-organizations: nobody becomes an administrator by it.
  if (named?.toLowerCase() === configuration.organizationId) {
    throw invalidField(
      'organizationId',
      'names the parent organization: log in to a sub-organization, or leave it out',
    );
  }
  const organizationId = named ?? (await find());
  if (organizationId !== undefined) return organizationId;
  throw new CoordinatorError('NOT_FOUND', 'no account belongs to this proof: sign up first', {
    category: 'ORGANIZATION_NOT_FOUND',
  });
}

async function found(
  api: Api,
  configuration: Configuration,
  path: 'list_suborgs' | 'list_verified_suborgs',
  filterType: string,
  filterValue: string,
): Promise<string | undefined> {
  const { organizationIds } = await api.query<{ organizationIds: readonly string[] }>(configuration, path, {
    filterType,
    filterValue,
    paginationOptions: { limit: '1' },
  });
  return organizationIds[0];
}

/** @throws {CoordinatorError} PERMISSION_DENIED; published clients look for its first words (client protocol 3.4) */
function checkMethod({ settings }: Configuration, method: string): void {
  if (settings.allowedAuthMethods.includes(method)) return;
  throw new CoordinatorError(
    'PERMISSION_DENIED',
    `${method.toUpperCase()} disallowed: this configuration allows ${settings.allowedAuthMethods.join(', ') || 'nothing'}`,
  );
}

const sessionLife = ({ settings }: Configuration) => lifeOf(settings.sessionExpirationSeconds);

function lifeOf(expirationSeconds: string | undefined): { expirationSeconds?: string } {
  return expirationSeconds === undefined ? {} : { expirationSeconds };
}

/** The members of those names that are there. */
function picked(from: object, names: readonly string[]): Record<string, unknown> {
  const members = from as Readonly<Record<string, unknown>>;
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = Object.hasOwn(members, name) ? members[name] : undefined;
      return value === undefined || value === null ? [] : [[name, value]];
    }),
  );
}

function textOf(body: Call['body'], name: string): string | undefined {
  const value = picked(body, [name])[name];
  if (value === undefined || value === '') return undefined;
  if (typeof value !== 'string') throw invalidField(name, 'must be a string');
  return value;
}

function requiredText(body: Call['body'], name: string): string {
  const value = textOf(body, name);
  if (value === undefined) throw invalidField(name, 'is required');
  return value;
}

function requiredTexts(body: Call['body'], names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, requiredText(body, name)]));
}

function listOf(body: Call['body'], name: string): readonly unknown[] {
  const value = picked(body, [name])[name] ?? [];
  if (!Array.isArray(value)) throw invalidField(name, 'must be a list');
  return value as readonly unknown[];
}

function objectOf(body: Call['body'], name: string): object {
  const value = picked(body, [name])[name] ?? {};
  if (typeof value !== 'object') throw invalidField(name, 'must be an object');
  return value;
}
