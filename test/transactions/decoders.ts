import { decodingSteps, Steps } from '../../src/domain/steps.js';
import * as bitcoin from '../../src/transactions/bitcoin.js';
import * as contracts from '../../src/transactions/contract-interface.js';
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

export function parseContractInterface(type: 'ETHEREUM', json: string): contracts.EthereumInterface;
export function parseContractInterface(type: 'SOLANA', json: string): contracts.SolanaInterface;
export function parseContractInterface(
  type: 'ETHEREUM' | 'SOLANA',
  json: string,
): contracts.EthereumInterface | contracts.SolanaInterface;
export function parseContractInterface(type: 'ETHEREUM' | 'SOLANA', json: string) {
  return contracts.parseContractInterface(type, json, steps());
}

export const decodeCalldata = (contract: contracts.EthereumInterface, data: string) =>
  contracts.decodeCalldata(contract, data, steps());
export const decodeSolanaArgs = (program: contracts.SolanaInterface, data: Uint8Array) =>
  contracts.decodeSolanaArgs(program, data, new contracts.BorshBudget(steps()));

/** What policies read of a call of the contract at `address`, which has the interfaces there. */
export const ethereumPolicyValue = (
  transaction: ethereum.EthereumTransaction,
  from: string,
  interfaces: readonly { readonly address: string; readonly interface: contracts.EthereumInterface }[],
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
