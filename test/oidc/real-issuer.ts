import { createHash, randomBytes } from 'node:crypto';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWK } from 'jose';

/**
 * A certified implementation of OpenID Connect, and a browser of a few lines that logs in and consents by its forms.
 */

export const clientId = 'wallet-app';
const redirectUri = 'https://app.example/callback';

export interface RealIssuer {
  readonly url: string;
  /** Puts a provider with these keys behind the address, which signs for the client with the first. */
  provide(keys: readonly JWK[]): void;
  /** Logs a person in with the authorization code flow and PKCE; gives the ID token. */
  logIn(person: string, nonce: string): Promise<string>;
  close(): Promise<void>;
}

/** Starts one. It takes the real time. */
export async function startRealIssuer(): Promise<RealIssuer> {
  // It says at length that its store and its forms are for development, which is what they are here for.
  const { info, warn } = console;
  Object.assign(console, { info: () => {}, warn: () => {} });
  const { Provider } = await import('oidc-provider');
  let listener: RequestListener;
  const server = createServer((request, response) => listener(request, response));
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  return {
    url,
    provide(keys) {
      const provider = new Provider(url, {
        clients: [
          {
            client_id: clientId,
            redirect_uris: [redirectUri],
            response_types: ['code'],
            grant_types: ['authorization_code'],
            token_endpoint_auth_method: 'none',
            id_token_signed_response_alg: keys[0]!.alg as 'RS256',
          },
        ],
        jwks: { keys: [...keys] },
        cookies: { keys: [randomBytes(16).toString('hex')] },
        claims: { openid: ['sub'], email: ['email', 'email_verified'] },
        conformIdTokenClaims: false,
        enabledJWA: { idTokenSigningAlgValues: ['RS256', 'PS256', 'ES256', 'EdDSA'] },
        findAccount: (_context, accountId) => ({
          accountId,
          claims: () => ({ sub: accountId, email: `${accountId}@example.com`, email_verified: true }),
        }),
      });
      const handle = provider.callback();
      listener = (request, response) => void handle(request, response);
    },
    logIn: (person, nonce) => logIn(url, person, nonce),
    async close() {
      Object.assign(console, { info, warn });
      await new Promise((closed) => {
        server.close(closed);
        server.closeAllConnections();
      });
    },
  };
}

/** A new key as an issuer keeps it. */
export async function signingKey(algorithm: string, kid: string): Promise<JWK> {
  const { privateKey } = await generateKeyPair(algorithm, { extractable: true });
  return { ...(await exportJWK(privateKey)), kid, alg: algorithm, use: 'sig' };
}

async function logIn(issuer: string, person: string, nonce: string): Promise<string> {
  const cookies = new Map<string, string>();
  const visit = async (url: URL, form?: Record<string, string>): Promise<Response> => {
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(form === undefined ? {} : { method: 'POST', body: new URLSearchParams(form) }),
    });
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!;
      if (value === '') cookies.delete(name!);
      else cookies.set(name!, value!);
    }
    return response;
  };

  const verifier = randomBytes(32).toString('base64url');
  let url = new URL('/auth', issuer);
  url.search = new URLSearchParams({
    client_id: clientId,
    redirect_uri: redirectUri,
    response_type: 'code',
    scope: 'openid email',
    nonce,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  }).toString();
  let response = await visit(url);
  for (let steps = 0; !url.href.startsWith(redirectUri); steps++) {
    if (steps > 12) throw new Error(`the login does not end; it is at ${url.href}`);
    const location = response.headers.get('location');
    if (location !== null) {
      url = new URL(location, url);
      if (!url.href.startsWith(redirectUri)) response = await visit(url);
      continue;
    }
    const prompt = /name="prompt" value="(\w+)"/.exec(await response.text())?.[1];
    if (prompt === undefined) throw new Error(`no form at ${url.href} (${response.status})`);
    response = await visit(url, prompt === 'login' ? { prompt, login: person, password: 'any' } : { prompt });
  }
  const code = url.searchParams.get('code');
  if (code === null) throw new Error(`no code: ${url.search}`);
  const answer = await visit(new URL('/token', issuer), {
    grant_type: 'authorization_code',
    client_id: clientId,
    redirect_uri: redirectUri,
    code,
    code_verifier: verifier,
  });
  const { id_token: token } = (await answer.json()) as { id_token?: string };
  if (token === undefined) throw new Error(`no ID token (${answer.status})`);
  return token;
}

/** The nonce that binds a token to a public key, as it is sent (docs/protocol.md, OIDC tokens). */
export const nonceFor = (publicKey: string): string => createHash('sha256').update(publicKey).digest('hex');
