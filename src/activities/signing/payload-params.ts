import { invalidField } from '../../domain/errors.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import { signingKeyOf, type SigningKey } from '../../domain/organization/signing-keys.js';
import { unreadable, type PolicyType, type PolicyValue, type RequestPart } from '../../domain/policy/types.js';
import type { Steps } from '../../domain/steps.js';
import { Hex, OneOf } from '../../wire/fields.js';
import {
  hashFunctions,
  payloadEncodings,
  type HashFunction,
  type PayloadEncoding,
  type PayloadsToRead,
} from '../../transactions/payloads.js';
import type { ToReadAhead } from '../define-activity.js';
import { Readings } from '../readings.js';
import { keyResources, signsWithSchnorr, type BytesToSign } from './signing-params.js';

const encodingAbout =
  'Encoding of the payload: hexadecimal (with or without 0x, any case), text, the JSON of EIP-712 typed data ' +
  '`{ types, domain, primaryType, message }`, or the JSON of an EIP-7702 authorization `{ address, chainId, nonce }`. ' +
  'The last two require a key on CURVE_SECP256K1 and HASH_FUNCTION_NO_OP; the server computes their digest.';

const hashFunctionAbout =
  'How the bytes are hashed before signing. HASH_FUNCTION_NO_OP takes a 32-byte digest. Keys on ' +
  'CURVE_ED25519 require HASH_FUNCTION_NOT_APPLICABLE; other keys refuse it.';

/** One signature, in lower-case hex without 0x. */
export class SignRawPayloadResult {
  @Hex({
    max: 64,
    about: '32 bytes, zero padded; `r` and `s` together are the 64-byte signature of Ed25519 and BIP-340.',
  })
  r!: string;

  @Hex({ max: 64, about: '32 bytes, zero padded; never in the upper half of the order (ECDSA).' })
  s!: string;

  @Hex({ max: 2, about: 'Recovery id of ECDSA, `00` or `01`; `00` for other schemes.' })
  v!: string;
}

/** How payloads become the bytes to sign. */
export class PayloadParams {
  @OneOf(payloadEncodings, { about: encodingAbout })
  encoding!: PayloadEncoding;

  @OneOf(hashFunctions, { about: hashFunctionAbout })
  hashFunction!: HashFunction;
}

/** Fields common to the intents of raw payloads. */
interface RawIntent extends PayloadParams {
  readonly signWith: string;
}

const text: PolicyType = { kind: 'string' };

/** How the payloads of one verb are read: `payloadsOf` finds them in its intent, `fieldOf` names them in errors. */
export function payloadReader<Intent extends RawIntent>(
  payloadsOf: (intent: Intent) => readonly string[],
  fieldOf: (index: number) => string,
) {
  const readings = new Readings<Intent, PayloadsToRead>();

  /** What to read, once it is clear that this key can sign it. */
  const toRead = (intent: Intent, key: SigningKey): PayloadsToRead => {
    const { encoding, hashFunction } = intent;
    checkEncoding(encoding, hashFunction, key);
    checkHashFunction(hashFunction, key);
    const payloads = payloadsOf(intent);
    return { kind: 'payloads', encoding, hashFunction, payloads, fields: payloads.map((_, index) => fieldOf(index)) };
  };
  // The reading is the same for every key that can sign it.
  const read = (intent: Intent, key: SigningKey) => readings.of(intent, '', toRead(intent, key));

  return {
    /** What policies see as `activity.params` (client protocol 9.3). */
    params: {
      encoding: { type: text, literals: payloadEncodings, from: ({ encoding }: Intent) => encoding },
      hash_function: { type: text, literals: hashFunctions, from: ({ hashFunction }: Intent) => hashFunction },
    },

    /**
     * The key, and what it signs for each payload, in order: digests, or messages for Ed25519. One invalid payload
     * refuses all of them, before anything is signed.
     * @throws {CoordinatorError} NOT_FOUND without the key, INVALID_ARGUMENT naming the payload
     */
    read(intent: Intent, organization: OrganizationView): { key: SigningKey; parts: readonly BytesToSign[] } {
      const key = signingKeyOf(organization, intent.signWith);
      const { signed } = read(intent, key);
      return { key, parts: signed.map((bytes) => ({ bytes, addressFormat: key.addressFormat })) };
    },

    /** What policies see of the key, and of each distinct payload. @throws {CoordinatorError} as `read` does */
    payloads(intent: Intent, organization: OrganizationView): readonly RequestPart[] {
      const key = signingKeyOf(organization, intent.signWith);
      const resources = keyResources(key);
      const name = intent.encoding === 'PAYLOAD_ENCODING_EIP712' ? 'eip_712' : 'eip_7702_authorization';
      const opaque = opaqueTo(intent.encoding, key);
      return read(intent, key).distinct.map(({ field, structured }) => {
        const eth = structured === undefined ? opaque : { [name]: structured };
        return { name: field, resources: eth === undefined ? resources : { ...resources, eth } };
      });
    },

    /**
     * What a separate thread has to read before `read` and `payloads` are called. @throws {CoordinatorError} as `read`
     * does
     */
    ahead(intent: Intent, organization: OrganizationView, steps: Steps): ToReadAhead | undefined {
      return readings.ahead(intent, '', toRead(intent, signingKeyOf(organization, intent.signWith)), steps);
    },
  };
}

/**
 * What policies on typed data and authorizations see of a payload sent in another encoding. The requester chooses the
 * encoding, and the bytes may be the digest of anything, so this is absent only for a key that cannot sign such data.
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
