import { notApplicable, unreadable } from '../../src/domain/policy/types.js';
import { executed, trials, whyNot, type Case } from './trial-claims.js';

afterAll(() => trials.end());

const program = '4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T';
const mint = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
const system = '1'.repeat(32);
const token = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
const at = (index: number, rest: string) => `solana.tx.instructions[${index}].parsed_instruction_data.${rest}`;
const ofProgram = (parsed: object, rest: object = {}) => ({
  program_key: program,
  parsed_instruction_data: parsed,
  ...rest,
});
const instructions: readonly (readonly [string, readonly object[], readonly string[]])[] = [
  ['a name alone', [ofProgram({ instruction_name: 'pause' })], [at(0, "instruction_name == 'pause'")]],
  [
    'arguments of every type',
    [
      ofProgram({
        program_call_args: {
          amount: 5n,
          more: 2n ** 64n,
          most: 2n ** 255n,
          change: -1n,
          to: mint,
          note: 'é',
          isFinal: true,
          lists: [['a'], []],
          parts: [{ of: mint, deep: { isDeep: false } }],
          nothing: {},
        },
      }),
    ],
    [
      at(0, "program_call_args['amount'] == 5"),
      at(0, `program_call_args['more'] == ${2n ** 64n}`),
      at(0, `program_call_args['most'] == ${2n ** 255n}`),
      `${at(0, "program_call_args['change']")} < 0`,
      at(0, `program_call_args['to'] == '${mint}'`),
      at(0, "program_call_args['note'] == 'é'"),
      at(0, "program_call_args['isFinal']"),
      at(0, "program_call_args['lists'][0][0] == 'a'"),
      at(0, "program_call_args['lists'][1].count() == 0"),
      at(0, `program_call_args['parts'][0]['of'] == '${mint}'`),
      `!${at(0, "program_call_args['parts'][0]['deep']['isDeep']")}`,
    ],
  ],
  [
    'accounts, of which the example names one',
    [
      ofProgram(
        { named_accounts: { vault: mint } },
        {
          accounts: [
            { account_key: program, signer: false, writable: false },
            { account_key: mint, signer: false, writable: true },
          ],
        },
      ),
    ],
    [at(0, `named_accounts['vault'] == '${mint}'`), 'solana.tx.instructions[0].accounts[1].writable'],
  ],
  [
    'several instructions of one program, and one of its own discriminator',
    [
      ofProgram({ instruction_name: 'open', named_accounts: { owner: 'x' }, program_call_args: { amount: 1n } }),
      ofProgram({ instruction_name: 'close', discriminator: '07' }),
      { program_key: program, instruction_data_hex: '08' },
    ],
    [
      at(0, "instruction_name == 'open'"),
      at(0, "program_call_args['amount'] == 1"),
      at(1, "instruction_name == 'close'"),
      at(1, "discriminator == '07'"),
    ],
  ],
  [
    'nothing to move, of programs that move something',
    [system, token].flatMap((one) =>
      ['open', 'close'].map((instruction_name) =>
        ofProgram({ instruction_name, program_call_args: { amount: 5n } }, { program_key: one }),
      ),
    ),
    [
      at(1, "instruction_name == 'close'"),
      at(3, "program_call_args['amount'] == 5"),
      `solana.tx.instructions[2].program_key == '${token}'`,
      'solana.tx.transfers.count() == 0 && solana.tx.spl_transfers.count() == 0',
    ],
  ],
  [
    'data',
    [
      ofProgram({ program_call_args: { amount: 1n } }, { instruction_data_hex: 'ab0100000000000000ff' }),
      ofProgram({ instruction_name: 'other' }, { instruction_data_hex: 'cdef' }),
    ],
    [at(0, "program_call_args['amount'] == 1"), at(0, "discriminator == 'ab'"), at(1, "discriminator == 'cdef'")],
  ],
];

it.each(instructions)(
  'a trial makes an instruction with %s, which a coordinator reads by an IDL',
  async (_, all, read) => {
    const resources = { solana: { tx: { instructions: all } } } as Case['resources'];
    expect(await executed([`condition: "${read.join(' && ')}"`], { by: ['Dev'], resources })).toEqual({
      outcome: 'executed',
      steps: [['allowed']],
    });
  },
);

const instruction = (program_key: string | undefined, parsed?: object) => ({
  ...(program_key === undefined ? {} : { program_key }),
  ...(parsed === undefined ? {} : { parsed_instruction_data: parsed }),
});

it.each<readonly [string, object, readonly string[]]>([
  [
    'a transfer',
    {
      transfers: [{ to: mint, amount: 5n }],
      instructions: [instruction(system, { instruction_name: 'pay', program_call_args: { lamports: 5n } })],
    },
    [
      at(0, "program_call_args['lamports'] == 5"),
      at(0, "discriminator == '02000000'"),
      `solana.tx.transfers[0].to == '${mint}' && solana.tx.transfers[0].amount == 5`,
    ],
  ],
  [
    'a transfer of tokens',
    {
      spl_transfers: [{ to: 'x', token_mint: mint, amount: 7n }],
      instructions: [instruction(undefined, { instruction_name: 'pay', named_accounts: { of: mint, receiver: 'x' } })],
    },
    [
      at(0, "instruction_name == 'pay'"),
      at(0, `named_accounts['of'] == '${mint}'`),
      `solana.tx.spl_transfers[0].token_mint == '${mint}' && solana.tx.spl_transfers.all(t, t.amount == 7)`,
      `${at(0, "named_accounts['receiver']")} == solana.tx.spl_transfers[0].to`,
    ],
  ],
  [
    'a transfer, of which it has other arguments',
    {
      transfers: [{ to: mint, amount: 5n }],
      spl_transfers: [{ amount: 7n }],
      instructions: [
        instruction(system, { program_call_args: { lamports: 6n } }),
        instruction(token, { instruction_name: 'pay', program_call_args: { amount: 8n } }),
      ],
    },
    [
      at(0, "program_call_args['lamports'] == 6"),
      `solana.tx.transfers[0].to == '${mint}' && solana.tx.transfers.all(t, t.amount == 5)`,
      at(1, "program_call_args['amount'] == 8"),
      'solana.tx.spl_transfers.all(t, t.amount == 7) && solana.tx.spl_transfers.count() == 1',
    ],
  ],
  [
    'a transfer that another instruction makes',
    {
      transfers: [{ amount: 5n }],
      instructions: [instruction(system, { program_call_args: { note: 'x' } }), instruction(system)],
    },
    [at(0, "program_call_args['note'] == 'x'"), 'solana.tx.transfers.count() == 1'],
  ],
])('a trial makes an instruction that an IDL reads together with %s', async (_, tx, read) => {
  const resources = { solana: { tx } } as Case['resources'];
  expect(await executed([`condition: "${read.join(' && ')}"`], { by: ['Dev'], resources })).toEqual({
    outcome: 'executed',
    steps: [['allowed']],
  });
});

it('a trial says which instruction it cannot make', async () => {
  const ofCalls = (...all: readonly object[]) =>
    whyNot({ resources: { solana: { tx: { instructions: all } } } as Case['resources'] });
  const ofCall = (parsed: object, rest: object = {}) => ofCalls(ofProgram(parsed, rest));
  const args = (program_call_args: object) => ofCall({ program_call_args });
  expect(await ofCall({ discriminator: '' })).toContain('an empty solana.tx.instructions[0].parsed_instruction_data');
  expect(await ofCall({ program_call_args: { amount: 5n } }, { instruction_data_hex: 'ab' })).toContain(
    'does not call `call` with the arguments',
  );
  expect(await ofCall({ named_accounts: { a: mint } }, { accounts: [] })).toContain('no account of the instruction is');
  expect(await ofCalls(ofProgram({ discriminator: '07' }), ofProgram({ discriminator: '0708' }))).toContain(
    'reads different instructions',
  );
  expect(
    await ofCalls(ofProgram({ discriminator: '07' }), { program_key: program, instruction_data_hex: '0708' }),
  ).toContain('reads different instructions');
  const transferOf = (lamports: bigint) => ({ discriminator: '02000000', program_call_args: { lamports } });
  const transfers = [{ amount: 7n }];
  const instructions = [instruction(system, transferOf(5n))];
  const ofTransfer = { solana: { tx: { transfers, instructions } } } as Case['resources'];
  expect(await whyNot({ resources: ofTransfer })).toContain('does not call `call` with the arguments');
  expect(await args({ list: [1n, 'x'] })).toContain('elements as different');
  expect(await args({ amount: 2n ** 256n })).toContain('256 bits at most');
  expect(await args({ amount: unreadable('x') })).toContain('cannot be read');
  expect(await args({ amount: notApplicable })).toMatchObject({ outcome: 'executed' });
});
