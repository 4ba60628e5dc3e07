import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CertificateRoom, verifyRegistration } from '../../src/stamps/webauthn.js';
import type { Registration } from '../../src/ports/passkeys.js';
import { refusedWith } from './refused-with.js';
import { cborMap, SoftwareAuthenticator } from './software-authenticator.js';
import type { RegisterOptions } from './software-authenticator.js';

const passkey = new SoftwareAuthenticator({ rpId: 'example.com', origin: 'https://wallet.example.com' });

function refusal(field: string, reason: string): Error {
  return refusedWith('INVALID_ARGUMENT', `invalid request: ${field}: ${reason}`, 'REQUEST_INVALID');
}

test.each(['ES256', 'EdDSA'] as const)('an honest %s registration gives what is stored', async (algorithm) => {
  const authenticator = new SoftwareAuthenticator({ algorithm, rpId: 'localhost', origin: 'http://localhost:3000' });
  await expect(verifyRegistration(authenticator.register({ signCount: 7, userVerified: false }))).resolves.toEqual({
    credentialId: authenticator.credentialId,
    publicKey: authenticator.publicKey,
    aaguid: '00000000-0000-0000-0000-000000000000',
    attestationType: 'none',
    rpIdHash: authenticator.rpIdHash,
    signCount: 7,
    origin: 'http://localhost:3000',
    transports: ['AUTHENTICATOR_TRANSPORT_INTERNAL', 'AUTHENTICATOR_TRANSPORT_HYBRID'],
  });
});

test('base64 in another alphabet or with padding is read, and stored as base64url', async () => {
  const { challenge, attestation } = passkey.register();
  const standard = (text: string): string => Buffer.from(text, 'base64url').toString('base64');
  const input = {
    challenge: standard(challenge),
    attestation: {
      credentialId: standard(attestation.credentialId),
      clientDataJson: standard(attestation.clientDataJson),
      attestationObject: standard(attestation.attestationObject),
      transports: [],
    },
  };
  await expect(verifyRegistration(input)).resolves.toMatchObject({ credentialId: passkey.credentialId });
});

test('a challenge that is text stands for its UTF-8 bytes', async () => {
  const registration = passkey.register({ challenge: Buffer.from('hello, wörld').toString('base64url') });
  await expect(verifyRegistration({ ...registration, challenge: 'hello, wörld' })).resolves.toMatchObject({
    credentialId: passkey.credentialId,
  });
});

test('a native app may register', async () => {
  const origin = 'ios:bundle-id:com.example.wallet';
  await expect(verifyRegistration(passkey.register({ origin }))).resolves.toMatchObject({ origin });
});

describe('refused', () => {
  const object = 'attestation.attestationObject';
  const client = 'attestation.clientDataJson';
  const packed = (change: (signature: Buffer) => Buffer): RegisterOptions => ({
    attest: ({ authData, clientDataHash, sign: signWithCredential }) => ({
      format: 'packed',
      statement: cborMap(['alg', -7], ['sig', change(signWithCredential(Buffer.concat([authData, clientDataHash])))]),
    }),
  });

  test('control: self attestation that is signed properly is accepted', async () => {
    const registration = passkey.register(packed((signature) => signature));
    await expect(verifyRegistration(registration)).resolves.toMatchObject({ attestationType: 'packed' });
  });

  test.each<[string, RegisterOptions, string, string]>([
    ['type of an assertion', { clientData: { type: 'webauthn.get' } }, client, 'type is `webauthn.get`'],
    ['another challenge', { clientData: { challenge: 'AAAA' } }, client, 'challenge is `AAAA`, but the request has'],
    ['a number', { clientData: { crossOrigin: 7 } }, client, 'crossOrigin is `7`'],
    ['a long text', { clientData: { type: 'x'.repeat(201) } }, client, `type is \`${'x'.repeat(200)}\`, but`],
    ['client data not JSON', { clientDataText: '{' }, client, 'clientDataJson is not JSON'],
    ['no origin', { clientData: { origin: undefined } }, client, 'clientDataJson has no string member origin'],
    ['origin of another site', { origin: 'https://evil.com' }, client, 'rpIdHash'],
    ['http', { origin: 'http://wallet.example.com' }, client, 'origin `http://wallet.example.com` is not https'],
    ['iframe', { clientData: { crossOrigin: true } }, client, 'crossOrigin is `true`'],
    ['RP id of another site', { rpId: 'evil.com' }, client, 'rpIdHash'],
    ['user not present', { userPresent: false }, object, 'was refused: User presence'],
    ['backed up, not eligible', { backupEligible: false }, object, 'was refused: Single-device credential'],
    ['key that is none', { coseKey: cborMap([1, 2]) }, object, 'has a key that cannot be used: COSE key: algorithm'],
    [
      'bytes after the key',
      { coseKey: Buffer.concat([Buffer.from(passkey.publicKey, 'base64url'), Buffer.alloc(3)]) },
      object,
      'cannot be read: Leftover bytes',
    ],
    [
      'unknown format',
      { attest: () => ({ format: 'x', statement: cborMap() }) },
      object,
      'format `x` is not supported',
    ],
    [
      'format of a closed service',
      { attest: () => ({ format: 'android-safetynet', statement: cborMap() }) },
      object,
      'format `android-safetynet` is not',
    ],
    [
      'none with a statement',
      { attest: () => ({ format: 'none', statement: cborMap(['x', 1]) }) },
      object,
      'was refused: None attestation',
    ],
    [
      'packed without signature',
      { attest: () => ({ format: 'packed', statement: cborMap() }) },
      object,
      'was refused: No attestation signature',
    ],
    ['packed over other data', packed(() => randomBytes(70)), object, 'was refused: '],
    ['packed with an empty signature', packed(() => Buffer.alloc(0)), object, ''],
    [
      'android-key without certificates',
      { attest: () => ({ format: 'android-key', statement: cborMap() }) },
      object,
      'was refused: ',
    ],
    [
      'android-key with garbage for certificates',
      {
        attest: () => ({
          format: 'android-key',
          statement: cborMap(['alg', -7], ['sig', Buffer.alloc(70)], ['x5c', [Buffer.alloc(9)]]),
        }),
      },
      object,
      'was refused',
    ],
  ])('%s', async (_, options, field, reason) => {
    await expect(verifyRegistration(passkey.register(options))).rejects.toThrow(refusal(field, reason));
  });

  test('packed, signed by another key', async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const registration = passkey.register({
      attest: ({ authData, clientDataHash }) => ({
        format: 'packed',
        statement: cborMap(['alg', -7], ['sig', sign('sha256', Buffer.concat([authData, clientDataHash]), privateKey)]),
      }),
    });
    await expect(verifyRegistration(registration)).rejects.toThrow(
      refusal(object, 'has an invalid statement of format `packed`'),
    );
  });

  const honest = passkey.register();
  const changed = (attestation: Partial<Registration['attestation']>): Registration => ({
    ...honest,
    attestation: { ...honest.attestation, ...attestation },
  });
  const nested = Buffer.concat([Buffer.alloc(40_000, 0x81), Buffer.from([0])]).toString('base64url');
  test.each<[string, Registration, string, string]>([
    ['no challenge', { ...honest, challenge: '' }, 'challenge', 'has 0 characters, but must have 1 to 256'],
    ['long challenge', { ...honest, challenge: 'A'.repeat(257) }, 'challenge', 'has 257 characters'],
    ['long credential id', changed({ credentialId: 'A'.repeat(1_366) }), 'attestation.credentialId', 'has 1024 bytes'],
    [
      'another credential id',
      changed({ credentialId: 'AAAA' }),
      'attestation.credentialId',
      'is `AAAA`, but the attestation is for',
    ],
    ['credential id not base64', changed({ credentialId: '*' }), 'attestation.credentialId', 'is not base64url'],
    ['client data not base64', changed({ clientDataJson: '*' }), client, 'is not base64url'],
    ['attestation empty', changed({ attestationObject: '' }), object, 'is not base64url'],
    ['attestation not CBOR', changed({ attestationObject: 'AAAA' }), object, 'cannot be read'],
    [
      'attestation truncated',
      changed({ attestationObject: honest.attestation.attestationObject.slice(0, 200) }),
      object,
      'cannot be read',
    ],
    ['attestation nested deeply', changed({ attestationObject: nested }), object, 'cannot be read'],
    ['attestation as long as it may be', changed({ attestationObject: 'A'.repeat(65_536) }), object, 'cannot be read'],
    [
      'attestation too long',
      changed({ attestationObject: 'A'.repeat(65_537) }),
      object,
      'has 65537 characters, which is too many',
    ],
  ])('%s', async (_, input, field, reason) => {
    await expect(verifyRegistration(input)).rejects.toThrow(refusal(field, reason));
  });

  test('any changed byte of the authenticator data under a self attestation', async () => {
    const registration = passkey.register(packed((signature) => signature));
    const bytes = Buffer.from(registration.attestation.attestationObject, 'base64url');
    const authData = bytes.indexOf('authData') + 'authData'.length + 2;
    expect(bytes.length - authData).toBe(164);
    for (let at = authData; at < bytes.length; at++) {
      const forged = Buffer.from(bytes);
      forged.writeUInt8(forged.readUInt8(at) ^ 0x01, at);
      const input = {
        ...registration,
        attestation: { ...registration.attestation, attestationObject: forged.toString('base64url') },
      };
      await expect(verifyRegistration(input)).rejects.toMatchObject({
        name: 'CoordinatorError',
        code: 'INVALID_ARGUMENT',
      });
    }
  });
});

describe('certificates', () => {
  const object = 'attestation.attestationObject';
  const withChain = (...chain: (Buffer | number | string)[]) =>
    passkey.register({
      attest: ({ authData, clientDataHash, sign: signed }) => ({
        format: 'packed',
        statement: cborMap(['alg', -7], ['sig', signed(Buffer.concat([authData, clientDataHash]))], ['x5c', chain]),
      }),
    });
  const ofBytes = (length: number) => Buffer.alloc(length, 0x30);

  test.each([
    ['too many', withChain(...Array<Buffer>(7).fill(ofBytes(10))), 'has 7 certificates of up to 10 bytes'],
    [
      'one too large',
      withChain(ofBytes(700), ofBytes(2_561)),
      'has 2 certificates of up to 2561 bytes, but may have 6 of up to 2560',
    ],
    ['one that is a number', withChain(60_000), 'has certificates that cannot be read'],
    ['one that is text', withChain('certificate'), 'has certificates that cannot be read'],
  ])('%s: refused before any of them is read', async (_, registration, reason) => {
    await expect(verifyRegistration(registration)).rejects.toThrow(refusal(object, reason));
  });

  test('the registrations of one request have 16 kB together', async () => {
    const room = new CertificateRoom();
    const large = withChain(...Array<Buffer>(5).fill(ofBytes(2_560)));
    await expect(verifyRegistration(large, room)).rejects.toThrow(refusal(object, 'was refused'));
    await expect(verifyRegistration(large, room)).rejects.toThrow(
      refusal(object, 'has 12800 bytes of certificates, and only 3584 are left of 16384 for a request'),
    );
    await expect(verifyRegistration(androidKey(undefined), room)).resolves.toMatchObject({
      attestationType: 'android-key',
    });
  });
});

describe('certificates that name a revocation list', () => {
  test('are not a way to make the coordinator send requests', async () => {
    const requests: string[] = [];
    const server = createServer((request, response) => {
      requests.push(request.url ?? '');
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/list.crl`;
      await expect(verifyRegistration(androidKey(url))).rejects.toThrow(
        refusal('attestation.attestationObject', 'refers to revocation lists, which this server does not fetch'),
      );
      expect(requests).toEqual([]);
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });

  test('control: the same certificates without one are accepted', async () => {
    await expect(verifyRegistration(androidKey(undefined))).resolves.toMatchObject({ attestationType: 'android-key' });
  });
});

/** An android-key registration whose leaf certificate is issued by a root of our own. */
function androidKey(revocationList: string | undefined): Registration {
  const root = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return passkey.register({
    attest: ({ authData, clientDataHash, sign: signWithCredential, publicKey }) => {
      const leaf = certificate('leaf', publicKey, 'root', root.privateKey, [
        extension('2b06010401d679020111', keyDescription(clientDataHash)),
        ...(revocationList === undefined ? [] : [extension('551d1f', distributionPoint(revocationList))]),
      ]);
      const rootKey = root.publicKey.export({ format: 'der', type: 'spki' });
      const signature = signWithCredential(Buffer.concat([authData, clientDataHash]));
      const chain = [leaf, certificate('root', rootKey, 'root', root.privateKey, [])];
      return { format: 'android-key', statement: cborMap(['alg', -7], ['sig', signature], ['x5c', chain]) };
    },
  });
}

function der(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  const long = body.length < 256 ? [0x81, body.length] : [0x82, body.length >> 8, body.length & 255];
  return Buffer.concat([Buffer.from([tag, ...(body.length < 128 ? [body.length] : long)]), body]);
}

const hex = (digits: string): Buffer => Buffer.from(digits, 'hex');
const ecdsaWithSha256 = der(0x30, der(0x06, hex('2a8648ce3d040302')));

function name(commonName: string): Buffer {
  return der(0x30, der(0x31, der(0x30, der(0x06, hex('550403')), der(0x0c, Buffer.from(commonName)))));
}

function extension(oid: string, value: Buffer): Buffer {
  return der(0x30, der(0x06, hex(oid)), der(0x04, value));
}

/** X.509 version 3 (RFC 5280), valid from 2020 to 2099. */
function certificate(subject: string, spki: Buffer, issuer: string, key: KeyObject, extensions: Buffer[]): Buffer {
  const validity = der(0x30, der(0x17, Buffer.from('200101000000Z')), der(0x18, Buffer.from('20990101000000Z')));
  const serial = der(0x02, createHash('sha256').update(subject).digest().subarray(0, 8).fill(1, 0, 1));
  const optional = extensions.length === 0 ? [] : [der(0xa3, der(0x30, ...extensions))];
  const version = der(0xa0, hex('020102'));
  const body = der(0x30, version, serial, ecdsaWithSha256, name(issuer), validity, name(subject), spki, ...optional);
  return der(0x30, body, ecdsaWithSha256, der(0x03, Buffer.alloc(1), sign('sha256', body, key)));
}

/** Android's KeyDescription with empty authorization lists. */
function keyDescription(challenge: Buffer): Buffer {
  const fixed = hex('02012c0a01000201000a0100');
  return der(0x30, fixed, der(0x04, challenge), der(0x04), der(0x30), der(0x30));
}

function distributionPoint(url: string): Buffer {
  return der(0x30, der(0x30, der(0xa0, der(0xa0, der(0x86, Buffer.from(url))))));
}
