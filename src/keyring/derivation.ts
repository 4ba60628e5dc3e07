import { createHmac } from 'node:crypto';
import { invalidField } from '../domain/errors.js';
import type { Curve } from '../domain/key-formats.js';
import { addToScalar, isScalar, publicKeyOf } from './curves.js';

/** Added to the index of a hardened segment (BIP-32, "Extended keys"). */
const HARDENED = 0x8000_0000;
const MAX_DEPTH = 10;
const SEGMENT = /^(0|[1-9][0-9]{0,9})(['h]?)$/;

/** Key of the HMAC that turns a seed into a master key (SLIP-0010, "Master key generation"). */
const MASTER_KEY: Readonly<Record<Curve, string>> = {
  CURVE_SECP256K1: 'Bitcoin seed',
  CURVE_ED25519: 'ed25519 seed',
  CURVE_P256: 'Nist256p1 seed',
};

/**
 * Parses a derivation path like `m/44'/60'/0'/0/0` into its indexes, with hardened ones raised by 2^31 (BIP-32).
 * Strict: at most 10 segments, each 0 to 2147483647 without leading zeros, hardened by ' or h, so that only the mark
 * can be spelled in two ways. Throws INVALID_ARGUMENT naming `title` and the first invalid segment.
 */
export function parsePath(path: string, title = 'path'): number[] {
  if (path.length > 160) throw invalidField(title, `a derivation path of ${path.length} characters is too long`);
  const [root, ...segments] = path.split('/');
  if (root !== 'm') {
    throw invalidField(title, `\`${path}\` must begin with \`m\`, as in \`m/44'/60'/0'/0/0\``);
  }
  if (segments.length > MAX_DEPTH) {
    throw invalidField(title, `\`${path}\` has ${segments.length} segments: at most ${MAX_DEPTH} are allowed`);
  }
  return segments.map((segment, position) => {
    const match = SEGMENT.exec(segment);
    const index = Number(match?.[1] ?? Number.NaN);
    if (match === null || index >= HARDENED) {
      throw invalidField(
        title,
        `segment ${position + 1} of \`${path}\` is \`${segment}\`: it must be a number from 0 to ${HARDENED - 1}, without leading zeros, followed by ' if hardened`,
      );
    }
    return match[2] === '' ? index : index + HARDENED;
  });
}

/**
 * The normalized path by which a key of the curve is derived: ' for hardened, and on Ed25519 every segment hardened,
 * because SLIP-0010 has no other derivation there. Equal results mean the same key. Throws like `parsePath`.
 */
export function canonicalPath(curve: Curve, path: string, title = 'path'): string {
  const segments = indexesOf(curve, path, title).map((index) =>
    index >= HARDENED ? `${index - HARDENED}'` : String(index),
  );
  return ['m', ...segments].join('/');
}

/**
 * The private key, 32 bytes, at a path below a seed (16 to 64 bytes): BIP-32 on secp256k1, SLIP-0010 on P-256
 * (nist256p1) and on Ed25519, there with every segment hardened, marked or not. The caller wipes key and seed. If
 * BIP-32 calls an index unusable (less than once in 2^127), both ECDSA curves retry as in SLIP-0010.
 */
export function derivePrivateKey(curve: Curve, seed: Uint8Array, path: string): Buffer {
  const derivation = new Derivation(seed);
  try {
    return derivation.privateKey(curve, path);
  } finally {
    derivation.forget();
  }
}

/**
 * `derivePrivateKey` for many paths below one seed. It keeps the nodes along the last path, so that the next one begins
 * where the two part: accounts of one wallet usually differ in the last segment.
 */
export class Derivation {
  private curve: Curve | undefined;
  /** The master node, and after it the node of each index. */
  private nodes: Node[] = [];
  private indexes: readonly number[] = [];

  constructor(private readonly seed: Uint8Array) {
    if (seed.length < 16 || seed.length > 64) {
      throw invalidField('seed', `a seed has 16 to 64 bytes, this one has ${seed.length}`);
    }
  }

  privateKey(curve: Curve, path: string): Buffer {
    const indexes = indexesOf(curve, path, 'path');
    if (curve !== this.curve) {
      this.forget();
      this.curve = curve;
      this.nodes = [{ bytes: masterNode(curve, this.seed) }];
    }
    let shared = 0;
    while (shared < indexes.length && indexes[shared] === this.indexes[shared]) shared += 1;
    wipe(this.nodes.splice(shared + 1));
    this.indexes = indexes;
    for (const index of indexes.slice(shared)) this.nodes.push(childNode(curve, this.nodes.at(-1)!, index));
    return Buffer.from(this.nodes.at(-1)!.bytes.subarray(0, 32));
  }

  /** Wipes every node; the seed is the caller's to wipe. */
  forget(): void {
    wipe(this.nodes);
    this.nodes = [];
    this.indexes = [];
    this.curve = undefined;
  }
}

interface Node {
  /** Private key ‖ chain code, 64 bytes. */
  readonly bytes: Buffer;
  /** Known once a child that is not hardened has been derived. */
  publicKey?: Buffer;
}

function wipe(nodes: readonly Node[]): void {
  for (const { bytes } of nodes) bytes.fill(0);
}

function indexesOf(curve: Curve, path: string, title: string): number[] {
  const indexes = parsePath(path, title);
  if (curve !== 'CURVE_ED25519') return indexes;
  return indexes.map((index) => (index >= HARDENED ? index : index + HARDENED));
}

function masterNode(curve: Curve, seed: Uint8Array): Buffer {
  let digest = hmacSha512(MASTER_KEY[curve], seed);
  while (curve !== 'CURVE_ED25519' && !isScalar(curve, digest.subarray(0, 32))) {
    const next = hmacSha512(MASTER_KEY[curve], digest);
    digest.fill(0);
    digest = next;
  }
  return digest;
}

function childNode(curve: Curve, parent: Node, index: number): Node {
  const key = parent.bytes.subarray(0, 32);
  const chainCode = parent.bytes.subarray(32);
  const data = Buffer.alloc(37);
  if (index >= HARDENED) data.set(key, 1);
  else data.set((parent.publicKey ??= publicKeyOf(curve, key)), 0);
  data.writeUInt32BE(index, 33);

  for (;;) {
    const digest = hmacSha512(chainCode, data);
    if (curve === 'CURVE_ED25519' || addToScalar(curve, digest.subarray(0, 32), key)) {
      data.fill(0);
      return { bytes: digest };
    }
    data[0] = 1;
    data.set(digest.subarray(32), 1);
    digest.fill(0);
  }
}

function hmacSha512(key: string | Uint8Array, data: Uint8Array): Buffer {
  return createHmac('sha512', key).update(data).digest();
}
