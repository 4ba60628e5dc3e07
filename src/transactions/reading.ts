import { CoordinatorError } from '../domain/errors.js';
import { Unreadable } from '../domain/policy/types.js';
import { decodingSteps, OutOfSteps, Steps } from '../domain/steps.js';
import {
  bitcoinSigningInputs,
  parseUnsignedBitcoin,
  type BitcoinScript,
  type BitcoinSigningInput,
  type BitcoinTransaction,
} from './bitcoin.js';
import { hex } from './byte-reader.js';
import type { SolanaInterface } from './contracts/anchor-idl.js';
import type { SolanaCall } from './contracts/borsh.js';
import type { EthereumInterface } from './contracts/ethereum-abi.js';
import { parseContractInterface } from './contracts/parse-interface.js';
import {
  ethereumCall,
  ethereumDigest,
  parseUnsignedEthereum,
  recipientOf,
  type EthereumCall,
  type EthereumTransaction,
} from './ethereum.js';
import { ParsedInterfaces } from './parsed-interfaces.js';
import { readPayloads, type PayloadsToRead, type ReadPayloads } from './payloads.js';
import {
  parseSolanaMessage,
  parseUnsignedSolana,
  solanaCalls,
  solanaSigningInput,
  type SolanaTransaction,
} from './solana.js';
import { parseUnsignedTron, tronDigest, type TronTransaction } from './tron.js';

/** An interface uploaded for a contract or a program. */
export interface UploadedInterface {
  readonly address: string;
  readonly json: string;
}

/** A transaction to read, for one key. `interfaces` are those of the contracts that it calls. */
export interface TransactionToRead {
  readonly kind: 'transaction';
  readonly chain: 'ETHEREUM' | 'SOLANA' | 'TRON' | 'BITCOIN';
  readonly unsignedTransaction: string;
  /** In hex; absent if the transaction is only described and nothing is signed. */
  readonly publicKey?: string | undefined;
  /** For Bitcoin, the only address of the signing key. */
  readonly script?: BitcoinScript | undefined;
  readonly interfaces: readonly UploadedInterface[];
  /** The organization, or its parent: whose share of the caches is used. */
  readonly owner: string;
}

/** An interface to parse only to check that it is valid. */
export interface InterfaceToRead {
  readonly kind: 'interface';
  readonly type: 'ETHEREUM' | 'SOLANA';
  readonly json: string;
}

/** The result depends only on this, wherever it is computed. */
export type ToRead = TransactionToRead | PayloadsToRead | InterfaceToRead;

/** A decoded transaction: plain data. */
export type ReadTransaction =
  | {
      readonly chain: 'ETHEREUM';
      readonly transaction: EthereumTransaction;
      readonly digest: Uint8Array;
      readonly call: EthereumCall;
    }
  | {
      readonly chain: 'SOLANA';
      readonly transaction: SolanaTransaction;
      readonly signerIndex: number | undefined;
      readonly calls: readonly (SolanaCall | Unreadable | undefined)[];
    }
  | { readonly chain: 'TRON'; readonly transaction: TronTransaction; readonly digest: Uint8Array }
  | {
      readonly chain: 'BITCOIN';
      readonly transaction: BitcoinTransaction;
      readonly inputs: readonly BitcoinSigningInput[];
    };

export type WhatWasRead<Job extends ToRead = ToRead> = Job extends TransactionToRead
  ? ReadTransaction
  : Job extends PayloadsToRead
    ? ReadPayloads
    : true;

/** The result, or why it failed, and the number of steps. */
export type ReadingOutcome = { readonly spent: number } & (
  { readonly value: unknown } | { readonly refusal: CoordinatorError }
);

/** Characters of the texts read on the main thread; longer ones go to a separate thread. */
const shortText = 32_768;

/** Number of characters that reading processes. */
function lengthOf(job: ToRead): number {
  switch (job.kind) {
    case 'transaction':
      return job.interfaces.reduce((sum, { json }) => sum + json.length, job.unsignedTransaction.length);
    case 'payloads':
      return [...job.payloads, ...(job.signer?.interfaces ?? []).map(({ json }) => json)].reduce(
        (sum, { length }) => sum + length,
        0,
      );
    case 'interface':
      return job.json.length;
  }
}

/**
 * Reads it if that fits into `steps`; undefined if the text is long, or turns out to contain much. Result and refusal
 * are the same as `read` would give.
 * @throws {CoordinatorError} as `read` does
 */
export function readIfShort<Job extends ToRead>(
  job: Job,
  steps: Steps,
): { readonly value: WhatWasRead<Job> } | undefined {
  const { left } = steps;
  if (left <= 0 || lengthOf(job) > shortText) return undefined;
  const whole = new Steps(decodingSteps);
  const tried = whole.upTo(left);
  try {
    const value = readWith(job, tried, whole);
    return tried.isSpent ? undefined : { value };
  } catch (error) {
    if (tried.isSpent) return undefined;
    throw error;
  } finally {
    // Work beyond the budget was not done.
    steps.note(Math.min(tried.spent, left));
  }
}

/**
 * Reads what is to be signed or uploaded, within `decodingSteps`.
 * @param steps all of them, for callers who want to know how many it took
 * @throws {CoordinatorError} INVALID_ARGUMENT that says what cannot be read, or that it would take too many steps
 */
export function read<Job extends ToRead>(job: Job, steps = new Steps(decodingSteps)): WhatWasRead<Job> {
  return readWith(job, steps, steps);
}

function readWith<Job extends ToRead>(job: Job, steps: Steps, whole: Steps): WhatWasRead<Job>;
function readWith(job: ToRead, steps: Steps, whole: Steps): WhatWasRead {
  switch (job.kind) {
    case 'payloads':
      return readPayloads(job, steps, (chain, bytes, { publicKey, interfaces, owner }) => {
        const unsignedTransaction = hex(bytes);
        const transaction = { kind: 'transaction', chain, unsignedTransaction, publicKey, interfaces, owner } as const;
        return readTransaction(transaction, steps, whole, () => parseSolanaMessage(bytes, steps));
      });
    case 'interface':
      parseContractInterface(job.type, job.json, steps);
      return true;
    case 'transaction':
      return readTransaction(job, steps, whole);
  }
}

/** An interface of a contract or program that is not called is not parsed. */
function readTransaction(
  job: TransactionToRead,
  steps: Steps,
  whole: Steps,
  parseSolana: () => SolanaTransaction = () => parseUnsignedSolana(job.unsignedTransaction, steps),
): ReadTransaction {
  const { chain, unsignedTransaction, interfaces, script } = job;
  const publicKey = job.publicKey === undefined ? undefined : Uint8Array.from(Buffer.from(job.publicKey, 'hex'));
  switch (chain) {
    case 'ETHEREUM': {
      const transaction = parseUnsignedEthereum(unsignedTransaction, steps);
      // Its interfaces were chosen by the recipient at its beginning; a call of another contract would not be decoded.
      if (recipientOf(unsignedTransaction) !== transaction.to) throw new Error('the head names another contract');
      const digest = ethereumDigest(transaction, steps);
      const called = interfaces.filter(({ address }) => address === transaction.to);
      const parsed = called.map(({ json }) => parsedInterface('ETHEREUM', json, job.owner, steps, whole));
      return { chain, transaction, digest, call: ethereumCall(transaction, parsed, steps) };
    }
    case 'SOLANA': {
      const transaction = parseSolana();
      const signerIndex = publicKey && solanaSigningInput(transaction, publicKey).signerIndex;
      const keys = new Set(transaction.instructions.map(({ programKey }) => programKey));
      const programs = interfaces
        .filter(({ address }) => keys.has(address))
        .map(({ address, json }) => ({
          address,
          interface: parsedInterface('SOLANA', json, job.owner, steps, whole),
        }));
      return { chain, transaction, signerIndex, calls: solanaCalls(transaction, programs, steps) };
    }
    case 'TRON': {
      const transaction = parseUnsignedTron(unsignedTransaction, steps);
      return { chain, transaction, digest: tronDigest(transaction, steps) };
    }
    case 'BITCOIN': {
      const transaction = parseUnsignedBitcoin(unsignedTransaction, steps);
      const inputs = publicKey ? bitcoinSigningInputs(transaction, publicKey, steps, script) : [];
      return { chain, transaction, inputs };
    }
  }
}

const kept = new ParsedInterfaces<EthereumInterface | SolanaInterface | Unreadable>();

/** Calls cannot be decoded with an interface for which the steps do not suffice. */
function parsedInterface(
  type: 'ETHEREUM',
  json: string,
  owner: string,
  steps: Steps,
  whole: Steps,
): EthereumInterface | Unreadable;
function parsedInterface(
  type: 'SOLANA',
  json: string,
  owner: string,
  steps: Steps,
  whole: Steps,
): SolanaInterface | Unreadable;
function parsedInterface(type: 'ETHEREUM' | 'SOLANA', json: string, owner: string, steps: Steps, whole: Steps) {
  const known = kept.get(type, json);
  if (known) {
    // Costs as much as if it were parsed now: what can be read must not depend on what was read before.
    whole.note(known.spent);
    return known.parsed;
  }
  const before = steps.spent;
  let parsed: EthereumInterface | SolanaInterface | Unreadable;
  try {
    parsed = parseContractInterface(type, json, steps);
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
    parsed = new Unreadable(`the uploaded interface cannot be read: ${error.message}`);
    if (error instanceof OutOfSteps) return parsed;
  }
  kept.keep(type, json, owner, { parsed, spent: steps.spent - before });
  return parsed;
}
