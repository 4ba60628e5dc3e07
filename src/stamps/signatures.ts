import { verify as nodeVerify } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { FairQueue, type QueuePath } from '../fairness/fair-queue.js';

/** Group orders: SEC 2, sections 2.4.1 and 2.4.2; RFC 8032, section 5.1. Hex, big-endian, so that strings compare. */
const ORDER = {
  p256: 'ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551',
  secp256k1: 'fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141',
  ed25519: '1000000000000000000000000000000014def9dea2f79cd65812631a5cf5d3ed',
} as const;

/** The canonical encodings of the eight points of small order on edwards25519 (RFC 7748, section 6; order 1, 2, 4, 8). */
const SMALL_ORDER_POINTS: ReadonlySet<string> = new Set([
  '0100000000000000000000000000000000000000000000000000000000000000',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0000000000000000000000000000000000000000000000000000000000000080',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa',
]);

/**
 * Why an ECDSA signature is not the strict DER of a SEQUENCE of two integers in 1..n-1 (X.690, sections 8.3 and 10.1),
 * or undefined if it is. A high s is accepted: most clients' signers do not normalize it, and nothing here is
 * identified by its signature.
 */
export function ecdsaSignatureProblem(signature: Uint8Array, curve: 'p256' | 'secp256k1'): string | undefined {
  const sequence = readDerElement(signature, 0, 0x30);
  if (typeof sequence === 'string') return `the DER sequence ${sequence}`;
  if (sequence.end !== signature.length)
    return `there are ${signature.length - sequence.end} bytes after the DER sequence`;
  const r = readDerElement(signature, sequence.start, 0x02);
  if (typeof r === 'string') return `the DER integer r ${r}`;
  const s = readDerElement(signature, r.end, 0x02);
  if (typeof s === 'string') return `the DER integer s ${s}`;
  if (s.end !== sequence.end) return 'the DER sequence has more than two integers';
  return integerProblem('r', signature, r, ORDER[curve]) ?? integerProblem('s', signature, s, ORDER[curve]);
}

/** The 64 bytes r ‖ s of a signature that passed `ecdsaSignatureProblem`. */
export function compactSignature(der: Uint8Array): Uint8Array {
  const rEnd = 4 + (der[3] ?? 0);
  const compact = new Uint8Array(64);
  for (const [index, part] of [der.subarray(4, rEnd), der.subarray(rEnd + 2)].entries()) {
    const magnitude = part[0] === 0 ? part.subarray(1) : part;
    compact.set(magnitude, 32 * (index + 1) - magnitude.length);
  }
  return compact;
}

/**
 * Why an Ed25519 signature R ‖ S is refused before the equation is evaluated, or undefined. Together with the key check
 * in `normalizePublicKey` and OpenSSL's cofactorless equation, this is the rule set of ed25519-dalek's `verify_strict`:
 * RFC 8032 with S < L, canonical R and A, and neither R nor A of small order. It is narrower than ZIP 215.
 */
export function ed25519SignatureProblem(signature: Uint8Array): string | undefined {
  if (signature.length !== 64) return `the Ed25519 signature is ${signature.length} bytes long, not 64`;
  const scalar = Buffer.from(signature.subarray(32)).reverse().toString('hex');
  if (scalar >= ORDER.ed25519) return 'the scalar S of the Ed25519 signature is not reduced';
  // A non-canonical R needs no check: OpenSSL compares R with the canonical encoding that it computes itself.
  if (SMALL_ORDER_POINTS.has(Buffer.from(signature.subarray(0, 32)).toString('hex'))) {
    return 'the point R of the Ed25519 signature is of small order';
  }
  return undefined;
}

/**
 * Number of bytes whose digest takes as long as the rest of a verification. Longer data would have to be copied for the thread
 * pool, which keeps this thread longer than the digest does where fresh memory is slow.
 */
const longData = 64 * 1024;
/** Verifications in the thread pool at a time, twice its default size; others wait for their turn. */
const mostInThreadPool = 8;

let startedThisTurn = 0;
let inThreadPool = 0;
const waiting = new FairQueue<() => void>();

/**
 * Verifies with node:crypto: on the calling thread when nothing else is being verified, else in the thread pool.
 * Alone, the pool doubles the latency; under load it takes 40 µs of every 50 µs off the event loop and uses every core.
 * "Alone" means the first of its turn of the event loop while the pool is idle: requests that arrive together are
 * parsed in the same turn. Long data is verified on the calling thread, in a turn that the caller has waited for.
 * `digest` is null for Ed25519. Callers take turns: `path` says whose it is.
 */
export function verifySignature(
  digest: 'sha256' | null,
  data: Uint8Array,
  key: KeyObject,
  signature: Uint8Array,
  path: QueuePath = [],
): Promise<boolean> {
  if (startedThisTurn === 0) setImmediate(() => (startedThisTurn = 0));
  startedThisTurn += 1;
  if (data.length > longData || (startedThisTurn === 1 && inThreadPool === 0)) {
    return Promise.resolve(nodeVerify(digest, data, key, signature));
  }
  return new Promise((resolve, reject) => {
    const start = (): void => {
      inThreadPool += 1;
      nodeVerify(digest, data, key, signature, (error, isValid) => {
        inThreadPool -= 1;
        if (error === null) resolve(isValid);
        else reject(error);
        waiting.shift()?.();
      });
    };
    if (inThreadPool < mostInThreadPool) start();
    else waiting.push(path, start);
  });
}

interface DerElement {
  readonly start: number;
  readonly end: number;
}

/** Lengths stay below 128, as a 256-bit signature has at most 72 bytes: the long form would be a second encoding. */
function readDerElement(bytes: Uint8Array, offset: number, tag: number): DerElement | string {
  const length = bytes[offset + 1];
  if (bytes[offset] !== tag || length === undefined) return 'is missing or has the wrong tag';
  if (length >= 0x80) return 'does not have a short definite length';
  const end = offset + 2 + length;
  return end > bytes.length ? 'is longer than the signature' : { start: offset + 2, end };
}

function integerProblem(
  name: string,
  bytes: Uint8Array,
  { start, end }: DerElement,
  order: string,
): string | undefined {
  const first = bytes[start];
  const second = bytes[start + 1];
  if (first === undefined || start === end) return `the DER integer ${name} is empty`;
  if (first >= 0x80) return `the DER integer ${name} is negative`;
  if (first === 0 && end - start > 1 && second !== undefined && second < 0x80) {
    return `the DER integer ${name} has an unnecessary leading zero`;
  }
  const hex = Buffer.from(bytes.subarray(start, end)).toString('hex').replace(/^0+/, '');
  if (hex === '') return `${name} is zero`;
  const padded = hex.padStart(64, '0');
  return padded.length > 64 || padded >= order ? `${name} is not below the order of the curve` : undefined;
}
