import { createHash } from 'node:crypto';
import { ed25519 } from '@noble/curves/ed25519.js';
import { cborMap, SoftwareAuthenticator, type SoftwareRegistration } from '../stamps/software-authenticator.js';

const sha256 = (data: string | Uint8Array): Buffer => createHash('sha256').update(data).digest();

/** An EdDSA passkey whose key, ids and signatures follow from a seed, so that a story with it can be recorded again. */
export class SeededPasskey {
  readonly #secret: Uint8Array;
  readonly credentialId: string;
  readonly #rpId = 'wallet.example.com';
  #signCount = 0;

  constructor(seed: string) {
    this.#secret = sha256(`passkey ${seed}`);
    this.credentialId = sha256(`credential ${seed}`).toString('base64url');
  }

  /** Lower-case hex; a test looks for it where it must not be. */
  get privateKey(): string {
    return Buffer.from(this.#secret).toString('hex');
  }

  /** What goes into `authenticators[]` of an intent. */
  register(authenticatorName: string): SoftwareRegistration & { authenticatorName: string } {
    const coseKey = cborMap([1, 1], [3, -8], [-1, 6], [-2, ed25519.getPublicKey(this.#secret)]);
    const challenge = sha256(`challenge ${this.credentialId}`).toString('base64url');
    const software = new SoftwareAuthenticator({ algorithm: 'EdDSA', rpId: this.#rpId });
    return { authenticatorName, ...software.register({ challenge, credentialId: this.credentialId, coseKey }) };
  }

  /** The value of X-Stamp-WebAuthn for a body; the signature counter moves on, as it is bound to one device. */
  assert(body: string): string {
    this.#signCount += 1;
    const challenge = Buffer.from(sha256(body).toString('hex')).toString('base64url');
    const origin = `https://${this.#rpId}`;
    const clientData = Buffer.from(JSON.stringify({ type: 'webauthn.get', challenge, origin, crossOrigin: false }));
    const tail = Buffer.alloc(5);
    tail.writeUInt8(0x05, 0);
    tail.writeUInt32BE(this.#signCount, 1);
    const authenticatorData = Buffer.concat([sha256(this.#rpId), tail]);
    const signature = ed25519.sign(Buffer.concat([authenticatorData, sha256(clientData)]), this.#secret);
    return JSON.stringify({
      authenticatorData: authenticatorData.toString('base64url'),
      clientDataJson: clientData.toString('base64url'),
      credentialId: this.credentialId,
      signature: Buffer.from(signature).toString('base64url'),
    });
  }
}
