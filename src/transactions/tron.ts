import { sha256 } from '@noble/hashes/sha2.js';
import { createBase58check } from '@scure/base';
import type { PolicyValue } from '../domain/policy/types.js';
import type { Steps } from '../domain/steps.js';
import { ByteReader, hex, malformed, signatureBytes, unsignedTransactionBytes } from './byte-reader.js';
import type { TransactionSignature } from './byte-reader.js';
import { quoted, takeSha256 } from './refusals.js';

/** By their numbers (tronprotocol/protocol, `ResourceCode`). */
export const tronResources = ['BANDWIDTH', 'ENERGY', 'TRON_POWER'] as const;

/** By their numbers (tronprotocol/protocol, `Permission.PermissionType`). */
export const tronPermissionTypes = ['Owner', 'Witness', 'Active'] as const;

/**
 * A parsed Tron transaction: `rawData` is what is signed, the rest are the members of `tron.tx` (docs/protocol.md, policy namespaces).
 * `contract` has the fields of its type under their names in the protocol (tronprotocol/protocol `core/contract`).
 */
export interface TronTransaction {
  readonly rawData: Uint8Array;
  readonly refBlockBytes: string;
  readonly refBlockHash: string;
  readonly expiration: bigint;
  readonly timestamp: bigint;
  readonly memo: string;
  readonly feeLimit: bigint;
  readonly contract: TronContract;
}

type TronContract = Readonly<Record<string, PolicyValue | undefined>>;

// Wire types of protobuf (Protocol Buffers documentation, "Encoding"); fixed-size ones occur in no message here.
const VARINT = 0;
const LENGTH_DELIMITED = 2;
const WIRE_TYPES = ['a varint', '64 bits', 'length-delimited', 'a group', 'the end of a group', '32 bits'];

interface FieldSchema {
  readonly name: string;
  readonly wireType: typeof VARINT | typeof LENGTH_DELIMITED;
  readonly repeated?: true;
}

/**
 * A message of the protocol; the keys of `fields` are field numbers. Others are refused: policies could not see them.
 */
interface MessageSchema {
  readonly name: string;
  readonly fields: Readonly<Record<number, FieldSchema>>;
}

const number = (name: string): FieldSchema => ({ name, wireType: VARINT });
const bytes = (name: string): FieldSchema => ({ name, wireType: LENGTH_DELIMITED });
const repeated = (name: string): FieldSchema => ({ name, wireType: LENGTH_DELIMITED, repeated: true });

const RAW_DATA: MessageSchema = {
  name: 'raw_data',
  fields: {
    1: bytes('ref_block_bytes'),
    4: bytes('ref_block_hash'),
    8: number('expiration'),
    10: bytes('data'),
    11: repeated('contract'),
    14: number('timestamp'),
    18: number('fee_limit'),
  },
};
const CONTRACT: MessageSchema = {
  name: 'contract',
  fields: { 1: number('type'), 2: bytes('parameter'), 5: number('Permission_id') },
};
const ANY: MessageSchema = { name: 'parameter', fields: { 1: bytes('type_url'), 2: bytes('value') } };
const PERMISSION: MessageSchema = {
  name: 'Permission',
  fields: {
    1: number('type'),
    2: number('id'),
    3: bytes('permission_name'),
    4: number('threshold'),
    5: number('parent_id'),
    6: bytes('operations'),
    7: repeated('keys'),
  },
};
const KEY: MessageSchema = { name: 'Key', fields: { 1: bytes('address'), 2: number('weight') } };

/** The contracts that policies have fields for (docs/protocol.md, policy namespaces), by their number in `ContractType`. */
const CONTRACTS: Readonly<
  Record<string, { readonly schema: MessageSchema; readonly value: (message: Message) => TronContract }>
> = {
  1: {
    schema: {
      name: 'TransferContract',
      fields: { 1: bytes('owner_address'), 2: bytes('to_address'), 3: number('amount') },
    },
    value: (message) => ({ to_address: message.address('to_address'), amount: message.integer('amount') }),
  },
  31: {
    schema: {
      name: 'TriggerSmartContract',
      fields: {
        1: bytes('owner_address'),
        2: bytes('contract_address'),
        3: number('call_value'),
        4: bytes('data'),
        5: number('call_token_value'),
        6: number('token_id'),
      },
    },
    value: (message) => ({
      contract_address: message.address('contract_address'),
      call_value: message.integer('call_value'),
      data: hex(message.bytes('data')),
      call_token_value: message.integer('call_token_value'),
      token_id: message.integer('token_id'),
    }),
  },
  46: {
    schema: {
      name: 'AccountPermissionUpdateContract',
      fields: { 1: bytes('owner_address'), 2: bytes('owner'), 3: bytes('witness'), 4: repeated('actives') },
    },
    value: (message) => ({
      owner: message.messages('owner', PERMISSION).map(permissionValue)[0],
      witness: message.messages('witness', PERMISSION).map(permissionValue)[0],
      actives: message.messages('actives', PERMISSION).map(permissionValue),
    }),
  },
  54: {
    schema: {
      name: 'FreezeBalanceV2Contract',
      fields: { 1: bytes('owner_address'), 2: number('frozen_balance'), 3: number('resource') },
    },
    value: (message) => ({
      frozen_balance: message.integer('frozen_balance'),
      resource: message.name('resource', tronResources),
    }),
  },
  55: {
    schema: {
      name: 'UnfreezeBalanceV2Contract',
      fields: { 1: bytes('owner_address'), 2: number('unfreeze_balance'), 3: number('resource') },
    },
    value: (message) => ({
      unfreeze_balance: message.integer('unfreeze_balance'),
      resource: message.name('resource', tronResources),
    }),
  },
  57: {
    schema: {
      name: 'DelegateResourceContract',
      fields: {
        1: bytes('owner_address'),
        2: number('resource'),
        3: number('balance'),
        4: bytes('receiver_address'),
        5: number('lock'),
        6: number('lock_period'),
      },
    },
    value: (message) => ({
      ...delegationValue(message),
      lock: message.name('lock', ['false', 'true']) === 'true',
      lock_period: message.integer('lock_period'),
    }),
  },
  58: {
    schema: {
      name: 'UnDelegateResourceContract',
      fields: { 1: bytes('owner_address'), 2: number('resource'), 3: number('balance'), 4: bytes('receiver_address') },
    },
    value: delegationValue,
  },
};

const TYPE_URL_PREFIX = 'type.googleapis.com/protocol.';
const ADDRESS_LENGTH = 21;
const ADDRESS_PREFIX = 0x41;
/**
 * Nodes accept one contract, 8 permissions and 5 keys of each (java-tron, `getTotalSignNum` and
 * `AccountPermissionUpdateActuator`).
 */
const MAX_REPEATED = 64;
const REF_BLOCK_BYTES_LENGTH = 2;
const REF_BLOCK_HASH_LENGTH = 8;
const MAX_INT32 = 2n ** 31n - 1n;
// As TronWeb writes it, after Ethereum's v; nodes also accept a recovery id without it.
const RECOVERY_ID_OFFSET = 27;

const base58check = createBase58check(sha256);

/**
 * Parses hex of a protobuf `Transaction.raw`, which TronWeb calls `raw_data_hex`. Throws INVALID_ARGUMENT, also for a
 * contract type or a field that policies cannot see.
 */
export function parseUnsignedTron(unsignedTransaction: string, steps: Steps): TronTransaction {
  const rawData = unsignedTransactionBytes(unsignedTransaction, steps);
  const raw = new Message(rawData, RAW_DATA, steps);
  const refBlockBytes = hex(raw.bytes('ref_block_bytes', REF_BLOCK_BYTES_LENGTH));
  const refBlockHash = hex(raw.bytes('ref_block_hash', REF_BLOCK_HASH_LENGTH));
  const [contract, ...more] = raw.messages('contract', CONTRACT);
  if (!contract || more.length > 0) {
    throw malformed(`raw_data has ${contract ? more.length + 1 : 0} contracts, the network takes exactly 1`);
  }
  return {
    rawData,
    refBlockBytes,
    refBlockHash,
    expiration: raw.integer('expiration'),
    timestamp: raw.integer('timestamp'),
    memo: hex(raw.bytes('data')),
    feeLimit: raw.integer('fee_limit'),
    contract: contractValue(contract),
  };
}

/** Whether these bytes begin with a field of `Transaction.raw`. */
export function mayBeRawData([tag = 0]: Uint8Array): boolean {
  return rawDataTags.has(tag);
}

/** The first byte of each field; only that of field 18 continues. */
const rawDataTags: ReadonlySet<number> = new Set(
  Object.entries(RAW_DATA.fields).map(([fieldNumber, { wireType }]) => {
    const tag = (Number(fieldNumber) << 3) | wireType;
    return tag > 0x7f ? (tag & 0x7f) | 0x80 : tag;
  }),
);

/** What is signed with secp256k1: the transaction id, SHA-256 of `raw_data`, 32 bytes (TRON documentation, "Transactions"). */
export function tronDigest({ rawData }: TronTransaction, steps: Steps): Uint8Array {
  takeSha256(steps, rawData.length);
  return sha256(rawData);
}

/** Hex of the protobuf `Transaction`: raw_data (1) and one signature (2) of 65 bytes, r ‖ s ‖ 27 + recovery id. */
export function assembleTron({ rawData }: TronTransaction, signature: TransactionSignature): string {
  const recoverable = Buffer.concat([
    signatureBytes(signature),
    Uint8Array.of(RECOVERY_ID_OFFSET + parseInt(signature.v, 16)),
  ]);
  return hex(Buffer.concat([delimited(1, rawData), delimited(2, recoverable)]));
}

function delimited(fieldNumber: number, content: Uint8Array): Uint8Array {
  const header = [(fieldNumber << 3) | LENGTH_DELIMITED];
  let length = content.length;
  for (; length > 0x7f; length >>>= 7) header.push((length & 0x7f) | 0x80);
  return Buffer.concat([Uint8Array.from([...header, length]), content]);
}

/** The value of `tron.tx` (docs/protocol.md, policy namespaces). Amounts are sun, times milliseconds since the epoch, hex without 0x. */
export function tronPolicyValue(transaction: TronTransaction): PolicyValue {
  return {
    ref_block_bytes: transaction.refBlockBytes,
    ref_block_hash: transaction.refBlockHash,
    expiration: transaction.expiration,
    timestamp: transaction.timestamp,
    data: transaction.memo,
    fee_limit: transaction.feeLimit,
    contract: [transaction.contract],
  };
}

function contractValue(message: Message): TronContract {
  const type = String(message.integer('type'));
  const [parameter] = message.messages('parameter', ANY);
  if (!parameter) throw malformed('its contract has no parameter');
  const typeUrl = parameter.text('type_url');
  const known = Object.hasOwn(CONTRACTS, type) ? CONTRACTS[type] : undefined;
  if (!known) {
    const supported = Object.values(CONTRACTS).map(({ schema }) => schema.name);
    throw malformed(
      `contract type ${type} (${quoted(typeUrl)}) is not supported: policies can speak of ${supported.join(', ')}`,
    );
  }
  const { schema, value } = known;
  if (typeUrl !== TYPE_URL_PREFIX + schema.name) {
    throw malformed(`contract type ${type} is ${schema.name}, but its parameter is a ${quoted(typeUrl)}`);
  }
  const content = parameter.message('value', schema);
  return {
    type: schema.name,
    permission_id: message.int32('Permission_id'),
    owner_address: content.address('owner_address'),
    ...value(content),
  };
}

function delegationValue(message: Message): TronContract {
  return {
    resource: message.name('resource', tronResources),
    balance: message.integer('balance'),
    receiver_address: message.address('receiver_address'),
  };
}

function permissionValue(message: Message): PolicyValue {
  return {
    type: message.name('type', tronPermissionTypes),
    id: message.int32('id'),
    permission_name: message.text('permission_name'),
    threshold: message.integer('threshold'),
    parent_id: message.int32('parent_id'),
    operations: hex(message.bytes('operations')),
    keys: message
      .messages('keys', KEY)
      .map((key) => ({ address: key.address('address'), weight: key.integer('weight') })),
  };
}

/**
 * One protobuf message, read by its schema: each field known, with its wire type, and not repeated unless declared so.
 */
class Message {
  private readonly values = new Map<string, (bigint | Uint8Array)[]>();

  constructor(
    content: Uint8Array,
    private readonly schema: MessageSchema,
    private readonly steps: Steps,
  ) {
    // Checked first: each of its fields may be one of many without any content.
    steps.take('nameBuilt');
    const reader = new ByteReader(content);
    while (!reader.isAtEnd) this.readField(reader);
  }

  /** An int64, 0 when absent. The protocol's are signed, but none of those read here may be negative. */
  integer(field: string): bigint {
    const value = (this.values.get(field)?.[0] ?? 0n) as bigint;
    const signed = BigInt.asIntN(64, value);
    if (signed < 0n) throw malformed(`${this.path(field)} is negative: ${signed}`);
    return signed;
  }

  /** An int32. A node would cut off anything above 32 bits, and see another number than policies do. */
  int32(field: string): bigint {
    const value = this.integer(field);
    if (value > MAX_INT32) throw malformed(`${this.path(field)} is ${value}, more than ${MAX_INT32}`);
    return value;
  }

  /** The name of an enum's number. */
  name(field: string, names: readonly string[]): string {
    const value = this.integer(field);
    const name = value < names.length ? names[Number(value)] : undefined;
    if (name === undefined) throw malformed(`${this.path(field)} is ${value}, expected 0 to ${names.length - 1}`);
    return name;
  }

  bytes(field: string, length?: number): Uint8Array {
    const value = (this.values.get(field)?.[0] ?? new Uint8Array()) as Uint8Array;
    if (length !== undefined && value.length !== length) {
      throw malformed(`${this.path(field)} is ${value.length} bytes long, expected ${length}`);
    }
    return value;
  }

  text(field: string): string {
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(this.bytes(field));
    } catch {
      throw malformed(`${this.path(field)} is not UTF-8`);
    }
  }

  /** Base58check of the 21 bytes of an address (TRON documentation, "Account address format"). */
  address(field: string): string {
    const value = this.bytes(field, ADDRESS_LENGTH);
    this.steps.take('addressCoded');
    if (value[0] !== ADDRESS_PREFIX) throw malformed(`${this.path(field)} \`${hex(value)}\` does not begin with 41`);
    return base58check.encode(value);
  }

  messages(field: string, schema: MessageSchema): readonly Message[] {
    return ((this.values.get(field) ?? []) as Uint8Array[]).map((content) => new Message(content, schema, this.steps));
  }

  message(field: string, schema: MessageSchema): Message {
    return new Message(this.bytes(field), schema, this.steps);
  }

  private readField(reader: ByteReader): void {
    this.steps.take('valueDecoded');
    const tag = varint(reader, `a field of ${this.schema.name}`);
    const fieldNumber = Number(tag >> 3n);
    const wireType = Number(tag & 7n);
    const field = Object.hasOwn(this.schema.fields, fieldNumber) ? this.schema.fields[fieldNumber] : undefined;
    if (!field) {
      throw malformed(`${this.schema.name} has a field ${fieldNumber}, which is not supported: send raw_data_hex`);
    }
    const path = this.path(field.name);
    if (wireType !== field.wireType) {
      const [expected, found] = [WIRE_TYPES[field.wireType], WIRE_TYPES[wireType] ?? `wire type ${wireType}`];
      throw malformed(`${path} is ${found}, expected ${expected}`);
    }
    const value = wireType === VARINT ? varint(reader, path) : reader.take(Number(varint(reader, path)), path);
    const before = this.values.get(field.name);
    if (before && field.repeated && before.length === MAX_REPEATED) {
      throw malformed(`${path} is there more than ${MAX_REPEATED} times, which no node takes`);
    }
    if (before && field.repeated) before.push(value);
    else if (before) throw malformed(`${path} is there twice`);
    else this.values.set(field.name, [value]);
  }

  private path(field: string): string {
    return `${this.schema.name}.${field}`;
  }
}

/** An unsigned integer of 64 bits, 7 bits a byte, low bits first; only the shortest form, as all encoders write it. */
function varint(reader: ByteReader, what: string): bigint {
  let value = 0n;
  for (let shift = 0n; shift < 70n; shift += 7n) {
    const byte = reader.byte(what);
    value |= BigInt(byte & 0x7f) << shift;
    if ((byte & 0x80) !== 0) continue;
    if (byte === 0 && shift > 0n) throw malformed(`${what} at byte ${reader.position} is not in its shortest form`);
    if (value < 1n << 64n) return value;
    break;
  }
  throw malformed(`${what} at byte ${reader.position} has more than 64 bits`);
}
