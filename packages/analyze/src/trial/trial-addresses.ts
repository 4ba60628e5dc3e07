import { randomBytes } from 'node:crypto';
import { sha256 } from '@noble/hashes/sha2.js';
import { base58, createBase58check } from '@scure/base';
import type { PolicyValue } from 'countersign/internal';
import { textIn } from './trial-facts.js';

/** How addresses of a chain are written. */
interface AddressKind {
  readonly isAddress: (text: string) => boolean;
  /** Of nobody. */
  readonly another: () => string;
}

const base58check = createBase58check(sha256);

/** Whether a decoder takes a text, and what it gives is as it should be. */
function decodes(decode: (text: string) => Uint8Array, isRight: (bytes: Uint8Array) => boolean) {
  return (text: string): boolean => {
    try {
      return isRight(decode(text));
    } catch {
      return false;
    }
  };
}

/** 32 bytes in base58. */
export const solanaKeys: AddressKind = {
  isAddress: decodes(
    (text) => base58.decode(text),
    ({ length }) => length === 32,
  ),
  another: () => base58.encode(randomBytes(32)),
};

/** 21 bytes in base58check, of which the first is 0x41. */
export const tronAddresses: AddressKind = {
  isAddress: decodes(
    (text) => base58check.decode(text),
    ({ length, 0: first }) => length === 21 && first === 0x41,
  ),
  another: () => base58check.encode(Buffer.concat([Uint8Array.of(0x41), randomBytes(20)])),
};

/** The addresses of an example: each that is one stays; any other text stands for a real one, the same wherever it is. */
export class Addresses {
  /** Real ones, by the texts that stand for them. */
  readonly real = new Map<string, string>();

  constructor(
    private readonly kind: AddressKind,
    /** That of the key which signs. */
    readonly own: string,
  ) {}

  /** Somebody's; anybody's if nothing is said. @throws {NotExecuted} */
  of(value: PolicyValue | undefined, path: string): string {
    return this.at(value, path) ?? this.kind.another();
  }

  /** The signer's, unless something else is said. @throws {NotExecuted} */
  ofSigner(value: PolicyValue | undefined, path: string): string {
    const text = textIn(value, path);
    const isFree = text !== undefined && !this.kind.isAddress(text) && !this.real.has(text);
    if (isFree && ![...this.real.values()].includes(this.own)) this.real.set(text, this.own);
    return this.at(value, path) ?? this.own;
  }

  private at(value: PolicyValue | undefined, path: string): string | undefined {
    const text = textIn(value, path);
    if (text === undefined || this.kind.isAddress(text)) return text;
    const known = this.real.get(text) ?? this.kind.another();
    this.real.set(text, known);
    return known;
  }
}
