import { CoordinatorError, invalidField } from '../../domain/errors.js';
import {
  authMethods,
  existingAuthProxy,
  isOriginRule,
  socialProviders,
  type AuthProxySettings,
} from '../../domain/organization/auth-proxy.js';
import { presentMembers } from '../../domain/organization/event.js';
import { Email, Flag, Label, ListOfOneOf, Nested, Text, TextList, Uuid, Whole } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';

class EmailCustomizationParams {
  @Text({ optional: true, max: 255, about: 'The name of the application, as people read it.' })
  appName?: string;

  @Text({ optional: true, max: 2048, about: 'Address of a logo in PNG format.' })
  logoUrl?: string;

  @Text({ optional: true, max: 2048, about: 'Address of the button in the mail; the code takes the place of `%s`.' })
  magicLinkTemplate?: string;

  @Text({ optional: true, max: 8192, about: 'JSON object of variables for a template.' })
  templateVariables?: string;

  @Text({ optional: true, max: 255, about: 'Id of a template.' })
  templateId?: string;
}

class SmsCustomizationParams {
  @Text({ optional: true, max: 1024, about: 'Text of the message; the code takes the place of `{{.OtpCode}}`.' })
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
  @ListOfOneOf(socialProviders, { optional: true, about: 'Providers that a login page shows.' })
  enabledSocialProviders?: (typeof socialProviders)[number][];

  @Nested(() => OauthClientIds, { optional: true, about: 'Client ids at the providers.' })
  oauthClientIds?: OauthClientIds;

  @Text({ optional: true, max: 2048, about: 'Where providers send people back to.' })
  oauthRedirectUrl?: string;
}

class UpdateAuthProxyConfigIntent {
  @TextList({
    optional: true,
    min: 1,
    about: 'Origins that may call, each exactly as a browser sends it, such as https://app.example.com; `*` is all.',
  })
  allowedOrigins?: string[];

  @ListOfOneOf(authMethods, { optional: true, about: 'Ways to log in.' })
  allowedAuthMethods?: (typeof authMethods)[number][];

  @Email({ optional: true, removable: true, about: 'Sender of mail; empty: the one of the installation.' })
  sendFromEmailAddress?: string;

  @Email({ optional: true, removable: true, about: 'Where answers to mail go; empty: to the sender.' })
  replyToEmailAddress?: string;

  @Label({ optional: true, about: 'Name of the sender of mail.' })
  sendFromEmailSenderName?: string;

  @Text({ optional: true, max: 255, about: 'Id of the template for mail with a credential; empty: none.' })
  emailAuthTemplateId?: string;

  @Text({ optional: true, max: 255, about: 'Id of the template for mail with a code; empty: none.' })
  otpTemplateId?: string;

  @Nested(() => EmailCustomizationParams, { optional: true, about: 'How mail looks; replaces what was said so far.' })
  emailCustomizationParams?: EmailCustomizationParams;

  @Nested(() => SmsCustomizationParams, { optional: true, about: 'How text messages look; replaces what was said.' })
  smsCustomizationParams?: SmsCustomizationParams;

  @Nested(() => WalletKitSettingsParams, { optional: true, about: 'What login pages show; replaces what was said.' })
  walletKitSettings?: WalletKitSettingsParams;

  @Whole({ min: 1, max: 600, optional: true, about: 'Life of a code in seconds; 300 unless said.' })
  otpExpirationSeconds?: number;

  @Whole({ min: 1, max: 86_400, optional: true, about: 'Life of a verification token in seconds; 3600 unless said.' })
  verificationTokenExpirationSeconds?: number;

  @Whole({ min: 1, max: 2_592_000, optional: true, about: 'Life of a session in seconds; 900 unless said.' })
  sessionExpirationSeconds?: number;

  @Flag({ optional: true, about: 'Codes of letters and digits instead of digits only.' })
  otpAlphanumeric?: boolean;

  @Whole({ min: 6, max: 9, optional: true, about: 'Characters of a code; 9 unless said.' })
  otpLength?: number;

  @Flag({
    optional: true,
    about:
      'Whether `account` tells the organization of a contact only to who has proved the contact; true unless said.',
  })
  verificationTokenRequiredForGetAccountPii?: boolean;

  @TextList({
    optional: true,
    about: 'Client ids whose OIDC logins find, and join, the account that has proved the same e-mail address.',
  })
  socialLinkingClientIds?: string[];

  @Flag({ optional: true, about: 'Whether a captcha is asked for; only false is taken, since there is none.' })
  captchaEnabled?: boolean;
}

class UpdateAuthProxyConfigResult {
  @Uuid({ about: 'The configuration that was changed.' })
  configId!: string;
}

/** Updates the configuration of the auth proxy; fields that are not sent stay unchanged. */
export const updateAuthProxyConfig = defineActivity({
  type: 'ACTIVITY_TYPE_UPDATE_AUTH_PROXY_CONFIG',
  summary: 'Updates the configuration of the auth proxy; fields that are not sent stay unchanged.',
  intent: UpdateAuthProxyConfigIntent,
  result: UpdateAuthProxyConfigResult,
  policy: { resource: 'AUTH_PROXY', action: 'UPDATE' },

  check({ allowedOrigins = [], captchaEnabled }, organization) {
    existingAuthProxy(organization);
    for (const [index, origin] of allowedOrigins.entries()) {
      if (isOriginRule(origin)) continue;
      throw invalidField(
        `parameters.allowedOrigins[${index}]`,
        `\`${origin.slice(0, 256)}\` is not an origin as browsers send it: scheme and host in lower case, a port only if ` +
          'it is not the usual one, no path and no wildcard, such as https://app.example.com; or `*` alone for all',
      );
    }
    if (captchaEnabled) {
      throw new CoordinatorError(
        'UNIMPLEMENTED',
        'captchas are not supported: leave captchaEnabled out, or send false',
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

/** Empty texts remove what was said. Numbers are kept as the decimal strings that the proxy answers and sends. */
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

/** An event holds plain JSON and no instances of wire classes. */
function jsonOf<Value extends object>(value: Value): Record<string, string> {
  return JSON.parse(JSON.stringify(value)) as Record<string, string>;
}
