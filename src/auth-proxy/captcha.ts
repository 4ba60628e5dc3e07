import type { CaptchaSettings } from '../config/proxy.js';
import { CoordinatorError, invalidField } from '../domain/errors.js';
import { GuardedFetchError } from '../http-client/guarded-request.js';
import type { OutboundHttp } from '../http-client/outbound-http.js';

/** The header in which published clients send the token of a solved captcha (docs/protocol.md, auth proxy). */
export const captchaHeader = 'X-Captcha-Token';

interface CaptchaPorts {
  /** Undefined: no captcha is required. */
  readonly settings: CaptchaSettings | undefined;
  readonly http: OutboundHttp;
  /** Called if the provider could not check a token, once a minute at most. */
  readonly failed: (message: string) => void;
}

/** No provider has longer tokens. */
const longestToken = 8_192;
/** Responses have a few members. */
const mostBytes = 64 * 1024;
const failureEveryMs = 60_000;
/** Error codes that say nothing about the token, of Turnstile, hCaptcha and reCAPTCHA. */
const notOfToken: ReadonlySet<string> = new Set([
  'missing-input-secret',
  'invalid-input-secret',
  'sitekey-secret-mismatch',
  'bad-request',
  'internal-error',
]);

/**
 * Checks tokens of captchas at their provider, by the protocol that Turnstile, hCaptcha and reCAPTCHA share (siteverify).
 * Whatever is not a clear yes refuses the request.
 */
export class Captcha {
  private failedAt = -Infinity;

  constructor(private readonly ports: CaptchaPorts) {}

  /** Called by Nest. */
  onApplicationShutdown(): Promise<void> {
    return this.ports.http.close();
  }

  /** The key with which the React kit shows the captcha. */
  get siteKey(): string | undefined {
    return this.ports.settings?.siteKey;
  }

  /**
   * Uses the token up, if captchas are required.
   * @throws {CoordinatorError} INVALID_ARGUMENT without a token, PERMISSION_DENIED for one that the provider refuses,
   * UNAVAILABLE if it cannot be checked
   */
  async check(token: string | string[] | undefined): Promise<void> {
    const { settings } = this.ports;
    if (!settings) return;
    if (token === undefined || token === '') throw invalidField(captchaHeader, 'is required: solve the captcha first');
    if (typeof token !== 'string' || token.length > longestToken) {
      throw invalidField(captchaHeader, `must be one token of at most ${longestToken} characters`);
    }
    const { success, codes } = await this.verify(settings, token);
    if (success) return;
    const problem = codes.find((code) => notOfToken.has(code));
    if (problem !== undefined) throw this.failure(`it says \`${problem}\``);
    throw new CoordinatorError(
      'PERMISSION_DENIED',
      'the captcha is not solved, or its token was used before or is too old: solve it again',
    );
  }

  private async verify(
    { verifyUrl, secret }: CaptchaSettings,
    token: string,
  ): Promise<{ readonly success: boolean; readonly codes: readonly string[] }> {
    try {
      const { status, body } = await this.ports.http.fetch(verifyUrl, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
        body: new URLSearchParams({ secret, response: token }).toString(),
        maxBytes: mostBytes,
      });
      const { success, 'error-codes': codes } = membersOf(body);
      // Some of them answer 400 to a wrong secret or token, and say the same in the body.
      if (typeof success !== 'boolean' || (success && status !== 200)) {
        throw this.failure(`it answered ${status} without an outcome`);
      }
      return { success, codes: Array.isArray(codes) ? codes.filter((code) => typeof code === 'string') : [] };
    } catch (error) {
      // Its message names the host and the rule, and neither secret nor token.
      if (error instanceof GuardedFetchError) throw this.failure(error.message);
      throw error;
    }
  }

  private failure(why: string): CoordinatorError {
    const now = performance.now();
    if (now - this.failedAt >= failureEveryMs) {
      this.failedAt = now;
      this.ports.failed(
        `captchas cannot be checked at PROXY_CAPTCHA_VERIFY_URL, so sign-ups and codes are refused: ${why}`,
      );
    }
    return new CoordinatorError(
      'UNAVAILABLE',
      'the captcha cannot be checked now: solve it again in a moment, and send the request with the new token',
    );
  }
}

function membersOf(body: Uint8Array): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(Buffer.from(body).toString());
    return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
  } catch {
    return {};
  }
}
