import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import type { ApiKeyScheme, ApiKeyStamp } from '../../src/stamps/stamp.js';
import type { KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { ed25519 } from '@noble/curves/ed25519.js';
import { p256 } from '@noble/curves/nist.js';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import fc from 'fast-check';
import { thisThread } from '../../src/fairness/turns.js';
import { normalizePublicKey } from '../../src/stamps/keys.js';
import { generateApiKeyPair, stampBody } from '../../src/stamps/sign.js';
import { verifySignature } from '../../src/stamps/signatures.js';
import { CURVE_OF_SCHEME, readStamp, verifyApiKeyStamp } from '../../src/stamps/verify.js';
import { refusedWith } from './refused-with.js';

function vectors<Content>(path: string): Content {
  return JSON.parse(readFileSync(new URL(`../vectors/${path}`, import.meta.url), 'utf8')) as Content;
}

/** Whether a signature verifies; a refusal that is not UNAUTHENTICATED SIGNATURE_INVALID fails the test. */
async function verifies(stamp: Omit<ApiKeyStamp, 'kind'>, body: Uint8Array): Promise<boolean> {
  try {
    await verifyApiKeyStamp({ kind: 'api-key', ...stamp }, body);
    return true;
  } catch (error) {
    expect(() => {
      throw error;
    }).toThrow(refusedWith('UNAUTHENTICATED', /^could not verify api key signature: /, 'SIGNATURE_INVALID'));
    return false;
  }
}

interface WycheproofFile {
  numberOfTests: number;
  testGroups: {
    publicKey: { uncompressed: string; pk: string };
    tests: { tcId: number; msg: string; sig: string; result: 'valid' | 'invalid' }[];
  }[];
}

describe('Wycheproof', () => {
  test.each([
    ['ecdsa_secp256r1_sha256_test', 'SIGNATURE_SCHEME_TK_API_P256', 484],
    ['ecdsa_secp256k1_sha256_test', 'SIGNATURE_SCHEME_TK_API_SECP256K1', 476],
    ['ed25519_test', 'SIGNATURE_SCHEME_TK_API_ED25519', 151],
  ] as const)('vectors come out: %s', async (file, scheme, count) => {
    const { testGroups } = vectors<WycheproofFile>(`wycheproof/${file}.json`);
    const wrong: number[] = [];
    let checked = 0;
    for (const { publicKey, tests } of testGroups) {
      const key = normalizePublicKey(publicKey.uncompressed ?? publicKey.pk, CURVE_OF_SCHEME[scheme]);
      for (const { tcId, msg, sig, result } of tests) {
        const isValid = await verifies({ scheme, publicKey: key, signature: sig }, Buffer.from(msg, 'hex'));
        if (isValid !== (result === 'valid')) wrong.push(tcId);
        checked += 1;
      }
    }
    expect(wrong).toEqual([]);
    expect(checked).toBe(count);
  });
});

describe('Ed25519 edge cases: the rule set of ed25519-dalek `verify_strict`', () => {
  const scheme = 'SIGNATURE_SCHEME_TK_API_ED25519';

  test('CCTV: no small order, nothing non-canonical, the equation without cofactor', async () => {
    const cases = vectors<{ number: number; key: string; sig: string; msg: string; flags: string[] | null }[]>(
      'ed25519/cctv_ed25519vectors.json',
    );
    const refusing = ['low_order_A', 'low_order_R', 'non_canonical_A', 'non_canonical_R', 'low_order_residue'];
    const wrong: number[] = [];
    let accepted = 0;
    for (const { number, key, sig, msg, flags } of cases) {
      const expected = !(flags ?? []).some((flag) => refusing.includes(flag));
      const isValid = await verifies({ scheme, publicKey: key, signature: sig }, Buffer.from(msg));
      if (isValid !== expected) wrong.push(number);
      if (isValid) accepted += 1;
    }
    expect(wrong).toEqual([]);
    expect(cases.length).toBe(914);
    // Mixed-order points that fit the cofactorless equation must still verify, else the rule would be "refuse all".
    expect(accepted).toBeGreaterThan(0);
  });

  test('speccheck: only case 3 (mixed order, both equations hold) is accepted', async () => {
    const cases = vectors<{ message: string; pub_key: string; signature: string }[]>('ed25519/speccheck_cases.json');
    const results = await Promise.all(
      cases.map(({ message, pub_key, signature }) =>
        verifies({ scheme, publicKey: pub_key, signature }, Buffer.from(message, 'hex')),
      ),
    );
    expect(results.map((isValid, index) => (isValid ? index : -1)).filter((index) => index >= 0)).toEqual([3]);
  });
});

describe('node:crypto and noble agree', () => {
  const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
  const body = fc.uint8Array({ maxLength: 200 });
  const ecdsa = [
    ['SIGNATURE_SCHEME_TK_API_P256', p256, 'P-256'],
    ['SIGNATURE_SCHEME_TK_API_SECP256K1', secp256k1, 'secp256k1'],
  ] as const;

  test.each(ecdsa)('%s: noble signs, both s verify, another body does not', async (scheme, curve) => {
    await fc.assert(
      fc.asyncProperty(bytes(48), body, body, async (seed, message, other) => {
        const secret = curve.utils.randomSecretKey(seed);
        const publicKey = Buffer.from(curve.getPublicKey(secret)).toString('hex');
        const low = curve.Signature.fromBytes(curve.sign(message, secret, { format: 'der', lowS: true }), 'der');
        const high = new curve.Signature(low.r, curve.Point.Fn.ORDER - low.s);
        expect(low.hasHighS()).toBe(false);
        expect(high.hasHighS()).toBe(true);
        for (const signature of [low.toHex('der'), high.toHex('der')]) {
          expect(await verifies({ scheme, publicKey, signature }, message)).toBe(true);
          const isSame = Buffer.from(message).equals(other);
          expect(await verifies({ scheme, publicKey, signature }, other)).toBe(isSame);
        }
      }),
      { numRuns: 25 },
    );
  });

  test.each(ecdsa)('%s: node:crypto signs, whatever its s', async (scheme, curve, namedCurve) => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve });
    const { x = '', y = '' } = publicKey.export({ format: 'jwk' });
    const uncompressed = `04${Buffer.from(x, 'base64url').toString('hex')}${Buffer.from(y, 'base64url').toString('hex')}`;
    const key = normalizePublicKey(uncompressed, CURVE_OF_SCHEME[scheme]);
    let high = 0;
    for (let index = 0; index < 40; index++) {
      const message = Buffer.from(`body ${index}`);
      const signature = sign('sha256', message, privateKey);
      if (curve.Signature.fromBytes(signature, 'der').hasHighS()) high += 1;
      expect(await verifies({ scheme, publicKey: key, signature: signature.toString('hex') }, message)).toBe(true);
    }
    expect(high).toBeGreaterThan(0);
  });

  test('EIP-191: noble over an independently made digest, both s', async () => {
    const scheme = 'SIGNATURE_SCHEME_TK_API_SECP256K1_EIP191';
    await fc.assert(
      fc.asyncProperty(bytes(48), body, async (seed, message) => {
        const secret = secp256k1.utils.randomSecretKey(seed);
        const publicKey = Buffer.from(secp256k1.getPublicKey(secret)).toString('hex');
        const prefix = Buffer.from(`\u0019Ethereum Signed Message:\n${message.length}`);
        const digest = keccak_256(Buffer.concat([prefix, message]));
        const der = secp256k1.sign(digest, secret, { format: 'der', prehash: false });
        const low = secp256k1.Signature.fromBytes(der, 'der');
        const high = new secp256k1.Signature(low.r, secp256k1.Point.Fn.ORDER - low.s);
        for (const signature of [low.toHex('der'), high.toHex('der')]) {
          expect(await verifies({ scheme, publicKey, signature }, message)).toBe(true);
          // The plain scheme has another digest: a signature must not be usable under both.
          const plain = { scheme: 'SIGNATURE_SCHEME_TK_API_SECP256K1', publicKey, signature } as const;
          expect(await verifies(plain, message)).toBe(false);
        }
      }),
      { numRuns: 15 },
    );
  });

  test('Ed25519: noble signs; S + L, which is the same scalar, is refused', async () => {
    const scheme = 'SIGNATURE_SCHEME_TK_API_ED25519';
    await fc.assert(
      fc.asyncProperty(bytes(32), body, async (secret, message) => {
        const publicKey = Buffer.from(ed25519.getPublicKey(secret)).toString('hex');
        const signature = Buffer.from(ed25519.sign(message, secret));
        expect(await verifies({ scheme, publicKey, signature: signature.toString('hex') }, message)).toBe(true);
        const scalar = BigInt(`0x${Buffer.from(signature.subarray(32)).reverse().toString('hex')}`);
        const grown = (scalar + ed25519.Point.Fn.ORDER).toString(16).padStart(64, '0');
        const twin = signature.toString('hex', 0, 32) + Buffer.from(grown, 'hex').reverse().toString('hex');
        const stamp = { kind: 'api-key', scheme, publicKey, signature: twin } as const;
        await expect(verifyApiKeyStamp(stamp, message)).rejects.toThrow(
          'the scalar S of the Ed25519 signature is not reduced',
        );
      }),
      { numRuns: 25 },
    );
  });
});

describe('encodings of an ECDSA signature that are refused by name', () => {
  const body = Buffer.from('{}');
  const key = generateApiKeyPair((length) => new Uint8Array(length).fill(7));
  const order = p256.Point.Fn.ORDER;
  const { r, s } = p256.Signature.fromBytes(p256.sign(body, Buffer.from(key.privateKey, 'hex')), 'compact');
  const integer = (value: bigint, prefix = ''): string => {
    const hex = value.toString(16);
    const even = hex.length % 2 === 0 ? hex : `0${hex}`;
    const signed = prefix + (Number.parseInt(even.slice(0, 2), 16) >= 0x80 ? `00${even}` : even);
    return `02${(signed.length / 2).toString(16).padStart(2, '0')}${signed}`;
  };
  const sequence = (content: string, length = (content.length / 2).toString(16).padStart(2, '0')): string =>
    `30${length}${content}`;
  const good = sequence(integer(r) + integer(s));
  const contentLength = good.slice(2, 4);

  test('the untouched one verifies', async () => {
    expect(
      await verifies({ scheme: 'SIGNATURE_SCHEME_TK_API_P256', publicKey: key.publicKey, signature: good }, body),
    ).toBe(true);
  });

  test.each([
    ['empty', '', 'the signature is not hex'],
    ['odd hex', good.slice(1), 'the signature is not hex'],
    ['bytes after it', `${good}00`, 'there are 1 bytes after the DER sequence'],
    ['BER long form length', sequence(good.slice(4), `81${contentLength}`), 'short definite length'],
    ['BER indefinite length', `3080${good.slice(4)}0000`, 'short definite length'],
    ['truncated', good.slice(0, -2), 'the DER sequence is longer than the signature'],
    ['not a sequence', `31${good.slice(2)}`, 'the DER sequence is missing or has the wrong tag'],
    ['one integer', sequence(integer(r)), 'the DER integer s is missing'],
    ['three integers', sequence(integer(r) + integer(s) + integer(1n)), 'more than two integers'],
    ['s is a bit string', sequence(integer(r) + integer(s).replace(/^02/, '03')), 'the DER integer s is missing'],
    ['padded r', sequence(integer(r, '00') + integer(s)), 'r has an unnecessary leading zero'],
    ['padded s', sequence(integer(r) + integer(s, '00')), 's has an unnecessary leading zero'],
    ['negative r', sequence(`0220${'ff'.repeat(32)}${integer(s)}`), 'r is negative'],
    ['empty r', sequence(`0200${integer(s)}`), 'r is empty'],
    ['r = 0', sequence(integer(0n) + integer(s)), 'r is zero'],
    ['s = 0', sequence(integer(r) + integer(0n)), 's is zero'],
    ['r = n', sequence(integer(order) + integer(s)), 'r is not below the order'],
    ['s = n', sequence(integer(r) + integer(order)), 's is not below the order'],
    ['s + n', sequence(integer(r) + integer(s + order)), 's is not below the order'],
    ['r of 40 bytes', sequence(integer(1n << 319n) + integer(s)), 'r is not below the order'],
    ['raw r ‖ s', r.toString(16).padStart(64, '0') + s.toString(16).padStart(64, '0'), 'the DER'],
  ])('%s', async (_, signature, reason) => {
    const stamp = {
      kind: 'api-key',
      scheme: 'SIGNATURE_SCHEME_TK_API_P256',
      publicKey: key.publicKey,
      signature,
    } as const;
    await expect(verifyApiKeyStamp(stamp, body)).rejects.toThrow(
      refusedWith('UNAUTHENTICATED', reason, 'SIGNATURE_INVALID'),
    );
  });
});

test('a stamp holds for its body, key and scheme only', async () => {
  const body = Buffer.from('{"timestampMs":"1"}');
  for (const scheme of Object.keys(CURVE_OF_SCHEME) as ApiKeyScheme[]) {
    const random = (fill: number) => (length: number) => new Uint8Array(length).fill(fill);
    const key = generateApiKeyPair(random(1), CURVE_OF_SCHEME[scheme]);
    const other = generateApiKeyPair(random(2), CURVE_OF_SCHEME[scheme]);
    const stamp = readStamp({ 'x-stamp': stampBody(body, key, scheme).headerValue });
    if (stamp.kind !== 'api-key') throw new Error('an API key stamp was read as something else');
    expect(await verifies(stamp, body)).toBe(true);
    expect(await verifies(stamp, Buffer.concat([body, Buffer.from('\n')]))).toBe(false);
    expect(await verifies({ ...stamp, publicKey: other.publicKey }, body)).toBe(false);
    for (const wrong of Object.keys(CURVE_OF_SCHEME) as ApiKeyScheme[]) {
      if (wrong !== scheme) expect(await verifies({ ...stamp, scheme: wrong }, body)).toBe(false);
    }
  }
});

describe('verifySignature', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const messages = Array.from({ length: 50 }, (_, index) => createHash('sha256').update(String(index)).digest());
  const signatures = messages.map((message) => sign('sha256', message, privateKey));

  test('many at once each get their own result', async () => {
    const answers = await Promise.all(
      messages.map((message, index) =>
        verifySignature('sha256', message, publicKey, signatures[index % 2 === 0 ? index : index - 1] ?? message),
      ),
    );
    expect(answers).toEqual(messages.map((_, index) => index % 2 === 0));
  });

  test('alone it answers before the event loop turns; beside others it leaves the thread', async () => {
    await new Promise((resolve) => setImmediate(resolve));
    const order: string[] = [];
    const run = async (name: string, key: KeyObject): Promise<void> => {
      await verifySignature('sha256', messages[0] ?? Buffer.alloc(0), key, signatures[0] ?? Buffer.alloc(0));
      order.push(name);
    };
    const all = Promise.all([run('alone', publicKey), run('beside', publicKey)]);
    await Promise.resolve().then(() => Promise.resolve());
    await Promise.resolve();
    expect(order).toEqual(['alone']);
    await all;
    expect(order).toEqual(['alone', 'beside']);
  });
});

test('verifications that wait take turns: one of another caller does not wait for a hundred of the first', async () => {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const data = Buffer.alloc(60_000);
  const signature = sign('sha256', data, privateKey);
  const order: string[] = [];
  const verify = async (who: string) => {
    expect(await verifySignature('sha256', data, publicKey, signature, [who])).toBe(true);
    order.push(who);
  };
  await Promise.all([...Array.from({ length: 100 }, () => verify('one')), verify('another')]);
  expect(order).toHaveLength(101);
  expect(order.indexOf('another')).toBeLessThan(30);
});

test('long data is verified at once, beside others too: to copy it would take longer', async () => {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const order: string[] = [];
  const verify = async (what: string, length: number) => {
    const data = Buffer.alloc(length);
    expect(await verifySignature('sha256', data, publicKey, sign('sha256', data, privateKey))).toBe(true);
    order.push(what);
  };
  await Promise.all([verify('alone', 1), verify('short', 60_000), verify('long', 70_000)]);
  expect(order).toEqual(['alone', 'long', 'short']);
});

test('the Keccak of a long body gives others their turn at each quarter of a megabyte', async () => {
  const key = generateApiKeyPair((length) => new Uint8Array(length).fill(7), 'API_KEY_CURVE_SECP256K1');
  const message = Buffer.alloc(2 ** 20, 'x');
  const { headerValue } = stampBody(message.toString(), key, 'SIGNATURE_SCHEME_TK_API_SECP256K1_EIP191');
  const stamp = readStamp({ 'x-stamp': headerValue });
  let [turns, isOver] = [0, false];
  // Somebody who always waits for a turn.
  const other = async () => {
    for (; !isOver; turns++) await thisThread.next(['other'], { alone: true });
  };
  const running = other();
  await verifyApiKeyStamp(stamp as ApiKeyStamp, message, '192.0.2.1');
  isOver = true;
  await running;
  expect(turns).toBeGreaterThanOrEqual(4);
});
