import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import type { WebAuthnStamp } from '../../src/stamps/stamp.js';
import { p256 } from '@noble/curves/nist.js';
import { readStamp } from '../../src/stamps/verify.js';
import {
  checkWebAuthnChallenge,
  isBackupEligible,
  isStaleCounter,
  verifyWebAuthnStamp,
} from '../../src/stamps/webauthn.js';
import type { OriginOptions, RegisteredAuthenticator } from '../../src/stamps/webauthn.js';
import { refusedWith } from './refused-with.js';
import { cborMap, SoftwareAuthenticator } from './software-authenticator.js';
import type { AssertOptions } from './software-authenticator.js';

const body = '{"organizationId":"…"}';
const passkey = new SoftwareAuthenticator({ rpId: 'example.com', origin: 'https://wallet.example.com' });
const other = new SoftwareAuthenticator({ rpId: 'example.com' });

function registered(authenticator: SoftwareAuthenticator): RegisteredAuthenticator {
  const { credentialId, publicKey, rpIdHash } = authenticator;
  return { credentialId, publicKey, rpIdHash };
}

function read(header: string): WebAuthnStamp {
  const stamp = readStamp({ 'x-stamp-webauthn': header });
  if (stamp.kind !== 'webauthn') throw new Error('a passkey stamp was read as something else');
  return stamp;
}

async function verify(
  header: string,
  {
    known = registered(passkey),
    options = {},
    sent = body,
  }: { known?: RegisteredAuthenticator; options?: OriginOptions; sent?: string } = {},
): Promise<{ signCount: number; userVerified: boolean }> {
  return verifyWebAuthnStamp(read(header), Buffer.from(sent), known, options);
}

const refusal = (reason: string | RegExp): Error => {
  const source = typeof reason === 'string' ? reason.replace(/[.*+?^${}()|[\]\\]/g, '\\$&') : reason.source;
  return refusedWith(
    'UNAUTHENTICATED',
    new RegExp(`^could not verify WebAuthN signature: ${source}`),
    'SIGNATURE_INVALID',
  );
};

describe.each(['ES256', 'EdDSA'] as const)('an honest %s passkey', (algorithm) => {
  const authenticator = new SoftwareAuthenticator({ algorithm });
  const known = registered(authenticator);

  test('verifies, over these bytes only', async () => {
    const header = authenticator.assert({ body });
    await expect(verify(header, { known })).resolves.toEqual({ signCount: 0, userVerified: true });
    await expect(verify(header, { known, sent: `${body} ` })).rejects.toThrow(/challenge is/);
  });

  test('need not verify its user, nor be synchronised', async () => {
    const header = authenticator.assert({ body, userVerified: false, backupEligible: false, backupState: false });
    await expect(verify(header, { known })).resolves.toEqual({ signCount: 0, userVerified: false });
  });

  test('does not verify under the key of another', async () => {
    const stranger = new SoftwareAuthenticator({ algorithm });
    await expect(verify(authenticator.assert({ body, signWith: stranger }), { known })).rejects.toThrow(
      refusal('the signature was not made by this passkey'),
    );
  });
});

test('an RS256 passkey verifies; another signature does not', async () => {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const { n = '', e = '' } = publicKey.export({ format: 'jwk' });
  const key = cborMap([1, 3], [3, -257], [-1, Buffer.from(n, 'base64url')], [-2, Buffer.from(e, 'base64url')]);
  const known = { ...registered(passkey), publicKey: key.toString('base64url') };
  const unsigned = read(passkey.assert({ body }));
  const clientDataHash = createHash('sha256').update(Buffer.from(unsigned.clientDataJson, 'base64url')).digest();
  const signed = Buffer.concat([Buffer.from(unsigned.authenticatorData, 'base64url'), clientDataHash]);
  const stamp = { ...unsigned, signature: sign('sha256', signed, privateKey).toString('base64url') };
  await expect(verifyWebAuthnStamp(stamp, Buffer.from(body), known, {})).resolves.toMatchObject({ signCount: 0 });
  const forged = { ...stamp, signature: sign('sha256', clientDataHash, privateKey).toString('base64url') };
  await expect(verifyWebAuthnStamp(forged, Buffer.from(body), known, {})).rejects.toThrow(
    refusal('the signature was not'),
  );
});

describe('every forged field is refused by its own name', () => {
  const hash = (rpId: string): string => createHash('sha256').update(rpId).digest('hex');
  const forgeries: readonly [string, Omit<AssertOptions, 'body'>, string | RegExp][] = [
    [
      'type of a registration',
      { clientData: { type: 'webauthn.create' } },
      'type is `webauthn.create`, but must be `webauthn.get` in an assertion',
    ],
    ['type missing', { clientData: { type: undefined } }, 'clientDataJson has no string member type'],
    [
      'challenge of another body',
      { clientData: { challenge: 'AAAA' } },
      'challenge is `AAAA`, but must be base64url of the SHA-256',
    ],
    [
      'challenge as raw hash',
      { clientData: { challenge: createHash('sha256').update(body).digest('base64url') } },
      'challenge is',
    ],
    [
      'challenge as hex, not encoded',
      { clientData: { challenge: createHash('sha256').update(body).digest('hex') } },
      'challenge is',
    ],
    [
      'challenge in upper case hex',
      {
        clientData: {
          challenge: Buffer.from(createHash('sha256').update(body).digest('hex').toUpperCase()).toString('base64url'),
        },
      },
      'challenge is',
    ],
    ['challenge a number', { clientData: { challenge: 5 } }, 'clientDataJson has no string member challenge'],
    ['client data not JSON', { clientDataText: 'x' }, 'clientDataJson is not JSON in UTF-8'],
    ['client data after a byte order mark', { clientDataText: '\uFEFF{}' }, 'clientDataJson is not JSON in UTF-8'],
    ['client data an array', { clientDataText: '[]' }, 'clientDataJson has no string member type'],
    ['client data null', { clientDataText: 'null' }, 'clientDataJson is not a JSON object'],
    [
      'origin of another site',
      { origin: 'https://evil.com' },
      /rpIdHash `.*` is the hash of neither the host of origin `https:\/\/evil\.com`/,
    ],
    ['origin with the name as prefix', { origin: 'https://example.com.evil.com' }, 'rpIdHash'],
    ['origin with the name as suffix', { origin: 'https://notexample.com' }, 'rpIdHash'],
    ['origin http', { origin: 'http://wallet.example.com' }, 'origin `http://wallet.example.com` is not https'],
    [
      'origin with a path',
      { origin: 'https://wallet.example.com/' },
      'origin `https://wallet.example.com/` is not a web origin',
    ],
    [
      'origin in capitals',
      { origin: 'https://WALLET.example.com' },
      'origin `https://WALLET.example.com` is not a web origin',
    ],
    [
      'origin with default port',
      { origin: 'https://wallet.example.com:443' },
      'origin `https://wallet.example.com:443` is not',
    ],
    ['origin null', { origin: 'null' }, 'origin `null` is not a web origin'],
    ['origin of a file', { origin: 'file://wallet.example.com' }, 'origin `file://wallet.example.com` is not'],
    [
      'origin of something like an app',
      { origin: 'android:apk-key-hash:' },
      'origin `android:apk-key-hash:` is not a web origin',
    ],
    ['in an iframe of another site', { clientData: { crossOrigin: true } }, 'crossOrigin is `true`'],
    ['crossOrigin not a boolean', { clientData: { crossOrigin: 'false' } }, 'crossOrigin is `false`'],
    ['crossOrigin an object', { clientData: { crossOrigin: { toString: 1 } } }, 'crossOrigin is of type object'],
    ['topOrigin', { clientData: { topOrigin: 'https://evil.com' } }, 'topOrigin is `https://evil.com`'],
    ['RP id of a parent domain', { rpId: 'com' }, 'rpIdHash'],
    [
      'RP id of the full host',
      { rpId: 'wallet.example.com' },
      `rpIdHash is \`${hash('wallet.example.com')}\`, but the passkey was registered for \`${hash('example.com')}\``,
    ],
    ['user not present', { userPresent: false }, 'the user present flag is not set'],
    [
      'backed up but not eligible',
      { backupEligible: false, backupState: true },
      'the flags say that the passkey is backed up but not eligible',
    ],
    ['unannounced bytes', { extraAuthenticatorData: Buffer.from([0xa0]) }, 'authenticatorData has 1 more bytes'],
    ['another credential', { credentialId: other.credentialId }, `credential id is \`${other.credentialId}\``],
    ['signed by another key', { signWith: other }, 'the signature was not made by this passkey'],
    ['signature over nothing', { stamp: { signature: other.credentialId } }, 'the DER sequence'],
    [
      'bytes after the signature',
      { tamperSignature: (signature) => Buffer.concat([signature, Buffer.from([0])]) },
      'there are 1 bytes after the DER sequence',
    ],
    [
      'short authenticator data',
      { stamp: { authenticatorData: Buffer.alloc(36).toString('base64url') } },
      'authenticatorData is 36 bytes long',
    ],
  ];

  test.each(forgeries)('%s', async (_, forgery, reason) => {
    await expect(verify(passkey.assert({ body, ...forgery }))).rejects.toThrow(refusal(reason));
  });

  test('changed after signing: the counter, the flags, the client data', async () => {
    const known = registered(passkey);
    const honest = read(passkey.assert({ body, signCount: 1 }));
    const later = read(passkey.assert({ body, signCount: 2 }));
    const spaced = Buffer.concat([Buffer.from(honest.clientDataJson, 'base64url'), Buffer.from(' ')]);
    for (const forged of [
      { ...honest, authenticatorData: later.authenticatorData },
      {
        ...honest,
        authenticatorData: read(passkey.assert({ body, signCount: 1, userVerified: false })).authenticatorData,
      },
      { ...honest, clientDataJson: spaced.toString('base64url') },
    ]) {
      await expect(verifyWebAuthnStamp(forged, Buffer.from(body), known, {})).rejects.toThrow(
        refusal('the signature was not made by this passkey'),
      );
    }
  });
});

test('the (r, n - s) twin of a signature verifies too', async () => {
  const tamperSignature = (signature: Buffer): Uint8Array => {
    const { r, s } = p256.Signature.fromBytes(signature, 'der');
    return new p256.Signature(r, p256.Point.Fn.ORDER - s).toBytes('der');
  };
  await expect(verify(passkey.assert({ body, tamperSignature }))).resolves.toMatchObject({ signCount: 0 });
});

test('a stored key that cannot be used is named as the reason', async () => {
  const known = { ...registered(passkey), publicKey: 'AAAA' };
  await expect(verify(passkey.assert({ body }), { known })).rejects.toThrow(refusal('the stored key cannot be used'));
});

describe('a stamp may have', () => {
  test('members that browsers add to the client data', async () => {
    const clientData = { other_keys_can_be_added_here: 'do not compare', crossOrigin: undefined };
    await expect(verify(passkey.assert({ body, clientData }))).resolves.toMatchObject({ signCount: 0 });
  });

  test('the challenge encoded once more by the platform', async () => {
    await expect(verify(passkey.assert({ body, doublyEncodedChallenge: true }))).resolves.toMatchObject({
      signCount: 0,
    });
    await expect(verify(passkey.assert({ body, doublyEncodedChallenge: true }), { sent: '{}' })).rejects.toThrow(
      refusal('challenge is'),
    );
  });

  test('extension data that the flags announce', async () => {
    const extensionData = cborMap(['credProtect', 2]);
    await expect(verify(passkey.assert({ body, extensionData }))).resolves.toMatchObject({ signCount: 0 });
  });
});

describe('origins', () => {
  const at = (rpId: string, origin: string) => {
    const authenticator = new SoftwareAuthenticator({ rpId, origin });
    return verify(authenticator.assert({ body }), { known: registered(authenticator) });
  };

  test.each([
    ['example.com', 'https://example.com'],
    ['example.com', 'https://a.b.example.com:8443'],
    ['b.example.com', 'https://a.b.example.com'],
    ['localhost', 'http://localhost:3000'],
    ['localhost', 'http://app.localhost:3000'],
    ['app.localhost', 'http://app.localhost:3000'],
    ['localhost', 'https://localhost'],
    ['127.0.0.1', 'http://127.0.0.1:5173'],
    ['intranet', 'https://intranet'],
    ['xn--bcher-kva.example', 'https://xn--bcher-kva.example'],
    ['example.com', 'android:apk-key-hash:xKVMWqVPmRn7yDQ3Zs6Cz1yZbJ0z3m5oLr3DkGvNW9E'],
    ['example.com', 'ios:bundle-id:com.example.wallet'],
  ])('RP id %s is accepted from %s', async (rpId, origin) => {
    await expect(at(rpId, origin)).resolves.toMatchObject({ signCount: 0 });
  });

  test.each([
    ['com', 'https://example.com'],
    ['0.0.1', 'http://127.0.0.1'],
    ['a.example.com', 'https://example.com'],
    ['localhost', 'http://localhost.evil.com'],
    ['localhost', 'https://notlocalhost'],
  ])('RP id %s is refused from %s', async (rpId, origin) => {
    await expect(at(rpId, origin)).rejects.toThrow(refusal(/rpIdHash|origin `.*` is not https/));
  });

  test('with an allow list only what is in it, exactly', async () => {
    const allow = (allowedOrigins: readonly string[], origin = 'https://wallet.example.com') =>
      verify(passkey.assert({ body, origin }), { options: { allowedOrigins } });
    const app = 'ios:bundle-id:com.example.wallet';
    await expect(allow(['https://a.com', 'https://wallet.example.com'])).resolves.toMatchObject({ signCount: 0 });
    await expect(allow([app], app)).resolves.toMatchObject({ signCount: 0 });
    for (const allowed of [[], ['https://wallet.example.com/'], ['https://example.com'], ['*']]) {
      await expect(allow(allowed)).rejects.toThrow(
        refusal('origin `https://wallet.example.com` is not one of the allowed'),
      );
    }
    await expect(allow(['https://wallet.example.com'], app)).rejects.toThrow(
      refusal(`origin \`${app}\` is not one of`),
    );
  });
});

describe('the signature counter', () => {
  test.each([
    [0, 0, true],
    [0, 1, true],
    [5, 6, true],
    [5, 2 ** 32 - 1, true],
    [5, 5, false],
    [5, 4, false],
    [5, 0, false],
  ])('stored %d, sent %d: has grown is %s', async (stored, signCount, hasGrown) => {
    const answer = verify(passkey.assert({ body, signCount }));
    await expect(answer).resolves.toEqual({ signCount, userVerified: true });
    expect(isStaleCounter(signCount, stored)).toBe(!hasGrown);
  });

  test.each([true, false])('says nothing of a passkey that is backup-eligible: %s', (backupEligible) => {
    expect(isBackupEligible(read(passkey.assert({ body, signCount: 5, backupEligible })))).toBe(backupEligible);
  });
});

describe('checkWebAuthnChallenge, before anything is looked up', () => {
  test('passes a stamp over this body, both encodings', () => {
    for (const doublyEncodedChallenge of [false, true]) {
      const stamp = read(passkey.assert({ body, doublyEncodedChallenge }));
      expect(() => checkWebAuthnChallenge(stamp, Buffer.from(body))).not.toThrow();
    }
  });

  test.each([
    [{ clientData: { type: 'webauthn.create' } }, 'type is `webauthn.create`'],
    [{ clientData: { challenge: 'AAAA' } }, 'challenge is `AAAA`'],
    [{ clientDataText: '{' }, 'clientDataJson is not JSON'],
  ])('refuses %j', (forgery, reason) => {
    const stamp = read(passkey.assert({ body, ...forgery }));
    expect(() => checkWebAuthnChallenge(stamp, Buffer.from(body))).toThrow(refusal(reason));
  });
});
