import { createHash, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pairFor, publishedKey, sign } from '../oidc/issuer.js';

/** A person as an OpenID provider names them in tokens. */
interface Person {
  readonly subject: string;
  readonly audience?: string;
  /** The token is asked for with this key, as it is sent. */
  readonly publicKey?: string;
  readonly claims?: Readonly<Record<string, unknown>>;
  /** When it is made, milliseconds since the epoch. */
  readonly at: number;
}

/** What an OAuth 2.0 provider remembers of a code that it has given out. */
interface Grant {
  readonly personId: string;
  readonly clientId: string;
  readonly redirectUri: string;
  readonly codeVerifier: string;
}

export const clientSecret = 'a secret of the app: ~+/%';

/**
 * An OpenID provider and, below `/oauth2`, an OAuth 2.0 provider as X and Discord are: PKCE, a confidential client, codes
 * that serve once.
 */
export class IdentityProvider {
  /** Requests, in order: method and path, for the token endpoint also how the client authenticates. */
  readonly requests: string[] = [];
  /** Access tokens and refresh tokens that were given away. */
  readonly tokens: string[] = [];
  /** What the provider does on a path instead of answering as it should; `hangs`: it never answers. */
  trouble:
    | { readonly path: string; readonly status: number; readonly body: string }
    | { readonly path: string; readonly hangs: true }
    | undefined;
  private readonly grants = new Map<string, Grant>();
  private readonly people = new Map<string, string>();

  private constructor(
    readonly issuer: string,
    readonly close: () => Promise<void>,
  ) {}

  /** It does not keep a process alive: what nobody closes ends with the tests. */
  static async start(): Promise<IdentityProvider> {
    const server = createServer((request, response) => {
      provider.answer(request).then(
        ({ status, body }) => response.writeHead(status, { 'content-type': 'application/json' }).end(body),
        (error: unknown) => response.writeHead(500).end(String(error)),
      );
    }).unref();
    // Nor does what a client has left open.
    server.on('connection', (socket) => socket.unref());
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    const close = () =>
      new Promise<void>((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      });
    const provider = new IdentityProvider(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, close);
    return provider;
  }

  /** Settings with which a coordinator asks this provider, in place of X and Discord too. */
  get settings(): Readonly<Record<string, string>> {
    const tokenUrl = `${this.issuer}/oauth2/token`;
    return {
      ALLOW_PRIVATE_NETWORK: 'true',
      OAUTH2_PROVIDERS: JSON.stringify({
        OAUTH2_PROVIDER_X: {
          tokenUrl,
          userUrl: `${this.issuer}/oauth2/x`,
          userId: 'data.id',
          scopes: ['tweet.read', 'users.read'],
        },
        OAUTH2_PROVIDER_DISCORD: { tokenUrl, userUrl: `${this.issuer}/oauth2/discord`, scopes: ['identify'] },
        OAUTH2_PROVIDER_FORGE: {
          tokenUrl,
          userUrl: `${this.issuer}/oauth2/forge`,
          userId: 'account.number',
          clientAuthentication: 'post',
        },
      }),
    };
  }

  /** An ID token, good for ten minutes. */
  async idToken({ subject, audience = 'app', publicKey, claims = {}, at }: Person): Promise<string> {
    const { privateKey } = await pairFor('ES256', 'identity-provider');
    const seconds = Math.floor(at / 1000);
    const nonce = publicKey === undefined ? {} : { nonce: createHash('sha256').update(publicKey).digest('hex') };
    const said = {
      iss: this.issuer,
      aud: audience,
      sub: subject,
      iat: seconds,
      exp: seconds + 600,
      // No two tokens are alike, as with real providers.
      jti: randomUUID(),
      ...nonce,
      ...claims,
    };
    return sign(said, { alg: 'ES256', kid: 'key', typ: 'JWT' }, privateKey);
  }

  /** A person logs in, and is sent back with this code. */
  newCode(grant: Grant): string {
    const code = `code-${randomUUID()}`;
    this.grants.set(code, grant);
    return code;
  }

  private async answer(request: IncomingMessage): Promise<{ status: number; body: string }> {
    const path = request.url ?? '';
    const { authorization = '' } = request.headers;
    let text = '';
    for await (const chunk of request) text += String(chunk);
    const form = new URLSearchParams(text);
    const how = path === '/oauth2/token' ? ` ${authorization.startsWith('Basic ') ? 'basic' : 'post'}` : '';
    this.requests.push(`${request.method} ${path}${how}`);
    if (this.trouble?.path === path) {
      return 'hangs' in this.trouble ? new Promise<never>(() => undefined) : this.trouble;
    }
    switch (path) {
      case '/.well-known/openid-configuration':
        return json(200, { issuer: this.issuer, jwks_uri: `${this.issuer}/jwks` });
      case '/jwks':
        return json(200, { keys: [await publishedKey('ES256', 'key', 'identity-provider')] });
      case '/oauth2/token':
        return this.exchange(form, authorization);
      case '/oauth2/x':
        return this.tell(authorization, (id) => ({ data: { id, name: 'Ann', username: 'ann' } }));
      case '/oauth2/discord':
        return this.tell(authorization, (id) => ({ id, username: 'ann', global_name: 'Ann' }));
      case '/oauth2/forge':
        return this.tell(authorization, (id) => ({ account: { number: Number(id) } }));
      default:
        return json(404, {});
    }
  }

  /** RFC 6749, sections 2.3.1 and 4.1.3; RFC 7636, section 4.6. */
  private exchange(form: URLSearchParams, authorization: string) {
    const [id, secret] = authorization.startsWith('Basic ')
      ? Buffer.from(authorization.slice('Basic '.length), 'base64').toString().split(':').map(formDecoded)
      : [form.get('client_id'), form.get('client_secret')];
    const code = form.get('code') ?? '';
    const grant = this.grants.get(code);
    if (secret !== clientSecret || form.get('client_id') !== id) return json(401, { error: 'invalid_client' });
    if (form.get('grant_type') !== 'authorization_code') return json(400, { error: 'unsupported_grant_type' });
    const isTaken =
      grant?.clientId === id &&
      grant?.redirectUri === form.get('redirect_uri') &&
      grant?.codeVerifier === form.get('code_verifier');
    if (!grant || !isTaken) return json(400, { error: 'invalid_grant', error_description: `no such code: ${code}` });
    this.grants.delete(code);
    const token = `access-${randomUUID()}`;
    this.people.set(token, grant.personId);
    const refresh = `refresh-${randomUUID()}`;
    this.tokens.push(token, refresh);
    const lasting = { refresh_token: refresh, scope: 'identify offline.access' };
    return json(200, { access_token: token, token_type: 'Bearer', expires_in: 3600, ...lasting });
  }

  private tell(authorization: string, describe: (id: string) => object) {
    const id = this.people.get(authorization.replace('Bearer ', ''));
    return id === undefined ? json(401, { error: 'invalid_token' }) : json(200, describe(id));
  }
}

const formDecoded = (part: string): string => new URLSearchParams(`part=${part}`).get('part') ?? '';

const json = (status: number, body: object) => ({ status, body: JSON.stringify(body) });
