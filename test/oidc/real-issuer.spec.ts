import { createECDH } from 'node:crypto';
import { guardedFetch } from '../../src/http-client/guarded-fetch.js';
import { OidcVerifier } from '../../src/oidc/verify-token.js';
import { loopback, refusalOf } from './issuer.js';
import { clientId, nonceFor, signingKey, startRealIssuer, type RealIssuer } from './real-issuer.js';

let real: RealIssuer;
let issuer: string;

beforeAll(async () => {
  real = await startRealIssuer();
  issuer = real.url;
});
afterAll(() => real.close());

const newPublicKey = (): string => createECDH('prime256v1').generateKeys('hex', 'compressed');
const publicKey = newPublicKey();

/** Real time, which a test can put forward. */
const clock = { ahead: 0, now: () => Date.now() + clock.ahead };

test.each(['RS256', 'PS256', 'ES256', 'EdDSA'])(
  'a token of a real issuer, signed with %s, logs in its key',
  async (alg) => {
    real.provide([await signingKey(alg, `key-${alg}`)]);
    const verifier = new OidcVerifier({ clock, fetch: loopback });
    const token = await real.logIn('ann', nonceFor(publicKey));
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
  real.provide([first]);
  const old = await real.logIn('ann', nonceFor(publicKey));
  expect(await verifier.verify(old, 'registration')).toMatchObject({ subject: 'ann' });

  clock.ahead += 10_000;
  real.provide([second]);
  const fresh = await real.logIn('ben', nonceFor(publicKey));
  expect(await verifier.verify(fresh, { login: { publicKey } })).toMatchObject({ subject: 'ben' });
  expect(await refusalOf(verifier.verify(old, 'registration'))).toContain('no key for its `kid`');
});

test('the issuer is not asked where private networks are not allowed: it is on loopback, and speaks http', async () => {
  real.provide([await signingKey('ES256', 'key')]);
  const token = await real.logIn('ann', nonceFor(publicKey));
  const careful = new OidcVerifier({ clock, fetch: guardedFetch({ allowPrivateNetwork: false }) });
  expect(await refusalOf(careful.verify(token, 'registration'))).toContain('`http:` is not allowed: use https');
});
