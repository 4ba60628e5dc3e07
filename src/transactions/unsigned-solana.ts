import { base58 } from '@scure/base';
import { byLibrary, CannotBeWritten, unsigned } from './unsigned-refusals.js';

/** An account as an instruction uses it; `key` is base58 of 32 bytes. */
export interface SolanaAccountUse {
  readonly key: string;
  readonly signer: boolean;
  readonly writable: boolean;
}

/** An instruction that is still to be put into a message. */
export interface SolanaInstructionToSend {
  readonly programKey: string;
  readonly accounts: readonly SolanaAccountUse[];
  readonly data: Uint8Array;
  /** Places in `solanaLookedUp` of the accounts that follow the others. */
  readonly lookedUp?: readonly number[];
}

/** An address table on chain, and which of its accounts a message takes. */
export interface SolanaTable {
  readonly tableKey: string;
  readonly writableIndexes: readonly number[];
  readonly readonlyIndexes: readonly number[];
}

/**
 * What a transaction says: with tables a version 0 message, otherwise a legacy one. Each account has the rights of all its uses;
 * `others` are there without being used.
 */
export interface UnsignedSolana {
  readonly feePayer: string;
  readonly instructions: readonly SolanaInstructionToSend[];
  readonly others?: readonly string[];
  readonly tables?: readonly SolanaTable[];
  /** Base58 of 32 bytes. */
  readonly recentBlockhash: string;
}

const versionZero = 0x80;
const keyLength = 32;
const signatureLength = 64;
// Of the message: accounts of each kind come together in this order (Solana documentation, "Transactions").
const kinds = [
  { signer: true, writable: true },
  { signer: true, writable: false },
  { signer: false, writable: true },
  { signer: false, writable: false },
] as const;

/** The accounts of the message, in order: the fee payer, other signers, and the rest. */
export function solanaAccounts({ feePayer, instructions, others = [] }: UnsignedSolana): readonly SolanaAccountUse[] {
  const uses = new Map<string, SolanaAccountUse>();
  const use = ({ key, signer, writable }: SolanaAccountUse): void => {
    const known = uses.get(key);
    uses.set(key, {
      key,
      signer: signer || known?.signer === true,
      writable: writable || known?.writable === true,
    });
  };
  use({ key: feePayer, signer: true, writable: true });
  for (const { accounts } of instructions) for (const one of accounts) use(one);
  for (const key of [...others, ...instructions.map(({ programKey }) => programKey)])
    use({ key, signer: false, writable: false });
  return kinds.flatMap(({ signer, writable }) =>
    [...uses.values()].filter((one) => one.signer === signer && one.writable === writable),
  );
}

/** What is looked up, as instructions count it after the accounts of the message: what may be written of each table, then the rest. */
export function solanaLookedUp(tables: readonly SolanaTable[]) {
  return [true, false].flatMap((isWritable) =>
    tables.flatMap(({ writableIndexes, readonlyIndexes }, table) =>
      (isWritable ? writableIndexes : readonlyIndexes).map((index) => ({ table, isWritable, index })),
    ),
  );
}

/** The transaction with zeros for its signatures, in hexadecimal. @throws {CannotBeWritten} for a key that is none, and for more than its counts can say */
export function unsignedSolana(transaction: UnsignedSolana): string {
  const accounts = solanaAccounts(transaction);
  const place = new Map(accounts.map(({ key }, index) => [key, index]));
  const count = (signer: boolean, writable?: boolean): number =>
    accounts.filter((one) => one.signer === signer && (writable === undefined || one.writable === writable)).length;
  const { tables = [] } = transaction;
  const message = Buffer.concat([
    tables.length > 0 ? Uint8Array.of(versionZero) : new Uint8Array(),
    bytes('the number of accounts', [count(true), count(true, false), count(false, false)]),
    listOf(accounts.map(({ key }) => bytesOf('a key', key))),
    bytesOf('recentBlockhash', transaction.recentBlockhash),
    listOf(
      transaction.instructions.map(({ programKey, accounts: used, data, lookedUp = [] }) =>
        Buffer.concat([
          bytes('the place of a program', [place.get(programKey)!]),
          bytesList('the place of an account', [
            ...used.map(({ key }) => place.get(key)!),
            ...lookedUp.map((at) => accounts.length + at),
          ]),
          compactU16(data.length),
          data,
        ]),
      ),
    ),
    tables.length > 0 ? listOf(tables.map(tableBytes)) : new Uint8Array(),
  ]);
  return Buffer.concat([
    listOf(Array.from({ length: count(true) }, () => new Uint8Array(signatureLength))),
    message,
  ]).toString('hex');
}

function tableBytes({ tableKey, writableIndexes, readonlyIndexes }: SolanaTable): Uint8Array {
  const indexes = (list: readonly number[]) => bytesList('an index of an address table', list);
  return Buffer.concat([bytesOf('tableKey', tableKey), indexes(writableIndexes), indexes(readonlyIndexes)]);
}

const bytes = (field: string, list: readonly number[]): Uint8Array =>
  Uint8Array.from(list, (byte) => unsigned(field, byte, 8));

const bytesList = (field: string, list: readonly number[]): Buffer =>
  Buffer.concat([compactU16(list.length), bytes(field, list)]);

function listOf(items: readonly Uint8Array[]): Buffer {
  return Buffer.concat([compactU16(items.length), ...items]);
}

/** 7 bits a byte, low bits first. */
function compactU16(length: number): Uint8Array {
  const value = unsigned('a length', length, 16);
  return value < 0x80
    ? Uint8Array.of(value)
    : Buffer.concat([Uint8Array.of((value & 0x7f) | 0x80), compactU16(value >> 7)]);
}

function bytesOf(field: string, key: string): Uint8Array {
  const decoded = byLibrary(field, key, () => base58.decode(key));
  if (decoded.length !== keyLength) throw new CannotBeWritten(field, key, 'it is base58 of 32 bytes');
  return decoded;
}
