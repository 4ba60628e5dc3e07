import { AmbiguousText, Doubt, type PolicyValue } from 'countersign/internal';
import { callData, selectorOf, signatureOf } from './unsigned-call.js';
import { bytesIn, NotExecuted, recordIn, textIn, type Facts } from './trial-facts.js';
import { functionWith, type Argument } from './trial-functions.js';

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

const path = 'eth.tx';
const argsPath = `${path}.contract_call_args`;
const isAddress = (text: string): boolean => /^0x[0-9a-f]{40}$/i.test(text);

/**
 * The call with these facts of `eth.tx`, by a function whose parameters are of the types of its arguments; undefined if they tell
 * of no function.
 * @throws {NotExecuted}
 */
export function callWith(facts: Facts): MadeCall | undefined {
  const name = textIn(facts['function_name'], `${path}.function_name`);
  const input = recordIn(facts['contract_call_args'], argsPath);
  const said = Object.entries(input).filter(
    ([, value]) => !(value instanceof Doubt && value.kind === 'not-applicable'),
  );
  const isThere = (fact: string) => facts[fact] !== undefined && !(facts[fact] instanceof Doubt);
  if (!isThere('function_name') && !isThere('contract_call_args')) return undefined;
  if (facts['function_name'] instanceof Doubt || facts['contract_call_args'] instanceof Doubt)
    throw new NotExecuted('no call has a function without arguments, or arguments without a function');
  const args = said.map(([key, value]) => argumentOf(key, value, `${argsPath}['${key}']`));
  return called(name, args, facts);
}

function called(requested: string | undefined, args: readonly Argument[], facts: Facts): MadeCall {
  const data = bytesIn(facts['data'], `${path}.data`, '0x');
  const signature = bytesIn(facts['function_signature'], `${path}.function_signature`, '0x');
  const own = {
    name: requested ?? 'call',
    inputs: args.map(({ parameter }) => parameter),
    values: args.map(({ value }) => value),
  };
  const ownSelector = selectorOf(signatureOf(own.name, own.inputs));
  const selector = signature ?? data?.slice(0, ownSelector.length) ?? ownSelector;
  const found = selector === ownSelector ? own : functionWith(requested, selector, args);
  if (found === undefined)
    throw new NotExecuted(`no function \`${own.name}\` was found whose signature is \`${selector}\``);
  const { name, inputs, values } = found;
  const whole = callData(name, inputs, values);
  if (data !== undefined && !isSameCall(data, whole))
    throw new NotExecuted(`the data \`${data}\` does not call \`${name}\` with the arguments of the example`);
  return {
    data: data ?? whole,
    abi: JSON.stringify([{ type: 'function', name, inputs, outputs: [] }]),
    facts: {
      function_name: name,
      contract_call_args: Object.fromEntries(args.map(({ parameter, value }) => [parameter.name, value])),
    },
  };
}

/** What is missing at the end is zero, and what follows the arguments is not looked at. */
function isSameCall(data: string, whole: string): boolean {
  return data.startsWith(whole) || (whole.startsWith(data) && /^0*$/.test(whole.slice(data.length)));
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
