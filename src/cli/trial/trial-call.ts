import { AmbiguousText, Doubt, type PolicyValue } from '../../domain/policy/types.js';
import {
  callData,
  selectorOf,
  signatureOf,
  type CallParameter,
  type CallValue,
} from '../../transactions/unsigned-call.js';
import { bytesIn, NotExecuted, recordIn, textIn, type Facts } from './trial-facts.js';

/** What a coordinator reads the calls of a contract by: parameters of its upload. */
export interface TrialInterface {
  readonly type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM' | 'SMART_CONTRACT_INTERFACE_TYPE_SOLANA';
  readonly smartContractAddress: string;
  /** JSON. */
  readonly smartContractInterface: string;
}

/** A call of a function, and the ABI that has it. */
export interface MadeCall {
  /** `0x…`. */
  readonly data: string;
  /** JSON. */
  readonly abi: string;
  readonly facts: { readonly function_name: string; readonly contract_call_args: Facts };
}

interface Argument {
  readonly parameter: CallParameter;
  readonly value: CallValue;
}

const path = 'eth.tx';
const argsPath = `${path}.contract_call_args`;
const isAddress = (text: string): boolean => /^0x[0-9a-f]{40}$/i.test(text);

/** Functions of many contracts (ERC-20, ERC-721, ERC-1155, WETH), to be called where an example gives their selector. */
const wellKnown: readonly (readonly [name: string, types: readonly string[]])[] = [
  ['transfer', ['address', 'uint256']],
  ['approve', ['address', 'uint256']],
  ['transferFrom', ['address', 'address', 'uint256']],
  ['safeTransferFrom', ['address', 'address', 'uint256']],
  ['setApprovalForAll', ['address', 'bool']],
  ['mint', ['address', 'uint256']],
  ['burn', ['uint256']],
  ['deposit', []],
  ['withdraw', ['uint256']],
];

/**
 * The call with these facts of `eth.tx`, by a function whose parameters are of the types of its arguments; undefined if they tell
 * of no function.
 * @throws {NotExecuted}
 */
export function callWith(facts: Facts): MadeCall | undefined {
  const name = textIn(facts['function_name'], `${path}.function_name`);
  const given = recordIn(facts['contract_call_args'], argsPath);
  const said = Object.entries(given).filter(
    ([, value]) => !(value instanceof Doubt && value.kind === 'not-applicable'),
  );
  const isThere = (fact: string) => facts[fact] !== undefined && !(facts[fact] instanceof Doubt);
  if (!isThere('function_name') && !isThere('contract_call_args')) return undefined;
  if (facts['function_name'] instanceof Doubt || facts['contract_call_args'] instanceof Doubt)
    throw new NotExecuted('no call has a function without arguments, or arguments without a function');
  const args = said.map(([key, value]) => argumentOf(key, value, `${argsPath}['${key}']`));
  return called(name ?? 'call', args, facts);
}

function called(name: string, args: readonly Argument[], facts: Facts): MadeCall {
  const data = bytesIn(facts['data'], `${path}.data`, '0x');
  const signature = bytesIn(facts['function_signature'], `${path}.function_signature`, '0x');
  const own = args.map(({ parameter }) => parameter);
  const asked = signature ?? data?.slice(0, selectorOf('').length) ?? selectorOf(signatureOf(name, own));
  const inputs = selectorOf(signatureOf(name, own)) === asked ? own : wellKnownInputs(name, asked, own);
  if (inputs === undefined)
    throw new NotExecuted(`nothing here makes a function \`${name}\` whose signature is \`${asked}\``);
  const values = new Map(args.map(({ parameter, value }) => [parameter.name, value]));
  const whole = callData(
    name,
    inputs,
    inputs.map((input) => values.get(input.name)),
  );
  if (data !== undefined && !isSameCall(data, whole))
    throw new NotExecuted(`the data \`${data}\` does not call \`${name}\` with the arguments of the example`);
  return {
    data: data ?? whole,
    abi: JSON.stringify([{ type: 'function', name, inputs, outputs: [] }]),
    facts: { function_name: name, contract_call_args: Object.fromEntries(values) },
  };
}

/** What is missing at the end is zero, and what follows the arguments is not looked at. */
function isSameCall(data: string, whole: string): boolean {
  return data.startsWith(whole) || (whole.startsWith(data) && /^0*$/.test(whole.slice(data.length)));
}

/** Parameters by the names of arguments of their types, in order; others have no name, so that policies do not see them. */
function wellKnownInputs(name: string, selector: string, own: readonly CallParameter[]) {
  const types = wellKnown.find(
    ([known, all]) => known === name && selectorOf(`${name}(${all.join(',')})`) === selector,
  )?.[1];
  const left = [...own];
  const inputs = types?.map((type): CallParameter => {
    const place = left.findIndex((one) => one.type === type);
    return place < 0 ? { name: '', type } : left.splice(place, 1)[0]!;
  });
  return left.length > 0 ? undefined : inputs;
}

function argumentOf(name: string, value: PolicyValue, at: string): Argument {
  if (value instanceof Doubt) throw new NotExecuted(`nothing here makes a call whose ${at} cannot be read`);
  if (typeof value === 'boolean') return { parameter: { name, type: 'bool' }, value };
  // Policies compare addresses in any letter case, and a coordinator has them in lower case.
  if (typeof value === 'string' && isAddress(value))
    return { parameter: { name, type: 'address' }, value: value.toLowerCase() };
  if (typeof value === 'string') return { parameter: { name, type: 'string' }, value };
  if (typeof value === 'bigint') {
    const type = value < 0n ? 'int256' : 'uint256';
    const isInRange = (value < 0n ? BigInt.asIntN(256, value) : BigInt.asUintN(256, value)) === value;
    if (!isInRange) throw new NotExecuted(`no ${at} is as much as ${value}`);
    return { parameter: { name, type }, value };
  }
  if (value instanceof AmbiguousText) throw new NotExecuted(`nothing here makes a call with ${at}`);
  if (Array.isArray(value)) return listOf(name, value as readonly PolicyValue[], at);
  const members = Object.entries(value as Readonly<Record<string, PolicyValue>>).map(([member, one]) =>
    argumentOf(member, one, `${at}['${member}']`),
  );
  if (members.length === 0) throw new NotExecuted(`no tuple is empty, as ${at} is`);
  const components = members.map(({ parameter }) => parameter);
  return {
    parameter: { name, type: 'tuple', components },
    value: Object.fromEntries(members.map((one) => [one.parameter.name, one.value])),
  };
}

function listOf(name: string, values: readonly PolicyValue[], at: string): Argument {
  const elements = values.map((one, index) => argumentOf(name, one, `${at}[${index}]`));
  const [first = { name, type: 'string' }, ...others] = elements.map(({ parameter }) => parameter);
  if (others.some((other) => JSON.stringify(other) !== JSON.stringify(first)))
    throw new NotExecuted(`no list of a contract has elements as different as those of ${at}`);
  return { parameter: { ...first, type: `${first.type}[]` }, value: elements.map(({ value }) => value) };
}
