import {
  decompileTransactionMessage,
  getCompiledTransactionMessageDecoder,
  getTransactionDecoder,
  isSignerRole,
  isWritableRole,
} from '@solana/kit';
import { base58 } from '@scure/base';
import { Psbt } from 'bitcoinjs-lib';
import { Interface, Transaction } from 'ethers';
import { TronWeb, utils } from 'tronweb';
import { unsignedBitcoin } from '../../packages/analyze/src/trial/unsigned-bitcoin.js';
import {
  callData,
  selectorOf,
  signatureOf,
  type CallParameter,
} from '../../packages/analyze/src/trial/unsigned-call.js';
import { unsignedEthereum } from '../../src/transactions/unsigned-ethereum.js';
import { BorshWriter } from '../../packages/analyze/src/trial/unsigned-instruction.js';
import { CannotBeWritten } from '../../src/transactions/unsigned-refusals.js';
import { unsignedSolana } from '../../src/transactions/unsigned-solana.js';
import { unsignedTron } from '../../packages/analyze/src/trial/unsigned-tron.js';

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
    expect(() => callData('act', [{ name: 'a', type }], [value])).toThrow(`it is of the type ${type}`);
});

it('ethers reads a transaction of each type as it was written', () => {
  const call = { to: address, value: 10n ** 20n, data: '0xa9059cbb00', chainId: 137n, nonce: 300n, gas: 21_000n };
  const fees = { maxFeePerGas: 9n, maxPriorityFeePerGas: 0n } as const;
  for (const made of [
    { ...call, type: 'LEGACY', gasPrice: 7n },
    { ...call, type: 'TYPE_1', gasPrice: 0n },
    { ...call, type: 'TYPE_2', ...fees },
    { ...call, type: 'TYPE_3', ...fees },
    { ...call, type: 'TYPE_4', ...fees },
  ] as const) {
    const read = Transaction.from(unsignedEthereum(made));
    const { to, value, data, chainId, nonce, gasLimit } = read;
    const seen = { to: to!.toLowerCase(), value, data, chainId, nonce: BigInt(nonce), gas: gasLimit };
    expect(seen).toEqual(call);
    expect(read.type).toBe(['LEGACY', 'TYPE_1', 'TYPE_2', 'TYPE_3', 'TYPE_4'].indexOf(made.type));
    const isSame =
      'maxFeePerGas' in made
        ? read.maxFeePerGas === made.maxFeePerGas && read.maxPriorityFeePerGas === made.maxPriorityFeePerGas
        : read.gasPrice === made.gasPrice;
    expect(isSame).toBe(true);
  }
});

it('@solana/kit reads a transaction as it was written', () => {
  const [payer, signer, account, program, other] = [
    '4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T',
    'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
    'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA',
    'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb',
    'ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL',
  ] as const;
  const accounts = [
    { key: account, signer: false, writable: true },
    { key: signer, signer: true, writable: false },
    { key: payer, signer: true, writable: true },
  ];
  // Longer than what one byte of a length can say.
  const data = new Uint8Array(200).fill(7);
  const written = unsignedSolana({
    feePayer: payer,
    instructions: [{ programKey: program, accounts, data }],
    others: [other],
    recentBlockhash: other,
  });
  const { messageBytes, signatures } = getTransactionDecoder().decode(Buffer.from(written, 'hex'));
  expect(Object.keys(signatures)).toEqual([payer, signer]);
  const compiled = getCompiledTransactionMessageDecoder().decode(messageBytes);
  expect(compiled.staticAccounts).toContain(other);
  const message = decompileTransactionMessage(compiled);
  expect(message).toMatchObject({ feePayer: { address: payer }, lifetimeConstraint: { blockhash: other } });
  const [read, ...more] = message.instructions;
  expect([read.programAddress, Buffer.from(read.data!), more]).toEqual([program, Buffer.from(data), []]);
  const seen = read.accounts!.map((one) => ({
    key: one.address,
    signer: isSignerRole(one.role),
    writable: isWritableRole(one.role),
  }));
  expect(seen).toEqual(accounts);
});

it('TronWeb reads contracts as they were written', () => {
  const [owner, receiver] = ['TXrs7yxQLNzig7J9EbKhoEiUp6kWpdWKnD', 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf'] as const;
  const hexOf = (one: string) => TronWeb.address.toHex(one).toUpperCase();
  const frame = { refBlockBytes: 'DDF1', refBlockHash: 'D04764F22469A0B8', expiration: 1_655_692_140_000n };
  const rest = { timestamp: 1_655_692_083_406n, feeLimit: 300n, data: 'FF', permissionId: 2n };
  const reads = (type: 'TransferContract' | 'TriggerSmartContract', fields: Record<string, string | bigint>) =>
    utils.deserializeTx.deserializeTransaction(
      type,
      unsignedTron({ ...frame, ...rest, type, fields: { owner_address: owner, ...fields } }),
    ) as unknown;
  const value = (fields: object) => ({
    fee_limit: 300,
    ref_block_bytes: 'DDF1',
    ref_block_hash: 'D04764F22469A0B8',
    expiration: 1_655_692_140_000,
    timestamp: 1_655_692_083_406,
    data: 'FF',
    contract: [{ Permission_id: 2, parameter: { value: { owner_address: hexOf(owner), ...fields } } }],
  });
  const to = hexOf(receiver);
  expect(reads('TransferContract', { to_address: receiver, amount: 2n ** 40n })).toMatchObject(
    value({ to_address: to, amount: 2 ** 40 }),
  );
  const called = { contract_address: receiver, call_value: 3n, data: 'A9059CBB' };
  expect(reads('TriggerSmartContract', called)).toMatchObject(
    value({ contract_address: to, call_value: 3, data: 'A9059CBB' }),
  );
});

it('bitcoinjs reads a PSBT as it was written', () => {
  const script = `5120${'ab'.repeat(32)}`;
  const input = { txId: 'cd'.repeat(31) + '01', vout: 3, sequence: 4_294_967_293, spent: { amount: 900n, script } };
  const output = { amount: 700n, script: `0014${'ef'.repeat(20)}` };
  const written = unsignedBitcoin({ version: 2, lockTime: 500, inputs: [input], outputs: [output] });
  const psbt = Psbt.fromHex(written);
  expect([psbt.version, psbt.locktime]).toEqual([2, 500]);
  const [read] = psbt.txInputs;
  expect(Buffer.from(read!.hash).reverse().toString('hex')).toBe(input.txId);
  expect(read).toMatchObject({ index: 3, sequence: 4_294_967_293 });
  const { value, script: spent } = psbt.data.inputs[0]!.witnessUtxo!;
  expect([value, Buffer.from(spent).toString('hex')]).toEqual([900n, script]);
  const [{ value: amount, script: paid } = { value: 0n, script: new Uint8Array() }] = psbt.txOutputs;
  expect([amount, Buffer.from(paid).toString('hex')]).toEqual([700n, output.script]);
});

const eth = {
  type: 'LEGACY',
  to: address,
  value: 0n,
  data: '0x',
  chainId: 1n,
  nonce: 0n,
  gas: 1n,
  gasPrice: 1n,
} as const;
const owner = 'TXrs7yxQLNzig7J9EbKhoEiUp6kWpdWKnD';
const tron = {
  ...{ refBlockBytes: '', refBlockHash: '', expiration: 0n, timestamp: 0n, feeLimit: 0n, data: '', permissionId: 0n },
  type: 'FreezeBalanceV2Contract',
  fields: {},
} as const;
const permission = {
  type: 'Owner',
  id: 0n,
  permission_name: '',
  threshold: 1n,
  parent_id: 0n,
  operations: '',
} as const;
const permitting = (one: object) =>
  unsignedTron({
    ...tron,
    type: 'AccountPermissionUpdateContract',
    fields: { owner: { ...permission, keys: [{ address: owner, weight: 1n }], ...one } },
  });
const key = '1'.repeat(32);
const solana = { feePayer: key, instructions: [], recentBlockhash: key };
const accountsOf = (count: number, signer: boolean) =>
  Array.from({ length: count }, (_, at) => ({
    key: base58.encode(Uint8Array.from({ length: 32 }, (__, place) => (place < 2 ? at >> (8 * place) : 7))),
    signer,
    writable: false,
  }));
const calling = (one: object) =>
  unsignedSolana({
    ...solana,
    instructions: [{ programKey: key, accounts: [], data: new Uint8Array(), ...one }],
  });
const spent = { amount: 1n, script: `5120${'ab'.repeat(32)}` };
const input = { txId: 'cd'.repeat(32), vout: 0, sequence: 0, spent };
const bitcoin = { version: 2, lockTime: 0, inputs: [input], outputs: [{ amount: 1n, script: '' }] };

it.each<readonly [string, () => unknown]>([
  ['value cannot be `-1`', () => unsignedEthereum({ ...eth, value: -1n })],
  [`gasPrice cannot be \`${2n ** 256n}\``, () => unsignedEthereum({ ...eth, gasPrice: 2n ** 256n })],
  ['data cannot be `0xabc`', () => unsignedEthereum({ ...eth, data: '0xabc' })],
  ['to cannot be `abcd`', () => unsignedEthereum({ ...eth, to: 'abcd' })],
  [
    'to cannot be ``',
    () => unsignedEthereum({ ...eth, type: 'TYPE_4', maxFeePerGas: 1n, maxPriorityFeePerGas: 1n, to: '' }),
  ],
  ['the argument `a` cannot be `["x"]`', () => callData('act', [{ name: 'a', type: 'uint256' }], [['x']])],
  ['the argument `a` cannot be `["1","x"]`', () => new BorshWriter().fields({ a: [1n, 'x'] })],
  [`the argument \`a\` cannot be \`${2n ** 256n}\``, () => new BorshWriter().fields({ a: 2n ** 256n })],
  ['resource cannot be `COAL`', () => unsignedTron({ ...tron, fields: { resource: 'COAL' } })],
  ['frozen_balance cannot be `-1`', () => unsignedTron({ ...tron, fields: { frozen_balance: -1n } })],
  ['owner_address cannot be `x`', () => unsignedTron({ ...tron, fields: { owner_address: 'x' } })],
  ['refBlockHash cannot be `x`', () => unsignedTron({ ...tron, refBlockHash: 'x' })],
  [`feeLimit cannot be \`${2n ** 63n}\``, () => unsignedTron({ ...tron, feeLimit: 2n ** 63n })],
  [`permissionId cannot be \`${2n ** 31n}\``, () => unsignedTron({ ...tron, permissionId: 2n ** 31n })],
  ['owner.threshold cannot be `-1`', () => permitting({ threshold: -1n })],
  ['owner.operations cannot be `abc`', () => permitting({ operations: 'abc' })],
  ['owner.keys.address cannot be `x`', () => permitting({ keys: [{ address: 'x', weight: 1n }] })],
  ['a key cannot be `0`', () => unsignedSolana({ ...solana, feePayer: '0' })],
  ['recentBlockhash cannot be `11`', () => unsignedSolana({ ...solana, recentBlockhash: '11' })],
  ['the number of accounts cannot be `257`', () => calling({ accounts: accountsOf(256, true) })],
  ['the number of accounts cannot be `256`', () => calling({ accounts: accountsOf(256, false) })],
  ['the place of an account cannot be `256`', () => calling({ accounts: accountsOf(254, false), lookedUp: [1] })],
  ['a length cannot be `65536`', () => calling({ data: new Uint8Array(65_536) })],
  ['version, lockTime cannot be', () => unsignedBitcoin({ ...bitcoin, lockTime: 2 ** 32 })],
  ['inputs[0] cannot be', () => unsignedBitcoin({ ...bitcoin, inputs: [{ ...input, txId: 'ab' }] })],
  ['outputs[0].script cannot be `x`', () => unsignedBitcoin({ ...bitcoin, outputs: [{ amount: 1n, script: 'x' }] })],
  ['cannot be', () => unsignedBitcoin({ ...bitcoin, outputs: [{ amount: -1n, script: '' }] })],
])('what cannot be written is refused, with its field and value: %s', (said, write) => {
  expect(write).toThrow(CannotBeWritten);
  expect(write).toThrow(said);
});

it('what could not be written otherwise can be', () => {
  expect(unsignedEthereum(eth)).toMatch(/^0x/);
  for (const written of [unsignedTron(tron), permitting({}), unsignedBitcoin(bitcoin)])
    expect(written).toMatch(/^[0-9a-f]+$/);
  // Accounts, the program and the payer: as many as one byte counts.
  const { messageBytes } = getTransactionDecoder().decode(
    Buffer.from(calling({ accounts: accountsOf(255, false) }), 'hex'),
  );
  expect(getCompiledTransactionMessageDecoder().decode(messageBytes).staticAccounts).toHaveLength(256);
});
