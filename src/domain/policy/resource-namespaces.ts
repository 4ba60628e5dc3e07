import type { Namespace } from './namespaces.js';
import {
  Doubt,
  notApplicable,
  Unreadable,
  type AuthorizationRequest,
  type PolicyType,
  type PolicyValue,
} from './types.js';

/*
 * The namespaces of policies (docs/protocol.md) that speak of keys and of what is signed. Integers are bigint, in the chain's
 * smallest unit. A field that a request lacks is absent, which is unreadable; it is empty, or not applicable, only where
 * said so: what a DENY speaks of must not go away by what a request leaves out.
 */

const bool: PolicyType = { kind: 'bool' };
const int: PolicyType = { kind: 'int' };
const uint: PolicyType = { kind: 'uint' };
const string: PolicyType = { kind: 'string' };
/** In lower case; each use says whether it begins with 0x. */
const hex: PolicyType = { kind: 'string', hex: 'always' };
const dynamic: PolicyType = { kind: 'dynamic' };

const list = (of: PolicyType): PolicyType => ({ kind: 'list', of });
const map = (of: PolicyType): PolicyType => ({ kind: 'map', of });
const record = (name: string, fields: Readonly<Record<string, PolicyType>>): PolicyType => ({
  kind: 'record',
  name,
  fields,
});

/** `wallet`, and each element of `wallets`. `label` is the wallet's name. */
export const walletType = record('Wallet', { id: string, imported: bool, exported: bool, label: string });

/**
 * `wallet_account`. `address` is as the account has it; with 0x its letter case does not matter to policies. The other two
 * have one element for each segment of the derivation path; indexes are without the 2^31 of hardened segments.
 */
export const walletAccountType = record('WalletAccount', {
  address: { kind: 'string', hex: 'prefixed' },
  path_indexes: list(int),
  path_hardened: list(bool),
});

/** `private_key`. `tags` are tag ids, `label` is the key's name. */
export const privateKeyType = record('PrivateKey', {
  id: string,
  tags: list(string),
  imported: bool,
  exported: bool,
  label: string,
});

/**
 * `eth.tx`. Hexadecimal has 0x; `to` is empty when a contract is created, `data` is `0x` when there is none. `type` is
 * LEGACY, TYPE_1 … TYPE_4 (EIP-2718). From TYPE_2 on `gas_price` is `max_fee_per_gas`; fields that a type has not are
 * absent. `function_name`, `function_signature` (four bytes) and `contract_call_args` need an uploaded ABI that has the
 * function called: integers in the arguments are bigint, addresses and bytes lower-case hexadecimal with 0x, arrays are
 * lists, tuples are records.
 */
export const ethTxType = record('EthereumTransaction', {
  from: hex,
  to: hex,
  data: hex,
  value: int,
  gas: int,
  gas_price: int,
  chain_id: int,
  nonce: int,
  max_fee_per_gas: int,
  max_priority_fee_per_gas: int,
  max_fee_per_blob_gas: int,
  type: string,
  function_name: string,
  function_signature: hex,
  contract_call_args: map(dynamic),
});

/**
 * `eth.eip_712`. Fields that the domain lacks are absent. `message` follows the typed data: integers are bigint,
 * addresses and bytes lower-case hexadecimal with 0x, arrays are lists, structs are records.
 */
export const eip712Type = record('Eip712TypedData', {
  primary_type: string,
  domain: record('Eip712Domain', { name: string, version: string, chain_id: uint, verifying_contract: hex }),
  message: map(dynamic),
});

/** `eth.eip_7702_authorization`. `chain_id` cannot be read for chain 0, which is every chain (EIP-7702). */
export const eip7702AuthorizationType = record('Eip7702Authorization', { address: hex, chain_id: uint, nonce: int });

const addressTableLookups = list(
  record('AddressTableLookup', {
    address_table_key: string,
    writable_indexes: list(int),
    readonly_indexes: list(int),
  }),
);

/**
 * `solana.tx`. Keys are base58; an account that comes from a lookup table is the text `ADDRESS_TABLE_LOOKUP`.
 * `instruction_data_hex` and `discriminator` have no 0x. `transfers` (lamports) and `spl_transfers` (smallest units) are
 * those of top-level instructions; `token_mint` is empty where the instruction does not name it, `signers` where the
 * owner signs alone. `parsed_instruction_data` is absent without an uploaded IDL that has the instruction.
 */
export const solanaTxType = record('SolanaTransaction', {
  account_keys: list(string),
  program_keys: list(string),
  instructions: list(
    record('SolanaInstruction', {
      program_key: string,
      accounts: list(record('SolanaAccount', { account_key: string, signer: bool, writable: bool })),
      instruction_data_hex: hex,
      address_table_lookups: addressTableLookups,
      parsed_instruction_data: record('SolanaParsedInstructionData', {
        instruction_name: string,
        discriminator: hex,
        named_accounts: map(string),
        program_call_args: map(dynamic),
      }),
    }),
  ),
  transfers: list(record('SolanaTransfer', { from: string, to: string, amount: int })),
  spl_transfers: list(
    record('SolanaSplTransfer', {
      from: string,
      to: string,
      amount: int,
      owner: string,
      signers: list(string),
      token_mint: string,
    }),
  ),
  recent_blockhash: string,
  address_table_lookups: addressTableLookups,
});

/**
 * `bitcoin.tx`. Amounts are satoshis, `tx_id` is in the order explorers show, hexadecimal has no 0x. `version` is a
 * decimal text. `address` is empty for an output that none stands for; `address_type` then says what it is, such as
 * OP_RETURN. `locktime.type` is Seconds or Blocks.
 */
export const bitcoinTxType = record('BitcoinTransaction', {
  version: string,
  inputs: list(record('BitcoinInput', { tx_id: hex, vout: int, sequence: int })),
  outputs: list(record('BitcoinOutput', { value: int, script_pubkey: hex, address: string, address_type: string })),
  locktime: record('BitcoinLocktime', { amount: int, type: string }),
  fee: int,
});

const tronPermission = record('TronPermission', {
  type: string,
  id: int,
  permission_name: string,
  threshold: int,
  parent_id: int,
  operations: hex,
  keys: list(record('TronKey', { address: string, weight: int })),
});

/**
 * `tron.tx`. Addresses are base58check, hexadecimal has no 0x, times are milliseconds since the epoch, amounts sun.
 * `data` of the transaction is its memo, `data` of a contract the call, both hexadecimal. A contract has the fields of its
 * own type (protocol.Transaction.Contract); the others are absent.
 */
export const tronTxType = record('TronTransaction', {
  ref_block_bytes: hex,
  ref_block_hash: hex,
  expiration: int,
  timestamp: int,
  data: hex,
  fee_limit: int,
  contract: list(
    record('TronContract', {
      type: string,
      permission_id: int,
      owner_address: string,
      to_address: string,
      amount: int,
      contract_address: string,
      call_value: int,
      data: hex,
      call_token_value: int,
      token_id: int,
      resource: string,
      balance: int,
      receiver_address: string,
      lock: bool,
      lock_period: int,
      frozen_balance: int,
      unfreeze_balance: int,
      owner: tronPermission,
      witness: tronPermission,
      actives: list(tronPermission),
    }),
  ),
});

function resourceOf({ resources }: AuthorizationRequest, name: string): PolicyValue | undefined {
  return resources instanceof Unreadable ? resources : resources?.[name];
}

/** A root whose value the request brings along under the same name. */
function resource(name: string, type: PolicyType): Namespace {
  return { name, clauses: ['condition'], type, value: (request) => resourceOf(request, name) };
}

/** A root whose fields are namespaces of their own: what was decoded as one of them is certainly not another. */
function chain(name: string, typeName: string, fields: Readonly<Record<string, PolicyType>>): Namespace {
  const none = Object.fromEntries(Object.keys(fields).map((field) => [field, notApplicable]));
  const value = (request: AuthorizationRequest): PolicyValue | undefined => {
    const input = resourceOf(request, name);
    return isRecord(input) ? { ...none, ...input } : input;
  };
  return { name, clauses: ['condition'], type: record(typeName, fields), value };
}

function isRecord(value: PolicyValue | undefined): value is Readonly<Record<string, PolicyValue | undefined>> {
  return typeof value === 'object' && !Array.isArray(value) && !(value instanceof Doubt);
}

/**
 * For `policyEnvironment`: the roots whose values are the members of `request.resources`. A chain's root has only what
 * is signed: `{ tx }`, or `eip_712` or `eip_7702_authorization` of `eth`.
 */
export const resourceNamespaces: readonly Namespace[] = [
  resource('wallet', walletType),
  resource('wallets', list(walletType)),
  resource('wallet_account', walletAccountType),
  resource('private_key', privateKeyType),
  chain('eth', 'Ethereum', {
    tx: ethTxType,
    eip_712: eip712Type,
    eip_7702_authorization: eip7702AuthorizationType,
  }),
  chain('solana', 'Solana', { tx: solanaTxType }),
  chain('bitcoin', 'Bitcoin', { tx: bitcoinTxType }),
  chain('tron', 'Tron', { tx: tronTxType }),
];
