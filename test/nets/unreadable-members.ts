import {
  address as solanaAddress,
  appendTransactionMessageInstructions,
  blockhash,
  compileTransaction,
  compressTransactionMessageUsingAddressLookupTables,
  createTransactionMessage,
  getTransactionEncoder,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
} from '@solana/kit';
import { toRlp } from 'viem';

/** The addresses of one wallet. */
export interface Addresses {
  readonly ethereum: string;
  readonly solana: string;
  readonly tron: string;
}

/** A request in which members of the policy language are there and cannot be read, or are missing where others have them. */
export interface Doubtful {
  readonly type: string;
  readonly parameters: (addresses: Addresses) => object;
  /** By `Record.member`, with a word more where there are several, a condition that reads it. */
  readonly reads: Readonly<Record<string, string>>;
}

/** A contract with an interface that has the function `transfer`. */
export const contract = '0x6b175474e89094c44da98b954eedeac495271d0f';
export const contractInterface = JSON.stringify([
  {
    type: 'function',
    name: 'transfer',
    stateMutability: 'nonpayable',
    inputs: [{ name: 'to', type: 'address' }],
    outputs: [],
  },
]);

const TOKEN = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
const SYSTEM = '11111111111111111111111111111111';
const somebody = 'SysvarC1ock11111111111111111111111111111111';
const source = 'Vote111111111111111111111111111111111111111';
const table = 'Stake11111111111111111111111111111111111111';
const owner = 'SysvarRent111111111111111111111111111111111';

interface Instructed {
  readonly program: string;
  readonly data: readonly number[];
  readonly keys: readonly string[];
}

function solanaTransaction(payer: string, instructions: readonly Instructed[], lookedUp?: string): string {
  const lifetime = { blockhash: blockhash('J4NYrSRccTUGXP7wmFwiByakqWKZb5RwpiAoskpgAQRb'), lastValidBlockHeight: 1n };
  const message = appendTransactionMessageInstructions(
    instructions.map(({ program, data, keys }) => ({
      programAddress: solanaAddress(program),
      accounts: keys.map((key) => ({ address: solanaAddress(key), role: key === payer ? 3 : 1 })),
      data: Uint8Array.from(data),
    })),
    setTransactionMessageLifetimeUsingBlockhash(
      lifetime,
      setTransactionMessageFeePayer(solanaAddress(payer), createTransactionMessage({ version: 0 })),
    ),
  );
  const tables = lookedUp === undefined ? {} : { [solanaAddress(table)]: [solanaAddress(lookedUp)] };
  const compiled = compileTransaction(compressTransactionMessageUsingAddressLookupTables(message, tables));
  return Buffer.from(getTransactionEncoder().encode(compiled)).toString('hex');
}

const signed = (
  chain: 'ETHEREUM' | 'SOLANA' | 'TRON',
  unsigned: (addresses: Addresses) => string,
): Pick<Doubtful, 'type' | 'parameters'> => ({
  type: 'ACTIVITY_TYPE_SIGN_TRANSACTION_V2',
  parameters: (addresses) => ({
    type: `TRANSACTION_TYPE_${chain}`,
    signWith: addresses[chain.toLowerCase() as keyof Addresses],
    unsignedTransaction: unsigned(addresses),
  }),
});

/** A field of protocol buffers: a number, or bytes. */
function field(number: number, value: number | Buffer): Buffer {
  const varint = (rest: number): number[] =>
    rest < 128 ? [rest] : [(rest % 128) + 128, ...varint(Math.floor(rest / 128))];
  return typeof value === 'number'
    ? Buffer.from([...varint(number * 8), ...varint(value)])
    : Buffer.concat([Buffer.from([...varint(number * 8 + 2), ...varint(value.length)]), value]);
}

/** A payment of sun: what other types of contracts have, this one has not. */
const tronPayment = Buffer.concat([
  field(1, Buffer.from('abcd', 'hex')),
  field(4, Buffer.alloc(8, 7)),
  field(8, 1_800_000_000_000),
  field(
    11,
    Buffer.concat([
      field(1, 1),
      field(
        2,
        Buffer.concat([
          field(1, Buffer.from('type.googleapis.com/protocol.TransferContract')),
          field(
            2,
            Buffer.concat([
              field(1, Buffer.from(`41${'11'.repeat(20)}`, 'hex')),
              field(2, Buffer.from(`41${'22'.repeat(20)}`, 'hex')),
              field(3, 5),
            ]),
          ),
        ]),
      ),
    ]),
  ),
  field(14, 1_700_000_000_000),
]).toString('hex');

const u64 = (value: number) => [value, 0, 0, 0, 0, 0, 0, 0];
const each = (names: readonly string[], condition: (name: string) => string, of: string) =>
  Object.fromEntries(names.map((name) => [`${of}.${name}`, condition(name)]));

/** Everything in a transaction or a payload that can be in doubt. */
export const doubtful: readonly Doubtful[] = [
  {
    // Before EIP-155, with three of the four bytes of a function.
    ...signed('ETHEREUM', () => toRlp(['0x', '0x09', '0x5208', contract, '0x01', '0xa9059c'])),
    reads: {
      'EthereumTransaction.chain_id': 'eth.tx.chain_id == 1',
      'EthereumTransaction.function_signature': "eth.tx.function_signature == '0xa9059cbb'",
      'EthereumTransaction.function_name': "eth.tx.function_name == 'transfer'",
      'EthereumTransaction.contract_call_args': `eth.tx.contract_call_args['to'] == '${contract}'`,
      'EthereumTransaction.max_fee_per_blob_gas': 'eth.tx.max_fee_per_blob_gas > 5',
    },
  },
  {
    type: 'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2',
    parameters: ({ ethereum: signWith }) => ({
      signWith,
      encoding: 'PAYLOAD_ENCODING_EIP712',
      hashFunction: 'HASH_FUNCTION_NO_OP',
      payload: JSON.stringify({
        types: { EIP712Domain: [{ name: 'salt', type: 'bytes32' }], Order: [{ name: 'amount', type: 'uint256' }] },
        primaryType: 'Order',
        domain: { salt: `0x${'00'.repeat(32)}` },
        message: { amount: 5 },
      }),
    }),
    reads: {
      'Eip712Domain.name': "eth.eip_712.domain.name == 'Shop'",
      'Eip712Domain.version': "eth.eip_712.domain.version == '1'",
      'Eip712Domain.chain_id': 'eth.eip_712.domain.chain_id == 1',
      'Eip712Domain.verifying_contract': `eth.eip_712.domain.verifying_contract == '${contract}'`,
      'Eip712TypedData.message': "eth.eip_712.message['receiver'] == '0x00'",
    },
  },
  {
    // A list that takes more steps than there are.
    type: 'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2',
    parameters: ({ ethereum: signWith }) => ({
      signWith,
      encoding: 'PAYLOAD_ENCODING_EIP712',
      hashFunction: 'HASH_FUNCTION_NO_OP',
      payload: JSON.stringify({
        types: { EIP712Domain: [], Order: [{ name: 'items', type: 'uint256[]' }] },
        primaryType: 'Order',
        domain: {},
        message: { items: Array.from({ length: 35_000 }, () => 1) },
      }),
    }),
    reads: { 'Eip712TypedData.message beyond the budget': "eth.eip_712.message['items'].any(item, item == 666)" },
  },
  {
    // Instructions that no release knows.
    ...signed('SOLANA', ({ solana }) =>
      solanaTransaction(solana, [
        { program: TOKEN, data: [99], keys: [source, somebody, solana] },
        { program: SYSTEM, data: [99, 0, 0, 0], keys: [solana, somebody] },
      ]),
    ),
    reads: {
      'SolanaTransaction.transfers': `solana.tx.transfers.any(t, t.to == '${table}')`,
      'SolanaTransaction.spl_transfers': `solana.tx.spl_transfers.any(t, t.to == '${table}')`,
      'SolanaInstruction.parsed_instruction_data':
        "solana.tx.instructions[0].parsed_instruction_data.instruction_name == 'pay'",
      ...each(
        ['instruction_name', 'discriminator'],
        (name) => `solana.tx.instructions.any(i, i.parsed_instruction_data.${name} == 'ab')`,
        'SolanaParsedInstructionData',
      ),
      ...each(
        ['named_accounts', 'program_call_args'],
        (name) => `solana.tx.instructions.any(i, i.parsed_instruction_data.${name}['to'] == 'ab')`,
        'SolanaParsedInstructionData',
      ),
    },
  },
  {
    // A closed token account, emptied into one that a lookup table names.
    ...signed('SOLANA', ({ solana }) =>
      solanaTransaction(solana, [{ program: TOKEN, data: [9], keys: [source, somebody, solana] }], somebody),
    ),
    reads: {
      'SolanaTransaction.account_keys': `'${somebody}' in solana.tx.account_keys`,
      'SolanaAccount.account_key': `solana.tx.instructions.any(i, i.accounts.any(a, a.account_key == '${somebody}'))`,
      'SolanaTransfer.to': `solana.tx.transfers.any(t, t.to == '${somebody}')`,
      'SolanaTransfer.amount': 'solana.tx.transfers.any(t, t.amount > 5)',
      'SolanaSplTransfer.to': `solana.tx.spl_transfers.any(t, t.to == '${somebody}')`,
      'SolanaSplTransfer.amount': 'solana.tx.spl_transfers.any(t, t.amount > 5)',
      'SolanaSplTransfer.token_mint': `solana.tx.spl_transfers.any(t, t.token_mint == '${table}')`,
    },
  },
  {
    // Tokens out of an account that a lookup table names.
    ...signed('SOLANA', ({ solana }) =>
      solanaTransaction(solana, [{ program: TOKEN, data: [3, ...u64(5)], keys: [source, somebody, table] }], source),
    ),
    reads: { 'SolanaSplTransfer.from': `solana.tx.spl_transfers.any(t, t.from == '${source}')` },
  },
  {
    // Tokens of an owner that a lookup table names, and lamports of one.
    ...signed('SOLANA', ({ solana }) =>
      solanaTransaction(
        solana,
        [
          { program: TOKEN, data: [3, ...u64(5)], keys: [source, somebody, owner] },
          { program: SYSTEM, data: [2, 0, 0, 0, ...u64(5)], keys: [owner, somebody] },
        ],
        owner,
      ),
    ),
    reads: {
      'SolanaSplTransfer.owner': `solana.tx.spl_transfers.any(t, t.owner == '${source}')`,
      'SolanaTransfer.from': `solana.tx.transfers.any(t, t.from == '${source}')`,
    },
  },
  {
    ...signed('TRON', () => tronPayment),
    reads: {
      ...each(
        ['contract_address', 'resource', 'receiver_address', 'data'],
        (name) => `tron.tx.contract.any(c, c.${name} == 'ab')`,
        'TronContract',
      ),
      ...each(
        ['call_value', 'call_token_value', 'token_id', 'balance', 'lock_period', 'frozen_balance', 'unfreeze_balance'],
        (name) => `tron.tx.contract.any(c, c.${name} > 5)`,
        'TronContract',
      ),
      'TronContract.lock': 'tron.tx.contract.any(c, c.lock)',
      ...each(['owner', 'witness'], (name) => `tron.tx.contract.any(c, c.${name}.threshold > 1)`, 'TronContract'),
      'TronContract.actives': 'tron.tx.contract.any(c, c.actives.any(a, a.threshold > 1))',
      ...each(
        ['type', 'permission_name', 'operations'],
        (name) => `tron.tx.contract.any(c, c.owner.${name} == 'ab')`,
        'TronPermission',
      ),
      ...each(
        ['id', 'threshold', 'parent_id'],
        (name) => `tron.tx.contract.any(c, c.owner.${name} > 1)`,
        'TronPermission',
      ),
      'TronPermission.keys': 'tron.tx.contract.any(c, c.owner.keys.count() > 1)',
      'TronKey.address': "tron.tx.contract.any(c, c.owner.keys.any(k, k.address == 'ab'))",
      'TronKey.weight': 'tron.tx.contract.any(c, c.owner.keys.any(k, k.weight > 1))',
    },
  },
];

/** Members that whatever is signed has, or that are defined where it has not, by record. */
export const alwaysReadable: Readonly<Record<string, readonly string[]>> = {
  EthereumTransaction: [
    ...['from', 'to', 'data', 'value', 'gas', 'gas_price', 'nonce', 'type'],
    // One gas price stands for both.
    ...['max_fee_per_gas', 'max_priority_fee_per_gas'],
  ],
  Eip712TypedData: ['primary_type', 'domain'],
  Eip7702Authorization: ['address', 'chain_id', 'nonce'],
  SolanaTransaction: ['program_keys', 'instructions', 'recent_blockhash', 'address_table_lookups'],
  SolanaInstruction: ['program_key', 'accounts', 'instruction_data_hex', 'address_table_lookups'],
  SolanaAccount: ['signer', 'writable'],
  // A signer is never out of a lookup table.
  SolanaSplTransfer: ['signers'],
  AddressTableLookup: ['address_table_key', 'writable_indexes', 'readonly_indexes'],
  BitcoinTransaction: ['version', 'inputs', 'outputs', 'locktime', 'fee'],
  BitcoinInput: ['tx_id', 'vout', 'sequence'],
  BitcoinOutput: ['value', 'script_pubkey', 'address', 'address_type'],
  BitcoinLocktime: ['amount', 'type'],
  TronTransaction: ['ref_block_bytes', 'ref_block_hash', 'expiration', 'timestamp', 'data', 'fee_limit', 'contract'],
  TronContract: ['type', 'permission_id', 'owner_address', 'to_address', 'amount'],
};
