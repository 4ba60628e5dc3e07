import { selectorOf, signatureOf, typeOf, type CallParameter, type CallValue } from './unsigned-call.js';

/** An argument of a call. */
export interface Argument {
  readonly parameter: CallParameter;
  readonly value: CallValue;
}

/** A function, and the arguments of its call; what is not said of them is zero or empty. */
export interface FoundFunction {
  readonly name: string;
  readonly inputs: readonly CallParameter[];
  readonly values: readonly (CallValue | undefined)[];
}

/** Types of parameters, the most common first. */
const commonTypes = 'address uint256 bool bytes string bytes32 uint8 uint128 uint64 uint32 address[] uint256[]'.split(
  ' ',
);
/** Functions of many contracts (ERC-20, ERC-721, ERC-1155, WETH), for a selector without a name. */
const commonNames = 'transfer approve transferFrom safeTransferFrom setApprovalForAll mint burn deposit withdraw'.split(
  ' ',
);
/** Selectors are hashes: a function is found by trying, up to so many parameters and so many functions of each number. */
const mostParameters = 6;
const mostTries = 30_000;

/**
 * A function with this selector and parameters for these arguments; others have no name, so that policies do not see them.
 * Undefined if none is found.
 * @param name undefined for any of the common ones
 */
export function functionWith(
  name: string | undefined,
  selector: string,
  args: readonly Argument[],
): FoundFunction | undefined {
  const own = new Map(args.map(({ parameter }) => [typeOf(parameter), parameter]));
  const types = [...new Set([...own.keys(), ...commonTypes])];
  const names = name === undefined ? commonNames : [name];
  for (let count = args.length; count <= mostParameters; count++) {
    for (const parameters of listsOf(types, count, Math.floor(mostTries / names.length))) {
      const inputs = parameters.map((type): CallParameter => ({ type, ...own.get(type), name: '' }));
      const found = names.find((one) => selectorOf(signatureOf(one, inputs)) === selector);
      const values = found === undefined ? undefined : placed(args, inputs);
      if (values) return { name: found!, ...values };
    }
  }
  return undefined;
}

/** All lists of so many types, of as many of the first types as give no more than `most` lists. */
function* listsOf(types: readonly string[], count: number, most: number): Generator<readonly string[]> {
  let base = types.length;
  while (base > 1 && base ** count > most) base--;
  for (let number = 0; number < base ** count; number++)
    yield Array.from({ length: count }, (_, place) => types[Math.floor(number / base ** place) % base]!);
}

/** Each argument at the first place that takes it. */
function placed(args: readonly Argument[], inputs: readonly CallParameter[]): Omit<FoundFunction, 'name'> | undefined {
  const named = [...inputs];
  const values: (CallValue | undefined)[] = inputs.map(() => undefined);
  for (const { parameter, value } of args) {
    const place = named.findIndex((one, at) => values[at] === undefined && takes(one, parameter, value));
    if (place < 0) return undefined;
    const type = named[place]!;
    named[place] = typeOf(type) === typeOf(parameter) ? parameter : { ...type, name: parameter.name };
    values[place] = value;
  }
  return { inputs: named, values };
}

function takes(input: CallParameter, own: CallParameter, value: CallValue): boolean {
  if (typeOf(input) === typeOf(own)) return true;
  const { type } = input;
  if (typeof value === 'bigint') {
    const bits = /^uint(\d+)$/.exec(type)?.[1];
    return bits !== undefined && BigInt.asUintN(Number(bits), value) === value;
  }
  if (typeof value !== 'string') return false;
  return type === 'bytes' ? /^0x(?:[0-9a-f]{2})*$/.test(value) : type === 'bytes32' && /^0x[0-9a-f]{64}$/.test(value);
}
