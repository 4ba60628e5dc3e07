import { readFileSync } from 'node:fs';
import type { WebAuthnStamp } from '../../src/stamps/stamp.js';
import { decodeAttestationObject, parseAuthenticatorData } from '@simplewebauthn/server/helpers';
import { verifyAssertion, verifyRegistration } from '../../src/stamps/webauthn.js';
import type { Registration } from '../../src/ports/passkeys.js';
import type { RegisteredAuthenticator } from '../../src/stamps/webauthn.js';

interface Case {
  id: string;
  registration: { challenge: string; credential_id: string; clientDataJSON: string; attestationObject: string };
  authentication: { challenge: string; authenticatorData: string; clientDataJSON: string; signature: string };
}

const { cases, origin } = JSON.parse(
  readFileSync(new URL('../vectors/webauthn/webauthn_l3_vectors.json', import.meta.url), 'utf8'),
) as { cases: Case[]; origin: string };

const base64url = (hex: string): string => Buffer.from(hex, 'hex').toString('base64url');

function caseOf(id: string): Case {
  const found = cases.find((candidate) => candidate.id === id);
  if (found === undefined) throw new Error(`no vector ${id}`);
  return found;
}

function registrationOf({ registration }: Case): Registration {
  return {
    challenge: base64url(registration.challenge),
    attestation: {
      credentialId: base64url(registration.credential_id),
      clientDataJson: base64url(registration.clientDataJSON),
      attestationObject: base64url(registration.attestationObject),
      transports: ['AUTHENTICATOR_TRANSPORT_USB'],
    },
  };
}

/** What a registration that is refused would have stored, to look at the assertion alone. */
function authenticatorOf({ registration }: Case): RegisteredAuthenticator {
  const object = decodeAttestationObject(new Uint8Array(Buffer.from(registration.attestationObject, 'hex')));
  const { credentialPublicKey, rpIdHash } = parseAuthenticatorData(object.get('authData'));
  return {
    credentialId: base64url(registration.credential_id),
    publicKey: Buffer.from(credentialPublicKey ?? []).toString('base64url'),
    rpIdHash: Buffer.from(rpIdHash).toString('hex'),
  };
}

function assertion(vector: Case, authenticator: RegisteredAuthenticator, forged: Partial<WebAuthnStamp> = {}) {
  const { authentication } = vector;
  const challenge = base64url(authentication.challenge);
  return verifyAssertion(
    {
      kind: 'webauthn',
      scheme: 'SIGNATURE_SCHEME_TK_WEBAUTHN',
      credentialId: authenticator.credentialId,
      authenticatorData: base64url(authentication.authenticatorData),
      clientDataJson: base64url(authentication.clientDataJSON),
      signature: base64url(authentication.signature),
      ...forged,
    },
    { matches: (sent) => sent === challenge, description: 'the challenge of the vector' },
    authenticator,
    { allowedOrigins: [origin] },
  );
}

/** All cases of the specification, with what becomes of them here; a case that is not listed fails the last test. */
const accepted: readonly [string, string][] = [
  ['none-es256', 'none'],
  ['none-es256-long-credential-id', 'none'],
  ['packed-self-es256', 'packed'],
  ['packed-es256', 'packed'],
  ['packed-rs256', 'packed'],
  ['packed-eddsa', 'packed'],
  ['apple-es256', 'apple'],
];
const refusedAttestation: readonly [string, string][] = [
  // The library wants the manufacturer to be a real one, and the whole chain of certificates, and the zero AAGUID that
  // the FIDO U2F format prescribes; these three vectors have none of it.
  ['tpm-es256', 'TPM manufacturer "id:00000000"'],
  ['android-key-es256', 'certificate path'],
  ['fido-u2f-es256', 'AAGUID'],
];
const refusedAlgorithm: readonly [string, string][] = [
  ['packed-es384', 'algorithm `-35` (kty `2`) is not supported: use ES256 (-7), EdDSA (-8) or RS256 (-257)'],
  ['packed-es512', 'algorithm `-36`'],
  ['packed-ed448', 'algorithm `-53`'],
];
const refusedOrigin: readonly [string, string][] = [
  ['none-es256-crossOrigin', 'crossOrigin is `true`'],
  ['none-es256-topOrigin', 'crossOrigin is `true`'],
];

describe('WebAuthn level 3 test vectors', () => {
  test.each(accepted)('%s: registers with format %s, and its assertion verifies', async (id, format) => {
    const vector = caseOf(id);
    const registered = await verifyRegistration(registrationOf(vector));
    expect(registered).toMatchObject({
      credentialId: base64url(vector.registration.credential_id),
      attestationType: format,
      origin,
      signCount: 0,
      transports: ['AUTHENTICATOR_TRANSPORT_USB'],
    });
    expect(registered).toMatchObject(authenticatorOf(vector));
    const flags = Buffer.from(vector.authentication.authenticatorData, 'hex').readUInt8(32);
    await expect(assertion(vector, registered)).resolves.toEqual({ signCount: 0, userVerified: (flags & 4) !== 0 });
  });

  test.each(refusedAttestation)('%s: is not registered (%s), its assertion verifies', async (id, reason) => {
    const vector = caseOf(id);
    await expect(verifyRegistration(registrationOf(vector))).rejects.toThrow(reason);
    await expect(assertion(vector, authenticatorOf(vector))).resolves.toMatchObject({ signCount: 0 });
  });

  test.each(refusedAlgorithm)('%s: is refused, %s', async (id, reason) => {
    const vector = caseOf(id);
    await expect(verifyRegistration(registrationOf(vector))).rejects.toThrow(reason);
    await expect(assertion(vector, authenticatorOf(vector))).rejects.toThrow(reason);
  });

  test.each(refusedOrigin)('%s: is refused, %s', async (id, reason) => {
    const vector = caseOf(id);
    await expect(verifyRegistration(registrationOf(vector))).rejects.toThrow(reason);
    await expect(assertion(vector, authenticatorOf(vector))).rejects.toThrow(reason);
  });

  test.each([...accepted, ...refusedAttestation])('%s: any changed byte spoils the assertion', async (id) => {
    const vector = caseOf(id);
    const authenticator = authenticatorOf(vector);
    const flip = (hex: string, at: number): string => {
      const bytes = Buffer.from(hex, 'hex');
      bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
      return bytes.toString('base64url');
    };
    const { authenticatorData, clientDataJSON, signature } = vector.authentication;
    for (const forged of [
      { authenticatorData: flip(authenticatorData, 36) },
      { authenticatorData: flip(authenticatorData, 0) },
      { clientDataJson: flip(clientDataJSON, clientDataJSON.length / 4) },
      { signature: flip(signature, 12) },
      { signature: flip(signature, signature.length / 2 - 1) },
    ]) {
      await expect(assertion(vector, authenticator, forged)).rejects.toMatchObject({ category: 'SIGNATURE_INVALID' });
    }
  });

  test('every vector is in one of the lists', () => {
    const listed = [...accepted, ...refusedAttestation, ...refusedAlgorithm, ...refusedOrigin].map(([id]) => id);
    expect(cases.map(({ id }) => id).sort()).toEqual(listed.sort());
  });
});
