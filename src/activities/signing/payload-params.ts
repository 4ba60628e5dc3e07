import { sha256 } from '@noble/hashes/sha2.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { CoordinatorError, invalidField } from '../../domain/errors.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import { signingKeyOf, type SigningKey } from '../../domain/organization/signing-keys.js';
import { unreadable, type PolicyType, type PolicyValue, type RequestPart } from '../../domain/policy/types.js';
import { Hex, OneOf } from '../../schema/fields.js';
import { parseEip7702Authorization } from '../../transactions/ethereum.js';
import { quoted } from '../../transactions/refusals.js';
import { hashTypedData } from '../../transactions/typed-data.js';
import { keyResources, oncePerKey, signsWithSchnorr, type BytesToSign } from './signing-params.js';

/** How payloads are written, as the specification has it (4.3.13). */
const payloadEncodings = [
  'PAYLOAD_ENCODING_HEXADECIMAL',
  'PAYLOAD_ENCODING_TEXT_UTF8',
  'PAYLOAD_ENCODING_EIP712',
  'PAYLOAD_ENCODING_EIP7702_AUTHORIZATION',
] as const;

/** What is done to the bytes of a payload before they are signed (specification 4.3.13). */
const hashFunctions = [
  'HASH_FUNCTION_NO_OP',
  'HASH_FUNCTION_SHA256',
  'HASH_FUNCTION_KECCAK256',
  'HASH_FUNCTION_NOT_APPLICABLE',
] as const;

type PayloadEncoding = (typeof payloadEncodings)[number];
type HashFunction = (typeof hashFunctions)[number];

const encodingAbout =
  'How a payload is written: hexadecimal (0x or not, any case), text, the JSON of EIP-712 typed data ' +
  '`{ types, domain, primaryType, message }`, or the JSON of an EIP-7702 authorization `{ address, chainId, nonce }`. ' +
  'The last two need a key on CURVE_SECP256K1 and HASH_FUNCTION_NO_OP; their digest is calculated here.';

const hashFunctionAbout =
  'What is done to the bytes before they are signed. HASH_FUNCTION_NO_OP takes 32 bytes, a digest. Keys on ' +
  'CURVE_ED25519 take HASH_FUNCTION_NOT_APPLICABLE and nothing else, other keys never.';

/** One signature, in lower-case hex without 0x. */
export class SignRawPayloadResult {
  @Hex({ max: 64, about: '32 bytes, zero padded; with `s` the 64-byte signature of Ed25519 and BIP-340.' })
  r!: string;

  @Hex({ max: 64, about: '32 bytes, zero padded; never in the upper half of the order (ECDSA).' })
  s!: string;

  @Hex({ max: 2, about: 'Recovery id of ECDSA, `00` or `01`; `00` for other schemes.' })
  v!: string;
}

/** How payloads become the bytes that are signed. */
export class PayloadParams {
  @OneOf(payloadEncodings, { about: encodingAbout })
  encoding!: PayloadEncoding;

  @OneOf(hashFunctions, { about: hashFunctionAbout })
  hashFunction!: HashFunction;
}

/** What the intents of raw payloads have alike. */
interface RawIntent extends PayloadParams {
  readonly signWith: string;
}

/** Payloads as they are signed, and as policies read them where they can. */
interface ReadPayloads {
  readonly parts: readonly BytesToSign[];
  /** The field of each payload that says something of its own, and what it says. */
  readonly read: readonly { readonly field: string; readonly eth: PolicyValue | undefined }[];
}

const digestLength = 32;
const text: PolicyType = { kind: 'string' };

/** How the payloads of one verb are read: `payloadsOf` finds them in its intent, `fieldOf` names them in errors. */
export function payloadReader<Intent extends RawIntent>(
  payloadsOf: (intent: Intent) => readonly string[],
  fieldOf: (index: number) => string,
) {
  const read = oncePerKey((intent: Intent, key: SigningKey): ReadPayloads => {
    const { encoding, hashFunction } = intent;
    checkEncoding(encoding, hashFunction, key);
    checkHashFunction(hashFunction, key);
    // Payloads that are alike are decided on once.
    const distinct = new Map<string, { field: string; eth: PolicyValue | undefined }>();
    const opaque = opaqueTo(encoding, key);
    const digests = payloadsOf(intent).map((payload, index) => {
      const field = fieldOf(index);
      if (payload === '') throw invalidField(field, 'is empty: send what is to be signed');
      const structured = readStructured(payload, encoding, field);
      if (structured) {
        const name = encoding === 'PAYLOAD_ENCODING_EIP712' ? 'eip_712' : 'eip_7702_authorization';
        if (!distinct.has(payload)) distinct.set(payload, { field, eth: { [name]: structured.policy } });
        return structured.digest;
      }
      if (distinct.size === 0) distinct.set(payload, { field, eth: opaque });
      const plain = encoding === 'PAYLOAD_ENCODING_HEXADECIMAL' ? readHex(payload, field) : Buffer.from(payload);
      return hashed(plain, hashFunction, field);
    });
    const parts = digests.map((bytes) => ({ bytes, addressFormat: key.addressFormat }));
    return { parts, read: [...distinct.values()] };
  });

  return {
    /** What policies read as `activity.params` (client protocol 9.3). */
    params: {
      encoding: { type: text, literals: payloadEncodings, from: ({ encoding }: Intent) => encoding },
      hash_function: { type: text, literals: hashFunctions, from: ({ hashFunction }: Intent) => hashFunction },
    },

    /**
     * The key, and what it signs for each payload, in order: digests, or messages for Ed25519. One bad payload refuses
     * them all, before anything is signed.
     * @throws {CoordinatorError} NOT_FOUND without the key, INVALID_ARGUMENT naming the payload
     */
    read(intent: Intent, organization: OrganizationView): { key: SigningKey; parts: readonly BytesToSign[] } {
      const key = signingKeyOf(organization, intent.signWith);
      return { key, parts: read(intent, key).parts };
    },

    /** What policies read of the key, and of each payload that is not like another. @throws {CoordinatorError} as `read` does */
    payloads(intent: Intent, organization: OrganizationView): readonly RequestPart[] {
      const key = signingKeyOf(organization, intent.signWith);
      const resources = keyResources(key, organization);
      return read(intent, key).read.map(({ field, eth }) => ({
        name: field,
        resources: eth === undefined ? resources : { ...resources, eth },
      }));
    },
  };
}

/**
 * What policies on typed data and authorizations read of a payload that is not sent as one. How a payload is written is
 * the requester's to choose, and the bytes may be the digest of anything; only a key that cannot sign such data has none.
 */
function opaqueTo(encoding: PayloadEncoding, { curve, addressFormat }: SigningKey): PolicyValue | undefined {
  if (curve !== 'CURVE_SECP256K1' || signsWithSchnorr(addressFormat)) return undefined;
  const hidden = unreadable(`the payload was sent as ${encoding}`);
  return { eip_712: hidden, eip_7702_authorization: hidden };
}

function checkEncoding(encoding: PayloadEncoding, hashFunction: HashFunction, { curve, addressFormat }: SigningKey) {
  if (encoding !== 'PAYLOAD_ENCODING_EIP712' && encoding !== 'PAYLOAD_ENCODING_EIP7702_AUTHORIZATION') return;
  if (curve !== 'CURVE_SECP256K1') {
    throw invalidField('parameters.encoding', `${encoding} needs a key on CURVE_SECP256K1, not on ${curve}`);
  }
  if (signsWithSchnorr(addressFormat)) {
    throw invalidField(
      'parameters.encoding',
      `${encoding} needs an ECDSA signature, and keys of ${addressFormat} addresses sign with BIP-340: ` +
        'name the key by another address',
    );
  }
  if (hashFunction === 'HASH_FUNCTION_NO_OP') return;
  throw invalidField('parameters.hashFunction', `${encoding} is hashed as it says itself: send HASH_FUNCTION_NO_OP`);
}

function checkHashFunction(hashFunction: HashFunction, { curve }: SigningKey): void {
  const isForEd25519 = hashFunction === 'HASH_FUNCTION_NOT_APPLICABLE';
  if (isForEd25519 === (curve === 'CURVE_ED25519')) return;
  throw invalidField(
    'parameters.hashFunction',
    isForEd25519
      ? `${hashFunction} is for keys on CURVE_ED25519, the key is on ${curve}: send HASH_FUNCTION_SHA256, ` +
          'HASH_FUNCTION_KECCAK256, or HASH_FUNCTION_NO_OP with a digest'
      : `${hashFunction} cannot be used with a key on ${curve}, which hashes by itself (RFC 8032): ` +
          'send HASH_FUNCTION_NOT_APPLICABLE',
  );
}

function readStructured(payload: string, encoding: PayloadEncoding, field: string) {
  try {
    if (encoding === 'PAYLOAD_ENCODING_EIP712') return hashTypedData(payload);
    if (encoding === 'PAYLOAD_ENCODING_EIP7702_AUTHORIZATION') return parseEip7702Authorization(payload);
    return undefined;
  } catch (error) {
    if (error instanceof CoordinatorError) throw invalidField(field, error.message);
    throw error;
  }
}

function readHex(payload: string, field: string): Uint8Array {
  const digits = payload.replace(/^0x/i, '');
  const bad = digits.search(/[^0-9a-f]/i);
  if (bad !== -1) {
    throw invalidField(
      field,
      `expected hexadecimal, but digit ${bad + 1} is ${quoted(digits.charAt(bad))}: ` +
        'correct it, or send PAYLOAD_ENCODING_TEXT_UTF8',
    );
  }
  if (digits.length % 2 !== 0) {
    throw invalidField(field, `expected two hexadecimal digits for each byte, got ${digits.length} digits`);
  }
  return Buffer.from(digits, 'hex');
}

function hashed(bytes: Uint8Array, hashFunction: HashFunction, field: string): Uint8Array {
  switch (hashFunction) {
    case 'HASH_FUNCTION_SHA256':
      return sha256(bytes);
    case 'HASH_FUNCTION_KECCAK256':
      return keccak_256(bytes);
    case 'HASH_FUNCTION_NOT_APPLICABLE':
      return bytes;
    case 'HASH_FUNCTION_NO_OP':
      if (bytes.length === digestLength) return bytes;
      throw invalidField(
        field,
        `expected a 32-bytes-long digest with HASH_FUNCTION_NO_OP, got ${bytes.length} bytes: ` +
          'hash the payload, or choose a hash function',
      );
  }
}
