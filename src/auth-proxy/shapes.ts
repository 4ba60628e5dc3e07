import { invalidField } from '../domain/errors.js';
import { Described, Flag, Nested, Text, TextList, Uuid } from '../wire/fields.js';
import { fieldsOfShape } from '../wire/json-schema.js';
import { validate } from '../wire/validate.js';

/**
 * Requests and responses of the endpoints (docs/protocol.md, auth proxy). What is forwarded unchanged is described at its
 * destination.
 */

const described = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const listOf = (name: string) => ({ type: 'array', items: described(name) });

/** For wallet_kit_config and wallet_kit_client_params, which published clients send without a body. */
export class ProxyEmptyRequest {}

class ProxySignup {
  @Text({ optional: true, about: 'E-mail address; verified if it comes with a verification token.' })
  userEmail?: string;

  @Text({ optional: true, about: 'Phone number in E.164 format; verified if it comes with a verification token.' })
  userPhoneNumber?: string;

  @Text({ optional: true, about: 'Accepted, but not used.' })
  userTag?: string;

  @Text({ optional: true, about: 'Default: the contact.' })
  userName?: string;

  @Text({ optional: true, about: 'Default: the name of the user.' })
  organizationName?: string;

  @Text({ optional: true, max: 8_192, about: 'Verification token for the contact, from otp_verify.' })
  verificationToken?: string;

  @Described(listOf('ApiKeyParamsV2'), { optional: true })
  apiKeys?: object[];

  @Described(listOf('AuthenticatorParamsV2'), { optional: true })
  authenticators?: object[];

  @Described(described('WalletParams'), { optional: true })
  wallet?: object;

  @Described(described('ClientSignature'), {
    optional: true,
    about: 'Signature by the key that the verification token is bound to.',
  })
  clientSignature?: object;
}

export class ProxySignupRequest extends ProxySignup {
  @Described(listOf('OauthProviderParams'), { optional: true })
  oauthProviders?: object[];
}

export class ProxySignupV2Request extends ProxySignup {
  @Described(listOf('OauthProviderParamsV2'), { optional: true })
  oauthProviders?: object[];
}

class ProxyWalletResult {
  @Uuid()
  walletId!: string;

  @TextList()
  addresses!: string[];
}

export class ProxySignupResponse {
  @Uuid({ about: 'The new sub-organization.' })
  organizationId!: string;

  @Uuid()
  userId!: string;

  @Nested(() => ProxyWalletResult, { optional: true })
  wallet?: ProxyWalletResult;

  @Described({ type: 'array', items: { type: 'object' } }, { optional: true, about: 'As returned by the API.' })
  appProofs?: object[];
}

class ProxyEmailCustomization {
  @Text({ optional: true, about: 'Id of a template.' })
  templateId?: string;
}

export class ProxyOtpInitRequest {
  @Text({ about: 'OTP_TYPE_EMAIL or OTP_TYPE_SMS.' })
  otpType!: string;

  @Text({ max: 254, about: 'E-mail address, or phone number in E.164 format.' })
  contact!: string;

  @Nested(() => ProxyEmailCustomization, { optional: true })
  emailCustomization?: ProxyEmailCustomization;
}

export class ProxyOtpInitResponse {
  @Uuid()
  otpId!: string;
}

export class ProxyOtpInitV2Response extends ProxyOtpInitResponse {
  @Text({ max: 8_192, about: 'The signed target key to which to seal the code.' })
  otpEncryptionTargetBundle!: string;
}

export class ProxyOtpVerifyRequest {
  @Text()
  otpId!: string;

  @Text()
  otpCode!: string;

  @Text({ optional: true, about: 'Compressed P-256 key to bind the token to, hex.' })
  publicKey?: string;
}

export class ProxyOtpVerifyV2Request {
  @Text()
  otpId!: string;

  @Text({ max: 8_192, about: 'The code and the client’s key, sealed to the target bundle.' })
  encryptedOtpBundle!: string;
}

export class ProxyOtpVerifyResponse {
  @Text({ max: 8_192 })
  verificationToken!: string;
}

class ProxyLogin {
  @Text({ about: 'P-256 key of the client, hex, which can stamp for the user from now on.' })
  publicKey!: string;

  @Flag({ optional: true, about: "Deletes the user's other keys created by logins." })
  invalidateExisting?: boolean;

  @Text({ optional: true, about: 'The sub-organization; if absent, it is looked up from the proof.' })
  organizationId?: string;
}

export class ProxyOtpLoginRequest extends ProxyLogin {
  @Text({ max: 8_192, about: 'From otp_verify.' })
  verificationToken!: string;

  @Described(described('ClientSignature'), { optional: true })
  clientSignature?: object;
}

export class ProxyOtpLoginV2Request extends ProxyLogin {
  @Text({ max: 8_192, about: 'From otp_verify_v2.' })
  verificationToken!: string;

  @Described(described('ClientSignature'))
  clientSignature!: object;
}

export class ProxyOauthLoginRequest extends ProxyLogin {
  @Text({ max: 22_528, about: 'OIDC token whose nonce is the SHA-256 of `publicKey` as sent.' })
  oidcToken!: string;
}

export class ProxySessionResponse {
  @Text({ max: 8_192, about: 'Session token.' })
  session!: string;
}

export class ProxyOauth2AuthenticateRequest {
  @Text({ about: 'Such as OAUTH2_PROVIDER_DISCORD.' })
  provider!: string;

  @Text()
  authCode!: string;

  @Text()
  redirectUri!: string;

  @Text()
  codeVerifier!: string;

  @Text({ about: 'SHA-256 of the public key that will log in, hex.' })
  nonce!: string;

  @Text({ about: 'The application, as registered with create_oauth2_credential.' })
  clientId!: string;
}

export class ProxyOauth2AuthenticateResponse {
  @Text({ max: 22_528, about: 'OIDC token issued by this server.' })
  oidcToken!: string;
}

export class ProxyAccountRequest {
  @Text({ about: 'EMAIL, PHONE_NUMBER, OIDC_TOKEN, OIDC_CLAIMS, PUBLIC_KEY, CREDENTIAL_ID, NAME or USERNAME.' })
  filterType!: string;

  @Text({ max: 22_528 })
  filterValue!: string;

  @Text({ optional: true, max: 8_192, about: 'Verification token for the contact to look up.' })
  verificationToken?: string;

  @Text({ optional: true, max: 22_528, about: 'For an e-mail address, instead: an OIDC token that proves it.' })
  oidcToken?: string;
}

export class ProxyAccountResponse {
  @Uuid({ optional: true, about: 'Absent if there is none.' })
  organizationId?: string;
}

export class ProxyWalletKitConfigResponse {
  @TextList()
  enabledProviders!: string[];

  @Text({ about: 'Seconds, decimal.' })
  sessionExpirationSeconds!: string;

  @Uuid({ about: 'The parent organization.' })
  organizationId!: string;

  @Described({ type: 'object', additionalProperties: { type: 'string' } }, { optional: true })
  oauthClientIds?: object;

  @Text({ optional: true })
  oauthRedirectUrl?: string;

  @Flag({ optional: true })
  otpAlphanumeric?: boolean;

  @Text({ optional: true, about: 'Characters, decimal.' })
  otpLength?: string;
}

export class ProxyWalletKitClientParamsResponse {
  @Text({ optional: true, about: 'Site key of the captcha; absent if there is none.' })
  turnstileSiteKey?: string;
}

/**
 * The members of a request that a shape names; published clients send others, which are ignored. Forwarded objects are
 * checked at their destination. An empty string counts as absent.
 * @throws {CoordinatorError} INVALID_ARGUMENT for one that is missing, has the wrong type, or is too long
 */
export function readShape<Shape extends object>(
  shape: new () => Shape,
  body: Readonly<Record<string, unknown>>,
): Shape {
  const named: Record<string, unknown> = {};
  const forwarded: Record<string, unknown> = {};
  for (const [name, { schema, required }] of fieldsOfShape(shape)) {
    const value = Object.hasOwn(body, name) ? body[name] : undefined;
    const isAbsent = value === undefined || value === null || value === '';
    if (schema.$ref === undefined && schema.items?.$ref === undefined) {
      if (!isAbsent) named[name] = value;
      continue;
    }
    if (isAbsent && required) throw invalidField(name, 'is required');
    if (isAbsent) continue;
    const isList = schema.type === 'array';
    if (typeof value !== 'object' || Array.isArray(value) !== isList) {
      throw invalidField(name, isList ? 'must be a list' : 'must be an object');
    }
    forwarded[name] = value;
  }
  return Object.assign(validate(shape, named), forwarded);
}
