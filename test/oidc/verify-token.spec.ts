import { createHash } from 'node:crypto';
import { CompactEncrypt, exportJWK, exportSPKI, FlattenedSign, type JWK } from 'jose';
import { guardedFetch } from '../../src/http-client/guarded-fetch.js';
import { GuardedFetchError, type GuardedFetch } from '../../src/http-client/guarded-request.js';
import { OidcVerifier, type OidcIdentity } from '../../src/oidc/verify-token.js';
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
} from './issuer.js';

const algorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];

/** docs/protocol.md, OIDC tokens. */
const publicKey = '0394e549c71fa99dd5cf752fba623090be314949b74e4cdf7ca72031dd638e281a';
const nonce = '1663bba492a323085b13895634a3618792c4ec6896f3c34ef3c26396df22ef82';
const login = { login: { publicKey } };

let issuer: Issuer;

beforeAll(async () => {
  issuer = await startIssuer(await Promise.all(algorithms.map((algorithm) => publishedKey(algorithm, algorithm))));
}, 60_000);
afterAll(() => issuer.close());

/** A token of the issuer, good but for what is told. */
async function token(
  claims: Record<string, unknown> | string = {},
  header: Record<string, unknown> & { alg?: string } = {},
): Promise<string> {
  const { alg = 'ES256' } = header;
  const { privateKey } = await pairFor(alg);
  const all = typeof claims === 'string' ? claims : { ...claimsOf(issuer.url), ...claims };
  return sign(all, { kid: alg, ...header, alg }, privateKey);
}

const verify = (jwt: string): Promise<OidcIdentity> => verifierAt(clockAt(noon)).verify(jwt, 'registration');
const refusal = (jwt: string): Promise<string> => refusalOf(verify(jwt));
const invalid = (problem: string): string => `INVALID_ARGUMENT INVALID_OIDC_TOKEN: ${problem}`;
const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

describe('a good token', () => {
  test.each(algorithms)('of %s says who it is about', async (alg) => {
    expect(await verify(await token({}, { alg }))).toEqual({
      issuer: issuer.url,
      audience: 'client-1',
      subject: 'subject-1',
      tokenId: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
      isIssuedHere: false,
      expiresAt: noon + 600_000,
      emailVerified: false,
    });
  });

  test.each([
    [
      { email: 'ann@example.com', email_verified: true },
      { email: 'ann@example.com', emailVerified: true },
    ],
    [
      { email: 'ann@example.com', email_verified: 'true' },
      { email: 'ann@example.com', emailVerified: true },
    ],
    [
      { email: 'ann@example.com', email_verified: false },
      { email: 'ann@example.com', emailVerified: false },
    ],
    [
      { email: 'ann@example.com', email_verified: 1 },
      { email: 'ann@example.com', emailVerified: false },
    ],
    [{ email: 'ann@example.com' }, { email: 'ann@example.com', emailVerified: false }],
    [{ email: ['ann@example.com'] }, { emailVerified: false }],
    [{ aud: ['client-1'] }, { audience: 'client-1' }],
    [{ azp: 'client-1' }, { audience: 'client-1' }],
    [
      { aud: 'web', azp: 'android' },
      { audience: 'web', namesOtherClients: true },
    ],
    [
      { aud: ['web', 'ios'], azp: 'ios' },
      { audience: 'ios', namesOtherClients: true },
    ],
    [{ azp: null, nbf: null, email: null }, { subject: 'subject-1' }],
    [{ sub: 's'.repeat(255) }, { subject: 's'.repeat(255) }],
    [{ name: 'Ann', groups: [{ id: 1 }] }, { subject: 'subject-1' }],
  ])('with %j', async (claims, identity) => {
    expect(await verify(await token(claims))).toMatchObject(identity);
  });

  test.each([{ typ: 'JWT' }, { typ: 'jwt' }, { typ: 'application/jwt' }])('with the header %j', async (header) => {
    expect(await verify(await token({}, header))).toMatchObject({ subject: 'subject-1' });
  });

  test('may have base64 around it, of either kind, padded or not', async () => {
    const jwt = await token({ padding: 'xx' });
    const wrapped = Buffer.from(jwt);
    for (const text of [
      wrapped.toString('base64'),
      wrapped.toString('base64').replace(/=/g, ''),
      wrapped.toString('base64url'),
    ]) {
      expect(await verify(text)).toEqual(await verify(jwt));
    }
  });

  test('needs no key id where only one key fits it', async () => {
    const only = await startIssuer([await publishedKey('ES256', 'a'), await publishedKey('EdDSA', 'b')]);
    const { privateKey } = await pairFor('ES256');
    expect(await verify(await sign(claimsOf(only.url), { alg: 'ES256' }, privateKey))).toMatchObject({
      issuer: only.url,
    });
    await only.close();
  });

  test('may be as long as 16 KiB, and no longer', async () => {
    const { length } = await token({ padding: '' });
    const padded = async (count: number): Promise<string> => token({ padding: 'x'.repeat(count) });
    // Three characters of claims are four of the token.
    const longest = await padded(Math.floor(((16_384 - length) * 3) / 4) - 2);
    expect(longest.length).toBeGreaterThan(16_376);
    expect(longest.length).toBeLessThanOrEqual(16_384);
    expect(await verify(longest)).toMatchObject({ subject: 'subject-1' });
    expect(await verify(Buffer.from(longest).toString('base64'))).toMatchObject({ subject: 'subject-1' });
    const tooLong = await padded(12_300);
    expect(tooLong.length).toBeGreaterThan(16_384);
    for (const text of [tooLong, Buffer.from(tooLong).toString('base64'), 'x'.repeat(10_000_000)]) {
      expect(await refusal(text)).toBe(invalid('the token is longer than 16384 characters'));
    }
  });
});

describe('a login', () => {
  const loginWith = async (claims: Record<string, unknown>, key = publicKey): Promise<string> =>
    refusalOf(verifierAt(clockAt(noon)).verify(await token(claims), { login: { publicKey: key } }));
  const unbound = invalid(
    'neither its `nonce` nor its `tknonce` is the SHA-256 (lower-case hex) of the public key as it was sent',
  );

  test('takes a token that was asked for with its key, by either name', async () => {
    expect(await loginWith({ nonce })).toBe('taken');
    expect(await loginWith({ tknonce: nonce })).toBe('taken');
    expect(await loginWith({ nonce: 'of the page', tknonce: nonce })).toBe('taken');
    expect(await loginWith({ nonce, tknonce: 'other' })).toBe('taken');
  });

  test.each([
    ['no nonce', {}],
    ['another nonce', { nonce: '0'.repeat(64) }],
    ['the key itself', { nonce: publicKey }],
    ['upper case', { nonce: nonce.toUpperCase() }],
    ['white space', { nonce: ` ${nonce}` }],
    ['a list', { nonce: [nonce] }],
    ['the hash of the bytes', { nonce: createHash('sha256').update(Buffer.from(publicKey, 'hex')).digest('hex') }],
    ['the hash in base64url', { nonce: Buffer.from(nonce, 'hex').toString('base64url') }],
    ['another claim', { Nonce: nonce, at_hash: nonce, jti: nonce }],
  ])('does not take %s', async (_what, claims) => {
    expect(await loginWith(claims)).toBe(unbound);
  });

  test('does not take a token for another key, nor for another spelling of this one', async () => {
    expect(await loginWith({ nonce }, `02${publicKey.slice(2)}`)).toBe(unbound);
    expect(await loginWith({ nonce }, publicKey.toUpperCase())).toBe(unbound);
    expect(await loginWith({ nonce }, '')).toBe(unbound);
  });

  test('a registration asks for no nonce', async () => {
    expect(await refusal(await token({ nonce: '0'.repeat(64) }))).toBe('taken');
  });
});

describe('signatures', () => {
  const notOurs = invalid(
    'its `alg` is not one of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, Ed25519',
  );
  const noKey = invalid('its issuer has no key for its `kid` and `alg`');
  const forged = invalid("its signature was not made with its issuer's key");

  test.each(['none', 'None', 'NONE', 'nOnE', '', 'HS256', 'constructor', 'toString', '__proto__', 'ES256 ', 'es256'])(
    'of the algorithm `%s` are none',
    async (alg) => {
      const claims = encode(claimsOf(issuer.url));
      expect(await refusal(`${encode({ alg })}.${claims}.`)).toBe(notOurs);
      const { privateKey } = await pairFor('ES256');
      const [, , signature] = (await sign(claimsOf(issuer.url), { alg: 'ES256', kid: 'ES256' }, privateKey)).split('.');
      expect(await refusal(`${encode({ alg, kid: 'ES256' })}.${claims}.${signature}`)).toBe(notOurs);
    },
  );

  test.each([{}, { alg: null }, { alg: 256 }, { alg: ['ES256'] }])('need an algorithm: %j', async (header) => {
    expect(await refusal(`${encode(header)}.${encode(claimsOf(issuer.url))}.AAAA`)).toBe(notOurs);
  });

  test('with the public key as a shared secret are none', async () => {
    const { publicKey: rsa } = await pairFor('RS256');
    const { n } = await exportJWK(rsa);
    for (const secret of [await exportSPKI(rsa), n!, JSON.stringify(await publishedKey('RS256', 'RS256'))]) {
      for (const alg of ['HS256', 'HS384', 'HS512']) {
        const jwt = await sign(claimsOf(issuer.url), { alg, kid: 'RS256' }, Buffer.from(secret.padEnd(64)));
        expect(await refusal(jwt)).toBe(notOurs);
      }
    }
  });

  test('that are missing, zero, cut, in DER or of something else do not hold', async () => {
    const good = await token();
    const [header, claims, signature] = good.split('.') as [string, string, string];
    const other = (await token({ sub: 'subject-2' })).split('.')[2]!;
    const raw = Buffer.from(signature, 'base64url');
    const derInteger = (bytes: Buffer): Buffer => Buffer.concat([Buffer.from([2, bytes.length + 1, 0]), bytes]);
    const integers = Buffer.concat([derInteger(raw.subarray(0, 32)), derInteger(raw.subarray(32))]);
    const der = Buffer.concat([Buffer.from([0x30, integers.length]), integers]);
    const signatures = [
      '',
      'AA',
      Buffer.alloc(64),
      raw.subarray(0, 63),
      Buffer.concat([raw, Buffer.alloc(1)]),
      der,
      other,
    ];
    for (const forgery of signatures) {
      const text = typeof forgery === 'string' ? forgery : forgery.toString('base64url');
      expect(await refusal(`${header}.${claims}.${text}`)).toBe(forged);
    }
    expect(await refusal(good)).toBe('taken');
  });

  test('do not hold for other claims or another header', async () => {
    const [header, claims, signature] = (await token()).split('.') as [string, string, string];
    expect(await refusal(`${header}.${encode({ ...claimsOf(issuer.url), sub: 'admin' })}.${signature}`)).toBe(forged);
    expect(await refusal(`${encode({ alg: 'ES256', kid: 'ES256', typ: 'JWT' })}.${claims}.${signature}`)).toBe(forged);
  });

  test('by a key in the token’s own header are none, and what the header points to is not asked', async () => {
    const evil = await startIssuer([{ ...(await publishedKey('ES256', 'ES256', 'evil')) }]);
    const { privateKey, publicKey: evilKey } = await pairFor('ES256', 'evil');
    const jwk = await exportJWK(evilKey);
    for (const planted of [
      { jwk: { ...jwk, kid: 'ES256' } },
      { jku: `${evil.url}/jwks` },
      { x5u: `${evil.url}/certificate` },
      { x5c: ['MIIB'] },
      { 'x5t#S256': 'AAAA' },
    ]) {
      const header = { alg: 'ES256', kid: 'ES256', ...planted };
      expect(await refusal(await sign(claimsOf(issuer.url), header, privateKey))).toBe(forged);
    }
    expect(evil.requests).toEqual([]);
    await evil.close();
  });

  test.each([
    ['made up', 'made-up'],
    ['a path', '../../../../dev/null'],
    ['a query', "ES256' or '1'='1"],
    ['a URL', 'https://evil.example/jwks'],
    ['empty', ''],
    ['another letter case', 'es256'],
    ['with a zero byte', 'ES256\0'],
  ])('under a key id that is %s do not hold', async (_what, kid) => {
    expect(await refusal(await token({}, { kid }))).toBe(noKey);
  });

  test.each([
    ['ES256', 'RS256'],
    ['RS256', 'ES256'],
    ['RS256', 'PS256'],
    ['PS256', 'RS256'],
    ['RS512', 'RS256'],
    ['ES384', 'ES256'],
    ['EdDSA', 'ES256'],
    ['Ed25519', 'EdDSA'],
  ])('of %s under the id of a key for %s do not hold', async (alg, kid) => {
    expect(await refusal(await token({}, { alg, kid }))).toBe(noKey);
  });

  test('need a key id where several keys fit, and one key for each id', async () => {
    const twins = [await publishedKey('ES256', 'twin'), await publishedKey('ES256', 'twin', 'evil')];
    const confusing = await startIssuer(twins);
    const { privateKey } = await pairFor('ES256');
    for (const header of [{ alg: 'ES256' }, { alg: 'ES256', kid: 'twin' }]) {
      expect(await refusal(await sign(claimsOf(confusing.url), header, privateKey))).toBe(
        invalid('more than one key of its issuer could have signed it: it needs a `kid`'),
      );
    }
    await confusing.close();
  });

  test('hold with a key that the issuer lists twice', async () => {
    const key = await publishedKey('ES256', 'twice');
    const repeating = await startIssuer([key, key]);
    const { privateKey } = await pairFor('ES256');
    const signed = await sign(claimsOf(repeating.url), { alg: 'ES256', kid: 'twice' }, privateKey);
    await expect(verify(signed)).resolves.toMatchObject({ issuer: repeating.url });
    await repeating.close();
  });

  const useless = invalid("its issuer's key cannot be used");

  test.each([
    ['is for encryption', { use: 'enc' }, noKey],
    ['may only sign', { key_ops: ['sign'] }, noKey],
    ['has operations that are no list', { key_ops: 'verify' }, noKey],
    ['is for another algorithm', { alg: 'ES384' }, noKey],
    ['says another curve', { crv: 'P-384' }, noKey],
    ['is of another type', { kty: 'RSA' }, noKey],
    ['is symmetric', { kty: 'oct', k: 'AAAA' }, noKey],
    ['has a number for its id', { kid: 1 }, noKey],
    ['has a number for a coordinate', { x: 1 }, noKey],
    ['was published with its private part', { d: 'AAAA' }, noKey],
    ['has half a point', { y: undefined }, useless],
    ['is not on the curve', { y: 'UI8exy-C06a7DUnjIdENkxeFtHM4-l_41LqEw9nVgnw' }, useless],
  ])('by a published key that %s do not hold', async (_what, change, said) => {
    const spoiled = await startIssuer([{ ...(await publishedKey('ES256', 'ES256')), ...change } as JWK]);
    const { privateKey } = await pairFor('ES256');
    const jwt = await sign(claimsOf(spoiled.url), { alg: 'ES256', kid: 'ES256' }, privateKey);
    expect(await refusal(jwt)).toBe(said);
    spoiled.keys = [await publishedKey('ES256', 'ES256')];
    expect(await refusal(jwt)).toBe('taken');
    await spoiled.close();
  });

  test.each([
    ['has a modulus that is too long', { n: 'x'.repeat(1_367) }, noKey],
    ['has the exponent 1', { e: 'AQ' }, noKey],
    ['has an exponent that is too long', { e: 'AQAAAAAB' }, noKey],
    ['has an empty exponent', { e: '' }, noKey],
    ['has no exponent', { e: undefined }, noKey],
    ['has a modulus of 1024 bits', { n: `${'x'.repeat(170)}w` }, useless],
    ['has no modulus', { n: undefined }, useless],
  ])('by an RSA key that %s do not hold', async (_what, change, said) => {
    const spoiled = await startIssuer([{ ...(await publishedKey('RS256', 'RS256')), ...change } as JWK]);
    const { privateKey } = await pairFor('RS256');
    const jwt = await sign(claimsOf(spoiled.url), { alg: 'RS256', kid: 'RS256' }, privateKey);
    expect(await refusal(jwt)).toBe(said);
    await spoiled.close();
  });

  test('by a key that names no algorithm hold for the ones of its kind, and for no other', async () => {
    const { alg: _alg, ...key } = await publishedKey('RS256', 'any');
    const { alg: _other, ...point } = await publishedKey('ES256', 'point');
    const plain = await startIssuer([key, point]);
    const signed = async (alg: string, kid: string): Promise<string> =>
      sign(claimsOf(plain.url), { alg, kid }, (await pairFor(alg)).privateKey);
    for (const alg of ['RS256', 'RS512', 'PS256']) expect(await refusal(await signed(alg, 'any'))).toBe('taken');
    expect(await refusal(await signed('ES256', 'point'))).toBe('taken');
    for (const [alg, kid] of [
      ['ES256', 'any'],
      ['RS256', 'point'],
      ['ES384', 'point'],
      ['EdDSA', 'point'],
    ] as const) {
      expect(await refusal(await signed(alg, kid))).toBe(noKey);
    }
    await plain.close();
  });

  test('by another issuer do not speak for this one', async () => {
    const evil = await startIssuer([await publishedKey('ES256', 'ES256', 'evil')]);
    const { privateKey } = await pairFor('ES256', 'evil');
    expect(await refusal(await sign(claimsOf(issuer.url), { alg: 'ES256', kid: 'ES256' }, privateKey))).toBe(forged);
    // Nor if it says that it were this one.
    evil.configuration = { issuer: issuer.url };
    expect(await refusal(await sign(claimsOf(evil.url), { alg: 'ES256', kid: 'ES256' }, privateKey))).toBe(
      invalid(`issuer \`${evil.url}\` has a different issuer name in its configuration`),
    );
    await evil.close();
  });
});

describe('refused before anybody is asked', () => {
  let quiet: Issuer;
  beforeAll(async () => {
    quiet = await startIssuer([await publishedKey('ES256', 'ES256')]);
  });
  afterAll(() => quiet.close());

  /** The refusal of a token whose issuer must hear nothing. */
  async function unheard(
    claims: Record<string, unknown> | string,
    header: Record<string, unknown> = {},
  ): Promise<string> {
    const { privateKey } = await pairFor('ES256');
    const all = typeof claims === 'string' ? claims : { ...claimsOf(quiet.url), ...claims };
    const said = await refusal(await sign(all, { alg: 'ES256', kid: 'ES256', ...header }, privateKey));
    expect(quiet.requests).toEqual([]);
    return said;
  }

  const badIssuer = invalid('its `iss` is missing or not an http(s) URL without user, query and fragment');
  test.each([
    undefined,
    null,
    1,
    '',
    'accounts.google.com',
    'ftp://issuer.example',
    'javascript:alert(1)',
    'https://',
    'https://issuer.example?a=b',
    'https://issuer.example/#',
    'https://user@issuer.example',
    'https:\\\\issuer.example',
    'https://issuer.example\n',
    ' https://issuer.example',
    'https://іssuer.example',
    `https://issuer.example/${'a'.repeat(255)}`,
    ['https://issuer.example'],
    { toString: 'https://issuer.example' },
  ])('the issuer %j', async (iss) => {
    expect(await unheard({ iss })).toBe(badIssuer);
  });

  test.each([undefined, null, '', 1, [], ['client-1', 1], [['client-1']], [1], {}, 'a\nb', 'a'.repeat(256)])(
    'the audience %j',
    async (aud) => {
      expect(await unheard({ aud })).toBe(
        invalid('its `aud` must be a string of 1 to 255 characters, or a list of at most 64'),
      );
    },
  );

  test.each([['client-1'], 1, '', {}])('the authorized party %j', async (azp) => {
    expect(await unheard({ azp })).toBe(invalid('its `azp` must be a string of 1 to 255 characters'));
  });

  test('several audiences without an authorized party, or with one that is none of them', async () => {
    const aud = ['client-1', 'client-2'];
    expect(await unheard({ aud })).toBe(
      invalid('it has several `aud` and no `azp`: it must name the client it is for'),
    );
    expect(await unheard({ aud, azp: 'client-3' })).toBe(invalid('its `azp` is not one of its `aud`'));
  });

  test.each([undefined, null, '', 1, ['subject-1'], 'a\0b', 's'.repeat(256)])('the subject %j', async (sub) => {
    expect(await unheard({ sub })).toBe(invalid('its `sub` must be a string of 1 to 255 characters'));
  });

  const seconds = noon / 1_000;
  test.each([undefined, null, String(seconds + 600), -1, 9e15, 1e400, true, [seconds + 600]])(
    'the end %j',
    async (exp) => {
      // What JSON cannot say is written out: an exponent that is beyond every number.
      const claims = JSON.stringify({ ...claimsOf(quiet.url), exp }).replace(
        '"exp":null',
        exp === Infinity ? '"exp":1e400' : '"exp":null',
      );
      expect(await unheard(claims)).toBe(invalid('its `exp` is missing or not a number of seconds'));
    },
  );

  test('an end more than 30 seconds ago', async () => {
    expect(await unheard({ exp: seconds - 30 })).toBe(invalid('it has expired: log in at the provider again'));
    expect(await refusal(await token({ exp: seconds - 29 }))).toBe('taken');
  });

  test.each(['nbf', 'iat'])('a beginning (%s) more than 30 seconds ahead, or that is no time', async (name) => {
    expect(await unheard({ [name]: seconds + 31 })).toBe(
      invalid(`its \`${name}\` is in the future: check both clocks`),
    );
    expect(await unheard({ [name]: String(seconds) })).toBe(invalid(`its \`${name}\` is not a number of seconds`));
    expect(await refusal(await token({ [name]: seconds + 30 }))).toBe('taken');
    expect(await refusal(await token({ [name]: undefined }))).toBe('taken');
  });

  test('a login without its nonce', async () => {
    const { privateKey } = await pairFor('ES256');
    const jwt = await sign(claimsOf(quiet.url), { alg: 'ES256', kid: 'ES256' }, privateKey);
    expect(await refusalOf(verifierAt(clockAt(noon)).verify(jwt, login))).toContain('neither its `nonce`');
    expect(quiet.requests).toEqual([]);
  });

  test.each(['at+jwt', 'application/at+jwt', 'logout+jwt', 'secevent+jwt', 'dpop+jwt', 'JWS', 'JOSE', '', 1])(
    'the type %j',
    async (typ) => {
      expect(await unheard({}, { typ })).toBe(invalid('its `typ` is not `JWT`: send an ID token'));
    },
  );

  test('critical headers, known to us or not', async () => {
    const said = invalid('it has critical headers, which this server does not support');
    expect(await unheard({}, { crit: ['urn:planted'], 'urn:planted': true })).toBe(said);
    const header = encode({ alg: 'ES256', kid: 'ES256', crit: [] });
    expect(await refusal(`${header}.${encode(claimsOf(quiet.url))}.AAAA`)).toBe(said);
  });

  test('a key id that is no text', async () => {
    const header = encode({ alg: 'ES256', kid: ['ES256'] });
    expect(await refusal(`${header}.${encode(claimsOf(quiet.url))}.AAAA`)).toBe(invalid('its `kid` is not a string'));
  });

  test.each(['iss', 'aud', 'sub', 'exp', 'nonce'])('the claim `%s` twice', async (name) => {
    const claims = { nonce, ...claimsOf(quiet.url) };
    const value = JSON.stringify(claims[name as keyof typeof claims]);
    const said = invalid('its claims must be one JSON object in UTF-8 without duplicate members');
    const text = JSON.stringify(claims);
    expect(await unheard(text.replace(/\}$/, `,"${name}":${value}}`))).toBe(said);
    // Also when it is not spelled alike.
    const escaped = `\\u00${name.charCodeAt(0).toString(16)}${name.slice(1)}`;
    expect(await unheard(text.replace('{', `{"${escaped}":${value},`))).toBe(said);
  });

  test.each([
    '',
    '[]',
    'null',
    '"text"',
    '1',
    '{',
    '{"iss":',
    '\u{feff}{}',
    '{"__proto__":{}}',
    `${'{"a":'.repeat(40)}1${'}'.repeat(40)}`,
  ])('claims that are %j', async (claims) => {
    expect(await unheard(claims)).toContain('INVALID_OIDC_TOKEN: ');
  });

  test('a header that says something twice', async () => {
    const header = Buffer.from('{"alg":"ES256","kid":"ES256","alg":"none"}').toString('base64url');
    expect(await refusal(`${header}.${encode(claimsOf(quiet.url))}.AAAA`)).toBe(
      invalid('its header must be one JSON object in UTF-8 without duplicate members'),
    );
  });

  test('an encrypted token', async () => {
    const { publicKey: recipient } = await pairFor('RS256');
    const jwk = await exportJWK(recipient);
    const jwe = await new CompactEncrypt(Buffer.from(await token()))
      .setProtectedHeader({ alg: 'RSA-OAEP-256', enc: 'A256GCM' })
      .encrypt({ ...jwk, alg: 'RSA-OAEP-256' });
    expect(await refusal(jwe)).toBe(invalid('the token is encrypted: send a signed one'));
  });

  test('a token in another serialization, or no token', async () => {
    const { privateKey } = await pairFor('ES256');
    const flat = await new FlattenedSign(Buffer.from(JSON.stringify(claimsOf(quiet.url))))
      .setProtectedHeader({ alg: 'ES256', kid: 'ES256' })
      .sign(privateKey);
    const good = await token();
    const none = [
      JSON.stringify(flat),
      '',
      '.',
      '..',
      'abc',
      `${good}.`,
      `.${good}`,
      ` ${good}`,
      `${good}\n`,
      `${good}=`,
    ];
    const wrappedTwice = Buffer.from(Buffer.from(good).toString('base64')).toString('base64');
    for (const text of [...none, `Bearer ${good}`, good.replace('.', '%2E'), wrappedTwice]) {
      expect(await refusal(text)).toBe(
        invalid('the token is not a compact JWT: send header, claims and signature, separated by dots'),
      );
    }
  });
});

test('a refusal says nothing of the token beyond issuer and audience', async () => {
  const secrets = { sub: 'secret-subject', email: 'secret@example.com', jti: 'secret-id', nonce: 'secret-nonce' };
  const { privateKey } = await pairFor('ES256', 'evil');
  const forgeries = [
    await token({ ...secrets, exp: 1 }),
    await token({ ...secrets, aud: [] }),
    await token({ ...secrets, aud: ['client-1', 'client-2'], azp: 'secret-party' }),
    await token({ ...secrets, sub: ['secret'] }),
    await token(secrets, { kid: 'secret-kid' }),
    await token(secrets, { typ: 'secret+jwt' }),
    await token('{"secret":secret}'),
    await token('{"secret":1,"secret":2}'),
    await sign({ ...claimsOf(issuer.url), ...secrets }, { alg: 'ES256', kid: 'ES256' }, privateKey),
    `${encode({ alg: 'secret' })}.${encode(secrets)}.c2VjcmV0`,
    'secret.secret.secret',
  ];
  for (const jwt of forgeries) {
    const said = await refusal(jwt);
    expect(said).toMatch(/^INVALID_ARGUMENT INVALID_OIDC_TOKEN: /);
    expect(said).not.toContain('secret');
    for (const part of jwt.split('.')) expect(said).not.toContain(part || jwt);
  }
});

test('it has a category that clients can branch on', async () => {
  await expect(verify('')).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    category: 'INVALID_OIDC_TOKEN',
  });
});

describe('an issuer that an attacker chose', () => {
  const outside = guardedFetch({ allowPrivateNetwork: false });
  const verifyOutside = async (iss: string, fetch: GuardedFetch = outside): Promise<string> =>
    refusalOf(new OidcVerifier({ clock: clockAt(noon), fetch }).verify(await token({ iss }), 'registration'));

  test.each(['127.0.0.1', '2130706433', '0x7f.1', '[::1]', '[::ffff:127.0.0.1]', 'localhost', '169.254.169.254'])(
    'at https://%s is not asked',
    async (host) => {
      const connections = issuer.server.connections();
      const iss = `https://${host}:${issuer.server.port}`;
      expect(await verifyOutside(iss)).toMatch(
        /^(?:INVALID_ARGUMENT INVALID_OIDC_TOKEN: the keys of issuer `https:.*` cannot be read: host `[^`]*` resolves to an address that this server does not call|UNAVAILABLE the keys of issuer `https:.*` cannot be read at the moment: host `localhost` does not resolve to an address that this server calls): use a public one \(for development, the setting ALLOW_PRIVATE_NETWORK=true allows http and private addresses\)/,
      );
      expect(issuer.server.connections()).toBe(connections);
    },
  );

  test('over http is not asked', async () => {
    expect(await verifyOutside('http://issuer.example')).toBe(
      invalid(
        'the keys of issuer `http://issuer.example` cannot be read: `http:` is not allowed: use https (for development, ' +
          'the setting ALLOW_PRIVATE_NETWORK=true allows http and private addresses)',
      ),
    );
  });

  test.each([
    ['the metadata service', 'http://169.254.169.254/latest/meta-data/', 'resolves to an address'],
    ['a file', 'file:///etc/passwd', '`file:` is not allowed'],
    ['a host with a password', 'https://user:password@issuer.example', 'contains a user or password'],
    ['nowhere', 'jwks', 'not a URL'],
  ])('cannot have its keys at %s', async (_what, location, problem) => {
    const evil = await startIssuer();
    evil.configuration = { jwks_uri: location };
    const said = await verifyOutside(evil.url, loopback);
    expect(said).toMatch(/^INVALID_ARGUMENT INVALID_OIDC_TOKEN: /);
    expect(said).toContain(problem);
    expect(said).not.toContain('password@');
    await evil.close();
  });

  test('cannot lead anywhere else', async () => {
    const evil = await startIssuer();
    evil.status = 302;
    evil.headers = { location: `${issuer.url}/jwks` };
    const asked = issuer.requests.length;
    expect(await verifyOutside(evil.url, loopback)).toContain('redirects (302)');
    expect(issuer.requests).toHaveLength(asked);
    await evil.close();
  });

  test('that cannot be reached may be reached later', async () => {
    const gone = await startIssuer();
    await gone.close();
    expect(await verifyOutside(gone.url, loopback)).toBe(
      `UNAVAILABLE the keys of issuer \`${gone.url}\` cannot be read at the moment: host \`127.0.0.1\` cannot be reached (ECONNREFUSED); try again`,
    );
    const slow: GuardedFetch = () =>
      Promise.reject(new GuardedFetchError('time', 'host `slow.example` did not answer'));
    expect(await verifyOutside('https://slow.example', slow)).toMatch(/^UNAVAILABLE /);
  });
});

describe('an allow-list', () => {
  const listed = (issuers: readonly string[]): OidcVerifier =>
    new OidcVerifier({ clock: clockAt(noon), fetch: loopback, issuers });

  test('takes whom it names', async () => {
    const verifier = listed(['https://accounts.google.com', issuer.url]);
    expect(await verifier.verify(await token(), 'registration')).toMatchObject({ issuer: issuer.url });
  });

  test('takes nobody else, and asks nobody', async () => {
    const asked = issuer.requests.length;
    const nearly = [
      `${issuer.url}/`,
      issuer.url.replace('http:', 'https:'),
      issuer.url.slice(0, -1),
      issuer.url.toUpperCase(),
    ];
    for (const name of nearly) {
      expect(await refusalOf(listed([name]).verify(await token(), 'registration'))).toBe(
        invalid(`issuer \`${issuer.url}\` is not one that this server accepts tokens from`),
      );
    }
    expect(issuer.requests).toHaveLength(asked);
  });
});

test('an issuer of our own is known without a request, whatever the list says', async () => {
  const key = { ...(await publishedKey('ES256', 'ours')), kty: 'EC' };
  const verifier = new OidcVerifier({
    clock: clockAt(noon),
    fetch: () => Promise.reject(new Error('asked')),
    issuers: ['https://accounts.google.com'],
    own: { issuer: 'https://countersign.example', keys: () => [key] },
  });
  const { privateKey } = await pairFor('ES256');
  const ours = (kid: string): Promise<string> =>
    sign({ ...claimsOf('https://countersign.example'), nonce }, { alg: 'ES256', kid }, privateKey);
  expect(await verifier.verify(await ours('ours'), login)).toMatchObject({ issuer: 'https://countersign.example' });
  expect(await refusalOf(verifier.verify(await ours('theirs'), login))).toContain('no key');
});
