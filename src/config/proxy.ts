import { BadSetting } from './bad-setting.js';
import type { SettingValues } from './setting-values.js';
import type { SettingName } from './settings.js';
import { isWebOrigin, shownAddress } from './urls.js';

/** How captchas are checked (siteverify of Turnstile, hCaptcha or reCAPTCHA). */
export interface CaptchaSettings {
  readonly verifyUrl: string;
  readonly secret: string;
  /** Undefined: login pages know it, or show no captcha of Turnstile. */
  readonly siteKey: string | undefined;
}

/** What this process serves, and how auth proxy and API find and authenticate each other. */
export interface ProxySettings {
  /** What this process serves: the Activity API, the auth proxy, or both on one port. */
  readonly app: 'all' | 'api' | 'proxy';
  /** The base URL of the Activity API for a standalone auth proxy; undefined means this same process. */
  readonly apiUrl: string | undefined;
  /**
   * The secret that an auth proxy presents to the API for stamps; undefined for a secret file, or one of this process
   * only.
   */
  readonly proxySecret: string | undefined;
  /** File of that secret; the API creates it if missing. */
  readonly proxySecretFile: string | undefined;
  /** The public URL of the auth proxy, if it is a separate server. */
  readonly authProxyUrl: string | undefined;
  /**
   * Limits of the auth proxy: requests per minute, and codes of one address in ten minutes, to all contacts and to one,
   * and its sign-ups; undefined means no limit.
   */
  readonly proxyLimits: {
    readonly perAddress: number | undefined;
    readonly perConfiguration: number | undefined;
    readonly codesPerAddress: number | undefined;
    readonly perContact: number | undefined;
    readonly signUpsPerAddress: number | undefined;
  };
  /** Undefined: sign-ups and codes require no captcha. Contains a secret. */
  readonly proxyCaptcha: CaptchaSettings | undefined;
}

/** @throws {BadSetting} */
export function readProxy(input: SettingValues): ProxySettings {
  const app = input.oneOf('APP', ['all', 'api', 'proxy']);
  const [apiUrl, authProxyUrl] = (['API_URL', 'AUTH_PROXY_URL'] as const).map((name) => {
    const value = input.optional(name);
    if (value === undefined || isWebOrigin(value)) return value;
    throw new BadSetting(
      name,
      shownAddress(value),
      'must be an origin such as http://coordinator:8080, without a path',
    );
  });
  const proxySecret = input.optional('PROXY_SECRET');
  const proxySecretFile = input.optional('PROXY_SECRET_FILE');
  if (proxySecret !== undefined && !/^[\x21-\x7e]{32,512}$/.test(proxySecret)) {
    const rule = `must be 32 to 512 printable characters without spaces; it has ${proxySecret.length}`;
    throw new BadSetting('PROXY_SECRET', '…', rule);
  }
  if (app === 'proxy' && apiUrl === undefined) {
    throw new BadSetting('API_URL', '', 'is required when APP is proxy: set it to the URL of the Activity API');
  }
  if (app === 'proxy' && proxySecret === undefined && proxySecretFile === undefined) {
    throw new BadSetting('PROXY_SECRET', '', 'is required when APP is proxy, unless PROXY_SECRET_FILE is set');
  }
  return {
    app,
    apiUrl,
    proxySecret,
    proxySecretFile,
    authProxyUrl,
    proxyLimits: Object.freeze({
      perAddress: limit(input, 'PROXY_RATE_LIMIT_PER_ADDRESS'),
      perConfiguration: limit(input, 'PROXY_RATE_LIMIT_PER_CONFIGURATION'),
      codesPerAddress: limit(input, 'PROXY_RATE_LIMIT_CODES_PER_ADDRESS'),
      perContact: limit(input, 'PROXY_RATE_LIMIT_PER_CONTACT'),
      signUpsPerAddress: limit(input, 'PROXY_RATE_LIMIT_SIGN_UPS_PER_ADDRESS'),
    }),
    proxyCaptcha: captcha(input),
  };
}

function captcha(input: SettingValues): CaptchaSettings | undefined {
  const verifyUrl = input.optional('PROXY_CAPTCHA_VERIFY_URL');
  const secret = input.optional('PROXY_CAPTCHA_SECRET');
  const siteKey = input.optional('PROXY_CAPTCHA_SITE_KEY');
  if (verifyUrl === undefined) {
    if (secret === undefined && siteKey === undefined) return undefined;
    const rule = 'is required when PROXY_CAPTCHA_SECRET or PROXY_CAPTCHA_SITE_KEY is set';
    throw new BadSetting('PROXY_CAPTCHA_VERIFY_URL', '', rule);
  }
  const url = URL.canParse(verifyUrl) ? new URL(verifyUrl) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.hash) {
    const rule = 'must be a URL such as https://challenges.cloudflare.com/turnstile/v0/siteverify';
    throw new BadSetting('PROXY_CAPTCHA_VERIFY_URL', shownAddress(verifyUrl), rule);
  }
  if (url.protocol === 'http:' && !input.flag('ALLOW_PRIVATE_NETWORK')) {
    const rule = 'must be https unless ALLOW_PRIVATE_NETWORK is true';
    throw new BadSetting('PROXY_CAPTCHA_VERIFY_URL', shownAddress(verifyUrl), rule);
  }
  if (secret === undefined) {
    throw new BadSetting('PROXY_CAPTCHA_SECRET', '', 'is required when PROXY_CAPTCHA_VERIFY_URL is set');
  }
  return Object.freeze({ verifyUrl, secret, siteKey });
}

function limit(input: SettingValues, name: SettingName): number | undefined {
  const value = input.text(name);
  if (!/^(?:0|[1-9]\d{0,6})$/.test(value)) throw new BadSetting(name, value, 'must be a whole number; 0 is no limit');
  return Number(value) || undefined;
}
