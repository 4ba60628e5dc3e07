import type { GuardedFetch } from '../../src/http-client/guarded-request.js';
import { OidcVerifier } from '../../src/oidc/verify-token.js';
import {
  claimsOf,
  clockAt,
  loopback,
  noon,
  pairFor,
  publishedKey,
  refusalOf,
  sign,
  startIssuer,
  verifierAt,
  type Issuer,
  type SettableClock,
} from './issuer.js';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

/** Once for the configuration, once for the keys. */
const onceRead = ['GET /.well-known/openid-configuration', 'GET /jwks'];

let issuer: Issuer;
let clock: SettableClock;
let verifier: OidcVerifier;

beforeEach(async () => {
  issuer = await startIssuer([await publishedKey('ES256', 'first')]);
  clock = clockAt(noon);
  verifier = verifierAt(clock);
});
afterEach(() => issuer.close());

/** A token that is good for a day, of the issuer or one below it. */
async function token(kid = 'first', name = '', url = issuer.url): Promise<string> {
  const { privateKey } = await pairFor('ES256', name);
  return sign({ ...claimsOf(url), exp: (noon + 24 * hour) / second }, { alg: 'ES256', kid }, privateKey);
}

/** How a token is taken or refused. */
const answer = (jwt: string): Promise<string> => refusalOf(verifier.verify(jwt, 'registration'));
/** How often the keys were read since the last question. */
let seen = 0;
const reads = (): number => {
  const keys = issuer.requests.filter((request) => request === 'GET /jwks').length;
  const since = keys - seen;
  seen = keys;
  return since;
};
beforeEach(() => {
  seen = 0;
});

async function until(condition: () => boolean): Promise<void> {
  for (let tries = 0; !condition(); tries++) {
    if (tries > 1_000) throw new Error('waited in vain');
    await new Promise((later) => setTimeout(later, 10));
  }
}

describe('keys are kept', () => {
  test('by all who ask at the same time, and after', async () => {
    const jwt = await token();
    const answers = await Promise.all(Array.from({ length: 50 }, () => answer(jwt)));
    expect(new Set(answers)).toEqual(new Set(['taken']));
    expect(await answer(jwt)).toBe('taken');
    expect(issuer.requests).toEqual(onceRead);
  });

  test.each([
    ['nothing', {}, 10 * minute],
    ['nothing of use', { 'cache-control': 'public, s-maxage=5, max-age=soon' }, 10 * minute],
    ['a time', { 'cache-control': 'public, max-age=1800, must-revalidate' }, 30 * minute],
    ['less than is sensible', { 'cache-control': 'max-age=0' }, minute],
    ['no-store', { 'cache-control': 'no-store, max-age=1800' }, minute],
    ['no-cache', { 'cache-control': 'No-Cache' }, minute],
    ['more than is sensible', { 'cache-control': 'max-age=31536000' }, hour],
    ['more than a number', { 'cache-control': 'max-age=9999999999' }, hour],
  ])('as long as the issuer says, within bounds: %s', async (_what, headers, freshFor) => {
    issuer.headers = headers;
    const jwt = await token();
    expect([await answer(jwt), reads()]).toEqual(['taken', 1]);
    clock.at = noon + freshFor - 1;
    expect([await answer(jwt), reads()]).toEqual(['taken', 0]);
    clock.at = noon + freshFor;
    expect([await answer(jwt), reads()]).toEqual(['taken', 1]);
  });

  test('for 256 issuers, the ones that were needed last', async () => {
    const { privateKey } = await pairFor('ES256');
    const asked = (): number => issuer.requests.filter((path) => path.includes('openid-configuration')).length;
    const answerOf = async (below: string): Promise<string> =>
      answer(await sign(claimsOf(issuer.url + below), { alg: 'ES256', kid: 'first' }, privateKey));
    for (let number = 0; number < 256; number++) expect(await answerOf(`/any/i${number}`)).toBe('taken');
    // All are known, and the first is now the one that was needed last.
    expect([await answerOf('/any/i255'), await answerOf('/any/i0'), asked()]).toEqual(['taken', 'taken', 256]);
    expect([await answerOf('/any/oneMore'), asked()]).toEqual(['taken', 257]);
    expect([await answerOf('/any/i0'), asked()]).toEqual(['taken', 257]);
    // Of one name the sixteen that were known first stay.
    expect([await answerOf('/any/i15'), asked()]).toEqual(['taken', 257]);
    expect([await answerOf('/any/i16'), asked()]).toEqual(['taken', 258]);
  });
});

describe('a key that is not there', () => {
  test('is looked for once, and then no more than every ten seconds', async () => {
    expect([await answer(await token()), reads()]).toEqual(['taken', 1]);
    clock.at += 10 * second;
    const unknown = await Promise.all(Array.from({ length: 20 }, (_none, number) => token(`made-up-${number}`)));
    const answers = await Promise.all(unknown.map(answer));
    expect([...new Set(answers)]).toEqual([expect.stringContaining('no key for its `kid`')]);
    expect(reads()).toBe(1);
    for (const jwt of unknown) await answer(jwt);
    clock.at += 10 * second - 1;
    await answer(unknown[0]!);
    expect(reads()).toBe(0);
    clock.at += 1;
    await answer(unknown[0]!);
    expect(reads()).toBe(1);
    // Meanwhile the others are served.
    expect([await answer(await token()), reads()]).toEqual(['taken', 0]);
  });

  test('is not looked for again just after the keys were read', async () => {
    expect(await answer(await token('made-up'))).toContain('no key for its `kid`');
    expect(issuer.requests).toEqual(onceRead);
  });

  test('is found at once when the issuer has a new one, and the one it took back is not any more', async () => {
    expect(await answer(await token())).toBe('taken');
    issuer.keys = [await publishedKey('ES256', 'second', 'other')];
    clock.at += minute;
    expect([await answer(await token()), reads()]).toEqual(['taken', 1]);
    expect([await answer(await token('second', 'other')), reads()]).toEqual(['taken', 1]);
    expect(await answer(await token())).toContain('no key for its `kid`');
  });

  test('ends what the issuer took back, also when it has none left', async () => {
    expect(await answer(await token())).toBe('taken');
    issuer.keys = [];
    clock.at += 10 * minute;
    expect(await answer(await token())).toContain('no key for its `kid`');
  });
});

describe('an issuer that fails', () => {
  const unavailable = (): string =>
    `UNAVAILABLE the keys of issuer \`${issuer.url}\` cannot be read at the moment: it responds with HTTP status 503; try again`;

  test('is not asked again for ten seconds, and then it is', async () => {
    issuer.status = 503;
    const jwt = await token();
    expect(await Promise.all([answer(jwt), answer(jwt)])).toEqual([unavailable(), unavailable()]);
    expect(issuer.requests).toHaveLength(1);
    issuer.status = 200;
    clock.at += 10 * second - 1;
    expect(await answer(jwt)).toBe(unavailable());
    expect(issuer.requests).toHaveLength(1);
    clock.at += 1;
    expect(await answer(jwt)).toBe('taken');
  });

  test('is believed for six more hours by the keys that it had', async () => {
    const jwt = await token();
    expect(await answer(jwt)).toBe('taken');
    issuer.status = 503;
    clock.at = noon + 10 * minute;
    expect([await answer(jwt), issuer.requests.length]).toEqual(['taken', 3]);
    // It is asked again, but not for every token.
    expect([await answer(jwt), issuer.requests.length]).toEqual(['taken', 3]);
    clock.at = noon + 10 * minute + 6 * hour - 1;
    expect([await answer(jwt), issuer.requests.length]).toEqual(['taken', 4]);
    clock.at += 1;
    expect(await answer(jwt)).toBe(unavailable());
    clock.at += 10 * second;
    issuer.status = 200;
    expect(await answer(jwt)).toBe('taken');
  });

  test('is asked again although a clock was set back', async () => {
    const jwt = await token();
    expect(await answer(jwt)).toBe('taken');
    clock.at = noon - 9 * second;
    expect(await answer(await token('made-up'))).toContain('no key');
    expect(reads()).toBe(2);
  });

  test.each([
    ['not found', (to: Issuer) => (to.status = 404), 'responds with HTTP status 404 instead'],
    ['no content', (to: Issuer) => (to.status = 204), 'responds with HTTP status 204 instead'],
    ['a page', (to: Issuer) => (to.headers = { 'content-type': 'text/html' }), 'something other than JSON'],
    ['no type', (to: Issuer) => (to.headers = { 'content-type': '' }), 'something other than JSON'],
    [
      'nearly a type',
      (to: Issuer) => (to.headers = { 'content-type': 'application/jsonp' }),
      'something other than JSON',
    ],
    ['another name', (to: Issuer) => (to.configuration = { issuer: `${to.url}/` }), 'has a different issuer name'],
    ['no name', (to: Issuer) => (to.configuration = { issuer: undefined }), 'has a different issuer name'],
    ['no place of keys', (to: Issuer) => (to.configuration = { jwks_uri: undefined }), 'has no `jwks_uri`'],
    ['a number for the place', (to: Issuer) => (to.configuration = { jwks_uri: 1 }), 'has no `jwks_uri`'],
    ['no list of keys', (to: Issuer) => (to.keys = {}), 'has no list `keys`'],
    ['no keys at all', (to: Issuer) => (to.keys = undefined), 'has no list `keys`'],
    ['too many keys', (to: Issuer) => (to.keys = Array.from({ length: 65 }, () => ({}))), 'has more than 64 keys'],
    ['a flood', (to: Issuer) => (to.keys = ['x'.repeat(200_000)]), 'sent more than 131072 bytes'],
    ['what is no key', (to: Issuer) => (to.keys = [null, 1, 'key', [], {}, { kty: 1 }]), 'has no key for its `kid`'],
  ])('is told what is wrong with it: %s', async (_what, spoil, problem) => {
    spoil(issuer);
    const said = await answer(await token());
    expect(said).toMatch(/^INVALID_ARGUMENT INVALID_OIDC_TOKEN: /);
    expect(said).toContain(problem);
  });

  test.each(['', '{', '[]', 'null', '"text"', '{"issuer":"\\ud8'])(
    'is told that this is no document: %j',
    async (text) => {
      const fetch: GuardedFetch = async (url, request) => ({
        ...(await loopback(url, request)),
        body: Buffer.from(text),
      });
      verifier = new OidcVerifier({ clock, fetch });
      expect(await answer(await token())).toContain('responds with something other than a JSON object');
    },
  );

  test('is told that its text is not UTF-8', async () => {
    const body = Buffer.from(JSON.stringify({ issuer: issuer.url, jwks_uri: `${issuer.url}/jwks`, name: 'x' }));
    body[body.lastIndexOf('x')] = 0xff;
    const fetch: GuardedFetch = async (url, request) => ({ ...(await loopback(url, request)), body });
    verifier = new OidcVerifier({ clock, fetch });
    expect(await answer(await token())).toContain('responds with something other than a JSON object');
  });

  test('may say its type in other words', async () => {
    for (const type of ['application/json; charset=utf-8', 'Application/JSON', 'application/jwk-set+json']) {
      issuer.headers = { 'content-type': type };
      verifier = verifierAt(clock);
      expect(await answer(await token())).toBe('taken');
    }
  });

  test('may end its name with a slash', async () => {
    issuer.configuration = { issuer: `${issuer.url}/` };
    expect(await answer(await token('first', '', `${issuer.url}/`))).toBe('taken');
    expect(issuer.requests).toEqual(onceRead);
  });
});

test('no more than 32 issuers are asked at once, and those that are known go on being served', async () => {
  const known = await token();
  expect(await answer(known)).toBe('taken');
  let goOn: (() => void) | undefined;
  issuer.pause = new Promise<void>((resolve) => (goOn = resolve));
  const below = (name: string): Promise<string> => token('first', '', `${issuer.url}/any/${name}`);
  const waiting = await Promise.all(Array.from({ length: 32 }, (_none, number) => below(`i${number}`)));
  const answers = waiting.map(answer);
  await until(() => issuer.requests.length === onceRead.length + 32);

  clock.at += hour;
  expect(await answer(known)).toBe('taken');
  const oneMore = await below('oneMore');
  expect(await answer(oneMore)).toBe(
    `UNAVAILABLE the keys of issuer \`${issuer.url}/any/oneMore\` cannot be read at the moment: too many issuers are being read; try again`,
  );
  expect(issuer.requests).toHaveLength(onceRead.length + 32);

  goOn!();
  expect(new Set(await Promise.all(answers))).toEqual(new Set(['taken']));
  // Nothing was held against the one that came too late.
  expect(await answer(oneMore)).toBe('taken');
});

test('an issuer whose keys will soon be too old is asked, though strangers hold all places', async () => {
  const known = await token();
  expect(await answer(known)).toBe('taken');
  // Its keys are read again every hour, and serve six more; half of them are over.
  clock.at += 5 * hour;
  let goOn: (() => void) | undefined;
  issuer.pause = new Promise<void>((resolve) => (goOn = resolve));
  const below = (name: string): Promise<string> => token('first', '', `${issuer.url}/any/${name}`);
  const answers = (await Promise.all(Array.from({ length: 32 }, (_none, number) => below(`i${number}`)))).map(answer);
  await until(() => issuer.requests.length === onceRead.length + 32);
  const answered = answer(known);
  await until(() => issuer.requests.length === onceRead.length + 33);
  goOn!();
  expect(await answered).toBe('taken');
  await Promise.all(answers);
});

test('an issuer that the operator trusts is asked for the first time, though strangers hold all places', async () => {
  verifier = new OidcVerifier({ clock, fetch: loopback, emailIssuers: [issuer.url] });
  const trusted = await token();
  let goOn: (() => void) | undefined;
  issuer.pause = new Promise<void>((resolve) => (goOn = resolve));
  const below = (name: string): Promise<string> => token('first', '', `${issuer.url}/any/${name}`);
  const answers = (await Promise.all(Array.from({ length: 32 }, (_none, number) => below(`i${number}`)))).map(answer);
  await until(() => issuer.requests.length === 32);
  const answered = answer(trusted);
  await until(() => issuer.requests.length === 33);
  expect(await answer(await below('oneMore'))).toContain('too many issuers are being read');
  goOn!();
  expect(await answered).toBe('taken');
  await Promise.all(answers);
});

/** Every name has an issuer, with keys, but those without an answer; `asked` are the names whose configuration was read. */
async function worldOfIssuers(isSilent: (hostname: string) => boolean = () => false) {
  const published = await publishedKey('ES256', 'first');
  const asked: string[] = [];
  const fetch: GuardedFetch = (url) => {
    const { origin, hostname, pathname } = new URL(url);
    if (pathname !== '/jwks') asked.push(hostname);
    const document = pathname === '/jwks' ? { keys: [published] } : { issuer: origin, jwks_uri: `${origin}/jwks` };
    const status = isSilent(hostname) ? 404 : 200;
    const headers = { 'content-type': 'application/json' };
    return Promise.resolve({ status, headers, body: Buffer.from(JSON.stringify(document)) });
  };
  verifier = new OidcVerifier({ clock, fetch });
  return asked;
}

test('an issuer that is known goes on being served, whatever others strangers name', async () => {
  const asked = await worldOfIssuers((hostname) => hostname.endsWith('.evil.example'));
  const known = await token('first', '', 'https://accounts.example.com');
  expect(await answer(known)).toBe('taken');
  // Names without number under one domain, none of which answers.
  for (let number = 0; number < 300; number++) {
    expect(await answer(await token('first', '', `https://i${number}.evil.example`))).not.toBe('taken');
  }
  asked.length = 0;
  expect([await answer(known), asked]).toEqual(['taken', []]);
});

test('an issuer that is known goes on being served by its keys, although strangers have hundreds of domains that answer', async () => {
  const asked = await worldOfIssuers();
  const named = (origin: string) => token('first', '', origin);
  const known = ['https://accounts.example.com', 'https://login.example.org', 'https://tenant-1.shared.example.net'];
  for (const origin of known) expect(await answer(await named(origin))).toBe('taken');
  const strangers = Array.from({ length: 270 }, (_none, number) => `https://login.domain-${number}.example`);
  for (const origin of strangers) expect(await answer(await named(origin))).toBe('taken');
  asked.length = 0;
  for (const origin of known) expect(await answer(await named(origin))).toBe('taken');
  expect(asked).toEqual([]);
  // They are read again when their time is over, and so is one that nobody needs make room.
  clock.at += 25 * hour;
  const later = async (origin: string) => {
    const { privateKey } = await pairFor('ES256', '');
    const claims = { ...claimsOf(origin), iat: clock.at / second, exp: clock.at / second + 600 };
    return answer(await sign(claims, { alg: 'ES256', kid: 'first' }, privateKey));
  };
  for (const origin of strangers) expect(await later(origin)).toBe('taken');
  asked.length = 0;
  expect([await later(known[0]!), asked]).toEqual(['taken', ['accounts.example.com']]);
});

test('a key that was replaced under its id is read once more, at most every ten seconds', async () => {
  await expect(verifier.verify(await token(), 'registration')).resolves.toBeDefined();
  issuer.keys = [await publishedKey('ES256', 'first', 'replaced')];
  const notMade = "its signature was not made with its issuer's key";
  // The keys were read a moment ago.
  expect(await refusalOf(verifier.verify(await token('first', 'replaced'), 'registration'))).toContain(notMade);
  clock.at += 10 * second;
  await expect(verifier.verify(await token('first', 'replaced'), 'registration')).resolves.toBeDefined();
  clock.at += 10 * second;
  expect(await refusalOf(verifier.verify(await token('first', 'forged'), 'registration'))).toContain(notMade);
  const { length } = issuer.requests;
  expect(await refusalOf(verifier.verify(await token('first', 'forged'), 'registration'))).toContain(notMade);
  expect(issuer.requests).toHaveLength(length);
});
