import { sha256 } from '@noble/hashes/sha2.js';
import { crc16 } from './crc16.js';

/** Wallet contracts that a TON address may belong to. */
export type TonWallet = 'v3r2' | 'v4r2' | 'v5r1';

/** Hash and depth of the root cell of each contract's published code (ton-blockchain/wallet-contract*, @ton/ton). */
const CODE: Readonly<Record<TonWallet, { readonly hash: string; readonly depth: number }>> = {
  v3r2: { hash: '84dafa449f98a6987789ba232358072bc0f76dc4524002a5d0918b9a75d2d599', depth: 0 },
  v4r2: { hash: 'feb5ff6820e2ff0d9483e7e0d62c817d846789fb4ae580c878866d959dabd5c0', depth: 7 },
  v5r1: { hash: '20834b7b72b112147e1b2fb457b84e74d1a30f04f737d4f62a668e9552d2b72f', depth: 6 },
};

/** The subwallet number of wallets v3 and v4 in the base chain. */
const WALLET_ID = 698983191;
/** v5: client context (workchain 0, version 0, subwallet 0) XOR the main network's global id, -239. */
const WALLET_ID_V5 = 0x7fffff11;

/**
 * The address of an Ed25519 key's wallet contract on TON's main network, workchain 0, in the form that wallets show:
 * user friendly, non-bounceable, base64url (`UQ…`; TEP-2). It is the hash of the contract's initial state, code and
 * data.
 */
export function tonAddress(wallet: TonWallet, publicKey: Uint8Array): string {
  const data = cellHash(initialData(wallet, publicKey), []);
  // StateInit (TL-B): no split depth, not special, code, data, no libraries.
  const account = cellHash('00110', [
    { hash: Buffer.from(CODE[wallet].hash, 'hex'), depth: CODE[wallet].depth },
    { hash: data, depth: 0 },
  ]);
  const tagged = Buffer.concat([Buffer.from([0x51, 0x00]), account]);
  const checksum = crc16(tagged);
  return Buffer.concat([tagged, Buffer.from([checksum >> 8, checksum & 0xff])]).toString('base64url');
}

/** The initial data of a wallet: sequence number 0, wallet id, key, and per version flags with empty dictionaries. */
function initialData(wallet: TonWallet, publicKey: Uint8Array): string {
  const sequenceNumber = uint32(0);
  const key = Array.from(publicKey, (byte) => byte.toString(2).padStart(8, '0')).join('');
  switch (wallet) {
    case 'v3r2':
      return sequenceNumber + uint32(WALLET_ID) + key;
    case 'v4r2':
      return `${sequenceNumber}${uint32(WALLET_ID)}${key}0`;
    case 'v5r1':
      return `1${sequenceNumber}${uint32(WALLET_ID_V5)}${key}0`;
  }
}

function uint32(value: number): string {
  return value.toString(2).padStart(32, '0');
}

/** Representation hash of an ordinary cell of level 0 (TVM white paper, section 3.1.5). */
function cellHash(
  bits: string,
  references: readonly { readonly hash: Uint8Array; readonly depth: number }[],
): Uint8Array {
  const fullBytes = Math.floor(bits.length / 8);
  // An incomplete last byte ends with a one and zeroes.
  const padded = bits.length % 8 === 0 ? bits : `${bits}1`.padEnd((fullBytes + 1) * 8, '0');
  const data = Buffer.from(padded.match(/.{8}/g)!.map((byte) => Number.parseInt(byte, 2)));
  const depths = references.map(({ depth }) => Buffer.from([depth >> 8, depth & 0xff]));
  return sha256(
    Buffer.concat([
      Buffer.from([references.length, fullBytes + data.length]),
      data,
      ...depths,
      ...references.map(({ hash }) => hash),
    ]),
  );
}
