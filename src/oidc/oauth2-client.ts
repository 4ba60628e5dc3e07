import { Inject, Injectable } from '@nestjs/common';
import type { Config } from '../config/config.js';
import { CONFIG } from '../config/config.token.js';
import { CoordinatorError, invalidField } from '../domain/errors.js';
import { GuardedFetchError, type GuardedRequest, type GuardedResponse } from '../http-client/guarded-request.js';
import { OutboundHttp } from '../http-client/outbound-http.js';
import { OidcIssuer } from '../keyring/oidc-issuer.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import type { SecretPlace } from '../ports/keyring.js';
import { OAUTH_SECRETS, type OauthSecretUsePort } from '../ports/oauth2.js';
import { knownOauth2Providers, subjectPrefix, type Oauth2Provider } from './oauth2-providers.js';

/** A code that someone brings back from a provider, and the parameters it was requested with. */
interface Authentication {
  readonly provider: string;
  readonly clientId: string;
  /** Where the secret of the application is sealed. */
  readonly secret: SecretPlace;
  /** How often the clock of that organization has been mended, if it ever was. */
  readonly clockMends?: number;
  readonly authCode: string;
  readonly redirectUri: string;
  /** PKCE (RFC 7636). */
  readonly codeVerifier: string;
  readonly nonce: string;
  readonly bearerTokenTargetPublicKey?: string | undefined;
}

/** How long a token of ours is valid, in milliseconds: it is used for a login at once. */
const tokenLifeMs = 5 * 60 * 1000;

const form = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' };

/** Asks OAuth 2.0 providers who someone is, and returns that in ID tokens of ours (docs/protocol.md, OAuth 2.0). */
@Injectable()
export class Oauth2Client {
  private readonly providers: Readonly<Record<string, Oauth2Provider>>;

  constructor(
    @Inject(CONFIG) { oauth2Providers }: Pick<Config, 'oauth2Providers'>,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(OutboundHttp) private readonly http: Pick<OutboundHttp, 'fetch'>,
    @Inject(OAUTH_SECRETS) private readonly secrets: OauthSecretUsePort,
    private readonly issuer: OidcIssuer,
  ) {
    this.providers = { ...knownOauth2Providers, ...oauth2Providers };
  }

  /** @throws {CoordinatorError} INVALID_ARGUMENT OAUTH2_PROVIDER_NOT_CONFIGURED */
  checkProvider(provider: string): void {
    this.providerOf(provider);
  }

  /**
   * Exchanges the code, asks whose it is, and returns an ID token: the audience is the client id, the subject
   * `<provider>:<id>`, valid for five minutes. The client secret is open only during the exchange.
   * @throws {CoordinatorError} INVALID_ARGUMENT for a code that is rejected, FAILED_PRECONDITION for an application
   * that is, UNAVAILABLE for a provider that does not respond
   */
  async authenticate(requested: Authentication): Promise<string> {
    const { clock, issuer } = this;
    const { provider, clientId, nonce, secret, clockMends, bearerTokenTargetPublicKey: targetPublicKey } = requested;
    const profile = this.providerOf(provider);
    const accessToken = await this.exchange(profile, requested);
    const userId = await this.userId(profile, provider, accessToken);
    const issuedAt = clock.now();
    return issuer.sign({
      audience: clientId,
      subject: `${subjectPrefix(provider)}:${userId}`,
      nonce,
      issuedAt,
      expiresAt: issuedAt + tokenLifeMs,
      organizationId: secret.organizationId,
      ...(clockMends === undefined ? {} : { clockMends }),
      ...(targetPublicKey ? { bearerToken: { text: accessToken, targetPublicKey } } : {}),
    });
  }

  private providerOf(provider: string): Oauth2Provider {
    const { providers } = this;
    if (Object.hasOwn(providers, provider)) return providers[provider]!;
    throw new CoordinatorError(
      'INVALID_ARGUMENT',
      `OAuth 2.0 provider \`${provider}\` is not configured: use one of ${Object.keys(providers).join(', ')}, or add it to OAUTH2_PROVIDERS`,
      { category: 'OAUTH2_PROVIDER_NOT_CONFIGURED' },
    );
  }

  /** RFC 6749, section 4.1.3, with PKCE. */
  private exchange({ tokenUrl, clientAuthentication }: Oauth2Provider, requested: Authentication): Promise<string> {
    const { provider, clientId, secret, authCode, redirectUri, codeVerifier } = requested;
    const code = {
      grant_type: 'authorization_code',
      code: authCode,
      redirect_uri: redirectUri,
      code_verifier: codeVerifier,
    };
    return this.secrets.use(secret, async (clientSecret) => {
      const response = await this.call(
        tokenUrl,
        clientAuthentication === 'basic'
          ? {
              method: 'POST',
              headers: { ...form, authorization: basic(clientId, clientSecret) },
              // Some providers require the client id in addition to the header; the header decides.
              body: String(new URLSearchParams({ ...code, client_id: clientId })),
            }
          : {
              method: 'POST',
              headers: form,
              body: String(new URLSearchParams({ ...code, client_id: clientId, client_secret: clientSecret })),
            },
        provider,
      );
      const answer = jsonOf(response);
      const { access_token: token, token_type: type } = answer;
      const isBearer = type === undefined || (typeof type === 'string' && /^bearer$/i.test(type));
      if (response.status === 200 && isToken(token) && isBearer) return token;
      throw refusedExchange(provider, answer['error']);
    });
  }

  private async userId(profile: Oauth2Provider, provider: string, accessToken: string): Promise<string> {
    const headers = { accept: 'application/json', authorization: `Bearer ${accessToken}` };
    const response = await this.call(profile.userUrl, { headers }, provider);
    const refuse = (problem: string): CoordinatorError =>
      new CoordinatorError(
        'FAILED_PRECONDITION',
        `${provider} ${problem}: request the scopes ${profile.scopes.join(' and ')} when you redirect the user there`,
      );
    if (response.status !== 200) throw refuse(`does not say who the code belongs to (HTTP status ${response.status})`);
    let value: unknown = jsonOf(response);
    for (const member of profile.userId.split('.')) {
      value = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[member] : undefined;
    }
    const id = typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : value;
    // It becomes part of a user's identity: an unusual form could make two people one.
    if (typeof id !== 'string' || !/^[\w.@+-]{1,128}$/.test(id)) throw refuse(`returns no \`${profile.userId}\``);
    return id;
  }

  /** A provider's response that is not about its own problems. */
  private async call(url: string, request: GuardedRequest, provider: string): Promise<GuardedResponse> {
    let response: GuardedResponse;
    try {
      response = await this.http.fetch(url, request);
    } catch (error) {
      if (!(error instanceof GuardedFetchError)) throw error;
      const code = error.mayPass ? 'UNAVAILABLE' : 'FAILED_PRECONDITION';
      throw new CoordinatorError(code, `${provider} cannot be reached: ${error.message}`, { cause: error });
    }
    const { status } = response;
    if (status < 500 && status !== 429) return response;
    throw new CoordinatorError(
      'UNAVAILABLE',
      `${provider} responds with HTTP status ${status}: redirect the user there again for a new code`,
    );
  }
}

/** RFC 6749, section 2.3.1: both parts form-encoded before they are joined. */
function basic(clientId: string, clientSecret: string): string {
  const encoded = [clientId, clientSecret].map((part) => String(new URLSearchParams({ part })).slice('part='.length));
  return `Basic ${Buffer.from(encoded.join(':')).toString('base64')}`;
}

function jsonOf({ body }: GuardedResponse): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // The parser would quote text that may contain a token.
  }
  return {};
}

/** RFC 6750, section 2.1. */
const isToken = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= 8_192 && /^[\w.~+/-]+=*$/.test(value);

/** RFC 6749, section 5.2: only its own error codes are repeated, because anything else may be what was sent. */
function refusedExchange(provider: string, error: unknown): CoordinatorError {
  const isApplication = error === 'invalid_client' || error === 'unauthorized_client';
  if (isApplication) {
    return new CoordinatorError(
      'FAILED_PRECONDITION',
      `${provider} does not know the application (${error}): check client id and secret, then update_oauth2_credential`,
    );
  }
  const isKnown = error === 'invalid_grant' || error === 'invalid_request' || error === 'unsupported_grant_type';
  return invalidField(
    'parameters.authCode',
    `${provider} rejects the code${isKnown ? ` (${error})` : ''}: it works once, for a short time, and only with the redirectUri and ` +
      'codeVerifier of the authorization request',
  );
}
