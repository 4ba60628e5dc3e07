import { unreadable } from '../../src/domain/policy/types.js';
import { executed, trials, whyNot, type Case } from './trial-claims.js';

afterAll(() => trials.end());

const solanaKey = '4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T';
const mint = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
const tokenProgram = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
const systemProgram = '11111111111111111111111111111111';

/** What there is of a transaction, read by a policy that asks for all of it, and a text that is an address nowhere. */
const transactions: readonly (readonly [string, object, readonly string[]])[] = [
  ['solana', { transfers: [{ from: 'x', to: solanaKey, amount: 7n }] }, ['transfers[0].to', 'transfers[0].amount']],
  [
    'solana',
    { spl_transfers: [{ owner: 'x', to: solanaKey, amount: 2n ** 64n - 1n, token_mint: mint, signers: [] }] },
    ['spl_transfers[0].to', 'spl_transfers[0].amount', 'spl_transfers[0].token_mint'],
  ],
  [
    'solana',
    {
      instructions: [
        {
          program_key: solanaKey,
          instruction_data_hex: 'ab01',
          accounts: [{ account_key: mint, signer: true, writable: true }],
        },
      ],
    },
    ['instructions[0].program_key', 'instructions[0].instruction_data_hex', 'instructions[0].accounts[0].account_key'],
  ],
  [
    // What the instruction does is open, so that it may be the transfer.
    'solana',
    { instructions: [{ program_key: systemProgram }], transfers: [{ amount: 5n }], recent_blockhash: solanaKey },
    ['instructions[0].program_key', 'transfers[0].amount', 'recent_blockhash'],
  ],
  [
    'solana',
    { program_keys: [tokenProgram, solanaKey], account_keys: [mint], transfers: [], spl_transfers: [] },
    [`program_keys.contains('${solanaKey}')`, `account_keys.contains('${mint}')`, 'transfers.count() == 0'],
  ],
  [
    'solana',
    { address_table_lookups: [{ address_table_key: mint, writable_indexes: [7n], readonly_indexes: [2n, 255n] }, {}] },
    [
      'address_table_lookups.count() == 2',
      'address_table_lookups[0].address_table_key',
      'address_table_lookups[0].writable_indexes[0] == 7',
      'address_table_lookups[0].readonly_indexes[1] == 255',
      'instructions.count() == 0',
    ],
  ],
  [
    'solana',
    {
      instructions: [
        { address_table_lookups: [{ writable_indexes: [3n] }] },
        { program_key: solanaKey, address_table_lookups: [] },
        { address_table_lookups: [{ address_table_key: mint, readonly_indexes: [4n] }] },
      ],
    },
    [
      'address_table_lookups.count() == 2',
      'instructions[0].address_table_lookups[0].writable_indexes[0] == 3',
      'instructions[0].accounts[0].writable == true',
      'instructions[1].address_table_lookups.count() == 0',
      'instructions[2].address_table_lookups[0].address_table_key',
      'instructions[2].address_table_lookups[0].readonly_indexes[0] == 4',
      'instructions[2].accounts[0].writable == false',
    ],
  ],
  [
    'tron',
    {
      fee_limit: 9n,
      contract: [
        { type: 'TransferContract', to_address: 'TXrs7yxQLNzig7J9EbKhoEiUp6kWpdWKnD', amount: 2n ** 63n - 1n },
      ],
    },
    ['fee_limit', 'contract[0].type', 'contract[0].to_address', 'contract[0].amount'],
  ],
  [
    'tron',
    {
      contract: [{ data: 'a9059cbb', call_value: 3n, owner_address: 'x' }],
      data: 'ff',
      ref_block_bytes: 'abcd',
      ref_block_hash: '00'.repeat(8),
    },
    ['contract[0].data', 'contract[0].call_value', 'data', 'ref_block_bytes', 'ref_block_hash'],
  ],
  [
    'tron',
    {
      contract: [
        {
          type: 'AccountPermissionUpdateContract',
          owner: {
            threshold: 2n,
            keys: [{ address: 'TXrs7yxQLNzig7J9EbKhoEiUp6kWpdWKnD', weight: 1n }, { weight: 3n }],
          },
          actives: [
            { type: 'Active', id: 2n, operations: '7fff', permission_name: 'pay' },
            { id: 3n, parent_id: 1n },
          ],
        },
      ],
    },
    [
      'contract[0].owner.threshold',
      'contract[0].owner.keys.count() == 2',
      "contract[0].owner.keys.any(k, k.address == 'TXrs7yxQLNzig7J9EbKhoEiUp6kWpdWKnD')",
      'contract[0].owner.keys[1].weight',
      "contract[0].owner.type == 'Owner'",
      'contract[0].actives[0].type',
      'contract[0].actives[0].operations',
      'contract[0].actives[0].permission_name',
      'contract[0].actives[1].id',
      'contract[0].actives[1].parent_id',
    ],
  ],
  [
    'tron',
    { contract: [{ witness: { id: 1n, keys: [] } }] },
    ['contract[0].witness.id', 'contract[0].witness.keys.count() == 0'],
  ],
  [
    'tron',
    {
      contract: [
        {
          type: 'DelegateResourceContract',
          lock: true,
          lock_period: 300n,
          resource: 'ENERGY',
          balance: 1n,
          permission_id: 2n,
        },
      ],
    },
    ['contract[0].lock_period', 'contract[0].resource', 'contract[0].balance', 'contract[0].permission_id'],
  ],
  [
    'bitcoin',
    {
      fee: 500n,
      outputs: [
        { address: 'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq', value: 10n },
        { address_type: 'OP_RETURN', value: 0n },
        { address_type: 'UNKNOWN' },
      ],
      inputs: [{ tx_id: 'ab'.repeat(32), vout: 3n }, { sequence: 1n }],
    },
    [
      'fee',
      'outputs[0].address',
      'outputs[0].value',
      'outputs[1].address_type',
      'outputs[2].address_type',
      'inputs[0].tx_id',
      'inputs[0].vout',
      'inputs[1].sequence',
    ],
  ],
  [
    'bitcoin',
    { version: '1', locktime: { type: 'Seconds' }, outputs: [{ script_pubkey: '0014' + 'cd'.repeat(20) }] },
    ['version', 'locktime.type', 'outputs[0].script_pubkey'],
  ],
];

it.each(transactions)(
  'a trial makes a transaction of %s, which a coordinator reads as it is (%#)',
  async (chain, tx, read) => {
    const at = (path: string): unknown =>
      path
        .split(/[.[\]]+/)
        .filter(Boolean)
        .reduce<unknown>((value, name) => (value as Record<string, unknown>)[name], tx);
    const clauses = read.map((path) => {
      const value = /[(=]/.test(path) ? undefined : at(path);
      const is = typeof value === 'bigint' ? ` == ${value}` : value === undefined ? '' : ` == '${value as string}'`;
      return `${chain}.tx.${path}${is}`;
    });
    const condition = ["wallet.label == 'Treasury'", ...clauses].join(' && ');
    const resources = { wallet: { label: 'Treasury' }, [chain]: { tx } } as Case['resources'];
    expect(await executed([`condition: "${condition}"`], { by: ['Dev'], resources })).toEqual({
      outcome: 'executed',
      steps: [['allowed']],
    });
  },
);

it('a trial signs for another chain with a private key', async () => {
  const resources = { private_key: { label: 'Releases' }, solana: { tx: { transfers: [{ amount: 5n }] } } };
  const condition = "private_key.label == 'Releases' && solana.tx.transfers.all(t, t.amount < 6)";
  expect(await executed([`condition: "${condition}"`], { by: ['Dev'], resources })).toMatchObject({
    outcome: 'executed',
  });
});

it('a trial makes typed data and authorizations', async () => {
  const message = {
    to: `0x${'ab'.repeat(20)}`,
    amount: 5n,
    tags: ['a', 'b'],
    of: { deep: -1n, list: [] },
    isFinal: true,
  };
  const domain = { name: 'Shop', version: '2', chain_id: 137n, verifying_contract: `0x${'cd'.repeat(20)}` };
  const typed = { eth: { eip_712: { primary_type: 'Order', domain, message } } };
  const condition = [
    "eth.eip_712.primary_type == 'Order' && eth.eip_712.domain.name == 'Shop' && eth.eip_712.domain.chain_id == 137",
    `eth.eip_712.domain.verifying_contract == '${domain.verifying_contract}' && eth.eip_712.message['amount'] == 5`,
    `eth.eip_712.message['to'] == '${message.to}' && eth.eip_712.message['of']['deep'] < 0`,
  ].join(' && ');
  const type = 'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2';
  const given = { type, by: ['Dev'], resources: typed };
  expect(await executed([`condition: "${condition}"`], given)).toMatchObject({ outcome: 'executed' });
  const several = {
    ...given,
    type: 'ACTIVITY_TYPE_SIGN_RAW_PAYLOADS',
    params: { encoding: 'PAYLOAD_ENCODING_EIP712' },
  };
  expect(await executed([`condition: "${condition}"`], several)).toMatchObject({ outcome: 'executed' });
  const authorization = { address: `0x${'ab'.repeat(20)}`, chain_id: 10n, nonce: 4n };
  const resources = { eth: { eip_7702_authorization: authorization } };
  const named = Object.entries(authorization).map(
    ([name, value]) => `eth.eip_7702_authorization.${name} == ${typeof value === 'bigint' ? value : `'${value}'`}`,
  );
  expect(await executed([`condition: "${named.join(' && ')}"`], { ...given, resources })).toMatchObject({
    outcome: 'executed',
  });
  // What is for every chain (chain 0) is what has a chain that cannot be read.
  const forEvery = { ...authorization, chain_id: unreadable('it is for every chain') };
  const ofAddress = { ...given, resources: { eth: { eip_7702_authorization: forEvery } } };
  expect(await executed([`condition: "${named[0]}"`], ofAddress)).toMatchObject({ outcome: 'executed' });
});

it('a trial signs a digest by the key of a chain where typed data cannot be read, or has no part', async () => {
  const type = 'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2';
  const policies = ['effect: allow', 'effect: deny, condition: "eth.eip_712.primary_type == \'Order\'"'];
  const signing = (resources: Case['resources'], hash: string) =>
    executed(policies, { type, by: ['Dev'], resources, params: { hash_function: `HASH_FUNCTION_${hash}` } });
  const nothing = await Promise.all(['NO_OP', 'SHA256', 'NOT_APPLICABLE'].map((hash) => signing({}, hash)));
  for (const one of nothing) expect(one).toEqual({ outcome: 'executed', steps: [['allowed']] });
  const hidden = unreadable('sent as a digest');
  const opaque = { eth: { eip_712: hidden, eip_7702_authorization: hidden } };
  expect(await signing(opaque, 'NO_OP')).toEqual({
    outcome: 'disagreed',
    why: 'in a coordinator it is denied, and should be allowed',
  });
});

it('a trial says what of a transaction or of typed data it cannot make', async () => {
  const resources = (values: object) => whyNot({ resources: values as Case['resources'] });
  const ofSolana = (tx: object) => resources({ solana: { tx } });
  expect(await ofSolana({ transfers: [{ amount: 2n ** 64n }] })).toContain('transfers[0].amount is as much as');
  const nothing = { writable_indexes: [], readonly_indexes: [] };
  expect(await ofSolana({ address_table_lookups: [nothing] })).toContain('from which it takes nothing');
  const taking = { instructions: [{ address_table_lookups: [{}] }] };
  expect(await ofSolana({ ...taking, address_table_lookups: [] })).toContain('a table that its transaction has not');
  expect(await ofSolana({ address_table_lookups: [{ readonly_indexes: [256n] }] })).toContain('is as much as 256');
  expect(await ofSolana({ program_keys: ['x'], instructions: [] })).toContain('no instruction of the example calls');
  const call = { program_key: systemProgram, instruction_data_hex: '02' };
  expect(await ofSolana({ instructions: [call], transfers: [] })).toContain('with 0 as solana.tx.transfers.count()');
  const ofTron = (contract: object[]) => resources({ tron: { tx: { contract } } });
  expect(await ofTron([{}, {}])).toContain('has 2 contracts');
  expect(await ofTron([])).toContain('with 0 as tron.tx.contract.count()');
  expect(await ofTron([{ type: 'VoteWitnessContract' }])).toContain('of the type `VoteWitnessContract`');
  expect(await ofTron([{ owner: { type: 'Nobody' } }])).toContain('no permission on Tron is of the type `Nobody`');
  expect(await ofTron([{ lock: true, to_address: 'x' }])).toContain('with all of lock, to_address');
  expect(await ofTron([{ frozen_balance: 1n, resource: 'COAL' }])).toBe(
    'resource cannot be `COAL`: it is of the kind resource',
  );
  expect(await resources({ bitcoin: { tx: { outputs: [] } } })).toContain('without inputs or outputs');
  expect(await resources({ bitcoin: { tx: { inputs: [{ tx_id: 'ab' }] } } })).toContain('nothing has `ab`');
  const typed = (message: object) =>
    whyNot({
      type: 'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2',
      resources: { eth: { eip_712: { message } } } as Case['resources'],
    });
  expect(await typed({ list: [1n, 'x'] })).toContain('elements as different');
});
