import { tronPermissionTypes, tronResources } from 'countersign/internal';
import {
  tronContracts,
  unsignedTron,
  type TronContractType,
  type TronPermission,
  type TronValue,
} from './unsigned-tron.js';
import { Addresses, tronAddresses } from './trial-addresses.js';
import { bytesIn, NotExecuted, recordIn, recordsIn, saidIn, textIn, unsignedIn, type Facts } from './trial-facts.js';
import type { MadeTransaction } from './trial-chains.js';

const typesInOrder = Object.keys(tronContracts) as readonly TronContractType[];
const fieldsOf = (type: TronContractType) => tronContracts[type].slice(1) as readonly (readonly [string, string])[];

/** A Tron transaction with these facts of `tron.tx`. @throws {NotExecuted} */
export function tronTransactionWith(requested: Facts, own: string): MadeTransaction {
  const addresses = new Addresses(tronAddresses, own);
  const path = 'tron.tx';
  const [input = {}, ...others] = recordsIn(requested['contract'], `${path}.contract`) ?? [{}];
  if (others.length > 0) throw new NotExecuted(`no Tron transaction has ${others.length + 1} contracts`);
  const contract = saidIn(input);
  const type = typeOf(contract);
  const at = `${path}.contract[0]`;
  const fields: Record<string, TronValue> = {};
  for (const [name, kind] of fieldsOf(type)) fields[name] = valueOf(contract, name, kind, at, addresses);
  const number = (name: string) => unsignedIn(requested[name], `${path}.${name}`, 63) ?? 0n;
  const permissionId = unsignedIn(contract['permission_id'], `${at}.permission_id`, 31) ?? 0n;
  const refBlockBytes = bytesIn(requested['ref_block_bytes'], `${path}.ref_block_bytes`, '', 2) ?? 'ddf1';
  const refBlockHash = bytesIn(requested['ref_block_hash'], `${path}.ref_block_hash`, '', 8) ?? 'd04764f22469a0b8';
  const data = bytesIn(requested['data'], `${path}.data`) ?? '';
  const [expiration, timestamp, feeLimit] = ['expiration', 'timestamp', 'fee_limit'].map(number) as [
    bigint,
    bigint,
    bigint,
  ];
  return {
    unsignedTransaction: unsignedTron({
      ...{ refBlockBytes, refBlockHash, expiration, timestamp, data, feeLimit },
      ...{ type, permissionId, fields },
    }),
    tx: {
      ref_block_bytes: refBlockBytes,
      ref_block_hash: refBlockHash,
      expiration,
      timestamp,
      data,
      fee_limit: feeLimit,
      contract: [{ type, permission_id: permissionId, ...fields }],
    },
    real: addresses.real,
  };
}

/** The type that is asked for, or the first that has all these fields. @throws {NotExecuted} */
function typeOf(contract: Facts): TronContractType {
  const requested = textIn(contract['type'], 'tron.tx.contract[0].type');
  const wanted = Object.keys(contract).filter((name) => name !== 'type' && name !== 'permission_id');
  const has = (type: TronContractType) => wanted.every((name) => fieldsOf(type).some(([field]) => field === name));
  const type = requested === undefined ? typesInOrder.find(has) : typesInOrder.find((one) => one === requested);
  if (type !== undefined) return type;
  throw new NotExecuted(
    requested === undefined
      ? `nothing here makes a Tron contract with all of ${wanted.join(', ')}`
      : `nothing here makes a Tron contract of the type \`${requested}\``,
  );
}

function valueOf(contract: Facts, name: string, kind: string, at: string, addresses: Addresses): TronValue {
  const [value, path] = [contract[name], `${at}.${name}`];
  switch (kind) {
    case 'address':
      return name === 'owner_address' ? addresses.ofSigner(value, path) : addresses.of(value, path);
    case 'bytes':
      return bytesIn(value, path) ?? '';
    case 'boolean':
      return value === true;
    case 'permission':
      return value === undefined ? undefined : permissionIn(recordIn(value, path), path, addresses);
    case 'permissions':
      return recordsIn(value, path)?.map((one, index) => permissionIn(one, `${path}[${index}]`, addresses)) ?? [];
    case 'resource':
      return textIn(value, path) ?? tronResources[0];
    default:
      return unsignedIn(value, path, 63) ?? 0n;
  }
}

/** What is not said is as usual: one key with the weight that is needed. */
function permissionIn(input: Facts, path: string, addresses: Addresses): TronPermission {
  const one = saidIn(input);
  const requested = textIn(one['type'], `${path}.type`) ?? tronPermissionTypes[0];
  const type = tronPermissionTypes.find((name) => name === requested);
  if (type === undefined) throw new NotExecuted(`no permission on Tron is of the type \`${requested}\``);
  const number = (name: string, bits: number) => unsignedIn(one[name], `${path}.${name}`, bits);
  const keys = recordsIn(one['keys'], `${path}.keys`) ?? [{}];
  return {
    type,
    id: number('id', 31) ?? 0n,
    permission_name: textIn(one['permission_name'], `${path}.permission_name`) ?? 'example',
    threshold: number('threshold', 63) ?? 1n,
    parent_id: number('parent_id', 31) ?? 0n,
    operations: bytesIn(one['operations'], `${path}.operations`) ?? '',
    keys: keys.map((key, index) => ({
      address: addresses.of(key['address'], `${path}.keys[${index}].address`),
      weight: unsignedIn(key['weight'], `${path}.keys[${index}].weight`, 63) ?? 1n,
    })),
  };
}
