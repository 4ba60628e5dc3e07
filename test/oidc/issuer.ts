import {
  CompactSign,
  exportJWK,
  generateKeyPair,
  importJWK,
  type CryptoKey,
  type GenerateKeyPairResult,
  type JWK,
} from 'jose';
import { CoordinatorError } from '../../src/domain/errors.js';
import { guardedFetch } from '../../src/http-client/guarded-fetch.js';
import type { GuardedFetch } from '../../src/http-client/guarded-request.js';
import { OidcVerifier, type OidcIdentity } from '../../src/oidc/verify-token.js';
import { startWebServer, type WebServer } from './web-server.js';

/** When it is in these tests: a clock that only a test moves. */
export const noon = Date.UTC(2026, 5, 1, 12);

export interface SettableClock {
  at: number;
  now(): number;
}

export const clockAt = (at: number): SettableClock => ({
  at,
  now() {
    return this.at;
  },
});

const inside = guardedFetch({ allowPrivateNetwork: true });

/** For issuers on loopback, as in development; with time for a machine that has much else to do. */
export const loopback: GuardedFetch = (url, request) => inside(url, { timeoutMs: 25_000, ...request });

export const verifierAt = (clock: { now(): number }): OidcVerifier => new OidcVerifier({ clock, fetch: loopback });

type KeyPair = Pick<GenerateKeyPairResult, 'privateKey' | 'publicKey'>;

const pairs = new Map<string, Promise<KeyPair>>();

/** The key pair of an algorithm, and others for other names; all RSA ones of a name are the same: they take long to make. */
export function pairFor(algorithm: string, name = ''): Promise<KeyPair> {
  const pair = pairs.get(algorithm + name) ?? makePair(algorithm, name);
  pairs.set(algorithm + name, pair);
  return pair;
}

async function makePair(algorithm: string, name: string): Promise<KeyPair> {
  if (!/^(?:PS|RS(?!256))/.test(algorithm)) return generateKeyPair(algorithm, { extractable: true });
  const { privateKey, publicKey } = await pairFor('RS256', name);
  const as = async (key: CryptoKey): Promise<CryptoKey> => {
    const imported = await importJWK({ ...(await exportJWK(key)), alg: algorithm }, algorithm, { extractable: true });
    if (imported instanceof Uint8Array) throw new Error('a secret is not a key pair');
    return imported;
  };
  return { privateKey: await as(privateKey), publicKey: await as(publicKey) };
}

/** The public key as an issuer publishes it. */
export async function publishedKey(algorithm: string, kid: string, name = ''): Promise<JWK> {
  const { publicKey } = await pairFor(algorithm, name);
  return { ...(await exportJWK(publicKey)), kid, alg: algorithm, use: 'sig' };
}

/** An issuer whose documents a test can spoil. */
export interface Issuer {
  readonly url: string;
  readonly server: WebServer;
  readonly requests: readonly string[];
  configuration: Record<string, unknown>;
  keys: unknown;
  status: number;
  headers: Record<string, string>;
  /** While there is one, nothing is answered before it is kept. */
  pause: Promise<unknown> | undefined;
  close(): Promise<void>;
}

/** Starts an issuer; below `/any/…` it has as many more as one likes, with the same keys. */
export async function startIssuer(keys: readonly JWK[] = []): Promise<Issuer> {
  const answer = async (path: string): Promise<unknown> => {
    await issuer.pause;
    const [, below = ''] = /^(\/any\/\w+)\/\.well-known\//.exec(path) ?? [];
    if (path.endsWith('/.well-known/openid-configuration')) {
      const url = issuer.url + below;
      return { issuer: url, jwks_uri: `${issuer.url}/jwks`, ...issuer.configuration };
    }
    return { keys: issuer.keys };
  };
  const server = await startWebServer((request, response) => {
    void answer(request.url!).then((document) => {
      response.writeHead(issuer.status, { 'content-type': 'application/json', ...issuer.headers });
      response.end(typeof document === 'string' ? document : JSON.stringify(document));
    });
  });
  const issuer: Issuer = {
    url: server.url,
    server,
    requests: server.requests,
    configuration: {},
    keys,
    status: 200,
    headers: {},
    pause: undefined,
    close: server.close,
  };
  return issuer;
}

/** The claims of a good token at noon. */
export const claimsOf = (issuer: string): Record<string, unknown> => ({
  iss: issuer,
  aud: 'client-1',
  sub: 'subject-1',
  iat: noon / 1_000 - 10,
  exp: noon / 1_000 + 600,
});

/** A token signed with whatever key, and whatever its header and claims (an object, or the very text) are. */
export async function sign(
  claims: Record<string, unknown> | string,
  header: Record<string, unknown> & { alg: string },
  key: CryptoKey | Uint8Array,
): Promise<string> {
  const text = typeof claims === 'string' ? claims : JSON.stringify(claims);
  return new CompactSign(Buffer.from(text)).setProtectedHeader(header).sign(key, { crit: { 'urn:planted': true } });
}

/** How a token is refused: the code, and what is said. */
export async function refusalOf(verified: Promise<OidcIdentity>): Promise<string> {
  try {
    await verified;
    return 'taken';
  } catch (error) {
    if (error instanceof CoordinatorError) return `${error.code} ${error.message}`;
    throw error;
  }
}
