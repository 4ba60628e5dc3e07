import { sha256 } from '@noble/hashes/sha2.js';
import { bech32, bech32m, createBase58check } from '@scure/base';
import { AmbiguousText, type PolicyValue } from '../domain/policy/types.js';
import { hex } from './byte-reader.js';

/** Whose addresses they are. */
export type BitcoinNetwork = 'MAINNET' | 'TESTNET' | 'SIGNET' | 'REGTEST';

const base58check = createBase58check(sha256);

// BIP-325: signet has testnet's prefixes.
const TESTNET_PREFIXES = { p2pkh: 0x6f, p2sh: 0xc4, segwit: 'tb' };
const PREFIXES: Readonly<Record<BitcoinNetwork, typeof TESTNET_PREFIXES>> = {
  MAINNET: { p2pkh: 0x00, p2sh: 0x05, segwit: 'bc' },
  TESTNET: TESTNET_PREFIXES,
  SIGNET: TESTNET_PREFIXES,
  REGTEST: { ...TESTNET_PREFIXES, segwit: 'bcrt' },
};

const SAME_SCRIPT = 'the address is that of the output on another network, and a PSBT does not say which it is for';
// Of Bitcoin and its test networks, and of Dogecoin, whose transactions can be signed like these.
const KEY_HASH_PREFIXES: ReadonlySet<number> = new Set([0x00, 0x6f, 0x1e, 0x71]);
const SCRIPT_HASH_PREFIXES: ReadonlySet<number> = new Set([0x05, 0xc4, 0x16]);

interface NamedOutput {
  readonly address: string;
  readonly address_type: string;
}

function namedOutput(script: Uint8Array, network: BitcoinNetwork): NamedOutput {
  const prefix = PREFIXES[network];
  const text = hex(script);
  const keyHash = /^76a914([0-9a-f]{40})88ac$/.exec(text)?.[1];
  if (keyHash) return { address: base58Address(prefix.p2pkh, keyHash), address_type: 'P2PKH' };
  const scriptHash = /^a914([0-9a-f]{40})87$/.exec(text)?.[1];
  if (scriptHash) return { address: base58Address(prefix.p2sh, scriptHash), address_type: 'P2SH' };
  const program = witnessProgram(script);
  const type = program && witnessType(program);
  if (type) {
    // BIP-350: version 0 keeps bech32, later ones have bech32m.
    const encoding = program.version === 0 ? bech32 : bech32m;
    const words = [program.version, ...encoding.toWords(program.content)];
    return { address: encoding.encode(prefix.segwit, words), address_type: type };
  }
  return { address: '', address_type: script[0] === 0x6a ? 'OP_RETURN' : 'UNKNOWN' };
}

/** The hashes in addresses that policies name, as far as they were looked for; undefined for what is no address in base58. */
export type KnownHashes = Map<string, string | undefined>;

/**
 * The address of an output and the type of its script, as policies see them; `address` is empty if no address stands for the
 * script. Other addresses, of which policies name thousands, are told apart without decoding each: whether one may be that of the
 * output is whether `scriptOf` it is the script.
 */
export function outputAddress(
  script: Uint8Array,
  network: BitcoinNetwork,
  known: KnownHashes = new Map(),
): Readonly<Record<keyof NamedOutput, PolicyValue>> {
  const output = namedOutput(script, network);
  const { address, address_type: type } = output;
  if (address === '') return output;
  const isAlike =
    type === 'P2PKH' || type === 'P2SH' ? likeHash(hashOf(address)!, type, known) : likeProgram(address, script);
  const mayBe = (other: string): boolean => other !== address && isAlike(other);
  return { ...output, address: new AmbiguousText(address, SAME_SCRIPT, mayBe) };
}

/** Whether an address in base58 stands for a hash: one of a few, which are encoded once one has the hash. */
function likeHash(hash: string, type: 'P2PKH' | 'P2SH', known: KnownHashes): (other: string) => boolean {
  let addresses: ReadonlySet<string> | undefined;
  return (other) => {
    if (!known.has(other)) known.set(other, hashOf(other));
    if (known.get(other) !== hash) return false;
    const prefixes = type === 'P2PKH' ? KEY_HASH_PREFIXES : SCRIPT_HASH_PREFIXES;
    addresses ??= new Set(Array.from(prefixes, (prefix) => base58Address(prefix, hash)));
    return addresses.has(other);
  };
}

const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
/** Of a prefix, a hash of 20 bytes and a checksum of 4. */
const BASE58_LENGTHS = { min: 25, max: 35 };
/** As many digits as fit into a number. */
const EXACT_DIGITS = 8;

/** The hash in an address in base58, whatever its prefix and checksum are. */
function hashOf(address: string): string | undefined {
  const { length } = address;
  if (length < BASE58_LENGTHS.min || length > BASE58_LENGTHS.max) return undefined;
  let number = 0n;
  for (let from = 0; from < length; from += EXACT_DIGITS) {
    const to = Math.min(from + EXACT_DIGITS, length);
    let digits = 0;
    for (let at = from; at < to; at += 1) {
      const digit = BASE58.indexOf(address[at]!);
      if (digit < 0) return undefined;
      digits = digits * BASE58.length + digit;
    }
    number = number * BigInt(BASE58.length ** (to - from)) + BigInt(digits);
  }
  return BigInt.asUintN(160, number >> 32n)
    .toString(16)
    .padStart(40, '0');
}

/** BIP-173: printable, of one letter case, and not long. */
const BECH32_TEXT = /^(?:[\x21-\x40\x5b-\x7e]{8,90}|[\x21-\x60\x7b-\x7e]{8,90})$/;
const CHECKSUM_LENGTH = 6;

/** Whether an address in bech32 or bech32m, with any prefix, stands for the witness program that another does. */
function likeProgram(address: string, script: Uint8Array): (other: string) => boolean {
  const body = address.slice(address.lastIndexOf('1'), -CHECKSUM_LENGTH);
  return (other) => {
    const end = other.length - CHECKSUM_LENGTH;
    const from = end - body.length;
    if (from < 1 || other.slice(from, end).toLowerCase() !== body || !BECH32_TEXT.test(other)) return false;
    const { version, content } = witnessProgram(script)!;
    const words = [version, ...bech32.toWords(content)];
    const text = other.toLowerCase();
    return [bech32, bech32m].some((encoding) => encoding.encode(text.slice(0, from), words) === text);
  };
}

/** The script that an address stands for, on any network; undefined if it is not an address. */
export function scriptOf(address: string): string | undefined {
  const decoders = [
    () => scriptOfBech32(bech32, address),
    () => scriptOfBech32(bech32m, address),
    () => base58Script(address),
  ];
  for (const decode of decoders) {
    try {
      return decode();
    } catch {
      continue;
    }
  }
  return undefined;
}

function scriptOfBech32(encoding: typeof bech32, address: string): string {
  const [version = 0, ...words] = encoding.decode(address as `${string}1${string}`).words;
  const content = encoding.fromWords(words);
  return hex(concat([version === 0 ? 0 : 0x50 + version, content.length], content));
}

function base58Script(address: string): string | undefined {
  const [prefix = -1, ...content] = base58check.decode(address);
  if (content.length !== 20) return undefined;
  if (KEY_HASH_PREFIXES.has(prefix)) return `76a914${hex(Uint8Array.from(content))}88ac`;
  return SCRIPT_HASH_PREFIXES.has(prefix) ? `a914${hex(Uint8Array.from(content))}87` : undefined;
}

function base58Address(prefix: number, content: string): string {
  return base58check.encode(concat([prefix], Buffer.from(content, 'hex')));
}

/** The version and program of a witness output (BIP-141), or undefined if the script is not one. */
function witnessProgram(script: Uint8Array): { version: number; content: Uint8Array } | undefined {
  const [opcode = -1, length = -1] = script;
  const version = opcode === 0 ? 0 : opcode >= 0x51 && opcode <= 0x60 ? opcode - 0x50 : undefined;
  const isProgram = version !== undefined && length >= 2 && length <= 40 && script.length === length + 2;
  return isProgram ? { version, content: script.subarray(2) } : undefined;
}

function witnessType({ version, content }: { version: number; content: Uint8Array }): string | undefined {
  if (version === 0) return { 20: 'P2WPKH', 32: 'P2WSH' }[content.length];
  if (version === 1 && content.length === 32) return 'P2TR';
  // Bitcoin Core 28, "pay to anchor".
  return version === 1 && hex(content) === '4e73' ? 'P2A' : 'WITNESS_UNKNOWN';
}

function concat(...parts: readonly (Uint8Array | readonly number[])[]): Uint8Array {
  return Uint8Array.from(
    Buffer.concat(parts.map((part) => (part instanceof Uint8Array ? part : Uint8Array.from(part)))),
  );
}
