import { decodingSteps, Steps } from '../../src/domain/steps.js';
import * as bitcoin from '../../src/transactions/bitcoin.js';
import type { SolanaInterface } from '../../src/transactions/contracts/anchor-idl.js';
import * as borsh from '../../src/transactions/contracts/borsh.js';
import * as calldata from '../../src/transactions/contracts/calldata.js';
import type { EthereumInterface } from '../../src/transactions/contracts/ethereum-abi.js';
import * as parsing from '../../src/transactions/contracts/parse-interface.js';
import * as ethereum from '../../src/transactions/ethereum.js';
import * as solana from '../../src/transactions/solana.js';
import * as tron from '../../src/transactions/tron.js';
import * as typedData from '../../src/transactions/typed-data.js';

/*
 * The decoders, each call with all the steps that a request may take.
 */

const steps = () => new Steps(decodingSteps);

export const parseUnsignedBitcoin = (hex: string) => bitcoin.parseUnsignedBitcoin(hex, steps());
export const parseUnsignedEthereum = (hex: string) => ethereum.parseUnsignedEthereum(hex, steps());
export const parseUnsignedSolana = (hex: string) => solana.parseUnsignedSolana(hex, steps());
export const parseUnsignedTron = (hex: string) => tron.parseUnsignedTron(hex, steps());
export const ethereumDigest = (transaction: ethereum.EthereumTransaction) =>
  ethereum.ethereumDigest(transaction, steps());
export const tronDigest = (transaction: tron.TronTransaction) => tron.tronDigest(transaction, steps());
export const parseEip7702Authorization = (json: string) => ethereum.parseEip7702Authorization(json, steps());
export const hashTypedData = (json: string) => typedData.hashTypedData(json, steps());

export const bitcoinSigningInputs = (
  transaction: bitcoin.BitcoinTransaction,
  publicKey: Uint8Array,
  script?: bitcoin.BitcoinScript,
) => bitcoin.bitcoinSigningInputs(transaction, publicKey, steps(), script);

export function parseContractInterface(type: 'ETHEREUM', json: string): EthereumInterface;
export function parseContractInterface(type: 'SOLANA', json: string): SolanaInterface;
export function parseContractInterface(type: 'ETHEREUM' | 'SOLANA', json: string): EthereumInterface | SolanaInterface;
export function parseContractInterface(type: 'ETHEREUM' | 'SOLANA', json: string) {
  return parsing.parseContractInterface(type, json, steps());
}

export const decodeCalldata = (contract: EthereumInterface, data: string) =>
  calldata.decodeCalldata(contract, data, steps());
export const decodeSolanaArgs = (program: SolanaInterface, data: Uint8Array) =>
  borsh.decodeSolanaArgs(program, data, new borsh.BorshBudget(steps()));

/** What policies read of a call of the contract at `address`, which has the interfaces there. */
export const ethereumPolicyValue = (
  transaction: ethereum.EthereumTransaction,
  from: string,
  interfaces: readonly { readonly address: string; readonly interface: EthereumInterface }[],
) => {
  const called = interfaces.filter(({ address }) => address.toLowerCase() === transaction.to);
  const call = ethereum.ethereumCall(
    transaction,
    called.map((one) => one.interface),
    steps(),
  );
  return ethereum.ethereumPolicyValue(transaction, from, call);
};

export const solanaPolicyValue = (transaction: solana.SolanaTransaction, programs: readonly solana.DeployedProgram[]) =>
  solana.solanaPolicyValue(transaction, solana.solanaCalls(transaction, programs, steps()));
