import { notApplicable, type PolicyValue, unsignedEthereum, type UnsignedEthereum } from 'countersign/internal';
import { callWith, type MadeCall, type TrialInterface } from './trial-call.js';
import { amountIn, checkMade, NotExecuted, recordIn, refuseOthers, textIn } from './trial-facts.js';

type Facts = Readonly<Record<string, PolicyValue>>;

const somebody = '0x1111111111111111111111111111111111111111';
const gwei = 1_000_000_000n;
const known = ['to', 'data', 'value', 'gas', 'chain_id', 'nonce', 'type', 'from', 'function_signature']
  .concat(['function_name', 'contract_call_args'])
  .concat(['gas_price', 'max_fee_per_gas', 'max_priority_fee_per_gas']);
const noCall = { function_name: notApplicable, contract_call_args: notApplicable };

/**
 * An unsigned Ethereum transaction that decodes to these facts, with `eth.tx` as policies see it, and the interface that it is read
 * by if it calls a function. What the facts leave open is as usual.
 * @throws {NotExecuted}
 */
export function transactionWith(eth: PolicyValue | undefined): {
  readonly unsignedTransaction: string;
  readonly tx: Facts;
  readonly read?: TrialInterface;
} {
  const input = recordIn(eth, 'eth');
  refuseOthers(input, 'eth', ['tx']);
  const facts = recordIn(input['tx'], 'eth.tx');
  refuseOthers(facts, 'eth.tx', known);
  const call = callWith(facts);
  const made = fieldsOf(call === undefined ? facts : { ...facts, data: call.data });
  const unsignedTransaction = unsignedEthereum(made);
  const tx = { ...factsOf(made), ...(call?.facts ?? noCall) };
  // The sender is the key's.
  checkMade({ ...facts, from: notApplicable }, tx, 'eth.tx');
  return call === undefined ? { unsignedTransaction, tx } : { unsignedTransaction, tx, read: readBy(made, call) };
}

function readBy({ to }: UnsignedEthereum, { abi }: MadeCall): TrialInterface {
  if (to === '') throw new NotExecuted('a transaction that creates a contract calls none of its functions');
  return {
    type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
    smartContractAddress: to,
    smartContractInterface: abi,
  };
}

function fieldsOf(facts: Facts): UnsignedEthereum {
  const amount = (name: string) => amountIn(facts[name], `eth.tx.${name}`);
  const call = {
    to: receiverIn(facts),
    value: amount('value') ?? 0n,
    data: dataIn(facts),
    chainId: amount('chain_id') ?? 1n,
    nonce: amount('nonce') ?? 0n,
    gas: amount('gas') ?? 21_000n,
  };
  const [price, most, tip] = ['gas_price', 'max_fee_per_gas', 'max_priority_fee_per_gas'].map(amount);
  const type = textIn(facts['type'], 'eth.tx.type') ?? 'TYPE_2';
  switch (type) {
    case 'LEGACY':
    case 'TYPE_1':
      return { ...call, type, gasPrice: alike(price, most, tip) ?? 20n * gwei };
    case 'TYPE_2':
    case 'TYPE_3':
    case 'TYPE_4': {
      const maxFeePerGas = alike(price, most) ?? (tip !== undefined && tip > 20n * gwei ? tip : 20n * gwei);
      const maxPriorityFeePerGas = tip ?? (maxFeePerGas < gwei ? maxFeePerGas : gwei);
      return { ...call, type, maxFeePerGas, maxPriorityFeePerGas };
    }
    default:
      throw new NotExecuted(`nothing here makes a transaction of the type ${type}`);
  }
}

function receiverIn({ to }: Facts): string {
  const receiver = textIn(to, 'eth.tx.to') ?? somebody;
  if (!/^(?:0x[0-9a-f]{40})?$/i.test(receiver)) throw new NotExecuted(`no transaction goes to \`${receiver}\``);
  return receiver;
}

function dataIn({ data: input, function_signature: signed }: Facts): string {
  const signature = textIn(signed, 'eth.tx.function_signature');
  const data = textIn(input, 'eth.tx.data') ?? (signature === undefined || signature === '' ? '0x' : signature);
  if (!/^0x(?:[0-9a-f]{2})*$/i.test(data)) throw new NotExecuted(`no transaction has the data \`${data}\``);
  if (signature !== undefined && signature.toLowerCase() !== signatureIn(data).toLowerCase())
    throw new NotExecuted(`the data \`${data}\` does not begin with the signature \`${signature}\``);
  return data;
}

/** What is shorter than a signature has none. */
const signatureIn = (data: string): string => (data.length >= 10 ? data.slice(0, 10) : '');

function factsOf(made: UnsignedEthereum): Facts {
  const { type, to, data, value, gas, nonce, chainId } = made;
  const [most, tip] =
    'gasPrice' in made ? [made.gasPrice, made.gasPrice] : [made.maxFeePerGas, made.maxPriorityFeePerGas];
  const fees = { gas_price: most, max_fee_per_gas: most, max_priority_fee_per_gas: tip };
  return { type, to, data, value, gas, nonce, chain_id: chainId, function_signature: signatureIn(data), ...fees };
}

/** What several fields have in common in a transaction of this type. */
function alike(...fees: readonly (bigint | undefined)[]): bigint | undefined {
  const input = [...new Set(fees.filter((fee) => fee !== undefined))];
  if (input.length > 1) throw new NotExecuted(`no transaction of its type has different fees ${input.join(', ')}`);
  return input[0];
}
