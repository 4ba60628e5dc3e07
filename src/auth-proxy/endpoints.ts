import { CoordinatorError, invalidField } from '../domain/errors.js';
import { contactKey } from '../domain/contact-key.js';
import { otpLengths } from '../domain/organization/otps.js';
import { isEmail, isPhone } from '../wire/fields.js';
import type { Api, Configuration, Identifier } from './api.js';
import type { Limits } from './limits.js';
import {
  ProxyAccountRequest,
  ProxyAccountResponse,
  ProxyEmptyRequest,
  ProxyOauth2AuthenticateRequest,
  ProxyOauth2AuthenticateResponse,
  ProxyOauthLoginRequest,
  ProxyOtpInitRequest,
  ProxyOtpInitResponse,
  ProxyOtpInitV2Response,
  ProxyOtpLoginRequest,
  ProxyOtpLoginV2Request,
  ProxyOtpVerifyRequest,
  ProxyOtpVerifyResponse,
  ProxyOtpVerifyV2Request,
  ProxySessionResponse,
  ProxySignupRequest,
  ProxySignupResponse,
  ProxySignupV2Request,
  ProxyWalletKitClientParamsResponse,
  ProxyWalletKitConfigResponse,
  readShape,
} from './shapes.js';
import { claimedType, provenContact } from './verification-token.js';

/** One request that has passed the checks of origin, configuration and rate. */
interface Call {
  readonly api: Api;
  readonly limits: Limits;
  readonly captchaSiteKey: string | undefined;
  /** @throws {CoordinatorError} as `Captcha.check` does */
  readonly checkCaptcha: () => Promise<void>;
  readonly configuration: Configuration;
  readonly body: Readonly<Record<string, unknown>>;
  /** Address of the client. */
  readonly address: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** One endpoint: its request, its response, and what it does. */
interface Endpoint {
  /** Last segment of the path. */
  readonly name: string;
  /** One sentence for the reference. */
  readonly summary: string;
  readonly request: new () => object;
  readonly response: new () => object;
  /** It may require a captcha. */
  readonly takesCaptcha?: true;
  readonly run: (call: Call) => object | Promise<object>;
}

function endpoint<Request extends object, Response extends object>({
  run,
  ...rest
}: {
  readonly name: string;
  readonly summary: string;
  readonly request: new () => Request;
  readonly response: new () => Response;
  readonly takesCaptcha?: true;
  readonly run: (call: Call, requested: Request) => Response | Promise<Response>;
}): Endpoint {
  return { ...rest, run: (call) => run(call, readShape(rest.request, call.body)) };
}

const signupSummary = 'Creates a sub-organization for a new user and, optionally, a wallet.';
const initSummary = 'Sends a one-time code to a contact.';
const verifySummary = 'Exchanges a correct code for a verification token.';
const otpLoginSummary = 'Logs in the user whose contact the token verifies.';

/** Every endpoint (docs/protocol.md, auth proxy). */
export const endpoints: readonly Endpoint[] = [
  endpoint({
    name: 'signup',
    takesCaptcha: true,
    summary: signupSummary,
    request: ProxySignupRequest,
    response: ProxySignupResponse,
    run: (call, requested) => signup(call, requested, 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V7'),
  }),
  endpoint({
    name: 'signup_v2',
    takesCaptcha: true,
    summary: signupSummary,
    request: ProxySignupV2Request,
    response: ProxySignupResponse,
    run: (call, requested) => signup(call, requested, 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8'),
  }),
  endpoint({
    name: 'otp_init',
    takesCaptcha: true,
    summary: initSummary,
    request: ProxyOtpInitRequest,
    response: ProxyOtpInitResponse,
    async run(call, requested) {
      const { otpId } = await initOtp<ProxyOtpInitResponse>(call, requested, 'ACTIVITY_TYPE_INIT_OTP_V2');
      return { otpId };
    },
  }),
  endpoint({
    name: 'otp_init_v2',
    takesCaptcha: true,
    summary: initSummary,
    request: ProxyOtpInitRequest,
    response: ProxyOtpInitV2Response,
    async run(call, requested) {
      const result = await initOtp<ProxyOtpInitV2Response>(call, requested, 'ACTIVITY_TYPE_INIT_OTP_V3');
      return { otpId: result.otpId, otpEncryptionTargetBundle: result.otpEncryptionTargetBundle };
    },
  }),
  endpoint({
    name: 'otp_verify',
    summary: verifySummary,
    request: ProxyOtpVerifyRequest,
    response: ProxyOtpVerifyResponse,
    run: (call, requested) => verifyOtp(call, requested, 'ACTIVITY_TYPE_VERIFY_OTP'),
  }),
  endpoint({
    name: 'otp_verify_v2',
    summary: verifySummary,
    request: ProxyOtpVerifyV2Request,
    response: ProxyOtpVerifyResponse,
    run: (call, requested) => verifyOtp(call, requested, 'ACTIVITY_TYPE_VERIFY_OTP_V2'),
  }),
  endpoint({
    name: 'otp_login',
    summary: otpLoginSummary,
    request: ProxyOtpLoginRequest,
    response: ProxySessionResponse,
    run: (call, requested) => otpLogin(call, requested, 'ACTIVITY_TYPE_OTP_LOGIN'),
  }),
  endpoint({
    name: 'otp_login_v2',
    summary: otpLoginSummary,
    request: ProxyOtpLoginV2Request,
    response: ProxySessionResponse,
    run: (call, requested) => otpLogin(call, requested, 'ACTIVITY_TYPE_OTP_LOGIN_V2'),
  }),
  endpoint({
    name: 'oauth2_authenticate',
    summary: 'Exchanges an authorization code from an OAuth 2.0 provider for an OIDC token.',
    request: ProxyOauth2AuthenticateRequest,
    response: ProxyOauth2AuthenticateResponse,
    run: oauth2Authenticate,
  }),
  endpoint({
    name: 'oauth_login',
    summary: 'Logs in the user identified by the OIDC token.',
    request: ProxyOauthLoginRequest,
    response: ProxySessionResponse,
    run: oauthLogin,
  }),
  endpoint({
    name: 'account',
    summary: 'Looks up the organization of a contact or credential.',
    request: ProxyAccountRequest,
    response: ProxyAccountResponse,
    run: account,
  }),
  endpoint({
    name: 'wallet_kit_config',
    summary: 'Returns the public part of the configuration, for login pages. Takes no body.',
    request: ProxyEmptyRequest,
    response: ProxyWalletKitConfigResponse,
    run: walletKitConfig,
  }),
  endpoint({
    name: 'wallet_kit_client_params',
    summary: 'Returns the site key of the captcha, if there is one. Takes no body.',
    request: ProxyEmptyRequest,
    response: ProxyWalletKitClientParamsResponse,
    run: ({ captchaSiteKey }) => (captchaSiteKey === undefined ? {} : { turnstileSiteKey: captchaSiteKey }),
  }),
];

async function signup(
  { api, limits, checkCaptcha, configuration, address }: Call,
  requested: ProxySignupRequest | ProxySignupV2Request,
  type: string,
): Promise<ProxySignupResponse> {
  const { apiKeys = [], authenticators = [], oauthProviders = [], userEmail, userPhoneNumber } = requested;
  checkMethods(configuration, requested);
  // Its code took a captcha, and serves one sign-up; published clients send no other. The API refuses any other token.
  if (requested.verificationToken === undefined) await checkCaptcha();
  // All sign-ups are the submits of one user, whose foundings a minute have a limit that all networks share.
  limits.countSignUp(configuration.configId, address);
  const { userName = userEmail ?? userPhoneNumber ?? 'User', organizationName = userName } = requested;
  const { result, appProofs } = await api.submit<{
    subOrganizationId: string;
    wallet?: { walletId: string; addresses: string[] };
    rootUserIds: readonly [string];
  }>(configuration, type, {
    subOrganizationName: organizationName,
    rootUsers: [{ userName, userEmail, userPhoneNumber, apiKeys, authenticators, oauthProviders }],
    rootQuorumThreshold: 1,
    ...picked(requested, ['wallet', 'verificationToken', 'clientSignature']),
  });
  return {
    organizationId: result.subOrganizationId,
    userId: result.rootUserIds[0],
    ...(result.wallet ? { wallet: result.wallet } : {}),
    ...(appProofs ? { appProofs: [...appProofs] } : {}),
  };
}

/** Longest lifetime of a key that a client creates only for signing up with a passkey, in seconds. */
const signUpKeySeconds = 60;

/**
 * Every login method that a sign-up creates must be enabled: a long-lived key belongs to a wallet, or to a device.
 * @throws {CoordinatorError} PERMISSION_DENIED
 */
function checkMethods(
  configuration: Configuration,
  {
    apiKeys = [],
    authenticators = [],
    oauthProviders = [],
    verificationToken,
  }: ProxySignupRequest | ProxySignupV2Request,
): void {
  const isPasskeySignUp = authenticators.length > 0;
  if (isPasskeySignUp) checkMethod(configuration, 'passkey');
  if (oauthProviders.length > 0) checkMethod(configuration, 'oauth');
  const isForSignUpOnly = (key: object): boolean =>
    isPasskeySignUp &&
    Object(key) === key &&
    'expirationSeconds' in key &&
    Number(key.expirationSeconds) <= signUpKeySeconds;
  if (!apiKeys.every(isForSignUpOnly)) checkMethod(configuration, 'wallet');
  if (verificationToken !== undefined) checkMethodOfToken(configuration, verificationToken);
}

/** The token's own claims are enough here: one that is not ours opens nothing. */
function checkMethodOfToken(configuration: Configuration, verificationToken: string): void {
  const method = methodOfOtp.get(claimedType(verificationToken) ?? '');
  if (method !== undefined) checkMethod(configuration, method);
}

const methodOfOtp: ReadonlyMap<string, string> = new Map([
  ['OTP_TYPE_EMAIL', 'email'],
  ['OTP_TYPE_SMS', 'sms'],
]);

async function initOtp<Result>(
  { api, limits, checkCaptcha, configuration, address }: Call,
  { otpType, emailCustomization: requested = {}, ...rest }: ProxyOtpInitRequest,
  type: string,
): Promise<Result> {
  const { settings, configId, organizationName } = configuration;
  const contact = rest.contact.trim();
  const method = methodOfOtp.get(otpType);
  if (method === undefined) throw invalidField('otpType', 'must be OTP_TYPE_EMAIL or OTP_TYPE_SMS');
  checkMethod(configuration, method);
  const byMail = method === 'email';
  // As the API does, but before anything is counted.
  if (byMail ? !isEmail(contact) : !isPhone(contact)) {
    const rule = byMail ? 'an e-mail address' : 'a phone number in E.164 format, such as +13214567890';
    throw invalidField('contact', `must be ${rule}, got \`${contact.slice(0, 64)}\``);
  }
  await checkCaptcha();
  const userIdentifier = limits.countCode(configId, contact, address);
  const { templateId = settings.otpTemplateId, ...custom } = {
    ...settings.emailCustomizationParams,
    ...picked(requested, ['templateId']),
  } as Readonly<Record<string, string>>;
  const { appName = organizationName, ...emailCustomization } = { ...custom, ...(templateId ? { templateId } : {}) };
  const { result } = await api.submit<Result>(configuration, type, {
    otpType,
    contact,
    appName,
    ...(byMail && Object.keys(emailCustomization).length > 0 ? { emailCustomization } : {}),
    ...(!byMail && settings.smsCustomizationParams ? { smsCustomization: settings.smsCustomizationParams } : {}),
    ...(byMail ? picked(settings, ['sendFromEmailAddress', 'replyToEmailAddress', 'sendFromEmailSenderName']) : {}),
    ...(settings.otpLength === undefined ? {} : { otpLength: Number(settings.otpLength) }),
    ...(settings.otpAlphanumeric === undefined ? {} : { alphanumeric: settings.otpAlphanumeric }),
    ...lifeOf(settings.otpExpirationSeconds),
    userIdentifier,
  });
  return result;
}

async function verifyOtp(
  { api, limits, configuration, address }: Call,
  requested: ProxyOtpVerifyRequest | ProxyOtpVerifyV2Request,
  type: string,
): Promise<ProxyOtpVerifyResponse> {
  const { verificationTokenExpirationSeconds } = configuration.settings;
  const parameters = { ...requested, ...lifeOf(verificationTokenExpirationSeconds) };
  const { result } = await limits.countGuess(requested.otpId, address, () =>
    api.submit<ProxyOtpVerifyResponse>(configuration, type, parameters),
  );
  return { verificationToken: result.verificationToken };
}

async function otpLogin(
  call: Call,
  { organizationId: named, ...requested }: ProxyOtpLoginRequest | ProxyOtpLoginV2Request,
  type: string,
): Promise<ProxySessionResponse> {
  const { api, configuration, now } = call;
  const { verificationToken } = requested;
  checkMethodOfToken(configuration, verificationToken);
  return login(call, type, requested, named, async () => {
    const key = await api.verificationKey();
    const { contact, kind } = await provenContact(verificationToken, key, configuration.organizationId, now);
    return { filterType: kind, filterValue: contact };
  });
}

function oauthLogin(
  call: Call,
  { organizationId: named, ...requested }: ProxyOauthLoginRequest,
): Promise<ProxySessionResponse> {
  checkMethod(call.configuration, 'oauth');
  const identifier = () => ({ filterType: 'OIDC_TOKEN', filterValue: requested.oidcToken });
  return login(call, 'ACTIVITY_TYPE_OAUTH_LOGIN', requested, named, identifier);
}

/** Logs in to the sub-organization named, or to that of the identifier, which is only asked for without a name. */
async function login(
  { api, configuration }: Call,
  type: string,
  requested: object,
  named: string | undefined,
  identifier: () => Identifier | Promise<Identifier>,
): Promise<ProxySessionResponse> {
  // The proxy is for users of sub-organizations: nobody becomes an administrator through it.
  if (named?.toLowerCase() === configuration.organizationId) {
    throw invalidField('organizationId', 'is the parent organization: log in to a sub-organization, or leave it out');
  }
  const parameters = { ...requested, ...sessionLife(configuration) };
  const outcome =
    named === undefined
      ? await api.submitForAccount<ProxySessionResponse>(configuration, await identifier(), type, parameters)
      : await api.submit<ProxySessionResponse>(configuration, type, parameters, named);
  if (outcome !== undefined) return { session: outcome.result.session };
  throw new CoordinatorError('NOT_FOUND', 'no account belongs to this proof: sign up first', {
    category: 'ORGANIZATION_NOT_FOUND',
  });
}

async function oauth2Authenticate(
  { api, configuration }: Call,
  { provider, clientId, ...exchange }: ProxyOauth2AuthenticateRequest,
): Promise<ProxyOauth2AuthenticateResponse> {
  checkMethod(configuration, 'oauth');
  const { oauth2Credentials } = await api.query<{ oauth2Credentials: readonly Readonly<Record<string, string>>[] }>(
    configuration,
    'list_oauth2_credentials',
    {},
  );
  const credential = oauth2Credentials.find((one) => one['provider'] === provider && one['clientId'] === clientId);
  if (!credential) {
    throw new CoordinatorError(
      'NOT_FOUND',
      `no OAuth 2.0 credential for provider \`${provider.slice(0, 100)}\` and client id \`${clientId.slice(0, 200)}\`: ` +
        'register it with create_oauth2_credential',
      { category: 'OAUTH2_CREDENTIAL_NOT_FOUND' },
    );
  }
  const { oauth2CredentialId } = credential;
  const { result } = await api.submit<ProxyOauth2AuthenticateResponse>(
    configuration,
    'ACTIVITY_TYPE_OAUTH2_AUTHENTICATE',
    { oauth2CredentialId, ...exchange },
  );
  return { oidcToken: result.oidcToken };
}

/** Filters that reveal nothing about a person to someone without the credential. The others do. */
const credentialFilters: readonly string[] = ['OIDC_TOKEN', 'OIDC_CLAIMS', 'PUBLIC_KEY', 'CREDENTIAL_ID'];
const contactFilters: readonly string[] = ['EMAIL', 'PHONE_NUMBER'];
const nameFilters: readonly string[] = ['NAME', 'USERNAME'];

async function account(
  { api, configuration, now }: Call,
  { filterType, filterValue, verificationToken, oidcToken }: ProxyAccountRequest,
): Promise<ProxyAccountResponse> {
  const { verificationTokenRequiredForGetAccountPii: isGated = true } = configuration.settings;
  const known = [...contactFilters, ...credentialFilters, ...nameFilters];
  if (!known.includes(filterType)) throw invalidField('filterType', `must be one of ${known.join(', ')}`);
  if (isGated && nameFilters.includes(filterType)) {
    throw new CoordinatorError(
      'PERMISSION_DENIED',
      `accounts cannot be looked up by \`${filterType}\`, because nothing proves it: look up by contact, or have ` +
        'verificationTokenRequiredForGetAccountPii disabled',
    );
  }
  if (isGated && filterType === 'EMAIL' && verificationToken === undefined && oidcToken !== undefined) {
    return accountOfToken(api, configuration, filterValue, oidcToken);
  }
  if (isGated && contactFilters.includes(filterType)) {
    const proof =
      verificationToken === undefined
        ? undefined
        : await provenContact(verificationToken, await api.verificationKey(), configuration.organizationId, now);
    if (proof?.kind !== filterType || contactKey(proof.contact) !== contactKey(filterValue)) {
      throw new CoordinatorError(
        'PERMISSION_DENIED',
        'a verificationToken for this contact is required: verify it with otp_init and otp_verify first',
      );
    }
  }
  const organizationId = nameFilters.includes(filterType)
    ? await newestNamed(api, configuration, filterType, filterValue)
    : await api.account(configuration, filterType, filterValue);
  return organizationId === undefined ? {} : { organizationId };
}

/**
 * The account of an address, for someone who presents a token that opens it; it does not reveal whether others have the
 * address.
 */
async function accountOfToken(
  api: Api,
  configuration: Configuration,
  email: string,
  oidcToken: string,
): Promise<ProxyAccountResponse> {
  const own = await api.account(configuration, 'OIDC_TOKEN', oidcToken);
  const organizationId = await api.account(configuration, 'EMAIL', email);
  return organizationId !== undefined && organizationId === own ? { organizationId } : {};
}

function walletKitConfig({ configuration }: Call): ProxyWalletKitConfigResponse {
  const { organizationId, settings } = configuration;
  const { allowedAuthMethods, walletKitSettings = {}, sessionExpirationSeconds = '900' } = settings;
  // The React kit has defaults of its own, so it must be told ours.
  const { otpAlphanumeric = true, otpLength = String(otpLengths.usual) } = settings;
  const { enabledSocialProviders = [], oauthClientIds, oauthRedirectUrl } = walletKitSettings;
  const social = allowedAuthMethods.includes('oauth') ? enabledSocialProviders : [];
  return {
    enabledProviders: [...social, ...allowedAuthMethods.filter((method) => method !== 'oauth')],
    sessionExpirationSeconds,
    organizationId,
    ...(oauthClientIds ? { oauthClientIds } : {}),
    ...(oauthRedirectUrl ? { oauthRedirectUrl } : {}),
    otpAlphanumeric,
    otpLength,
  };
}

/** Names are not unique, and logins look nothing up by them. */
async function newestNamed(
  api: Api,
  configuration: Configuration,
  filterType: string,
  filterValue: string,
): Promise<string | undefined> {
  const { organizationIds } = await api.query<{ organizationIds: readonly string[] }>(configuration, 'list_suborgs', {
    filterType,
    filterValue,
    paginationOptions: { limit: '1' },
  });
  return organizationIds[0];
}

/** @throws {CoordinatorError} PERMISSION_DENIED; published clients look for its first words (docs/protocol.md, messages that clients match) */
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

/** The members with those names, if present. */
function picked(from: object, names: readonly string[]): Record<string, unknown> {
  const members = from as Readonly<Record<string, unknown>>;
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = Object.hasOwn(members, name) ? members[name] : undefined;
      return value === undefined || value === null ? [] : [[name, value]];
    }),
  );
}
