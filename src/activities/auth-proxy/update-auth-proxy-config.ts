import { CoordinatorError, invalidField } from '../../domain/errors.js';
import {
  authMethods,
  existingAuthProxy,
  isOriginRule,
  socialProviders,
  type AuthProxySettings,
} from '../../domain/organization/auth-proxy.js';
import { presentMembers } from '../../domain/organization/event.js';
import { otpLengths, otpLifeSeconds, tokenLifeSeconds } from '../../domain/organization/otps.js';
import { Email, Flag, Label, ListOfOneOf, Nested, Text, TextList, Uuid, Whole } from '../../wire/fields.js';
import { usualSessionSeconds } from '../auth/session-keys.js';
import { defineActivity } from '../define-activity.js';

/** Longest session that a login page of this organization may give, in seconds: thirty days. */
const longestSessionSeconds = 2_592_000;

class EmailCustomizationParams {
  @Text({ optional: true, max: 255, about: 'Display name of the application.' })
  appName?: string;

  @Text({ optional: true, max: 2048, about: 'URL of a logo in PNG format.' })
  logoUrl?: string;

  @Text({ optional: true, max: 2048, about: 'URL of the button in the e-mail; `%s` is replaced by the code.' })
  magicLinkTemplate?: string;

  @Text({ optional: true, max: 8192, about: 'JSON object of variables for a template.' })
  templateVariables?: string;

  @Text({ optional: true, max: 255, about: 'Id of a template.' })
  templateId?: string;
}

class SmsCustomizationParams {
  @Text({ optional: true, max: 1024, about: 'Text of the message; `{{.OtpCode}}` is replaced by the code.' })
  template?: string;
}

class OauthClientIds {
  @Text({ optional: true, max: 512, about: 'The client id at Facebook.' })
  facebook?: string;

  @Text({ optional: true, max: 512, about: 'The client id at Google.' })
  google?: string;

  @Text({ optional: true, max: 512, about: 'The client id at Apple.' })
  apple?: string;

  @Text({ optional: true, max: 512, about: 'The client id at X.' })
  x?: string;

  @Text({ optional: true, max: 512, about: 'The client id at Discord.' })
  discord?: string;
}

class WalletKitSettingsParams {
  @ListOfOneOf(socialProviders, { optional: true, about: 'Providers to show on login pages.' })
  enabledSocialProviders?: (typeof socialProviders)[number][];

  @Nested(() => OauthClientIds, { optional: true, about: 'Client ids at the providers.' })
  oauthClientIds?: OauthClientIds;

  @Text({ optional: true, max: 2048, about: 'Redirect URL for OAuth providers.' })
  oauthRedirectUrl?: string;
}

class UpdateAuthProxyConfigIntent {
  @TextList({
    optional: true,
    min: 1,
    about: 'Allowed origins, each exactly as a browser sends it, such as https://app.example.com; `*` allows all.',
  })
  allowedOrigins?: string[];

  @ListOfOneOf(authMethods, { optional: true, about: 'Allowed ways to log in.' })
  allowedAuthMethods?: (typeof authMethods)[number][];

  @Email({ optional: true, removable: true, about: 'Sender address of e-mail; if empty, the one of the installation.' })
  sendFromEmailAddress?: string;

  @Email({ optional: true, removable: true, about: 'Reply-to address of e-mail; if empty, the sender.' })
  replyToEmailAddress?: string;

  @Label({ optional: true, about: 'Sender name of e-mail.' })
  sendFromEmailSenderName?: string;

  @Text({ optional: true, max: 255, about: 'Id of the template for e-mail with a credential; empty for none.' })
  emailAuthTemplateId?: string;

  @Text({ optional: true, max: 255, about: 'Id of the template for e-mail with a code; empty for none.' })
  otpTemplateId?: string;

  @Nested(() => EmailCustomizationParams, {
    optional: true,
    about: 'Appearance of e-mail; replaces the previous value.',
  })
  emailCustomizationParams?: EmailCustomizationParams;

  @Nested(() => SmsCustomizationParams, {
    optional: true,
    about: 'Appearance of text messages; replaces the previous value.',
  })
  smsCustomizationParams?: SmsCustomizationParams;

  @Nested(() => WalletKitSettingsParams, {
    optional: true,
    about: 'What login pages show; replaces the previous value.',
  })
  walletKitSettings?: WalletKitSettingsParams;

  @Whole({
    min: 1,
    max: otpLifeSeconds.max,
    optional: true,
    about: `Lifetime of a code in seconds; default ${otpLifeSeconds.usual}.`,
  })
  otpExpirationSeconds?: number;

  @Whole({
    min: 1,
    max: tokenLifeSeconds.max,
    optional: true,
    about: `Lifetime of a verification token in seconds; default ${tokenLifeSeconds.usual}.`,
  })
  verificationTokenExpirationSeconds?: number;

  @Whole({
    min: 1,
    max: longestSessionSeconds,
    optional: true,
    about: `Lifetime of a session in seconds; default ${usualSessionSeconds}.`,
  })
  sessionExpirationSeconds?: number;

  @Flag({ optional: true, about: 'True for codes of letters and digits, false for digits only.' })
  otpAlphanumeric?: boolean;

  @Whole({ ...otpLengths, optional: true, about: `Length of a code; default ${otpLengths.usual}.` })
  otpLength?: number;

  @Flag({
    optional: true,
    about: 'Whether `account` looks up a contact only for a caller who has verified it; default true.',
  })
  verificationTokenRequiredForGetAccountPii?: boolean;

  @TextList({
    optional: true,
    about: 'Client ids whose OIDC logins are linked to the account that has verified the same e-mail address.',
  })
  socialLinkingClientIds?: string[];

  @Flag({
    optional: true,
    about: 'Only false is accepted: the operator requires captchas, for all configurations (PROXY_CAPTCHA_VERIFY_URL).',
  })
  captchaEnabled?: boolean;
}

class UpdateAuthProxyConfigResult {
  @Uuid({ about: 'The updated configuration.' })
  configId!: string;
}

/** Updates the configuration of the auth proxy; omitted fields stay unchanged. */
export const updateAuthProxyConfig = defineActivity({
  type: 'ACTIVITY_TYPE_UPDATE_AUTH_PROXY_CONFIG',
  summary: 'Updates the configuration of the auth proxy; omitted fields stay unchanged.',
  intent: UpdateAuthProxyConfigIntent,
  result: UpdateAuthProxyConfigResult,
  policy: { resource: 'AUTH_PROXY', action: 'UPDATE' },

  check({ allowedOrigins = [], captchaEnabled }, organization) {
    existingAuthProxy(organization);
    for (const [index, origin] of allowedOrigins.entries()) {
      if (isOriginRule(origin)) continue;
      throw invalidField(
        `parameters.allowedOrigins[${index}]`,
        `\`${origin.slice(0, 256)}\` is not an origin as browsers send it: use scheme and host in lower case, a port only if ` +
          'it is not the default, no path and no wildcard, such as https://app.example.com; or `*` alone to allow all',
      );
    }
    if (captchaEnabled) {
      throw new CoordinatorError(
        'UNIMPLEMENTED',
        'captchas are required by the operator of the auth proxy, for all configurations: omit captchaEnabled, or send false',
      );
    }
  },

  decide(intent, { organization }) {
    const { configId, settings } = existingAuthProxy(organization);
    return {
      events: [{ type: 'AuthProxyUpdated', data: { settings: changed(settings, intent) } }],
      result: { configId },
    };
  },
});

/** Empty strings clear a setting. Numbers are kept as the decimal strings that the proxy returns and sends. */
function changed(settings: AuthProxySettings, intent: UpdateAuthProxyConfigIntent): AuthProxySettings {
  const {
    otpExpirationSeconds,
    verificationTokenExpirationSeconds,
    sessionExpirationSeconds,
    otpLength,
    emailCustomizationParams,
    smsCustomizationParams,
    walletKitSettings,
    ...rest
  } = intent;
  const text = (value: number | undefined) => (value === undefined ? undefined : String(value));
  const plain = <Value extends object>(value: Value | undefined) => (value ? jsonOf(value) : undefined);
  const merged = {
    ...settings,
    ...presentMembers(rest),
    ...presentMembers({
      otpExpirationSeconds: text(otpExpirationSeconds),
      verificationTokenExpirationSeconds: text(verificationTokenExpirationSeconds),
      sessionExpirationSeconds: text(sessionExpirationSeconds),
      otpLength: text(otpLength),
      emailCustomizationParams: plain(emailCustomizationParams),
      smsCustomizationParams: plain(smsCustomizationParams),
      walletKitSettings: plain(walletKitSettings),
    }),
  };
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== '')) as unknown as AuthProxySettings;
}

/** Events hold plain JSON, not instances of wire classes. */
function jsonOf<Value extends object>(value: Value): Record<string, string> {
  return JSON.parse(JSON.stringify(value)) as Record<string, string>;
}
