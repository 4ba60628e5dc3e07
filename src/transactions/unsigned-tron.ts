import { sha256 } from '@noble/hashes/sha2.js';
import { createBase58check } from '@scure/base';

/** What may sign for an account, as policies see it. */
export type TronPermission = {
  readonly type: (typeof tronPermissionTypes)[number];
  readonly id: bigint;
  readonly permission_name: string;
  readonly threshold: bigint;
  readonly parent_id: bigint;
  /** In hexadecimal. */
  readonly operations: string;
  readonly keys: readonly { readonly address: string; readonly weight: bigint }[];
};

/**
 * A value of the fields of a contract: an address in base58check, hexadecimal, an amount, the name of a resource, or permissions;
 * undefined is left out.
 */
export type TronValue = string | bigint | boolean | readonly TronPermission[] | TronPermission | undefined;

/** What `raw_data` says. Times are milliseconds since the epoch, amounts sun; hexadecimal has no 0x. */
export interface UnsignedTron {
  readonly refBlockBytes: string;
  readonly refBlockHash: string;
  readonly expiration: bigint;
  readonly timestamp: bigint;
  /** The memo. */
  readonly data: string;
  readonly feeLimit: bigint;
  readonly type: TronContractType;
  readonly permissionId: bigint;
  /** By the names of `tronContracts`; what is missing is empty. */
  readonly fields: Readonly<Record<string, TronValue>>;
}

type FieldKind = 'address' | 'bytes' | 'integer' | 'boolean' | 'resource' | 'permission' | 'permissions';
type FieldOf = readonly [name: string, kind: FieldKind];

/**
 * The contracts that can be made: their number in `ContractType`, and their fields by number, from 1
 * (tronprotocol/protocol, core/contract).
 */
export const tronContracts = {
  TransferContract: [1, ['owner_address', 'address'], ['to_address', 'address'], ['amount', 'integer']],
  TriggerSmartContract: [
    31,
    ['owner_address', 'address'],
    ['contract_address', 'address'],
    ['call_value', 'integer'],
    ['data', 'bytes'],
    ['call_token_value', 'integer'],
    ['token_id', 'integer'],
  ],
  AccountPermissionUpdateContract: [
    46,
    ['owner_address', 'address'],
    ['owner', 'permission'],
    ['witness', 'permission'],
    ['actives', 'permissions'],
  ],
  FreezeBalanceV2Contract: [54, ['owner_address', 'address'], ['frozen_balance', 'integer'], ['resource', 'resource']],
  UnfreezeBalanceV2Contract: [
    55,
    ['owner_address', 'address'],
    ['unfreeze_balance', 'integer'],
    ['resource', 'resource'],
  ],
  DelegateResourceContract: [
    57,
    ['owner_address', 'address'],
    ['resource', 'resource'],
    ['balance', 'integer'],
    ['receiver_address', 'address'],
    ['lock', 'boolean'],
    ['lock_period', 'integer'],
  ],
  UnDelegateResourceContract: [
    58,
    ['owner_address', 'address'],
    ['resource', 'resource'],
    ['balance', 'integer'],
    ['receiver_address', 'address'],
  ],
} as const satisfies Readonly<Record<string, readonly [number, ...FieldOf[]]>>;

/** A contract that can be made. */
export type TronContractType = keyof typeof tronContracts;

/** By their numbers (tronprotocol/protocol, `ResourceCode`). */
export const tronResources = ['BANDWIDTH', 'ENERGY', 'TRON_POWER'] as const;

/** By their numbers (tronprotocol/protocol, `Permission.PermissionType`). */
export const tronPermissionTypes = ['Owner', 'Witness', 'Active'] as const;

const base58check = createBase58check(sha256);
const typeUrl = 'type.googleapis.com/protocol.';

/** In hexadecimal: a protobuf `Transaction.raw` with one contract. @throws {TypeError} for a field that cannot be written */
export function unsignedTron(transaction: UnsignedTron): string {
  const { type, permissionId, fields } = transaction;
  const [number, ...schema] = tronContracts[type];
  const content = schema.map(([name, kind], index) => written(index + 1, kind, fields[name]));
  const parameter = Buffer.concat([
    bytesField(1, Buffer.from(`${typeUrl}${type}`)),
    bytesField(2, Buffer.concat(content)),
  ]);
  const contract = [numberField(1, BigInt(number)), bytesField(2, parameter), numberField(5, permissionId)];
  return Buffer.concat([
    bytesField(1, Buffer.from(transaction.refBlockBytes, 'hex')),
    bytesField(4, Buffer.from(transaction.refBlockHash, 'hex')),
    numberField(8, transaction.expiration),
    bytesField(10, Buffer.from(transaction.data, 'hex')),
    bytesField(11, Buffer.concat(contract)),
    numberField(14, transaction.timestamp),
    numberField(18, transaction.feeLimit),
  ]).toString('hex');
}

function written(number: number, kind: FieldKind, value: TronValue | undefined): Uint8Array {
  if (value === undefined) return new Uint8Array();
  if (kind === 'integer' && typeof value === 'bigint') return numberField(number, value);
  if (kind === 'boolean' && typeof value === 'boolean') return numberField(number, value ? 1n : 0n);
  if (typeof value === 'string') {
    if (kind === 'address') return bytesField(number, base58check.decode(value));
    if (kind === 'bytes') return bytesField(number, Buffer.from(value, 'hex'));
    const place = tronResources.findIndex((name) => name === value);
    if (kind === 'resource' && place >= 0) return numberField(number, BigInt(place));
  }
  if (typeof value === 'object' && (kind === 'permission' || kind === 'permissions')) {
    const permissions = Array.isArray(value) ? (value as readonly TronPermission[]) : [value as TronPermission];
    return Buffer.concat(permissions.map((one) => messageField(number, permissionContent(one))));
  }
  const shown = typeof value === 'object' ? 'permissions' : `\`${value}\``;
  throw new TypeError(`field ${number} is of kind ${kind} and cannot be ${shown}`);
}

function permissionContent(permission: TronPermission): Uint8Array {
  const { type, id, permission_name: name, threshold, parent_id: parentId, operations, keys } = permission;
  return Buffer.concat([
    numberField(1, BigInt(tronPermissionTypes.indexOf(type))),
    numberField(2, id),
    bytesField(3, Buffer.from(name)),
    numberField(4, threshold),
    numberField(5, parentId),
    bytesField(6, Buffer.from(operations, 'hex')),
    ...keys.map(({ address, weight }) =>
      messageField(7, Buffer.concat([bytesField(1, base58check.decode(address)), numberField(2, weight)])),
    ),
  ]);
}

/** Is there even if nothing is in it. */
function messageField(number: number, content: Uint8Array): Uint8Array {
  return Buffer.concat([varint(BigInt((number << 3) | 2)), varint(BigInt(content.length)), content]);
}

/** As in every encoding of version 3 of protobuf, what is empty is left out. */
function numberField(number: number, value: bigint): Uint8Array {
  return value === 0n ? new Uint8Array() : Buffer.concat([varint(BigInt(number << 3)), varint(value)]);
}

function bytesField(number: number, content: Uint8Array): Uint8Array {
  return content.length === 0 ? content : messageField(number, content);
}

function varint(value: bigint): Uint8Array {
  if (value < 0x80n) return Uint8Array.of(Number(value));
  return Buffer.concat([Uint8Array.of(Number(value & 0x7fn) | 0x80), varint(value >> 7n)]);
}
