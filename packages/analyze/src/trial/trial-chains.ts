import type { PolicyValue } from 'countersign/internal';
import { bitcoinTransactionWith } from './trial-bitcoin.js';
import type { TrialInterface } from './trial-call.js';
import { checkMade, recordIn, refuseOthers, type Facts } from './trial-facts.js';
import { solanaTransactionWith } from './trial-solana.js';
import { tronTransactionWith } from './trial-tron.js';

/** A transaction as it is sent, and as policies see it. */
export interface MadeTransaction {
  /** Hexadecimal. */
  readonly unsignedTransaction: string;
  readonly tx: Facts;
  /** Its addresses, by the texts that stand for them in the example. */
  readonly real: ReadonlyMap<string, string>;
  /** What it must have, if that is not all that was asked for. */
  readonly asked?: Facts;
  /** What its calls are read by. */
  readonly reads?: readonly TrialInterface[];
}

/** An account of a wallet, and its format, which a private key has too. */
export interface TrialAccount {
  readonly curve: 'CURVE_SECP256K1' | 'CURVE_ED25519';
  readonly pathFormat: 'PATH_FORMAT_BIP32';
  readonly path: string;
  readonly addressFormat:
    'ADDRESS_FORMAT_ETHEREUM' | 'ADDRESS_FORMAT_SOLANA' | 'ADDRESS_FORMAT_TRON' | 'ADDRESS_FORMAT_BITCOIN_MAINNET_P2TR';
}

/** The first account of a wallet, if nothing is said of a chain. */
export const ethereum = accountOf('CURVE_SECP256K1', "m/44'/60'/0'/0/0", 'ADDRESS_FORMAT_ETHEREUM');

interface Chain {
  readonly type: 'TRANSACTION_TYPE_SOLANA' | 'TRANSACTION_TYPE_TRON' | 'TRANSACTION_TYPE_BITCOIN';
  readonly account: TrialAccount;
  /** @throws {NotExecuted} */
  readonly make: (requested: Facts, own: string) => MadeTransaction;
}

/** The chains besides Ethereum that policies read, by their root. */
export const otherChains: Readonly<Record<string, Chain>> = {
  solana: {
    type: 'TRANSACTION_TYPE_SOLANA',
    account: accountOf('CURVE_ED25519', "m/44'/501'/0'/0'", 'ADDRESS_FORMAT_SOLANA'),
    make: solanaTransactionWith,
  },
  tron: {
    type: 'TRANSACTION_TYPE_TRON',
    account: accountOf('CURVE_SECP256K1', "m/44'/195'/0'/0/0", 'ADDRESS_FORMAT_TRON'),
    make: tronTransactionWith,
  },
  bitcoin: {
    type: 'TRANSACTION_TYPE_BITCOIN',
    account: accountOf('CURVE_SECP256K1', "m/86'/0'/0'/0/0", 'ADDRESS_FORMAT_BITCOIN_MAINNET_P2TR'),
    make: bitcoinTransactionWith,
  },
};

/**
 * The chain besides Ethereum that an example says something of: without facts, a transaction may be of any. `type` is that of
 * its parameters, if it is given.
 */
export function chainIn(facts: Readonly<Record<string, PolicyValue>>, type: string | undefined): string | undefined {
  const names = Object.keys(otherChains);
  return type === undefined
    ? names.find((name) => Object.keys(recordIn(facts[name], name)).length > 0)
    : names.find((name) => otherChains[name]!.type === type);
}

/** The transaction of an example, signed by the key at this address. @throws {NotExecuted} */
export function transactionOf(name: string, facts: Readonly<Record<string, PolicyValue>>, own: string) {
  const { type, make } = otherChains[name]!;
  const root = recordIn(facts[name], name);
  refuseOthers(root, name, ['tx']);
  const tx = recordIn(root['tx'], `${name}.tx`);
  const made = make(tx, own);
  checkMade(made.asked ?? tx, made.tx, `${name}.tx`, made.real);
  return { type, unsignedTransaction: made.unsignedTransaction, tx: made.tx, reads: made.reads ?? [] };
}

function accountOf(
  curve: TrialAccount['curve'],
  path: string,
  addressFormat: TrialAccount['addressFormat'],
): TrialAccount {
  return { curve, pathFormat: 'PATH_FORMAT_BIP32', path, addressFormat };
}
