import { createHash, createPublicKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';

/** What a registration looks like inside an intent (docs/protocol.md, passkey stamps); everything base64url. */
export interface SoftwareRegistration {
  challenge: string;
  attestation: { credentialId: string; clientDataJson: string; attestationObject: string; transports: string[] };
}

/** What a test may say of a ceremony; whatever is left out is as an honest passkey would have it. */
export interface CeremonyOptions {
  rpId?: string;
  origin?: string;
  signCount?: number;
  userPresent?: boolean;
  userVerified?: boolean;
  backupEligible?: boolean;
  backupState?: boolean;
  /** Merged over the client data: `{ type: 'webauthn.create' }` forges, `{ crossOrigin: undefined }` leaves out. */
  clientData?: Record<string, unknown>;
  /** Replaces the client data text altogether. */
  clientDataText?: string;
  credentialId?: string;
}

/** Forgeries of a registration. */
export interface RegisterOptions extends CeremonyOptions {
  /** Base64url of the bytes the page gave to the browser. */
  challenge?: string;
  /** Replaces the COSE_Key, as CBOR bytes. */
  coseKey?: Uint8Array;
  /** Makes the attestation statement, `none` unless said; `publicKey` as DER of SubjectPublicKeyInfo. */
  attest?: (made: { authData: Buffer; clientDataHash: Buffer; sign: (data: Buffer) => Buffer; publicKey: Buffer }) => {
    format: string;
    statement: Buffer;
  };
}

/** Forgeries of an assertion. */
export interface AssertOptions extends CeremonyOptions {
  body: string | Uint8Array;
  /** Base64 the challenge once more, as the React Native stampers do. */
  doublyEncodedChallenge?: boolean;
  /** CBOR of authenticator extension outputs, with the flag that announces it. */
  extensionData?: Uint8Array;
  /** Bytes after the authenticator data that no flag announces. */
  extraAuthenticatorData?: Uint8Array;
  /** Changes the signature after it was made. */
  tamperSignature?: (signature: Buffer) => Uint8Array;
  /** Another passkey's key signs. */
  signWith?: SoftwareAuthenticator;
  /** Merged over the header's JSON; `undefined` leaves a member out. */
  stamp?: Record<string, unknown>;
}

/**
 * A passkey made of software, for tests. `register` gives what goes into `authenticators[]` of an intent; `assert`
 * gives the value of the header X-Stamp-WebAuthn for a body. Counters stay 0 like those of synchronised passkeys
 * unless `signCount` says otherwise: then it is bound to its device.
 */
export class SoftwareAuthenticator {
  readonly algorithm: 'ES256' | 'EdDSA';
  readonly rpId: string;
  readonly origin: string;
  /** Base64url of 32 random bytes. */
  readonly credentialId = randomBytes(32).toString('base64url');
  readonly #privateKey: KeyObject;
  readonly #coseKey: Buffer;

  constructor({
    algorithm = 'ES256',
    rpId = 'wallet.example.com',
    origin = `https://${rpId}`,
  }: { algorithm?: 'ES256' | 'EdDSA'; rpId?: string; origin?: string } = {}) {
    this.algorithm = algorithm;
    this.rpId = rpId;
    this.origin = origin;
    const { privateKey, publicKey } =
      algorithm === 'ES256' ? generateKeyPairSync('ec', { namedCurve: 'P-256' }) : generateKeyPairSync('ed25519');
    this.#privateKey = privateKey;
    const { x = '', y = '' } = publicKey.export({ format: 'jwk' });
    const [xBytes, yBytes] = [Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')];
    this.#coseKey =
      algorithm === 'ES256'
        ? cborMap([1, 2], [3, -7], [-1, 1], [-2, xBytes], [-3, yBytes])
        : cborMap([1, 1], [3, -8], [-1, 6], [-2, xBytes]);
  }

  /** COSE_Key, base64url: what the coordinator stores. */
  get publicKey(): string {
    return this.#coseKey.toString('base64url');
  }

  /** SHA-256 of the RP id, hex. */
  get rpIdHash(): string {
    return sha256(this.rpId).toString('hex');
  }

  register(options: RegisterOptions = {}): SoftwareRegistration {
    const challenge = options.challenge ?? randomBytes(32).toString('base64url');
    const clientData = this.#clientData('webauthn.create', challenge, options);
    const id = Buffer.from(options.credentialId ?? this.credentialId, 'base64url');
    const idLength = Buffer.alloc(2);
    idLength.writeUInt16BE(id.length);
    const attested = Buffer.concat([Buffer.alloc(16), idLength, id, options.coseKey ?? this.#coseKey]);
    const authData = Buffer.concat([this.#authenticatorData(options, 0x40), attested]);
    const { format, statement } = options.attest?.({
      authData,
      clientDataHash: sha256(clientData),
      sign: (data) => this.#sign(data),
      publicKey: createPublicKey(this.#privateKey).export({ format: 'der', type: 'spki' }),
    }) ?? { format: 'none', statement: cborMap() };
    const attestationObject = cborMap(['fmt', format], ['attStmt', { cbor: statement }], ['authData', authData]);
    return {
      challenge,
      attestation: {
        credentialId: id.toString('base64url'),
        clientDataJson: clientData.toString('base64url'),
        attestationObject: attestationObject.toString('base64url'),
        transports: ['AUTHENTICATOR_TRANSPORT_INTERNAL', 'AUTHENTICATOR_TRANSPORT_HYBRID'],
      },
    };
  }

  assert(options: AssertOptions): string {
    const hash = sha256(options.body).toString('hex');
    const challenge = Buffer.from(options.doublyEncodedChallenge ? Buffer.from(hash).toString('base64') : hash);
    const clientData = this.#clientData('webauthn.get', challenge.toString('base64url'), options);
    const authenticatorData = Buffer.concat([
      this.#authenticatorData(options, options.extensionData === undefined ? 0 : 0x80),
      options.extensionData ?? Buffer.alloc(0),
      options.extraAuthenticatorData ?? Buffer.alloc(0),
    ]);
    const signature = (options.signWith ?? this).#sign(Buffer.concat([authenticatorData, sha256(clientData)]));
    return JSON.stringify({
      authenticatorData: authenticatorData.toString('base64url'),
      clientDataJson: clientData.toString('base64url'),
      credentialId: options.credentialId ?? this.credentialId,
      signature: Buffer.from(options.tamperSignature?.(signature) ?? signature).toString('base64url'),
      ...options.stamp,
    });
  }

  #sign(data: Buffer): Buffer {
    return sign(this.algorithm === 'ES256' ? 'sha256' : null, data, this.#privateKey);
  }

  #clientData(type: string, challenge: string, options: CeremonyOptions): Buffer {
    const honest = { type, challenge, origin: options.origin ?? this.origin, crossOrigin: false };
    return Buffer.from(options.clientDataText ?? JSON.stringify({ ...honest, ...options.clientData }));
  }

  #authenticatorData(options: CeremonyOptions, otherFlags: number): Buffer {
    const { userPresent = true, userVerified = true } = options;
    const { backupEligible = options.signCount === undefined, backupState = options.signCount === undefined } = options;
    const flags =
      (userPresent ? 1 : 0) | (userVerified ? 4 : 0) | (backupEligible ? 8 : 0) | (backupState ? 16 : 0) | otherFlags;
    const tail = Buffer.alloc(5);
    tail.writeUInt8(flags, 0);
    tail.writeUInt32BE(options.signCount ?? 0, 1);
    return Buffer.concat([sha256(options.rpId ?? this.rpId), tail]);
  }
}

type CborItem = number | string | Uint8Array | { cbor: Buffer } | readonly CborItem[];

/** CBOR (RFC 8949) of a map from integers or text to integers, text, byte strings, arrays of those, or encoded CBOR. */
export function cborMap(...entries: readonly (readonly [number | string, CborItem])[]): Buffer {
  const items = entries.flatMap(([label, value]) => [cborItem(label), cborItem(value)]);
  return Buffer.concat([cborHead(5, entries.length), ...items]);
}

function cborItem(item: CborItem): Buffer {
  if (typeof item === 'number') return item < 0 ? cborHead(1, -1 - item) : cborHead(0, item);
  if (typeof item === 'string') return Buffer.concat([cborHead(3, Buffer.byteLength(item)), Buffer.from(item)]);
  if (item instanceof Uint8Array) return Buffer.concat([cborHead(2, item.length), item]);
  return 'cbor' in item ? item.cbor : Buffer.concat([cborHead(4, item.length), ...item.map(cborItem)]);
}

function cborHead(major: number, argument: number): Buffer {
  const type = major << 5;
  if (argument < 24) return Buffer.from([type | argument]);
  if (argument < 256) return Buffer.from([type | 24, argument]);
  return Buffer.from([type | 25, argument >> 8, argument & 255]);
}

function sha256(data: string | Uint8Array): Buffer {
  return createHash('sha256').update(data).digest();
}
