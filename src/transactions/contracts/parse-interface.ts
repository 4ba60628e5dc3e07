import type { Steps } from '../../domain/steps.js';
import { checkDepth } from '../refusals.js';
import { readIdl, type SolanaInterface } from './anchor-idl.js';
import { readAbi, type EthereumInterface } from './ethereum-abi.js';
import { bad, InterfaceSize } from './interface-size.js';

/** docs/protocol.md, contract interfaces limits an interface to 400 000 characters; here they are UTF-16 code units. */
const MAX_INTERFACE_LENGTH = 400_000;

/**
 * Reads the `smartContractInterface` of a contract: the JSON ABI of an Ethereum contract (a list), or the Anchor IDL of
 * a Solana program (an object, of either format), at most 400 000 characters.
 * @throws {CoordinatorError} INVALID_ARGUMENT that names the place in the interface
 */
export function parseContractInterface(type: 'ETHEREUM', json: string, steps: Steps): EthereumInterface;
export function parseContractInterface(type: 'SOLANA', json: string, steps: Steps): SolanaInterface;
export function parseContractInterface(
  type: 'ETHEREUM' | 'SOLANA',
  json: string,
  steps: Steps,
): EthereumInterface | SolanaInterface;
export function parseContractInterface(
  type: 'ETHEREUM' | 'SOLANA',
  json: string,
  steps: Steps,
): EthereumInterface | SolanaInterface {
  if (json.length > MAX_INTERFACE_LENGTH) {
    throw bad(`has \`${json.length}\` characters; at most ${MAX_INTERFACE_LENGTH} are taken`);
  }
  const problem = checkDepth(json, steps);
  if (problem !== undefined) throw bad(problem);
  let parsed: unknown;
  try {
    parsed = JSON.parse(json);
  } catch {
    throw bad('is not valid JSON');
  }
  const size = new InterfaceSize(steps);
  return type === 'ETHEREUM' ? readAbi(parsed, size) : readIdl(parsed, size);
}
