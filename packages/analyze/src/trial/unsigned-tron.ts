import { sha256 } from '@noble/hashes/sha2.js';
import { createBase58check } from '@scure/base';
import {
  tronPermissionTypes,
  tronResources,
  byLibrary,
  CannotBeWritten,
  hexBytes,
  unsigned,
} from 'countersign/internal';

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

const base58check = createBase58check(sha256);
/** Bits of integers that are not negative. */
const [int32, int64] = [31, 63];
const typeUrl = 'type.googleapis.com/protocol.';

/** In hexadecimal: a protobuf `Transaction.raw` with one contract. @throws {CannotBeWritten} */
export function unsignedTron(transaction: UnsignedTron): string {
  const { type, permissionId, fields } = transaction;
  const [number, ...schema] = tronContracts[type];
  const content = schema.map(([name, kind], index) => written(index + 1, name, kind, fields[name]));
  const parameter = Buffer.concat([
    bytesField(1, Buffer.from(`${typeUrl}${type}`)),
    bytesField(2, Buffer.concat(content)),
  ]);
  const id = numberField(5, unsigned('permissionId', permissionId, int32));
  const contract = [numberField(1, BigInt(number)), bytesField(2, parameter), id];
  const bytes = (place: number, name: 'refBlockBytes' | 'refBlockHash' | 'data') =>
    bytesField(place, hexBytes(name, transaction[name]));
  const integer = (place: number, name: 'expiration' | 'timestamp' | 'feeLimit') =>
    numberField(place, unsigned(name, transaction[name], int64));
  return Buffer.concat([
    bytes(1, 'refBlockBytes'),
    bytes(4, 'refBlockHash'),
    integer(8, 'expiration'),
    bytes(10, 'data'),
    bytesField(11, Buffer.concat(contract)),
    integer(14, 'timestamp'),
    integer(18, 'feeLimit'),
  ]).toString('hex');
}

function written(number: number, name: string, kind: FieldKind, value: TronValue | undefined): Uint8Array {
  if (value === undefined) return new Uint8Array();
  if (kind === 'integer' && typeof value === 'bigint') return numberField(number, unsigned(name, value, int64));
  if (kind === 'boolean' && typeof value === 'boolean') return numberField(number, value ? 1n : 0n);
  if (typeof value === 'string') {
    if (kind === 'address') return bytesField(number, addressBytes(name, value));
    if (kind === 'bytes') return bytesField(number, hexBytes(name, value));
    const place = tronResources.findIndex((one) => one === value);
    if (kind === 'resource' && place >= 0) return numberField(number, BigInt(place));
  }
  if (typeof value === 'object' && (kind === 'permission' || kind === 'permissions')) {
    const permissions = Array.isArray(value) ? (value as readonly TronPermission[]) : [value as TronPermission];
    return Buffer.concat(permissions.map((one) => messageField(number, permissionContent(name, one))));
  }
  throw new CannotBeWritten(name, value, `it is of the kind ${kind}`);
}

function permissionContent(of: string, permission: TronPermission): Uint8Array {
  const { type, permission_name: name, operations, keys } = permission;
  const integer = (place: number, field: 'id' | 'threshold' | 'parent_id', bits: number) =>
    numberField(place, unsigned(`${of}.${field}`, permission[field], bits));
  return Buffer.concat([
    numberField(1, BigInt(tronPermissionTypes.indexOf(type))),
    integer(2, 'id', int32),
    bytesField(3, Buffer.from(name)),
    integer(4, 'threshold', int64),
    integer(5, 'parent_id', int32),
    bytesField(6, hexBytes(`${of}.operations`, operations)),
    ...keys.map(({ address, weight }) => {
      const key = bytesField(1, addressBytes(`${of}.keys.address`, address));
      return messageField(7, Buffer.concat([key, numberField(2, unsigned(`${of}.keys.weight`, weight, int64))]));
    }),
  ]);
}

const addressBytes = (field: string, address: string): Uint8Array =>
  byLibrary(field, address, () => base58check.decode(address));

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
