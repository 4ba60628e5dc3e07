import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { exchange } from '../e2e/exchange.js';
import { until } from '../e2e/until.js';
import { publishedKey, pairFor, sign } from '../oidc/issuer.js';
import { isLong } from '../long.js';

/*
 * What is remembered of some is not forgotten because others are many (security rule R5): limits go on counting whom they
 * count, however many contacts strangers name; and an issuer that people log in by goes on being believed, however many
 * issuers strangers name.
 */

const seed = Number(process.env['SEED'] ?? 5);

const tried = new Map<string, number>();
const note = (what: string) => tried.set(what, (tried.get(what) ?? 0) + 1);

afterAll(() => {
  const lines = [...tried].sort().map(([what, times]) => `  ${what}: ${times}\n`);
  process.stdout.write(`crowds, seed ${seed}:\n${lines.join('')}`);
});

const unlimited = {
  PROXY_RATE_LIMIT_PER_ADDRESS: '0',
  PROXY_RATE_LIMIT_PER_CONFIGURATION: '0',
  PROXY_RATE_LIMIT_SIGN_UPS_PER_ADDRESS: '0',
  PROXY_RATE_LIMIT_CODES_PER_ADDRESS: '0',
  PROXY_RATE_LIMIT_PER_CONTACT: '0',
};

const proxied = (coordinator: TestCoordinator, endpoint: string, body: object) =>
  exchange(`${coordinator.url}/v1/${endpoint}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-auth-proxy-config-id': coordinator.root.authProxyConfigId },
    body: JSON.stringify(body),
  });

test('whoever is at a limit stays there, and a member of the parent is served, however many contacts strangers name', async () => {
  // As many keys as a net has time to fill: the table of a server has 65 536.
  const keys = 32;
  const coordinator = await startCoordinator({
    seed: 'crowds',
    settings: { ...unlimited, PROXY_RATE_LIMIT_PER_CONTACT: '2', RATE_LIMIT_MAX_KEYS: String(keys) },
  });
  try {
    const ask = async (contact: string) => {
      coordinator.clock.advance(1);
      return (await proxied(coordinator, 'otp_init', { otpType: 'OTP_TYPE_EMAIL', contact })).status;
    };
    let number = 0;
    const steps = fc.sample(fc.array(fc.constantFrom('crowd', 'crowd', 'victim'), { minLength: 60, maxLength: 60 }), {
      numRuns: isLong ? 20 : 1,
      seed,
    });
    for (const round of steps) {
      // Windows of all contacts have ended.
      coordinator.clock.advance('11m');
      const victim = `victim-${(number += 1)}@example.com`;
      const first: number[] = [];
      while (!first.includes(429)) first.push(await ask(victim));
      let refused = 0;
      for (const who of round) {
        if (who === 'crowd') refused += (await ask(`crowd-${(number += 1)}@example.com`)) === 429 ? 1 : 0;
        if (who === 'victim') expect([who, await ask(victim)]).toEqual([who, 429]);
        note(`${who === 'crowd' ? 'somebody new' : `the ${who}`}, among as many as the limits remember`);
      }
      // They were more than fit.
      expect(refused).toBeGreaterThan(0);
      // What the API counts has no such table.
      for (let member = 0; member < keys / 8; member++) {
        coordinator.clock.advance(1);
        const contact = `member-${(number += 1)}@example.com`;
        const asked = { otpType: 'OTP_TYPE_EMAIL', contact, appName: 'x' };
        const { status } = await coordinator.client.submit('ACTIVITY_TYPE_INIT_OTP_V3', asked);
        expect([member, status]).toEqual([member, 'ACTIVITY_STATUS_COMPLETED']);
        note('a member of the parent, when the limits remember no more');
      }
    }
  } finally {
    await coordinator.close();
  }
}, 120_000);

/** Issuers below paths of one server: those that are known by their keys, those that have none, and those that never answer. */
async function startIssuers() {
  let isDown = false;
  const asked: string[] = [];
  const hanging: (() => void)[] = [];
  const server = createServer((request, response) => {
    const [, kind = '', name = '', ...rest] = (request.url ?? '').split('/');
    asked.push(`${kind}/${name}`);
    const answer = async () => {
      const origin = `http://${request.headers.host}/${kind}/${name}`;
      if (kind === 'hanging') return new Promise<never>((_resolve, reject) => hanging.push(reject));
      if (kind !== 'known' || isDown) return { status: kind === 'known' ? 503 : 404, document: {} };
      const document = rest.join('/') === 'jwks' ? await keySet() : { issuer: origin, jwks_uri: `${origin}/jwks` };
      return { status: 200, document };
    };
    answer().then(
      ({ status, document }) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(document)),
      () => response.destroy(),
    );
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    asked,
    down: (is: boolean) => (isDown = is),
    issuer: (kind: 'known' | 'nothing' | 'hanging', name: number) => `${origin}/${kind}/${name}`,
    close: () =>
      new Promise<void>((closed) => {
        for (const end of hanging) end();
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
}

const keySet = async () => ({ keys: [await publishedKey('ES256', 'key', 'crowds')] });

let tokens = 0;
async function tokenOf(issuer: string, at: number): Promise<string> {
  const { privateKey } = await pairFor('ES256', 'crowds');
  const seconds = Math.floor(at / 1_000);
  tokens += 1;
  const claims = { iss: issuer, aud: 'app', sub: `person ${tokens}`, iat: seconds, exp: seconds + 600 };
  return sign(claims, { alg: 'ES256', kid: 'key', typ: 'JWT' }, privateKey);
}

describe('an issuer that people log in by is believed', () => {
  let issuers: Awaited<ReturnType<typeof startIssuers>>;
  let coordinator: TestCoordinator;
  beforeEach(async () => {
    issuers = await startIssuers();
    coordinator = await startCoordinator({
      seed: 'issuers',
      settings: { ...unlimited, ALLOW_PRIVATE_NETWORK: 'true' },
    });
    await coordinator.client.submit('ACTIVITY_TYPE_UPDATE_AUTH_PROXY_CONFIG', {
      allowedAuthMethods: ['email', 'sms', 'passkey', 'wallet', 'oauth'],
    });
  });
  afterEach(async () => {
    await issuers.close();
    await coordinator.close();
  });

  /** Signs up with tokens of these issuers, as strangers may. */
  const signUp = async (named: readonly string[]) => {
    const oauthProviders = await Promise.all(
      named.map(async (issuer) => ({
        providerName: issuer.slice(-40),
        oidcToken: await tokenOf(issuer, coordinator.clock.now()),
      })),
    );
    const { publicKey, curve: curveType } = coordinator.newKey();
    const apiKeys = [{ apiKeyName: 'key', publicKey, curveType }];
    return (await proxied(coordinator, 'signup', { userName: 'somebody', apiKeys, oauthProviders })).status;
  };
  const few = 10;
  const listOf = (kind: 'known' | 'nothing' | 'hanging', count: number, from = 0) =>
    Array.from({ length: count }, (_none, number) => issuers.issuer(kind, from + number));

  test('while it does not answer, although strangers have named hundreds that have no keys', async () => {
    const known = listOf('known', 2 * few);
    for (let at = 0; at < known.length; at += few) expect(await signUp(known.slice(at, at + few))).toBe(200);
    const strangers = listOf('nothing', isLong ? 1_000 : 245).values();
    const stranger = async () => {
      for (const issuer of strangers) {
        expect(await signUp([issuer])).toBe(400);
        note('an issuer that has no keys');
      }
    };
    await Promise.all(Array.from({ length: few }, stranger));
    issuers.down(true);
    // One by one: whoever is forgotten cannot be told by another's refusal.
    for (const issuer of known) {
      expect([issuer, await signUp([issuer])]).toEqual([issuer, 200]);
      note('an issuer that is known, and does not answer');
    }
  }, 120_000);

  test('as long as it answers, although strangers have named as many that never answer as are asked at once', async () => {
    const known = issuers.issuer('known', 0);
    expect(await signUp([known])).toBe(200);
    const pages: Promise<number>[] = [];
    const crowd = async (from: number) => {
      const hangs = () => issuers.asked.filter((one) => one.startsWith('hanging')).length;
      const before = hangs();
      for (const issuer of listOf('hanging', 40, from)) pages.push(signUp([issuer]));
      await until('all places are taken', () => hangs() >= before + 32);
    };
    // Its keys are read again every ten minutes and serve six hours more; half of them are over.
    coordinator.clock.advance('4h');
    await crowd(0);
    expect(await signUp([known])).toBe(200);
    note('an issuer whose keys are about to be over, beside 32 that hang');
    // What was read then serves beyond what was read first.
    coordinator.clock.advance('3h');
    issuers.down(true);
    expect(await signUp([known])).toBe(200);
    await issuers.close();
    await Promise.all(pages);
  }, 120_000);
});
