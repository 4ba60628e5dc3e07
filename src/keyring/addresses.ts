import { blake2b } from '@noble/hashes/blake2.js';
import { ripemd160 } from '@noble/hashes/legacy.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { keccak_256, sha3_256 } from '@noble/hashes/sha3.js';
import { base32, base58, base58xrp, bech32, bech32m } from '@scure/base';
import { invalidField } from '../domain/errors.js';
import type { AddressFormat, BitcoinNetwork, BitcoinScript, Curve } from '../domain/key-formats.js';
import { crc16 } from './crc16.js';
import type { EcdsaCurve } from './curve-orders.js';
import { uncompressPublicKey } from './curves.js';
import { taprootOutputKey } from './taproot.js';
import { tonAddress } from './ton.js';

/** What a format requires of a key, the default path of its wallets, and its text form. */
interface AddressEncoding {
  readonly curves: readonly Curve[];
  readonly defaultPath: string;
  /** The source that defines the address. */
  readonly source: string;
  /** From the compressed point, or the 32 bytes of an Ed25519 key. */
  encode(publicKey: Uint8Array, curve: Curve): string;
}

const SECP256K1: readonly Curve[] = ['CURVE_SECP256K1'];
const ED25519: readonly Curve[] = ['CURVE_ED25519'];

/**
 * All formats. Default paths are the chains' own (SLIP-0044 coin types, BIP-44, 48, 49, 84, 86, SEP-0005, Spark's
 * identity key), with every segment hardened for Ed25519. They are suggestions; any path may be used.
 */
export const ADDRESS_FORMATS: Readonly<Record<AddressFormat, AddressEncoding>> = {
  ADDRESS_FORMAT_UNCOMPRESSED: {
    curves: ['CURVE_SECP256K1', 'CURVE_P256'],
    defaultPath: "m/0'/0",
    source: 'SEC 1, 2.3.3: 65 bytes in hex',
    encode: (publicKey, curve) => hex(uncompressPublicKey(curve as EcdsaCurve, publicKey)),
  },
  ADDRESS_FORMAT_COMPRESSED: {
    curves: ['CURVE_SECP256K1', 'CURVE_ED25519', 'CURVE_P256'],
    defaultPath: "m/0'/0",
    source: 'SEC 1, 2.3.3: 33 bytes in hex; RFC 8032: 32 bytes in hex',
    encode: hex,
  },
  ADDRESS_FORMAT_ETHEREUM: { curves: SECP256K1, defaultPath: "m/44'/60'/0'/0/0", source: 'EIP-55', encode: ethereum },
  // The public key itself (Solana documentation, "Accounts").
  ADDRESS_FORMAT_SOLANA: {
    curves: ED25519,
    defaultPath: "m/44'/501'/0'/0'",
    source: 'Solana documentation, Accounts: the key in base58',
    encode: (key) => base58.encode(key),
  },
  ADDRESS_FORMAT_COSMOS: {
    curves: SECP256K1,
    defaultPath: "m/44'/118'/0'/0/0",
    source: 'Cosmos SDK, bech32 addresses (ADR-028, legacy keys)',
    encode: cosmos('cosmos'),
  },
  ADDRESS_FORMAT_TRON: {
    curves: SECP256K1,
    defaultPath: "m/44'/195'/0'/0/0",
    source: 'TRON documentation, Account address format',
    encode: tron,
  },
  ADDRESS_FORMAT_SUI: {
    curves: ED25519,
    defaultPath: "m/44'/784'/0'/0'/0'",
    source: 'Sui documentation, Address format (scheme flag 0x00, BLAKE2b-256)',
    encode: sui,
  },
  ADDRESS_FORMAT_APTOS: {
    curves: ED25519,
    defaultPath: "m/44'/637'/0'/0'/0'",
    source: 'AIP-15, AIP-40 (single key, SHA3-256)',
    encode: aptos,
  },
  ...bitcoinFormats('MAINNET', 0, { p2pkh: 0x00, p2sh: 0x05, segwit: 'bc' }),
  ...bitcoinFormats('TESTNET', 1, { p2pkh: 0x6f, p2sh: 0xc4, segwit: 'tb' }),
  // BIP-325: signet has testnet's prefixes.
  ...bitcoinFormats('SIGNET', 1, { p2pkh: 0x6f, p2sh: 0xc4, segwit: 'tb' }),
  ...bitcoinFormats('REGTEST', 1, { p2pkh: 0x6f, p2sh: 0xc4, segwit: 'bcrt' }),
  ADDRESS_FORMAT_SEI: {
    curves: SECP256K1,
    defaultPath: "m/44'/118'/0'/0/0",
    source: 'Sei documentation, Accounts (bech32, prefix `sei`)',
    encode: cosmos('sei'),
  },
  ADDRESS_FORMAT_XLM: { curves: ED25519, defaultPath: "m/44'/148'/0'", source: 'SEP-0023', encode: stellar },
  ADDRESS_FORMAT_DOGE_MAINNET: {
    curves: SECP256K1,
    defaultPath: "m/44'/3'/0'/0/0",
    source: 'Dogecoin chain parameters, base58check',
    encode: payToKeyHash(0x1e),
  },
  ADDRESS_FORMAT_DOGE_TESTNET: {
    curves: SECP256K1,
    defaultPath: "m/44'/1'/0'/0/0",
    source: 'Dogecoin chain parameters, base58check',
    encode: payToKeyHash(0x71),
  },
  ADDRESS_FORMAT_TON_V3R2: {
    curves: ED25519,
    defaultPath: "m/44'/607'/0'/0'/0'",
    source: 'TEP-2, wallet contract v3r2',
    encode: (key) => tonAddress('v3r2', key),
  },
  ADDRESS_FORMAT_TON_V4R2: {
    curves: ED25519,
    defaultPath: "m/44'/607'/0'/0'/0'",
    source: 'TEP-2, wallet contract v4r2',
    encode: (key) => tonAddress('v4r2', key),
  },
  ADDRESS_FORMAT_TON_V5R1: {
    curves: ED25519,
    defaultPath: "m/44'/607'/0'/0'/0'",
    source: 'TEP-2, wallet contract v5r1',
    encode: (key) => tonAddress('v5r1', key),
  },
  ADDRESS_FORMAT_XRP: {
    curves: SECP256K1,
    defaultPath: "m/44'/144'/0'/0/0",
    source: 'XRP Ledger documentation, Address encoding',
    encode: xrp,
  },
  ADDRESS_FORMAT_SPARK_MAINNET: {
    curves: SECP256K1,
    defaultPath: "m/8797555'/0'/0'",
    source: 'Spark documentation, Spark addresses (bech32m)',
    encode: spark('spark'),
  },
  ADDRESS_FORMAT_SPARK_REGTEST: {
    curves: SECP256K1,
    defaultPath: "m/8797555'/0'/0'",
    source: 'Spark documentation, Spark addresses (bech32m)',
    encode: spark('sparkrt'),
  },
};

/**
 * The address of a public key (as `publicKeyOf` returns it). Throws INVALID_ARGUMENT for a format that does not exist,
 * and, naming `title` and the right curves, for a format that does not fit the key's curve.
 */
export function addressOf(format: AddressFormat, curve: Curve, publicKey: Uint8Array, title = 'curve'): string {
  checkAddressFormat(format, curve, title);
  return ADDRESS_FORMATS[format].encode(publicKey, curve);
}

/** The same refusals as `addressOf`, before there is a key. */
export function checkAddressFormat(format: AddressFormat, curve: Curve, title = 'curve'): void {
  if (!Object.hasOwn(ADDRESS_FORMATS, format)) {
    throw invalidField('addressFormat', `\`${format as string}\` is not an address format`);
  }
  const { curves } = ADDRESS_FORMATS[format];
  if (!curves.includes(curve)) {
    throw invalidField(title, `${format} needs a key on ${curves.join(' or ')}, not on \`${curve}\``);
  }
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

function concat(...parts: readonly (Uint8Array | readonly number[])[]): Uint8Array {
  return Buffer.concat(parts.map((part) => Uint8Array.from(part)));
}

/** Bitcoin's HASH160, 20 bytes. */
function hash160(bytes: Uint8Array): Uint8Array {
  return ripemd160(sha256(bytes));
}

/** Payload followed by the first 4 bytes of its double SHA-256. */
function withChecksum(payload: Uint8Array): Uint8Array {
  return concat(payload, sha256(sha256(payload)).subarray(0, 4));
}

/** The last 20 bytes of Keccak-256 of the point (yellow paper, section 4.1 and appendix F). */
function ethereumAccount(publicKey: Uint8Array): Uint8Array {
  return keccak_256(uncompressPublicKey('CURVE_SECP256K1', publicKey).subarray(1)).subarray(12);
}

function ethereum(publicKey: Uint8Array): string {
  return checksumAddress(ethereumAccount(publicKey));
}

/**
 * An Ethereum account (20 bytes) as text with the checksum of EIP-55: a letter is upper case where the Keccak-256 of
 * the lower-case hex has a digit of 8 or more.
 */
export function checksumAddress(account: Uint8Array): string {
  const lower = hex(account);
  const hash = hex(keccak_256(Buffer.from(lower)));
  return `0x${lower.replace(/[a-f]/g, (letter, at: number) => (hash.charAt(at) >= '8' ? letter.toUpperCase() : letter))}`;
}

/** TRON developer documentation, "Account address format": 0x41 and the Ethereum account, base58check. */
function tron(publicKey: Uint8Array): string {
  return base58.encode(withChecksum(concat([0x41], ethereumAccount(publicKey))));
}

/** Cosmos SDK ADR-028, legacy secp256k1 addresses: HASH160 of the compressed point in bech32. */
function cosmos(prefix: string): (publicKey: Uint8Array) => string {
  return (publicKey) => bech32.encode(prefix, bech32.toWords(hash160(publicKey)));
}

/** Sui documentation, "Cryptography: address": BLAKE2b-256 of the Ed25519 flag 0x00 and the key. */
function sui(publicKey: Uint8Array): string {
  return `0x${hex(blake2b(concat([0x00], publicKey), { dkLen: 32 }))}`;
}

/** Aptos documentation, "Accounts": SHA3-256 of the key and the single-key Ed25519 scheme 0x00; long form (AIP-40). */
function aptos(publicKey: Uint8Array): string {
  return `0x${hex(sha3_256(concat(publicKey, [0x00])))}`;
}

/** SEP-0023: version byte of an account (G…), the key, CRC-16 with its low byte first, base32. */
function stellar(publicKey: Uint8Array): string {
  const payload = concat([6 << 3], publicKey);
  const checksum = crc16(payload);
  return base32.encode(concat(payload, [checksum & 0xff, checksum >> 8]));
}

/** XRP Ledger documentation, "Address encoding": type prefix 0x00 and HASH160, base58check in Ripple's alphabet. */
function xrp(publicKey: Uint8Array): string {
  return base58xrp.encode(withChecksum(concat([0x00], hash160(publicKey))));
}

/** Spark documentation, "Spark addresses": bech32m of a protobuf message whose field 1 is the identity key. */
function spark(prefix: string): (publicKey: Uint8Array) => string {
  return (publicKey) => bech32m.encode(prefix, bech32m.toWords(concat([0x0a, publicKey.length], publicKey)));
}

function payToKeyHash(version: number): (publicKey: Uint8Array) => string {
  return (publicKey) => base58.encode(withChecksum(concat([version], hash160(publicKey))));
}

/**
 * The five script types of one Bitcoin network. P2SH is P2SH(P2WPKH), as BIP-49 has it; P2WSH is the script
 * `<public key> OP_CHECKSIG`: the specification names neither script.
 */
function bitcoinFormats(
  network: BitcoinNetwork,
  coinType: 0 | 1,
  prefix: { readonly p2pkh: number; readonly p2sh: number; readonly segwit: string },
): Record<`ADDRESS_FORMAT_BITCOIN_${BitcoinNetwork}_${BitcoinScript}`, AddressEncoding> {
  const witness = (version: 0 | 1, program: Uint8Array): string => {
    // BIP-350: version 0 keeps bech32, later ones have bech32m.
    const encoding = version === 0 ? bech32 : bech32m;
    return encoding.encode(prefix.segwit, [version, ...encoding.toWords(program)]);
  };
  const scripts: Record<BitcoinScript, AddressEncoding> = {
    P2PKH: {
      curves: SECP256K1,
      defaultPath: `m/44'/${coinType}'/0'/0/0`,
      source: 'BIP-13 style base58check of HASH160',
      encode: payToKeyHash(prefix.p2pkh),
    },
    P2SH: {
      curves: SECP256K1,
      defaultPath: `m/49'/${coinType}'/0'/0/0`,
      source: 'BIP-16, BIP-49: P2SH(P2WPKH)',
      encode(publicKey) {
        const redeemScript = concat([0x00, 0x14], hash160(publicKey));
        return base58.encode(withChecksum(concat([prefix.p2sh], hash160(redeemScript))));
      },
    },
    P2WPKH: {
      curves: SECP256K1,
      defaultPath: `m/84'/${coinType}'/0'/0/0`,
      source: 'BIP-141, BIP-173',
      encode: (publicKey) => witness(0, hash160(publicKey)),
    },
    P2WSH: {
      curves: SECP256K1,
      defaultPath: `m/48'/${coinType}'/0'/2'/0/0`,
      source: 'BIP-141, BIP-173: `<public key> OP_CHECKSIG`',
      encode: (publicKey) => witness(0, sha256(concat([publicKey.length], publicKey, [0xac]))),
    },
    P2TR: {
      curves: SECP256K1,
      defaultPath: `m/86'/${coinType}'/0'/0/0`,
      source: 'BIP-86, BIP-341, BIP-350: key path only',
      encode: (publicKey) => witness(1, taprootOutputKey(publicKey)),
    },
  };
  return Object.fromEntries(
    Object.entries(scripts).map(([script, encoding]) => [`ADDRESS_FORMAT_BITCOIN_${network}_${script}`, encoding]),
  ) as Record<`ADDRESS_FORMAT_BITCOIN_${BitcoinNetwork}_${BitcoinScript}`, AddressEncoding>;
}
