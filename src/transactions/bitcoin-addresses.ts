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

/**
 * The address of an output and the type of its script, as policies see them; `address` is empty if no address stands for the
 * script. `scriptNamedBy` is `scriptOf`, or what remembers it.
 */
export function outputAddress(
  script: Uint8Array,
  network: BitcoinNetwork,
  scriptNamedBy: (address: string) => string | undefined,
): Readonly<Record<keyof NamedOutput, PolicyValue>> {
  const output = namedOutput(script, network);
  if (output.address === '') return output;
  const text = hex(script);
  const mayBe = (other: string): boolean => other !== output.address && scriptNamedBy(other) === text;
  return { ...output, address: new AmbiguousText(output.address, SAME_SCRIPT, mayBe) };
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
