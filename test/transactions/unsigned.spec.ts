import { Interface } from 'ethers';
import { callData, selectorOf, signatureOf, type CallParameter } from '../../src/transactions/unsigned-call.js';

const address = `0x${'ab'.repeat(20)}`;
const tuple = (name: string, type: string, ...components: CallParameter[]): CallParameter => ({
  name,
  type,
  components,
});

it.each([
  ['nothing', [], []],
  [
    'numbers',
    [
      { name: 'a', type: 'uint256' },
      { name: 'b', type: 'int256' },
      { name: 'c', type: 'bool' },
      { name: 'd', type: 'address' },
    ],
    [2n ** 256n - 1n, -(2n ** 255n), true, address],
  ],
  [
    'texts and lists',
    [
      { name: 'a', type: 'string[][]' },
      { name: 'b', type: 'string' },
      { name: 'c', type: 'address[]' },
      { name: 'd', type: 'uint256' },
    ],
    [[['x'.repeat(32), ''], []], 'ä'.repeat(20), [address, address], 7n],
  ],
  [
    'tuples',
    [
      tuple('a', 'tuple', { name: 'x', type: 'string' }, { name: 'y', type: 'uint256' }),
      tuple('b', 'tuple', { name: 'z', type: 'bool' }, tuple('w', 'tuple', { name: 'v', type: 'int256' })),
      tuple('c', 'tuple[]', { name: 'x', type: 'string[]' }),
    ],
    [{ x: 'text', y: 3n }, { z: false, w: { v: -2n } }, [{ x: ['a', 'b'] }, { x: [] }]],
  ],
] as const)('call data with %s is what ethers writes', (_, inputs, values) => {
  const outside = new Interface([{ type: 'function', name: 'act', inputs }]);
  expect(callData('act', inputs, values)).toBe(outside.encodeFunctionData('act', values));
  expect(selectorOf(signatureOf('act', inputs))).toBe(outside.getFunction('act')!.selector);
});

it('what is missing in call data is zero or empty, and what is of another type is refused', () => {
  const inputs = ['uint256', 'bool', 'address', 'string', 'string[]'].map((type, at) => ({ name: `of${at}`, type }));
  const outside = new Interface([{ type: 'function', name: 'act', inputs }]);
  const empty = [0n, false, `0x${'00'.repeat(20)}`, '', []];
  expect(callData('act', inputs, [])).toBe(outside.encodeFunctionData('act', empty));
  for (const [type, value] of [
    ['uint256', -1n],
    ['address', '0xab'],
    ['bool', 1n],
    ['string', 1n],
    ['string[]', 'x'],
  ] as const)
    expect(() => callData('act', [{ name: 'a', type }], [value])).toThrow(`has no value of the type ${type}`);
});
