import { id } from 'ethers';
import { notApplicable, unreadable } from '../../src/domain/policy/types.js';
import { executed, trials, whyNot, type Case } from './trial-claims.js';

afterAll(() => trials.end());

const receiver = `0x${'ab'.repeat(20)}`;
const amount = "eth.tx.contract_call_args['amount'] == 5";
const selector = (signature: string): string => id(signature).slice(0, 10);
const order = selector('order(address,uint128,bytes32,uint256)');
const hash = `0x${'cd'.repeat(32)}`;
const forward = selector('forward((address,uint256)[],bytes,address,bool,string)');
const calls: readonly (readonly [string, object, string])[] = [
  ['a name alone', { function_name: 'pause' }, "eth.tx.function_name == 'pause'"],
  [
    'arguments alone',
    { to: receiver, contract_call_args: { amount: 5n, of: `0X${'AB'.repeat(20)}` } },
    `eth.tx.to == '${receiver}' && ${amount}`,
  ],
  [
    'arguments of every type',
    {
      function_name: 'order',
      contract_call_args: {
        to: receiver,
        amount: 5n,
        change: -1n,
        note: 'a text that is longer than a word of 32 bytes',
        isFinal: true,
        lists: [['a', 'b'], ['']],
        parts: [{ of: receiver, note: 'x' }],
        none: [],
      },
    },
    [
      "eth.tx.function_name == 'order'",
      amount,
      `eth.tx.contract_call_args['to'] == '${receiver}' && eth.tx.contract_call_args['change'] < 0`,
      "eth.tx.contract_call_args['isFinal'] && eth.tx.contract_call_args['lists'][0][1] == 'b'",
      `eth.tx.contract_call_args['parts'][0]['of'] == '${receiver}'`,
      "eth.tx.contract_call_args['parts'][0]['note'] == 'x' && eth.tx.contract_call_args['none'].count() == 0",
    ].join(' && '),
  ],
  [
    'the selector of a function that has more arguments',
    { function_name: 'transfer', function_signature: '0xa9059cbb', contract_call_args: { amount: 5n } },
    `eth.tx.function_signature == '0xa9059cbb' && ${amount}`,
  ],
  [
    'the selector of a function whose parameters have to be found',
    {
      function_name: 'order',
      function_signature: order,
      contract_call_args: { amount: 2n ** 128n, id: hash, fee: 5n },
    },
    [
      `eth.tx.function_signature == '${order}' && eth.tx.function_name == 'order'`,
      `eth.tx.contract_call_args['amount'] > 5 && eth.tx.contract_call_args['id'] == '${hash}'`,
      "eth.tx.contract_call_args['fee'] == 5",
    ].join(' && '),
  ],
  [
    'the selector of a function of five parameters, of tuples and bytes',
    {
      function_name: 'forward',
      function_signature: forward,
      contract_call_args: { parts: [{ to: receiver, amount: 5n }], data: '0xabcd' },
    },
    [
      `eth.tx.function_signature == '${forward}' && eth.tx.function_name == 'forward'`,
      `eth.tx.contract_call_args['parts'][0]['to'] == '${receiver}' && eth.tx.contract_call_args['data'] == '0xabcd'`,
    ].join(' && '),
  ],
  [
    'a selector and arguments, and no name',
    { function_signature: selector('transferFrom(address,address,uint256)'), contract_call_args: { amount: 5n } },
    `eth.tx.function_signature == '0x23b872dd' && ${amount}`,
  ],
  [
    'data',
    { function_name: 'transfer', data: '0xa9059cbb', contract_call_args: { amount: 0n } },
    "eth.tx.data == '0xa9059cbb' && eth.tx.function_name == 'transfer' && eth.tx.contract_call_args['amount'] == 0",
  ],
];

it.each(calls)('a trial makes a call with %s, which a coordinator reads by its interface', async (_, tx, condition) => {
  const resources = { eth: { tx } } as Case['resources'];
  expect(await executed([`condition: "${condition}"`], { by: ['Dev'], resources })).toEqual({
    outcome: 'executed',
    steps: [['allowed']],
  });
});

it('a trial says which call it cannot make', async () => {
  const ofCall = (tx: object) => whyNot({ resources: { eth: { tx } } as Case['resources'] });
  const transfer = { function_name: 'transfer' };
  expect(await ofCall({ ...transfer, function_signature: '0x00000000' })).toContain('whose signature is `0x00000000`');
  expect(await ofCall({ ...transfer, data: '0xa9059cbb', contract_call_args: { amount: 5n } })).toContain(
    'does not call `transfer` with the arguments',
  );
  expect(await ofCall({ ...transfer, function_signature: '0xa9059cbb', contract_call_args: { x: 'y' } })).toContain(
    'no function `transfer` was found whose signature is `0xa9059cbb`',
  );
  // More than four parameters are not found where two of them are of uncommon types.
  const rare = selector('rare(uint64,uint64,uint32,uint32,address)');
  expect(await ofCall({ function_name: 'rare', function_signature: rare })).toContain('no function `rare` was found');
  expect(await ofCall({ ...transfer, to: '' })).toContain('creates a contract');
  expect(await ofCall({ ...transfer, contract_call_args: notApplicable })).toContain('a function without arguments');
  expect(await ofCall({ ...transfer, contract_call_args: { list: [1n, 'x'] } })).toContain('elements as different');
  expect(await ofCall({ ...transfer, contract_call_args: { amount: 2n ** 256n } })).toContain("['amount'] is as much");
  expect(await ofCall({ ...transfer, contract_call_args: { amount: unreadable('x') } })).toContain('cannot be read');
  expect(await ofCall({ ...transfer, contract_call_args: { of: {} } })).toContain('no tuple is empty');
  expect(await ofCall({ function_name: '' })).toContain('the coordinator refuses it');
});
