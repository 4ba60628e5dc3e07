import { decode, encode } from 'cbor2';

/** Signature algorithms of COSE (RFC 9053, section 2.1), with the length of a signature in bytes. */
const algorithms = { ES256: { id: -7, length: 64 }, ES384: { id: -35, length: 96 } } as const;

export type CoseAlgorithm = keyof typeof algorithms;

/** A parsed COSE_Sign1 message (RFC 9052, section 4.2); nothing is verified yet. */
export interface CoseSign1 {
  readonly algorithm: CoseAlgorithm;
  readonly payload: Uint8Array;
  /** r ‖ s. */
  readonly signature: Uint8Array;
  /** The signed bytes: the Sig_structure with no external data (RFC 9052, section 4.4). */
  readonly toBeSigned: Uint8Array;
}

/** A message, untagged like attestation documents. `sign` returns r ‖ s over the hash named by the algorithm. */
export function signCoseSign1(
  algorithm: CoseAlgorithm,
  payload: Uint8Array,
  sign: (toBeSigned: Uint8Array) => Uint8Array,
): Uint8Array {
  const header = encode(new Map([[1, algorithms[algorithm].id]]));
  const signature = sign(sigStructure(header, payload));
  return encode([bytes(header), new Map(), bytes(payload), bytes(signature)]);
}

/**
 * Parses a message, with or without its tag.
 * @throws {Error} that says what is wrong with it
 */
export function readCoseSign1(message: Uint8Array): CoseSign1 {
  const parts = untagged(decodeCbor(message));
  if (!Array.isArray(parts) || parts.length !== 4)
    throw new Error('it is not a COSE_Sign1, which is an array of four elements');
  const [header, , payload, signature] = parts as unknown[];
  if (!isBytes(header) || !isBytes(payload) || !isBytes(signature)) {
    throw new Error('protected header, payload and signature of a COSE_Sign1 must be byte strings');
  }
  const algorithm = algorithmIn(header);
  const { length } = algorithms[algorithm];
  if (signature.length !== length) {
    throw new Error(`a signature of ${algorithm} has ${length} bytes, this one has ${signature.length}`);
  }
  return { algorithm, payload, signature, toBeSigned: sigStructure(header, payload) };
}

/**
 * One CBOR item (RFC 8949) of definite length without repeated keys; maps with keys other than strings become Maps.
 * @throws {Error} if the bytes are not exactly one item
 */
export function decodeCbor(item: Uint8Array): unknown {
  try {
    return decode(item, { rejectDuplicateKeys: true, rejectStreaming: true, maxDepth: 16 });
  } catch (cause) {
    throw new Error(`it is not CBOR: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}

/** A view that the encoder treats as a byte string; it does not know Buffer. */
export const bytes = (data: Uint8Array): Uint8Array =>
  new Uint8Array(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength);

export const isBytes = (value: unknown): value is Uint8Array => value instanceof Uint8Array;

function sigStructure(header: Uint8Array, payload: Uint8Array): Uint8Array {
  return encode(['Signature1', bytes(header), new Uint8Array(0), bytes(payload)]);
}

function algorithmIn(header: Uint8Array): CoseAlgorithm {
  const parameters = decodeCbor(header);
  const id: unknown = parameters instanceof Map ? parameters.get(1) : undefined;
  const found = Object.entries(algorithms).find(([, algorithm]) => algorithm.id === id);
  // Critical headers must be understood (RFC 9052, section 3.1), and only the algorithm is.
  if (!found || !(parameters instanceof Map) || parameters.size !== 1) {
    throw new Error('its protected header must name ES256 or ES384, and nothing else');
  }
  return found[0] as CoseAlgorithm;
}

function untagged(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('tag' in value) || !('contents' in value)) return value;
  if (Number(value.tag) !== 18) throw new Error(`its CBOR tag is ${String(value.tag)}, not 18 (COSE_Sign1)`);
  return value.contents;
}
