import { invalidField } from '../../domain/errors.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import { signingKeyOf, type SigningKey } from '../../domain/organization/signing-keys.js';
import type { PolicyType, PolicyValue, RequestPart } from '../../domain/policy/types.js';
import type { Steps } from '../../domain/steps.js';
import { Hex, OneOf } from '../../wire/fields.js';
import {
  hashFunctions,
  payloadEncodings,
  type HashFunction,
  type PayloadEncoding,
  type PayloadSigner,
  type PayloadsToRead,
  type ReadPayloads,
} from '../../transactions/payloads.js';
import type { SignatureScheme } from '../../transactions/payload-contents.js';
import { recipientOf } from '../../transactions/ethereum.js';
import { read as readToSign, type UploadedInterface } from '../../transactions/reading.js';
import { accountsOf } from '../../transactions/solana.js';
import type { ToReadAhead } from '../define-activity.js';
import { Readings } from '../readings.js';
import { keyResources, signsWithSchnorr, type BytesToSign } from './signing-params.js';
import { calledInterfaces, describer, keylessDescriber } from './transaction-params.js';

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

  const jobOf = (intent: Intent, signer: PayloadSigner | undefined): PayloadsToRead => {
    const { encoding, hashFunction } = intent;
    const payloads = payloadsOf(intent);
    return { kind: 'payloads', encoding, hashFunction, payloads, fields: payloads.map((_, at) => fieldOf(at)), signer };
  };
  const partsOf = (
    { distinct }: ReadPayloads,
    describe: ReturnType<typeof describer>,
    resources: Readonly<Record<string, PolicyValue>> = {},
  ): readonly RequestPart[] =>
    distinct.map(({ field, content = {} }) => ({
      name: field,
      resources: (content.transactions ?? [])
        .map(describe)
        .reduce((all, one) => ({ ...all, ...one }), { ...resources, ...content.resources }),
    }));

  /** What to read, once it is clear that this key can sign it, and the name to cache it by. */
  const toRead = (intent: Intent, key: SigningKey, organization: OrganizationView) => {
    const { encoding, hashFunction } = intent;
    checkEncoding(encoding, hashFunction, key);
    checkHashFunction(hashFunction, key);
    const { name, signer } = signerOf(key, intent, payloadsOf(intent), organization);
    return { name, job: jobOf(intent, signer) };
  };
  const read = (intent: Intent, key: SigningKey, organization: OrganizationView) => {
    const { name, job } = toRead(intent, key, organization);
    return readings.of(intent, name, job);
  };

  return {
    /** What policies see as `activity.params` (docs/protocol.md, policy namespaces). */
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
      const { signed } = read(intent, key, organization);
      return { key, parts: signed.map((bytes) => ({ bytes, addressFormat: key.addressFormat })) };
    },

    texts: (intent: Intent) =>
      intent.encoding === 'PAYLOAD_ENCODING_TEXT_UTF8'
        ? payloadsOf(intent).map((payload, index) => ({ name: fieldOf(index), text: payload }))
        : [],

    /** What policies see of the key, and of each distinct payload. @throws {CoordinatorError} as `read` does */
    payloads(intent: Intent, organization: OrganizationView): readonly RequestPart[] {
      const key = signingKeyOf(organization, intent.signWith);
      return partsOf(read(intent, key, organization), describer(key, organization), keyResources(key));
    },

    /** As whichever key says most of them; see `content` of `define-activity.ts`. @throws {CoordinatorError} as `read` does */
    content(intent: Intent, interfaces: readonly UploadedInterface[]): readonly RequestPart[] {
      const scheme = intent.hashFunction === 'HASH_FUNCTION_NOT_APPLICABLE' ? 'ED25519' : 'ECDSA';
      const job = jobOf(intent, { scheme, interfaces, owner: '' });
      return partsOf(readToSign(job), keylessDescriber(intent.signWith));
    },

    /**
     * What a separate thread has to read before `read` and `payloads` are called. @throws {CoordinatorError} as `read`
     * does
     */
    ahead(intent: Intent, organization: OrganizationView, steps: Steps): ToReadAhead | undefined {
      const { name, job } = toRead(intent, signingKeyOf(organization, intent.signWith), organization);
      return readings.ahead(intent, name, job, steps);
    },
  };
}

/** Who signs, for reading what is signed, and a name for everything that this reading depends on. */
function signerOf(
  key: SigningKey,
  { encoding, hashFunction }: PayloadParams,
  payloads: readonly string[],
  organization: OrganizationView,
): { readonly name: string; readonly signer?: PayloadSigner } {
  const scheme = schemeOf(key);
  if (scheme === undefined) return { name: '' };
  const { publicKey } = key;
  const isHex = encoding === 'PAYLOAD_ENCODING_HEXADECIMAL';
  const called = () => {
    if (scheme === 'ED25519') {
      return accountsOf(payloads.map((one) => Buffer.from(isHex ? withoutPrefix(one) : one, isHex ? 'hex' : 'utf8')));
    }
    const recipients = new Set(payloads.map((one) => recipientOf(isHex ? one : Buffer.from(one).toString('hex'))));
    return (address: string) => recipients.has(address);
  };
  const isBytes = isHex || encoding === 'PAYLOAD_ENCODING_TEXT_UTF8';
  const mayCall =
    isBytes && (scheme === 'ED25519' || (scheme === 'ECDSA' && hashFunction === 'HASH_FUNCTION_KECCAK256'));
  const chain = scheme === 'ED25519' ? 'SOLANA' : 'ETHEREUM';
  const uploaded = mayCall ? calledInterfaces(chain, called, organization) : [];
  const interfaces = uploaded.map(({ address, json }) => ({ address, json }));
  const owner = organization.parentOrganizationId ?? organization.organizationId;
  const name = [scheme, publicKey, ...uploaded.map(({ id }) => id)].join(' ');
  return { name, signer: { scheme, publicKey, interfaces, owner } };
}

/** Undefined for a key whose signatures no chain takes that policies know. */
function schemeOf({ curve, addressFormat }: SigningKey): SignatureScheme | undefined {
  if (curve === 'CURVE_ED25519') return 'ED25519';
  if (curve !== 'CURVE_SECP256K1') return undefined;
  return signsWithSchnorr(addressFormat) ? 'BIP-340' : 'ECDSA';
}

const withoutPrefix = (payload: string): string => payload.replace(/^0x/i, '');

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
