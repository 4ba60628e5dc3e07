import { sha256 } from '@noble/hashes/sha2.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { CoordinatorError, invalidField } from '../domain/errors.js';
import type { PolicyValue } from '../domain/policy/types.js';
import { OutOfSteps, type Steps } from '../domain/steps.js';
import { authorizationPolicyValue, parseEip7702Authorization } from './ethereum.js';
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

/** Payloads to read; `fields` names each in errors. */
export interface PayloadsToRead {
  readonly kind: 'payloads';
  readonly encoding: PayloadEncoding;
  readonly hashFunction: HashFunction;
  readonly payloads: readonly string[];
  readonly fields: readonly string[];
}

/** What is signed for each payload, in order, and each distinct payload. */
export interface ReadPayloads {
  readonly signed: readonly Uint8Array[];
  /** `structured` is what policies see of it, if the payload describes itself. */
  readonly distinct: readonly { readonly field: string; readonly structured?: PolicyValue }[];
}

const digestLength = 32;

/**
 * Reads payloads: one invalid payload refuses all of them.
 * @throws {CoordinatorError} INVALID_ARGUMENT naming the payload; OutOfSteps
 */
export function readPayloads({ encoding, hashFunction, payloads, fields }: PayloadsToRead, steps: Steps): ReadPayloads {
  // Identical payloads are decided once.
  const distinct = new Map<string, { field: string; structured?: PolicyValue }>();
  const signed = payloads.map((payload, index) => {
    const field = fields[index]!;
    steps.take('valueDecoded');
    steps.take('byteRead', payload.length);
    if (payload === '') throw invalidField(field, 'is empty: send what is to be signed');
    const structured = readStructured(payload, encoding, field, steps);
    if (structured) {
      if (!distinct.has(payload)) distinct.set(payload, { field, structured: structured.policy });
      return structured.digest;
    }
    if (distinct.size === 0) distinct.set(payload, { field });
    const plain = encoding === 'PAYLOAD_ENCODING_HEXADECIMAL' ? readHex(payload, field) : Buffer.from(payload);
    return hashed(plain, hashFunction, field, steps);
  });
  return { signed, distinct: [...distinct.values()] };
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
