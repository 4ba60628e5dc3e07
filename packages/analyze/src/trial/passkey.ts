import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto';

const rpId = 'example.com';
const origin = `https://${rpId}`;

/** A passkey made of software, for one run: ES256, without attestation. */
export class Passkey {
  /** Base64url. */
  readonly credentialId = randomBytes(32).toString('base64url');
  private readonly privateKey: KeyObject;
  private readonly coseKey: Buffer;

  constructor() {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const { x = '', y = '' } = publicKey.export({ format: 'jwk' });
    this.privateKey = privateKey;
    // CBOR of { 1: 2, 3: -7, -1: 1, -2: x, -3: y }: an EC2 key for ES256 (RFC 9053).
    this.coseKey = Buffer.concat([
      Buffer.from('a5010203262001215820', 'hex'),
      Buffer.from(x, 'base64url'),
      Buffer.from('225820', 'hex'),
      Buffer.from(y, 'base64url'),
    ]);
  }

  /** An element of `authenticators`. */
  registration(authenticatorName: string) {
    const challenge = randomBytes(32).toString('base64url');
    const id = Buffer.from(this.credentialId, 'base64url');
    const attested = Buffer.concat([Buffer.alloc(16), Buffer.of(0, id.length), id, this.coseKey]);
    const data = Buffer.concat([authenticatorData(0x40), attested]);
    // CBOR of { fmt: 'none', attStmt: {}, authData: data }, which has fewer than 256 bytes.
    const attestationObject = Buffer.concat([
      Buffer.from('a363666d74646e6f6e656761747453746d74a0686175746844617461', 'hex'),
      Buffer.of(0x58, data.length),
      data,
    ]);
    return {
      authenticatorName,
      challenge,
      attestation: {
        credentialId: this.credentialId,
        clientDataJson: clientData('webauthn.create', challenge).toString('base64url'),
        attestationObject: attestationObject.toString('base64url'),
        transports: ['AUTHENTICATOR_TRANSPORT_INTERNAL' as const],
      },
    };
  }

  /** The value of X-Stamp-WebAuthn for a body. */
  stamp(body: string): string {
    const challenge = Buffer.from(sha256(body).toString('hex')).toString('base64url');
    const client = clientData('webauthn.get', challenge);
    const data = authenticatorData(0);
    const signature = sign('sha256', Buffer.concat([data, sha256(client)]), this.privateKey);
    return JSON.stringify({
      authenticatorData: data.toString('base64url'),
      clientDataJson: client.toString('base64url'),
      credentialId: this.credentialId,
      signature: signature.toString('base64url'),
    });
  }
}

const clientData = (type: string, challenge: string): Buffer =>
  Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false }));

/** The user was present and verified; the counter stays 0, as that of a synchronized passkey. */
const authenticatorData = (otherFlags: number): Buffer =>
  Buffer.concat([sha256(rpId), Buffer.of(0x05 | otherFlags), Buffer.alloc(4)]);

const sha256 = (data: string | Uint8Array): Buffer => createHash('sha256').update(data).digest();
