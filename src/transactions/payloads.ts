import { sha256 } from '@noble/hashes/sha2.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { CoordinatorError, invalidField } from '../domain/errors.js';
import { OutOfSteps, type Steps } from '../domain/steps.js';
import { authorizationPolicyValue, parseEip7702Authorization } from './ethereum.js';
import { contentOf, type PayloadContent, type SignatureScheme } from './payload-contents.js';
import type { ReadTransaction, TransactionToRead, UploadedInterface } from './reading.js';
import { quoted, takeKeccak, takeSha256 } from './refusals.js';
import { hashTypedData, type HashedTypedData } from './typed-data.js';

/** How payloads are encoded, as in the specification (4.3.13). */
export const payloadEncodings = [
  'PAYLOAD_ENCODING_HEXADECIMAL',
  'PAYLOAD_ENCODING_TEXT_UTF8',
  'PAYLOAD_ENCODING_EIP712',
  'PAYLOAD_ENCODING_EIP7702_AUTHORIZATION',
] as const;

/** How the bytes of a payload are hashed before signing (specification 4.3.13). */
export const hashFunctions = [
  'HASH_FUNCTION_NO_OP',
  'HASH_FUNCTION_SHA256',
  'HASH_FUNCTION_KECCAK256',
  'HASH_FUNCTION_NOT_APPLICABLE',
] as const;

export type PayloadEncoding = (typeof payloadEncodings)[number];
export type HashFunction = (typeof hashFunctions)[number];

/** The key that signs, if any chain that policies know takes its signatures, and what decodes its transactions. */
export interface PayloadSigner {
  readonly scheme: SignatureScheme;
  /** In hex; absent if the payloads are only described and nothing is signed. */
  readonly publicKey?: string;
  readonly interfaces: readonly UploadedInterface[];
  /** The organization, or its parent: whose share of the caches is used. */
  readonly owner: string;
}

/** Payloads to read; `fields` names each in errors. */
export interface PayloadsToRead {
  readonly kind: 'payloads';
  readonly encoding: PayloadEncoding;
  readonly hashFunction: HashFunction;
  readonly payloads: readonly string[];
  readonly fields: readonly string[];
  readonly signer?: PayloadSigner | undefined;
}

/** What is signed for each payload, in order, and what policies decide on: payloads that differ in it. */
export interface ReadPayloads {
  readonly signed: readonly Uint8Array[];
  readonly distinct: readonly DistinctPayload[];
}

interface DistinctPayload {
  readonly field: string;
  /** Undefined for plain bytes. */
  readonly content?: PayloadContent | undefined;
}

/** How a payload that is a transaction is decoded. */
type ReadSigned = (chain: TransactionToRead['chain'], bytes: Uint8Array, signer: PayloadSigner) => ReadTransaction;

const digestLength = 32;

/**
 * Reads payloads: one invalid payload refuses all of them.
 * @throws {CoordinatorError} INVALID_ARGUMENT naming the payload; OutOfSteps
 */
export function readPayloads(
  { encoding, hashFunction, payloads, fields, signer }: PayloadsToRead,
  steps: Steps,
  read: ReadSigned,
): ReadPayloads {
  const distinct = new Map<string, DistinctPayload & { readonly plain?: Uint8Array }>();
  const signed = payloads.map((payload, index) => {
    const field = fields[index]!;
    steps.take('valueDecoded');
    steps.take('byteRead', payload.length);
    if (payload === '') throw invalidField(field, 'is empty: send what is to be signed');
    const structured = readStructured(payload, encoding, field, steps);
    if (structured) {
      const name = encoding === 'PAYLOAD_ENCODING_EIP712' ? 'eip_712' : 'eip_7702_authorization';
      const content = { resources: { eth: { [name]: structured.policy } } };
      if (!distinct.has(payload)) distinct.set(payload, { field, content });
      return structured.digest;
    }
    const plain = encoding === 'PAYLOAD_ENCODING_HEXADECIMAL' ? readHex(payload, field) : Buffer.from(payload);
    if (!distinct.has(payload)) distinct.set(payload, { field, plain });
    return hashed(plain, hashFunction, field, steps);
  });
  // Decoded last: a payload that the steps do not suffice for is signed all the same.
  const total = [...distinct.values()].reduce((sum, { plain }) => sum + (plain?.length ?? 0), 0);
  const alike = new Map<string, DistinctPayload>();
  for (const { field, plain, content: known } of distinct.values()) {
    const content =
      known ??
      (plain && signer
        ? contentOf(plain, { hashFunction, scheme: signer.scheme, total }, steps, (chain, bytes) =>
            read(chain, bytes, signer),
          )
        : undefined);
    // Payloads that show policies the same are decided once.
    const isRead = known !== undefined || content?.transactions !== undefined;
    const key = isRead ? field : JSON.stringify(content?.resources ?? {}, withIntegers);
    if (!alike.has(key)) alike.set(key, { field, content });
  }
  return { signed, distinct: [...alike.values()] };
}

function withIntegers(_name: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}

function readStructured(
  payload: string,
  encoding: PayloadEncoding,
  field: string,
  steps: Steps,
): HashedTypedData | undefined {
  try {
    if (encoding === 'PAYLOAD_ENCODING_EIP712') return hashTypedData(payload, steps);
    if (encoding !== 'PAYLOAD_ENCODING_EIP7702_AUTHORIZATION') return undefined;
    const { digest, policy } = parseEip7702Authorization(payload, steps);
    return { digest, policy: authorizationPolicyValue(policy) };
  } catch (error) {
    if (error instanceof OutOfSteps || !(error instanceof CoordinatorError)) throw error;
    throw invalidField(field, error.message);
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

function hashed(bytes: Uint8Array, hashFunction: HashFunction, field: string, steps: Steps): Uint8Array {
  switch (hashFunction) {
    case 'HASH_FUNCTION_SHA256':
      takeSha256(steps, bytes.length);
      return sha256(bytes);
    case 'HASH_FUNCTION_KECCAK256':
      takeKeccak(steps, bytes.length);
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
