import {
  AmbiguousText,
  Unreadable,
  type PolicyValue,
  solanaAccounts,
  solanaLookedUp,
  unsignedSolana,
  type SolanaAccountUse,
  type SolanaInstructionToSend,
  type SolanaTable,
} from 'countersign/internal';
import { Addresses, solanaKeys } from './trial-addresses.js';
import type { MadeTransaction } from './trial-chains.js';
import { ParsedInstructions, type ParsedInstruction } from './trial-instruction.js';
import { TrialTables } from './trial-tables.js';
import { bytesIn, NotExecuted, recordsIn, saidIn, textIn, textsIn, unsignedIn, type Facts } from './trial-facts.js';

const systemProgram = '1'.repeat(32);
const tokenProgram = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
const token2022Program = 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb';
/** By program: an instruction that moves nothing (AdvanceNonceAccount, SyncNative). */
const harmless: Readonly<Record<string, Uint8Array | undefined>> = {
  [systemProgram]: Uint8Array.of(4, 0, 0, 0),
  [tokenProgram]: Uint8Array.of(17),
  [token2022Program]: Uint8Array.of(17),
};

/** An instruction, what is read in it by an interface, and what it moves; undefined if that is not known here. */
interface Step extends SolanaInstructionToSend {
  readonly parsed?: ParsedInstruction;
  readonly lookups?: readonly Facts[];
  readonly moves: { readonly transfers: readonly Facts[]; readonly spl_transfers: readonly Facts[] } | undefined;
}

const path = 'solana.tx';
/** Of an account in a table. */
const anyKey = new AmbiguousText('ADDRESS_TABLE_LOOKUP', 'only the chain knows the account', () => true);
const lookupsIn = (input: Facts): PolicyValue | undefined => saidIn(input)['address_table_lookups'];

/** A transaction with these facts of `solana.tx`; it also has the accounts of its payer and its programs. @throws {NotExecuted} */
export function solanaTransactionWith(requested: Facts, own: string): MadeTransaction {
  const keys = new Addresses(solanaKeys, own);
  const waiting = [
    ...(recordsIn(requested['transfers'], `${path}.transfers`) ?? []).map((one, at) => transferOf(one, at, keys)),
    ...(recordsIn(requested['spl_transfers'], `${path}.spl_transfers`) ?? []).map((one, at) => tokensOf(one, at, keys)),
  ];
  const input = recordsIn(requested['instructions'], `${path}.instructions`);
  const keysIn = (name: string) => textsIn(requested[name], `${path}.${name}`)?.map((key) => keys.of(key, name)) ?? [];
  const programs = keysIn('program_keys');
  const reading = new ParsedInstructions(keys);
  const tables = new TrialTables(requested['address_table_lookups'], (input ?? []).map(lookupsIn), keys);
  const steps = input === undefined ? [...waiting] : stepsOf(input, waiting, keys, reading, tables);
  if (input === undefined) {
    const uncalled = programs.filter((key) => !steps.some(({ programKey }) => programKey === key));
    steps.push(...uncalled.map((programKey) => quiet(programKey, [])));
  }
  const others = keysIn('account_keys');
  const recentBlockhash = keys.of(requested['recent_blockhash'], `${path}.recent_blockhash`);
  const transaction = { feePayer: own, instructions: steps, others, recentBlockhash, tables: tables.tables };
  const accounts = solanaAccounts(transaction);
  const called = new Set(steps.map(({ programKey }) => programKey));
  const notCalled = programs.find((key) => !called.has(key));
  if (notCalled !== undefined)
    throw new NotExecuted(`no instruction of the example calls the program \`${notCalled}\``);
  const tx = {
    account_keys: [...accounts.map(({ key }) => key), ...solanaLookedUp(tables.tables).map(() => anyKey)],
    program_keys: accounts.filter(({ key }) => called.has(key)).map(({ key }) => key),
    instructions: steps.map((step) => factsOf(step, accounts, tables.tables)),
    ...moved(steps),
    recent_blockhash: recentBlockhash,
    address_table_lookups: tables.facts,
  };
  // What is among the keys is checked above; there are others.
  const more = { account_keys: undefined, program_keys: undefined };
  return {
    unsignedTransaction: unsignedSolana(transaction),
    tx,
    real: keys.real,
    asked: { ...requested, ...more },
    reads: interfacesOf(steps, reading),
  };
}

/** In their order. What is moved is first taken by those of which no interface reads anything, since any data fit them. */
function stepsOf(
  input: readonly Facts[],
  waiting: Step[],
  keys: Addresses,
  reading: ParsedInstructions,
  tables: TrialTables,
): Step[] {
  const [parsed, others] = [true, false].map((isRead) =>
    [...input.entries()].filter(([, one]) => (saidIn(one)['parsed_instruction_data'] !== undefined) === isRead),
  );
  const made = [...others!, ...parsed!].map(([at, one]): readonly [number, Step] => {
    const { lookedUp, facts } = tables.taken(lookupsIn(one));
    const step = instructionOf(one, `${path}.instructions[${at}]`, waiting, keys, reading);
    return [at, { ...step, lookedUp, lookups: facts }];
  });
  return made.sort(([one], [other]) => one - other).map(([, step]) => step);
}

/** One for each program of which something is read. */
function interfacesOf(steps: readonly Step[], reading: ParsedInstructions) {
  const programs = new Set(steps.flatMap(({ parsed, programKey }) => (parsed === undefined ? [] : [programKey])));
  return Array.from(programs, (program) => {
    const own = steps.filter(({ programKey }) => programKey === program);
    const read = own.flatMap(({ parsed }) => parsed ?? []);
    const others = own.flatMap(({ parsed, data }) => (parsed === undefined ? [data] : []));
    return reading.interfaceOf(program, read, others);
  });
}

function transferOf(input: Facts, index: number, keys: Addresses): Step {
  const [one, at] = [saidIn(input), `${path}.transfers[${index}]`];
  const from = keys.ofSigner(one['from'], `${at}.from`);
  const to = keys.of(one['to'], `${at}.to`);
  const amount = unsignedIn(one['amount'], `${at}.amount`, 64) ?? 1n;
  const accounts = [
    { key: from, signer: true, writable: true },
    { key: to, signer: false, writable: true },
  ];
  const data = Buffer.alloc(12, Uint8Array.of(2, 0, 0, 0));
  data.writeBigUInt64LE(amount, 4);
  return { programKey: systemProgram, accounts, data, moves: { transfers: [{ from, to, amount }], spl_transfers: [] } };
}

/** Of tokens whose mint is named, unless the example has it that the instruction does not name it. */
function tokensOf(input: Facts, index: number, keys: Addresses): Step {
  const [one, at] = [saidIn(input), `${path}.spl_transfers[${index}]`];
  const owner = keys.ofSigner(one['owner'], `${at}.owner`);
  const [from, to] = [keys.of(one['from'], `${at}.from`), keys.of(one['to'], `${at}.to`)];
  const amount = unsignedIn(one['amount'], `${at}.amount`, 64) ?? 1n;
  const signers = (textsIn(one['signers'], `${at}.signers`) ?? []).map((key) => keys.of(key, `${at}.signers`));
  const isNamed = textIn(one['token_mint'], `${at}.token_mint`) !== '';
  const mint = isNamed ? keys.of(one['token_mint'], `${at}.token_mint`) : undefined;
  const data = Buffer.alloc(isNamed ? 10 : 9, Uint8Array.of(0));
  data[0] = isNamed ? 12 : 3;
  data.writeBigUInt64LE(amount, 1);
  const used = (key: string, signer: boolean, writable: boolean): SolanaAccountUse => ({ key, signer, writable });
  const accounts = [
    used(from, false, true),
    ...(mint === undefined ? [] : [used(mint, false, false)]),
    used(to, false, true),
    // With several signers, the owner is an account that says who they are.
    used(owner, signers.length === 0, false),
    ...signers.map((key) => used(key, true, false)),
  ];
  const anyMint = new AmbiguousText('', 'the instruction does not name the mint', () => true);
  const transfer = { from, to, amount, owner, signers, token_mint: mint ?? anyMint };
  return { programKey: tokenProgram, accounts, data, moves: { transfers: [], spl_transfers: [transfer] } };
}

/** An instruction of the example, which takes what is still to be moved if it leaves open what it does. */
function instructionOf(input: Facts, at: string, waiting: Step[], keys: Addresses, reading: ParsedInstructions): Step {
  const one = saidIn(input);
  const program = one['program_key'] === undefined ? undefined : keys.of(one['program_key'], `${at}.program_key`);
  const data = bytesIn(one['instruction_data_hex'], `${at}.instruction_data_hex`);
  const accounts = recordsIn(one['accounts'], `${at}.accounts`)?.map((account, index): SolanaAccountUse => {
    const key = keys.of(account['account_key'], `${at}.accounts[${index}].account_key`);
    return { key, signer: account['signer'] === true, writable: account['writable'] === true };
  });
  const isOpen = data === undefined && accounts === undefined;
  const place = waiting.findIndex(({ programKey }) => isOpen && (program === undefined || programKey === program));
  const [taken] = place < 0 ? [] : waiting.splice(place, 1);
  const programKey = taken?.programKey ?? program ?? keys.of(undefined, `${at}.program_key`);
  const requested = one['parsed_instruction_data'];
  if (requested !== undefined) {
    const parsed = reading.read(requested, `${at}.parsed_instruction_data`, {
      data: taken ? Buffer.from(taken.data).toString('hex') : data,
      isExtensible: taken !== undefined,
      accounts: (taken?.accounts ?? accounts)?.map(({ key }) => key),
      beginning: harmless[programKey],
    });
    if (taken) return { ...taken, data: parsed.data, parsed };
    const used = accounts ?? parsed.accounts.map((key) => ({ key, signer: false, writable: false }));
    return { programKey, accounts: used, data: parsed.data, parsed, moves: movesOf(programKey, parsed.data) };
  }
  if (taken) return taken;
  if (data === undefined) return quiet(programKey, accounts ?? []);
  const bytes = Buffer.from(data, 'hex');
  return { programKey, accounts: accounts ?? [], data: bytes, moves: movesOf(programKey, bytes) };
}

/** What data move of which no transfer was made. What follows the beginning of an instruction, its program does not look at. */
function movesOf(programKey: string, data: Uint8Array): Step['moves'] {
  const isHarmless = harmless[programKey]?.every((byte, at) => data[at] === byte) ?? true;
  return isHarmless ? { transfers: [], spl_transfers: [] } : undefined;
}

function quiet(programKey: string, accounts: readonly SolanaAccountUse[]): Step {
  const data = harmless[programKey] ?? new Uint8Array();
  return { programKey, accounts, data, moves: { transfers: [], spl_transfers: [] } };
}

function factsOf(step: Step, all: readonly SolanaAccountUse[], tables: readonly SolanaTable[]): Facts {
  const { programKey, accounts, data, parsed, lookedUp = [], lookups = [] } = step;
  const places = solanaLookedUp(tables);
  return {
    program_key: programKey,
    accounts: [
      ...accounts.map(({ key }) => {
        const { signer, writable } = all.find((one) => one.key === key)!;
        return { account_key: key, signer, writable };
      }),
      ...lookedUp.map((at) => ({ account_key: anyKey, signer: false, writable: places[at]!.isWritable })),
    ],
    instruction_data_hex: Buffer.from(data).toString('hex'),
    address_table_lookups: lookups,
    parsed_instruction_data: parsed?.facts,
  };
}

function moved(steps: readonly Step[]): Facts {
  if (steps.some(({ moves }) => moves === undefined)) {
    const unknown = new Unreadable('the example gives the data of an instruction of a program that moves something');
    return { transfers: unknown, spl_transfers: unknown };
  }
  return {
    transfers: steps.flatMap(({ moves }) => moves!.transfers),
    spl_transfers: steps.flatMap(({ moves }) => moves!.spl_transfers),
  };
}
