import { AmbiguousText, Doubt, type PolicyValue } from 'countersign/internal';
import { BorshWriter, discriminatorOf, type IdlField, type InstructionValue } from './unsigned-instruction.js';
import type { Addresses } from './trial-addresses.js';
import type { TrialInterface } from './trial-call.js';
import { bytesIn, NotExecuted, recordIn, saidIn, textIn, type Facts } from './trial-facts.js';

/** An instruction as an IDL has it. */
interface IdlInstruction {
  readonly name: string;
  readonly discriminator: readonly number[];
  readonly accounts: readonly { readonly name: string }[];
  readonly args: readonly IdlField[];
}

/** What an interface reads in an instruction. */
export interface ParsedInstruction {
  readonly idl: IdlInstruction;
  readonly data: Uint8Array;
  /** Base58, in order. */
  readonly accounts: readonly string[];
  /** Of `parsed_instruction_data`. */
  readonly facts: Facts;
}

interface Known {
  /** In hexadecimal. */
  readonly data: string | undefined;
  /** More may follow the data, since its program does not look at what does. */
  readonly isExtensible?: boolean;
  readonly accounts: readonly string[] | undefined;
  readonly beginning?: Uint8Array | undefined;
}

/** Instructions that are read by IDLs of their programs. */
export class ParsedInstructions {
  private readonly borsh = new BorshWriter();

  constructor(private readonly keys: Addresses) {}

  /**
   * An instruction that is read so; `data` and `accounts` as far as they are given, `beginning` of other data.
   * @throws {NotExecuted}
   */
  read(
    input: PolicyValue,
    path: string,
    { data, isExtensible = false, accounts, beginning = new Uint8Array() }: Known,
  ): ParsedInstruction {
    const one = saidIn(recordIn(input, path));
    const name = textIn(one['instruction_name'], `${path}.instruction_name`) ?? 'call';
    const values = valuesIn(one['program_call_args'], `${path}.program_call_args`);
    const { fields, bytes } = this.borsh.fields(values);
    const requested = bytesIn(one['discriminator'], `${path}.discriminator`);
    const discriminator =
      requested ??
      (data === undefined ? undefined : beginningOf(data, bytes)) ??
      `${Buffer.from(beginning).toString('hex')}${ownOf(name)}`;
    const whole = `${discriminator}${Buffer.from(bytes).toString('hex')}`;
    if (discriminator === '') throw new NotExecuted(`no instruction has an empty ${path}.discriminator`);
    const isExtended = isExtensible && data !== undefined && whole.startsWith(data);
    if (data?.startsWith(whole) === false && !isExtended)
      throw new NotExecuted(`the data \`${data}\` does not call \`${name}\` with the arguments of the example`);
    const { names, used } = this.accounts(one['named_accounts'], `${path}.named_accounts`, accounts);
    return {
      idl: {
        name,
        discriminator: [...Buffer.from(discriminator, 'hex')],
        accounts: names.map((account) => ({ name: account })),
        args: fields,
      },
      data: Buffer.from(isExtended ? whole : (data ?? whole), 'hex'),
      accounts: used,
      facts: {
        instruction_name: name,
        discriminator,
        named_accounts: Object.fromEntries(names.map((account, at) => [account, used[at]!])),
        program_call_args: values,
      },
    };
  }

  /** The interface of a program with these instructions; `others` are the data of those that it must not read. @throws {NotExecuted} */
  interfaceOf(program: string, read: readonly ParsedInstruction[], others: readonly Uint8Array[]): TrialInterface {
    const all = new Map(read.map(({ idl }) => [JSON.stringify(idl), idl]));
    const instructions = [...all.values()];
    const readAs = (data: Uint8Array) =>
      instructions.filter((one) => one.discriminator.every((byte, at) => data[at] === byte));
    if (read.some(({ data }) => readAs(data).length > 1) || others.some((data) => readAs(data).length > 0))
      throw new NotExecuted(`no interface of a program reads different instructions by what their data begins with`);
    return {
      type: 'SMART_CONTRACT_INTERFACE_TYPE_SOLANA',
      smartContractAddress: program,
      smartContractInterface: JSON.stringify({ instructions, types: this.borsh.types }),
    };
  }

  /** The names of accounts in their order, and their keys. Those that the example has stay where they are. */
  private accounts(input: PolicyValue | undefined, path: string, known: readonly string[] | undefined) {
    const named = Object.entries(saidIn(recordIn(input, path))).map(
      ([name, key]) => [name, this.keys.of(key, `${path}['${name}']`)] as const,
    );
    if (known === undefined) return { names: named.map(([name]) => name), used: named.map(([, key]) => key) };
    const names = known.map((_, at) => `account ${at}`);
    const free = new Set(known.keys());
    for (const [name, key] of named) {
      const place = [...free].find((at) => known[at] === key);
      if (place === undefined) throw new NotExecuted(`no account of the instruction is \`${path}['${name}']\``);
      free.delete(place);
      names[place] = name;
    }
    return { names, used: known };
  }
}

const ownOf = (name: string): string => Buffer.from(discriminatorOf(name)).toString('hex');

/** What stands before the arguments; all of the data if there are none. */
function beginningOf(data: string, args: Uint8Array): string {
  if (args.length === 0) return data;
  const place = Buffer.from(data, 'hex').indexOf(args, 1);
  return place < 0 ? data : data.slice(0, 2 * place);
}

function valuesIn(input: PolicyValue | undefined, path: string): Readonly<Record<string, InstructionValue>> {
  const there = Object.entries(recordIn(input, path)).filter(
    ([, value]) => !(value instanceof Doubt && value.kind === 'not-applicable'),
  );
  return Object.fromEntries(there.map(([name, value]) => [name, valueIn(value, `${path}['${name}']`)]));
}

function valueIn(value: PolicyValue, path: string): InstructionValue {
  if (value instanceof Doubt) throw new NotExecuted(`nothing here makes an instruction whose ${path} cannot be read`);
  if (value instanceof AmbiguousText) throw new NotExecuted(`nothing here makes an instruction with ${path}`);
  if (typeof value !== 'object') return value;
  if (Array.isArray(value)) return (value as readonly PolicyValue[]).map((one, at) => valueIn(one, `${path}[${at}]`));
  return valuesIn(value, path);
}
