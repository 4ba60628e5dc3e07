import { keccak_256 } from '@noble/hashes/sha3.js';
import { concatBytes, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import { addr } from 'micro-eth-signer';
import { unreadable, type PolicyValue } from '../domain/policy/types.js';
import type { Steps } from '../domain/steps.js';
import { isObject, parseJson, quoted, refusal, takeKeccak, toInteger } from './refusals.js';

interface Field {
  readonly name: string;
  readonly type: FieldType;
  /** As written, which is how the hash of its struct spells it. */
  readonly text: string;
}

type FieldType =
  | { readonly kind: 'uint' | 'int'; readonly bits: number }
  | { readonly kind: 'address' | 'bool' | 'string' | 'bytes' }
  | { readonly kind: 'fixedBytes'; readonly length: number }
  | { readonly kind: 'array'; readonly of: FieldType; readonly length?: number }
  | { readonly kind: 'struct'; readonly name: string };

/** `policy` is what policies see. */
export interface HashedTypedData {
  readonly digest: Uint8Array;
  readonly policy: Readonly<Record<string, PolicyValue>>;
}

type Structs = ReadonlyMap<string, readonly Field[]>;

const DOMAIN = 'EIP712Domain';
/** The members that a domain may have if the types do not declare it, in the order of EIP-712. */
const DOMAIN_FIELDS = [
  ['name', 'string'],
  ['version', 'string'],
  ['chainId', 'uint256'],
  ['verifyingContract', 'address'],
  ['salt', 'bytes32'],
] as const;

/** Hyperliquid has a colon in its type names. Brackets, commas and spaces could forge the text that is hashed. */
const NAME = /^[A-Za-z_$][A-Za-z0-9_$:.-]*$/;
const MAX_NAME_LENGTH = 256;
const MAX_STRUCTS = 128;
/** All types together, in UTF-16 code units. Each struct hashes the text of those it uses, so this limits the work. */
const MAX_TYPES_LENGTH = 65_536;
const MAX_NESTING = 64;
const WORD_LENGTH = 32;

/**
 * The EIP712 payload: JSON text of `{ types, domain, primaryType, message }`. Returns the 32 bytes to sign, Keccak-256
 * of 0x1901 ‖ hash of the domain ‖ hash of the message (EIP-712), as ethers and viem compute it, and `eth.eip_712` as
 * policies see it: integers exact, addresses and bytes in lower-case hex, structs by field. If the types lack
 * `EIP712Domain`, the domain consists of the members that it has. Members that no type declares are not signed, nor
 * does viem sign them: they are omitted, and policies do not see them.
 * @throws {CoordinatorError} INVALID_ARGUMENT that names the member, such as `message.orders[2].price`; OutOfSteps
 */
export function hashTypedData(json: string, steps: Steps): HashedTypedData {
  const payload = parseJson(json, 'typed data', steps);
  if (!isObject(payload))
    throw bad(`is ${quoted(payload)}; send an object with types, domain, primaryType and message`);
  const { primaryType } = payload;
  if (typeof primaryType !== 'string') throw bad(`primaryType is ${quoted(primaryType)}; send the name of a type`);
  const domain = readDomain(payload.domain);
  const structs = readStructs(payload.types, domain, steps);
  if (!structs.has(primaryType)) throw bad(`primaryType is ${quoted(primaryType)}, which is not among the types`);
  const hasher = new StructHasher(structs, steps);
  const hashedDomain = hasher.hash(DOMAIN, onlyDeclared(domain, structs), 'domain', 0);
  // EIP-712 has no message of the domain's own type; clients then sign the domain alone.
  const isDomainAlone = primaryType === DOMAIN;
  if (isDomainAlone && payload.message !== undefined && !(isObject(payload.message) && isEmpty(payload.message))) {
    throw bad(`message is signed only with a primaryType other than \`${DOMAIN}\`; leave it out`);
  }
  const message = isDomainAlone ? undefined : hasher.hash(primaryType, payload.message, 'message', 0);
  const parts = [Uint8Array.of(0x19, 0x01), hashedDomain.word];
  return {
    digest: keccak_256(concatBytes(...parts, ...(message === undefined ? [] : [message.word]))),
    policy: {
      primary_type: primaryType,
      domain: domainPolicyValue(hashedDomain.value, structs.get(DOMAIN) ?? []),
      message: message?.value ?? {},
    },
  };
}

/** A value as it is hashed (32 bytes) and as policies see it. */
interface Encoded {
  readonly word: Uint8Array;
  readonly value: PolicyValue;
}

/** Hashes structs of one set of types; the hash of each type is computed once. */
class StructHasher {
  readonly #structs: Structs;
  readonly #typeHashes = new Map<string, Uint8Array>();
  readonly #steps: Steps;

  constructor(structs: Structs, steps: Steps) {
    this.#structs = structs;
    this.#steps = steps;
  }

  hash(name: string, value: unknown, path: string, depth: number): Encoded {
    if (depth > MAX_NESTING) throw bad(`${quoted(path)} is nested deeper than ${MAX_NESTING} levels`);
    if (!isObject(value)) throw bad(`${path} is ${quoted(value)}; send an object of type ${name}`);
    const fields = this.#structs.get(name) ?? [];
    takeKeccak(this.#steps, WORD_LENGTH * (1 + fields.length));
    const encoded = fields.map((field): [string, Encoded] => {
      const inner = `${path}.${field.name}`;
      if (!Object.hasOwn(value, field.name)) throw bad(`${inner} is missing; type ${name} has it`);
      return [field.name, this.#encode(field.type, value[field.name], inner, depth)];
    });
    return {
      word: keccak_256(concatBytes(this.#typeHash(name), ...encoded.map(([, { word }]) => word))),
      value: Object.fromEntries(encoded.map(([member, part]) => [member, part.value])),
    };
  }

  #encode(type: FieldType, value: unknown, path: string, depth: number): Encoded {
    this.#steps.take('valueDecoded');
    switch (type.kind) {
      case 'struct':
        return this.hash(type.name, value, path, depth + 1);
      case 'array':
        return this.#encodeArray(type, value, path, depth + 1);
      case 'uint':
      case 'int':
        return encodeInteger(type.kind, type.bits, value, path);
      case 'bool':
        if (typeof value !== 'boolean') throw bad(`${path} is ${quoted(value)}; send true or false`);
        return { word: toWord(value ? 1n : 0n), value };
      case 'address':
        takeKeccak(this.#steps, 2 * WORD_LENGTH);
        return encodeAddress(value, path);
      case 'string':
        if (typeof value !== 'string') throw bad(`${path} is ${quoted(value)}; send text`);
        takeKeccak(this.#steps, value.length);
        if (/\p{Surrogate}/u.test(value)) throw bad(`${path} has half of a surrogate pair, which has no UTF-8`);
        return { word: keccak_256(utf8ToBytes(value)), value };
      case 'bytes': {
        const bytes = readBytes(value, path);
        takeKeccak(this.#steps, bytes.length);
        return { word: keccak_256(bytes), value: (value as string).toLowerCase() };
      }
      case 'fixedBytes': {
        const bytes = readBytes(value, path);
        if (bytes.length !== type.length) {
          throw bad(
            `${path} is ${quoted(value)}, which has ${bytes.length} bytes; bytes${type.length} has ${type.length}`,
          );
        }
        const word = new Uint8Array(WORD_LENGTH);
        word.set(bytes);
        return { word, value: (value as string).toLowerCase() };
      }
    }
  }

  #encodeArray(type: FieldType & { kind: 'array' }, value: unknown, path: string, depth: number): Encoded {
    if (depth > MAX_NESTING) throw bad(`${quoted(path)} is nested deeper than ${MAX_NESTING} levels`);
    if (!Array.isArray(value)) throw bad(`${path} is ${quoted(value)}; send a list`);
    if (type.length !== undefined && value.length !== type.length) {
      throw bad(`${path} has \`${value.length}\` elements; its type has ${type.length}`);
    }
    takeKeccak(this.#steps, WORD_LENGTH * value.length);
    const elements = value.map((element: unknown, at) => this.#encode(type.of, element, `${path}[${at}]`, depth));
    const hash = keccak_256.create();
    for (const { word } of elements) hash.update(word);
    return { word: hash.digest(), value: elements.map((element) => element.value) };
  }

  #typeHash(name: string): Uint8Array {
    const known = this.#typeHashes.get(name);
    if (known !== undefined) return known;
    const text = encodeType(this.#structs, name, this.#steps);
    takeKeccak(this.#steps, text.length);
    const hash = keccak_256(utf8ToBytes(text));
    this.#typeHashes.set(name, hash);
    return hash;
  }
}

/** EIP-712, encodeType: the struct, then the structs that it uses, directly or not, sorted by name. */
function encodeType(structs: Structs, name: string, steps: Steps): string {
  const used = new Set([name]);
  for (const struct of used) {
    steps.take('listElement', structs.get(struct)?.length);
    for (const { type } of structs.get(struct) ?? []) {
      const base = elementOf(type);
      if (base.kind === 'struct') used.add(base.name);
    }
  }
  used.delete(name);
  const describe = (struct: string): string =>
    `${struct}(${(structs.get(struct) ?? []).map((field) => `${field.text} ${field.name}`).join(',')})`;
  return [name, ...[...used].sort()].map(describe).join('');
}

function elementOf(type: FieldType): FieldType {
  return type.kind === 'array' ? elementOf(type.of) : type;
}

/** The domain without null members: clients write null for missing ones. */
function readDomain(domain: unknown): Readonly<Record<string, unknown>> {
  if (domain === undefined) return {};
  if (!isObject(domain)) throw bad(`domain is ${quoted(domain)}; send an object`);
  return Object.fromEntries(Object.entries(domain).filter(([, value]) => value !== null));
}

function onlyDeclared(domain: Readonly<Record<string, unknown>>, structs: Structs): Readonly<Record<string, unknown>> {
  const declared = new Set(structs.get(DOMAIN)?.map(({ name }) => name));
  return Object.fromEntries(Object.entries(domain).filter(([name]) => declared.has(name)));
}

function readStructs(types: unknown, domain: Readonly<Record<string, unknown>>, steps: Steps): Structs {
  if (!isObject(types)) throw bad(`types is ${quoted(types)}; send an object of lists of { name, type }`);
  const entries = Object.entries(types);
  if (entries.length > MAX_STRUCTS)
    throw bad(`types has \`${entries.length}\` types; at most ${MAX_STRUCTS} are taken`);
  const { length } = JSON.stringify(types);
  if (length > MAX_TYPES_LENGTH) throw bad(`types is longer than ${MAX_TYPES_LENGTH} characters of JSON`);
  // A field takes a dozen characters to write; a type of many dimensions takes two for each.
  steps.take('byteRead', length);
  const names = new Set(entries.map(([name]) => name));
  const structs = new Map<string, readonly Field[]>();
  for (const [name, fields] of entries) {
    checkName(name, 'types');
    if (elementaryType(name) !== undefined) throw bad(`types has ${quoted(name)}, which is the name of a basic type`);
    structs.set(name, readStruct(fields, `types.${name}`, names, steps));
  }
  if (!structs.has(DOMAIN)) structs.set(DOMAIN, inferredDomain(domain));
  return structs;
}

function readStruct(fields: unknown, path: string, names: ReadonlySet<string>, steps: Steps): readonly Field[] {
  if (!Array.isArray(fields)) throw bad(`${path} is ${quoted(fields)}; send a list of { name, type }`);
  const seen = new Set<string>();
  return fields.map((field: unknown, at): Field => {
    const place = `${path}[${at}]`;
    steps.take('typeInstantiated');
    if (!isObject(field) || typeof field.name !== 'string' || typeof field.type !== 'string') {
      throw bad(`${place} is ${quoted(field)}; send { name, type }`);
    }
    checkName(field.name, place);
    if (seen.has(field.name)) throw bad(`${place} has the name ${quoted(field.name)} a second time`);
    seen.add(field.name);
    return { name: field.name, type: readType(field.type, place, names), text: field.type };
  });
}

function inferredDomain(domain: Readonly<Record<string, unknown>>): readonly Field[] {
  const known = DOMAIN_FIELDS.map(([name]): string => name);
  for (const member of Object.keys(domain)) {
    if (!known.includes(member)) throw bad(`domain has ${quoted(member)}; it may have ${known.join(', ')}`);
  }
  const none = new Set<string>();
  return DOMAIN_FIELDS.filter(([name]) => Object.hasOwn(domain, name)).map(([name, text]): Field => ({
    name,
    type: readType(text, 'domain', none),
    text,
  }));
}

function readType(text: string, place: string, names: ReadonlySet<string>): FieldType {
  const [base, ...dimensions] = text.split('[');
  if (dimensions.length > MAX_NESTING) throw bad(`${place} has a type of more than ${MAX_NESTING} dimensions`);
  let type = elementaryType(base ?? '') ?? structType(base ?? '', place, names);
  for (const dimension of dimensions) {
    const length = /^([1-9]\d{0,8})?\]$/.exec(dimension);
    if (length === null) throw bad(`${place} has the type ${quoted(text)}; arrays are T[] or T[n], n from 1`);
    type = { kind: 'array', of: type, ...(length[1] !== undefined && { length: Number(length[1]) }) };
  }
  return type;
}

function structType(name: string, place: string, names: ReadonlySet<string>): FieldType {
  if (names.has(name)) return { kind: 'struct', name };
  const hint = name === 'uint' || name === 'int' ? `write ${name}256` : 'add it to types, or correct the name';
  throw bad(`${place} has the type ${quoted(name)}, which is not known; ${hint}`);
}

function elementaryType(name: string): FieldType | undefined {
  if (name === 'address' || name === 'bool' || name === 'string' || name === 'bytes') return { kind: name };
  const parts = /^(uint|int|bytes)([1-9]\d{0,2})$/.exec(name);
  const size = Number(parts?.[2]);
  if (parts?.[1] === 'bytes') return size <= WORD_LENGTH ? { kind: 'fixedBytes', length: size } : undefined;
  if (parts === null || size % 8 !== 0 || size > 256) return undefined;
  return { kind: parts[1] as 'uint' | 'int', bits: size };
}

function checkName(name: string, place: string): void {
  if (!NAME.test(name) || name.length > MAX_NAME_LENGTH) {
    throw bad(`${place} has the name ${quoted(name)}; names are letters, digits, _ and $, and begin with no digit`);
  }
}

function encodeInteger(kind: 'uint' | 'int', bits: number, value: unknown, path: string): Encoded {
  const number = toInteger(value);
  if (number === undefined) {
    throw bad(`${path} is ${quoted(value)}; send an integer, as text when it is beyond 2^53 - 1`);
  }
  const min = kind === 'uint' ? 0n : -(2n ** BigInt(bits - 1));
  const max = 2n ** BigInt(kind === 'uint' ? bits : bits - 1) - 1n;
  if (number < min || number > max) throw bad(`${path} is ${quoted(value)}, which does not fit ${kind}${bits}`);
  return { word: toWord(number), value: number };
}

function encodeAddress(value: unknown, path: string): Encoded {
  if (typeof value !== 'string' || !/^0x[0-9a-fA-F]{40}$/.test(value)) {
    throw bad(`${path} is ${quoted(value)}; send 0x and 40 hex digits`);
  }
  if (!addr.isValid(value)) {
    throw bad(`${path} is ${quoted(value)}, whose checksum (EIP-55) is wrong; correct it, or send it in lower case`);
  }
  return { word: toWord(BigInt(value)), value: value.toLowerCase() };
}

function readBytes(value: unknown, path: string): Uint8Array {
  if (typeof value !== 'string' || value.length % 2 !== 0 || !/^0x[0-9a-fA-F]*$/.test(value)) {
    throw bad(`${path} is ${quoted(value)}; send 0x and an even number of hex digits`);
  }
  return hexToBytes(value.slice(2));
}

/** 32 bytes, big endian, two's complement. */
function toWord(number: bigint): Uint8Array {
  return hexToBytes(
    BigInt.asUintN(256, number)
      .toString(16)
      .padStart(2 * WORD_LENGTH, '0'),
  );
}

/**
 * The members that policies know. A domain may declare them with other types than those of EIP-712, in which case policies
 * cannot read them: what a wallet or a contract makes of an address that is a text, nobody says.
 */
function domainPolicyValue(domain: PolicyValue, fields: readonly Field[]): PolicyValue {
  const { name, version, chainId, verifyingContract } = domain as Readonly<Record<string, PolicyValue | undefined>>;
  const declared = (member: string, value: PolicyValue | undefined, usual: string): PolicyValue | undefined => {
    const text = fields.find((field) => field.name === member)?.text;
    if (text === undefined || text === usual) return value;
    return unreadable(`the domain declares ${member} with another type than ${usual}`);
  };
  return {
    name: declared('name', name, 'string'),
    version: declared('version', version, 'string'),
    chain_id: typeof chainId === 'bigint' && chainId >= 0n ? chainId : undefined,
    verifying_contract: declared('verifyingContract', verifyingContract, 'address'),
  };
}

function isEmpty(value: object): boolean {
  return Object.keys(value).length === 0;
}

function bad(what: string): Error {
  return refusal(`typed data ${what}`);
}
