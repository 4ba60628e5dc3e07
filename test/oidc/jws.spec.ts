import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { JWK } from 'jose';
import { CoordinatorError } from '../../src/domain/errors.js';
import { checkSignature, claimsOf, readJws } from '../../src/oidc/jws.js';
import { algorithms, isKeyFor, signingKeysOf } from '../../src/oidc/signing-keys.js';

const vectors = (name: string): unknown =>
  JSON.parse(readFileSync(fileURLToPath(new URL(`../vectors/${name}`, import.meta.url)), 'utf8'));

interface Wycheproof {
  readonly testGroups: readonly {
    readonly comment: string;
    readonly public?: Readonly<Record<string, unknown>>;
    readonly private?: Readonly<Record<string, unknown>>;
    readonly tests: readonly {
      readonly tcId: number;
      readonly comment: string;
      readonly jws: unknown;
      readonly result: 'valid' | 'invalid';
    }[];
  }[];
}

/** What stands against a token under the keys that an issuer publishes, chosen as for an ID token; nothing if it holds. */
async function problemOf(token: string, published: readonly unknown[]): Promise<string | undefined> {
  try {
    const jws = readJws(token);
    const keys = signingKeysOf(published).filter((key) => isKeyFor(key, jws.algorithm, jws.keyId));
    await checkSignature(jws, keys);
    return undefined;
  } catch (error) {
    if (error instanceof CoordinatorError && error.code === 'INVALID_ARGUMENT') return error.message;
    throw error;
  }
}

/** How many cases Wycheproof and we judge alike, and what we say of the others. */
async function compare(file: string) {
  let alike = 0;
  const apart: Record<string, string> = {};
  for (const group of (vectors(file) as Wycheproof).testGroups) {
    const keys = group.public ?? group.private!;
    const published = Array.isArray(keys['keys']) ? (keys['keys'] as unknown[]) : [keys];
    for (const { tcId, comment, jws, result } of group.tests) {
      const problem = await problemOf(typeof jws === 'string' ? jws : JSON.stringify(jws), published);
      if ((problem === undefined) === (result === 'valid')) alike++;
      else apart[`${tcId} ${group.comment} ${comment}`] = problem?.replace('INVALID_OIDC_TOKEN: ', '') ?? 'taken';
    }
  }
  return { alike, apart };
}

const notOurs = `its \`alg\` is not one of ${algorithms.join(', ')}`;
const notCompact = 'the token is not a compact JWT: send header, claims and signature, separated by dots';
const noKey = 'its issuer has no key for its `kid` and `alg`';

test('signatures: Wycheproof, but for algorithms that nobody signs ID tokens with', async () => {
  const { alike, apart } = await compare('wycheproof/json_web_signature_test.json');
  expect(apart).toEqual({
    // Whoever can check such a signature can make it.
    '1 hs256 acceptsValid': notOurs,
    '348 rfc7520 Figure35': notOurs,
    '352 rfc7520 Figure35': notOurs,
    '357 base64 ValidMac': notOurs,
    '358 base64 ValidEdgeCaseMac': notOurs,
    '359 base64 ValidEdgeCaseMac': notOurs,
    '376 base64 ValidSpacesInJsonHeader': notOurs,
    '377 base64 ValidWhiteSpaceInJsonHeader': notOurs,
    // Characters between those of base64url; RFC 7515, section 2, has none.
    '372 base64 InvalidCharacterInsertedInHeader': notCompact,
    '373 base64 InvalidCharacterInsertedInPayload': notCompact,
    // The keys are for an `alg` that does not exist, `ES521`.
    '347 rfc7520 Figure27': noKey,
    '351 rfc7520WithKeyOps Figure27': noKey,
    // The key is for PS256, the token says PS384.
    '346 rfc7520 Figure20': noKey,
    '350 rfc7520WithKeyOps Figure20': noKey,
  });
  expect(alike).toBe(387);
});

test('reads keys as Wycheproof’s tests want them, except symmetric ones', async () => {
  const { alike, apart } = await compare('wycheproof/json_web_key_test.json');
  expect(apart).toEqual({
    '2 jws_keyset acceptsValid': notOurs,
    '13 HS256 long_key': notOurs,
    '14 HS384 long_key': notOurs,
    '15 HS512 long_key': notOurs,
    // The weak keys of one maker's smart cards are not looked for: an issuer that signs with one harms only its own users.
    '7 jws_rsa_roca_key rejectsKeyWithRocaVulnerability': 'taken',
  });
  expect(alike).toBe(21);
});

describe('the JOSE cookbook', () => {
  interface Example {
    readonly input: { readonly key: JWK };
    readonly output: { readonly compact: string };
  }
  const examples = new Map(
    (vectors('jose/cookbook_ec_ed25519.json') as { file: string; data: unknown }[]).map(({ file, data }) => [
      file,
      data,
    ]),
  );
  const ed25519 = examples.get('curve25519/jws.json') as Example;
  const es512 = examples.get('jws/4_3.ecdsa_signature.json') as Example;
  const publicPart = ({ d: _d, ...key }: JWK): JWK => key;

  test('Ed25519 (RFC 8037): its signature holds, and its payload is no claims', async () => {
    expect(await problemOf(ed25519.output.compact, [publicPart(ed25519.input.key)])).toBeUndefined();
    expect(() => claimsOf(readJws(ed25519.output.compact))).toThrow('its claims must be one JSON object');
  });

  test('Ed25519: not with a bit of the signature turned, and not with another key', async () => {
    const { compact } = ed25519.output;
    const turned = compact.replace(/hg(?=[\w-]*$)/, 'hQ');
    expect(turned).not.toBe(compact);
    expect(await problemOf(turned, [publicPart(ed25519.input.key)])).toContain("not made with its issuer's key");
    const other = { ...publicPart(ed25519.input.key), x: 'PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw' };
    expect(await problemOf(compact, [other])).toContain("not made with its issuer's key");
  });

  test('Ed25519: a key that is published with its private part is nobody’s any more', async () => {
    expect(await problemOf(ed25519.output.compact, [ed25519.input.key])).toContain('no key');
  });

  test('ES512', async () => {
    const key = examples.get('jwk/3_1.ec_public_key.json');
    expect(await problemOf(es512.output.compact, [publicPart(key as JWK)])).toBeUndefined();
  });
});
