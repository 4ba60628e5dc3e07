import { encode } from 'cbor2';
import { bytes, decodeCbor, isBytes } from './cose-sign1.js';

/**
 * An attestor's statement about a boot, in the layout of AWS Nitro Enclaves ("Verifying the root of trust", section
 * "Attestation document specification"), which published clients can read.
 */
export interface AttestationDocument {
  /** The attestor. */
  readonly moduleId: string;
  /** Time of attestation, milliseconds since the epoch. */
  readonly timestamp: number;
  /** SHA-384 measurements, 48 bytes each, by register. */
  readonly pcrs: ReadonlyMap<number, Uint8Array>;
  /** DER of the certificate whose key signed the document. */
  readonly certificate: Uint8Array;
  /** DER of the certificates above it, the root first. */
  readonly cabundle: readonly Uint8Array[];
  /** The ephemeral public key of the boot. */
  readonly publicKey: Uint8Array;
  /** SHA-256 of the manifest. */
  readonly userData: Uint8Array;
}

const digestName = 'SHA384';
const measurementLength = 48;

export function encodeAttestationDocument(document: AttestationDocument): Uint8Array {
  const { moduleId, timestamp, pcrs, certificate, cabundle, publicKey, userData } = document;
  return encode(
    new Map<string, unknown>([
      ['module_id', moduleId],
      ['digest', digestName],
      ['timestamp', timestamp],
      ['pcrs', new Map([...pcrs].map(([index, value]) => [index, bytes(value)]))],
      ['certificate', bytes(certificate)],
      ['cabundle', cabundle.map(bytes)],
      ['public_key', bytes(publicKey)],
      ['user_data', bytes(userData)],
      ['nonce', null],
    ]),
  );
}

/** @throws {Error} that names the invalid member */
export function decodeAttestationDocument(payload: Uint8Array): AttestationDocument {
  const members = decodeCbor(payload);
  if (typeof members !== 'object' || members === null) throw new Error('the attestation document is not a map');
  const member = (name: string): unknown => (members as Readonly<Record<string, unknown>>)[name];
  const bytesOf = (name: string): Uint8Array => {
    const value = member(name);
    if (!isBytes(value)) throw new Error(`\`${name}\` of the attestation document must be a byte string`);
    return value;
  };
  const [moduleId, timestamp, cabundle] = ['module_id', 'timestamp', 'cabundle'].map(member);
  if (typeof moduleId !== 'string' || moduleId === '') throw new Error('`module_id` must be a string');
  if (member('digest') !== digestName) throw new Error(`\`digest\` must be ${digestName}`);
  if (!Number.isSafeInteger(timestamp) || Number(timestamp) <= 0) throw new Error('`timestamp` must be milliseconds');
  if (!Array.isArray(cabundle) || cabundle.length === 0 || !cabundle.every(isBytes)) {
    throw new Error('`cabundle` must be a list of certificates, the root first');
  }
  return {
    moduleId,
    timestamp: Number(timestamp),
    pcrs: measurements(member('pcrs')),
    certificate: bytesOf('certificate'),
    cabundle,
    publicKey: bytesOf('public_key'),
    userData: bytesOf('user_data'),
  };
}

function measurements(pcrs: unknown): ReadonlyMap<number, Uint8Array> {
  const entries: [unknown, unknown][] = pcrs instanceof Map ? [...pcrs] : [];
  const isMeasurement = (entry: [unknown, unknown]): entry is [number, Uint8Array] => {
    const [index, value] = entry;
    return Number.isInteger(index) && isBytes(value) && value.length === measurementLength;
  };
  if (entries.length === 0 || entries.length > 32 || !entries.every(isMeasurement)) {
    throw new Error(`\`pcrs\` must be 1 to 32 measurements of ${measurementLength} bytes, by number`);
  }
  return new Map(entries);
}
