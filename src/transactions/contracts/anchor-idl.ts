import { sha256 } from '@noble/hashes/sha2.js';
import { utf8ToBytes } from '@noble/hashes/utils.js';
import { isObject, quoted, takeSha256 } from '../refusals.js';
import { IdlTypes, type BorshField } from './anchor-types.js';
import { bad, checkCount, checkName, MAX_NAME_LENGTH, MAX_NESTING, type InterfaceSize } from './interface-size.js';
import { hex } from '../byte-reader.js';

/**
 * A Solana program as its Anchor IDL says it. `programId` is base58, if the IDL has it. An account in a group is named
 * `group.account`.
 */
export interface SolanaInterface {
  readonly programId?: string;
  readonly instructions: readonly SolanaInstruction[];
  /** By what data begins with: as the IDL says it, and what it leaves open, which is asked where the first has nothing. */
  readonly beginnings: readonly [Beginnings, Beginnings];
}

/** Instructions by their discriminator, in lower-case hex, and how many digits there may be, the most first. */
interface Beginnings {
  readonly instructions: ReadonlyMap<string, SolanaInstruction>;
  readonly lengths: readonly number[];
}

/**
 * `discriminatorHex` is what the data of the instruction begins with: lower case, without 0x. `otherDiscriminators` are
 * what it may begin with instead, where the IDL leaves that open.
 */
interface SolanaInstruction {
  readonly name: string;
  readonly discriminatorHex: string;
  readonly otherDiscriminators: readonly string[];
  readonly accounts: readonly string[];
  readonly args: readonly BorshField[];
}

const DISCRIMINATOR_LENGTH = 8;
/** Digits in the name of an instruction of an old IDL for which every spelling is tried. */
const MAX_DIGITS = 3;

/** An IDL of Anchor, before 0.30 (`isMut`, `publicKey`, no discriminators) or since. */
export function readIdl(idl: unknown, size: InterfaceSize): SolanaInterface {
  if (!isObject(idl)) throw bad('is no object; send an Anchor IDL');
  const { instructions, types = [], metadata } = idl;
  if (!Array.isArray(instructions)) throw bad(`instructions is ${quoted(instructions)}; send a list`);
  if (!Array.isArray(types)) throw bad(`types is ${quoted(types)}; send a list`);
  checkCount(instructions.length, 'instructions');
  const idlTypes = new IdlTypes(size);
  types.forEach((definition: unknown, at) => idlTypes.define(definition, `types[${at}]`));
  const programId = idl.address ?? (isObject(metadata) ? metadata.address : undefined);
  const read = instructions.map((instruction: unknown, at) =>
    readInstruction(instruction, `instructions[${at}]`, idlTypes, size),
  );
  const said = new Map<string, SolanaInstruction>();
  for (const instruction of read) {
    const other = said.get(instruction.discriminatorHex);
    if (other !== undefined) {
      const names = `${quoted(other.name)} and ${quoted(instruction.name)}`;
      throw bad(`instructions ${names} have the same discriminator; leave one out`);
    }
    said.set(instruction.discriminatorHex, instruction);
  }
  const open = new Map<string, SolanaInstruction>();
  for (const instruction of read) {
    for (const other of instruction.otherDiscriminators) if (!open.has(other)) open.set(other, instruction);
  }
  return {
    ...(typeof programId === 'string' && { programId }),
    instructions: read,
    beginnings: [beginningsOf(said), beginningsOf(open)],
  };
}

function readInstruction(instruction: unknown, place: string, types: IdlTypes, size: InterfaceSize): SolanaInstruction {
  if (!isObject(instruction)) throw bad(`${place} is ${quoted(instruction)}; send { name, accounts, args }`);
  const { name, discriminator, accounts, args } = instruction;
  if (typeof name !== 'string' || name === '') throw bad(`${place}.name is ${quoted(name)}; send a name`);
  checkName(name, `${place}.name`);
  takeSha256(size.steps, 2 * MAX_NAME_LENGTH);
  const [discriminatorHex, ...otherDiscriminators] = readDiscriminators(discriminator, name, `${place}.discriminator`);
  return {
    name,
    discriminatorHex,
    otherDiscriminators,
    accounts: readAccounts(accounts ?? [], '', `${place}.accounts`, 0, size),
    args: types.fields(args ?? [], `${place}.args`),
  };
}

/**
 * Given, or Anchor's own: the first 8 bytes of SHA-256 of `global:` and the function's name in Rust. An old IDL has that
 * in camel case, where nobody can see any more whether an underscore stood before a digit.
 */
function readDiscriminators(discriminator: unknown, name: string, place: string): readonly [string, ...string[]] {
  if (discriminator === undefined || discriminator === null) {
    const snakeCase = name.replace(/[A-Z]/g, (letter, at: number) => `${at === 0 ? '' : '_'}${letter.toLowerCase()}`);
    return [anchorDiscriminator(snakeCase), ...otherSpellings(snakeCase).map(anchorDiscriminator)];
  }
  const isByte = (byte: unknown): byte is number => Number.isInteger(byte) && Number(byte) >= 0 && Number(byte) < 256;
  if (!Array.isArray(discriminator) || discriminator.length === 0 || !discriminator.every(isByte)) {
    throw bad(`${place} is ${quoted(discriminator)}; send a list of bytes`);
  }
  return [hex(Uint8Array.from(discriminator))];
}

function anchorDiscriminator(snakeCase: string): string {
  return hex(sha256(utf8ToBytes(`global:${snakeCase}`)).subarray(0, DISCRIMINATOR_LENGTH));
}

/** The name with an underscore before some of its digits. Of a name with more digits, none is tried. */
function otherSpellings(snakeCase: string): readonly string[] {
  const pieces = snakeCase.split(/(?<=[^_])(?=\d)/);
  if (pieces.length > 1 + MAX_DIGITS) return [];
  const [first = '', ...rest] = pieces;
  const spellings = rest.reduce<readonly string[]>(
    (started, piece) => started.flatMap((text) => [text + piece, `${text}_${piece}`]),
    [first],
  );
  return spellings.filter((spelling) => spelling !== snakeCase);
}

function beginningsOf(instructions: ReadonlyMap<string, SolanaInstruction>): Beginnings {
  const lengths = [...new Set([...instructions.keys()].map(({ length }) => length))].sort((a, b) => b - a);
  return { instructions, lengths };
}

function readAccounts(
  accounts: unknown,
  group: string,
  place: string,
  depth: number,
  size: InterfaceSize,
): readonly string[] {
  if (depth > MAX_NESTING) throw bad(`${place} is nested deeper than ${MAX_NESTING} levels`);
  if (!Array.isArray(accounts)) throw bad(`${place} is ${quoted(accounts)}; send a list`);
  return accounts.flatMap((account: unknown, at): readonly string[] => {
    const inner = `${place}[${at}]`;
    size.part();
    if (!isObject(account) || typeof account.name !== 'string') {
      throw bad(`${inner} is ${quoted(account)}; send { name }`);
    }
    const name = checkName(`${group}${account.name}`, `${inner}.name, with its group,`);
    if (account.accounts === undefined) return [name];
    return readAccounts(account.accounts, `${name}.`, `${inner}.accounts`, depth + 1, size);
  });
}
