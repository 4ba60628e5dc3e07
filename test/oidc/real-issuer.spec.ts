import { createECDH, createHash, randomBytes } from 'node:crypto';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWK } from 'jose';
import type * as OidcProvider from 'oidc-provider';
import { guardedFetch } from '../../src/oidc/guarded-fetch.js';
import { OidcVerifier } from '../../src/oidc/verify-token.js';
import { loopback, refusalOf } from './issuer.js';

/**
 * A certified implementation of OpenID Connect issues the tokens here, to a browser of a few lines that logs in and
 * consents by its forms.
 */

const clientId = 'wallet-app';
const redirectUri = 'https://app.example/callback';

let server: Server;
let issuer: string;
let listener: RequestListener;
let Provider: typeof OidcProvider.Provider;

// It says at length that its store and its forms are for development, which is what they are here for.
const { info, warn } = console;

beforeAll(async () => {
  Object.assign(console, { info: () => {}, warn: () => {} });
  ({ Provider } = await import('oidc-provider'));
  server = createServer((request, response) => listener(request, response));
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  Object.assign(console, { info, warn });
  await new Promise((closed) => {
    server.close(closed);
    server.closeAllConnections();
  });
});

async function signingKey(algorithm: string, kid: string): Promise<JWK> {
  const { privateKey } = await generateKeyPair(algorithm, { extractable: true });
  return { ...(await exportJWK(privateKey)), kid, alg: algorithm, use: 'sig' };
}

/** Puts a provider with these keys behind the issuer's address, which signs for the client with the first. */
function provide(keys: readonly JWK[]): void {
  const provider = new Provider(issuer, {
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
}

/** Logs a person in at the issuer with the authorization code flow and PKCE; gives the ID token. */
async function logIn(person: string, nonce: string): Promise<string> {
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

const newPublicKey = (): string => createECDH('prime256v1').generateKeys('hex', 'compressed');
const publicKey = newPublicKey();
const nonceFor = (key: string): string => createHash('sha256').update(key).digest('hex');

/** Real time, which a test can put forward. */
const clock = { ahead: 0, now: () => Date.now() + clock.ahead };

test.each(['RS256', 'PS256', 'ES256', 'EdDSA'])(
  'a token of a real issuer, signed with %s, logs in its key',
  async (alg) => {
    provide([await signingKey(alg, `key-${alg}`)]);
    const verifier = new OidcVerifier({ clock, fetch: loopback });
    const token = await logIn('ann', nonceFor(publicKey));
    const identity = { issuer, audience: clientId, subject: 'ann', email: 'ann@example.com', emailVerified: true };
    expect(await verifier.verify(token, { login: { publicKey } })).toMatchObject(identity);
    const { expiresAt } = await verifier.verify(token, 'registration');
    expect(expiresAt).toBeGreaterThan(Date.now());
    expect(expiresAt).toBeLessThanOrEqual(Date.now() + 3_600_000);
    const otherKey = { login: { publicKey: newPublicKey() } };
    expect(await refusalOf(verifier.verify(token, otherKey))).toContain('neither its `nonce`');
  },
);

test('when a real issuer changes its keys, new tokens are taken at once and old ones no more', async () => {
  const verifier = new OidcVerifier({ clock, fetch: loopback });
  const [first, second] = [await signingKey('RS256', 'spring'), await signingKey('ES256', 'summer')];
  provide([first]);
  const old = await logIn('ann', nonceFor(publicKey));
  expect(await verifier.verify(old, 'registration')).toMatchObject({ subject: 'ann' });

  clock.ahead += 10_000;
  provide([second]);
  const fresh = await logIn('ben', nonceFor(publicKey));
  expect(await verifier.verify(fresh, { login: { publicKey } })).toMatchObject({ subject: 'ben' });
  expect(await refusalOf(verifier.verify(old, 'registration'))).toContain('no key with its `kid`');
});

test('the issuer is not asked where private networks are not allowed: it is on loopback, and speaks http', async () => {
  provide([await signingKey('ES256', 'key')]);
  const token = await logIn('ann', nonceFor(publicKey));
  const careful = new OidcVerifier({ clock, fetch: guardedFetch({ allowPrivateNetwork: false }) });
  expect(await refusalOf(careful.verify(token, 'registration'))).toContain('`http:` is not taken: use https');
});
