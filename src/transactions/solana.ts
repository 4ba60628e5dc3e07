import { base58 } from '@scure/base';
import { CoordinatorError } from '../domain/errors.js';
import { AmbiguousText, Unreadable, type PolicyValue } from '../domain/policy/types.js';
import { Steps } from '../domain/steps.js';
import { ByteReader, hex, malformed, signatureBytes, unsignedTransactionBytes } from './byte-reader.js';
import type { TransactionSignature } from './byte-reader.js';
import { BorshBudget, decodeSolanaArgs } from './contracts/borsh.js';
import type { SolanaInterface } from './contracts/anchor-idl.js';
import type { SolanaCall } from './contracts/borsh.js';
import { severalInterfaces } from './contracts/readable.js';
import { batchParts, solanaTransfers } from './solana-transfers.js';

/** An account as one message uses it. `key` is base58, or ADDRESS_TABLE_LOOKUP if only the chain knows the key. */
interface SolanaAccount {
  readonly key: string;
  readonly signer: boolean;
  readonly writable: boolean;
}

/** One instruction; `accountIndexes` refer to `SolanaTransaction.accounts`. */
interface SolanaInstruction {
  readonly programKey: string;
  readonly accountIndexes: readonly number[];
  readonly data: Uint8Array;
}

/** Addresses that a version 0 message takes from one table on chain (Solana documentation, "Address Lookup Tables"). */
interface AddressTableLookup {
  readonly tableKey: string;
  readonly writableIndexes: readonly number[];
  readonly readonlyIndexes: readonly number[];
}

/**
 * A parsed Solana transaction. `accounts` holds the `staticAccountCount` keys of the message, then the looked-up
 * accounts in the order instructions count them; `signatures` has 64 bytes for each required signer, zeros for missing.
 */
export interface SolanaTransaction {
  readonly version: 'legacy' | 0;
  readonly message: Uint8Array;
  readonly signatures: readonly Uint8Array[];
  readonly staticAccountCount: number;
  readonly accounts: readonly SolanaAccount[];
  readonly recentBlockhash: string;
  readonly instructions: readonly SolanaInstruction[];
  readonly addressTableLookups: readonly AddressTableLookup[];
}

/** An IDL uploaded for a program, or why it cannot be read. */
export interface DeployedProgram {
  /** The program's key in base58. */
  readonly address: string;
  readonly interface: SolanaInterface | Unreadable;
}

const SIGNATURE_LENGTH = 64;
const KEY_LENGTH = 32;
// PACKET_DATA_SIZE of the Solana node (sdk/packet): IPv6 minimum MTU less the headers.
const MAX_TRANSACTION_LENGTH = 1232;
/** Of hex, with 0x. */
const MAX_TEXT_LENGTH = 2 + 2 * MAX_TRANSACTION_LENGTH;
const MAX_ACCOUNTS = 256;
const VERSION_FLAG = 0x80;
const LOOKED_UP = 'ADDRESS_TABLE_LOOKUP';
/** What policies see of an account in a lookup table: it may be any. */
const ANY_KEY = new AmbiguousText(LOOKED_UP, 'only the chain knows the account that a lookup table names', () => true);

/**
 * Parses hex of a serialized transaction (signatures present, empty ones as zeros) or of its message alone, legacy or
 * version 0 (Solana documentation, "Transactions": structure; sanitize rules of the node). Throws INVALID_ARGUMENT.
 */
export function parseUnsignedSolana(unsignedTransaction: string, steps: Steps): SolanaTransaction {
  const bytes = unsignedTransactionBytes(unsignedTransaction, steps);
  // Checked first: everything that follows takes time by the number of keys and instructions, some of it quadratic.
  if (bytes.length > MAX_TRANSACTION_LENGTH) {
    throw malformed(
      `it is ${bytes.length} bytes long, the network takes ${MAX_TRANSACTION_LENGTH} with its signatures`,
    );
  }
  steps.take('instructionPart', bytes.length / 2);
  // A transaction with 128 signatures or more would not fit into a packet, so this bit says: the message alone.
  if ((bytes[0]! & VERSION_FLAG) !== 0) return parseMessage(bytes);
  const asTransaction = attempt(() => parseTransaction(bytes));
  const asMessage = attempt(() => parseMessage(bytes));
  if (!(asTransaction instanceof CoordinatorError)) {
    if (asMessage instanceof CoordinatorError) return asTransaction;
    throw malformed('the bytes are both a transaction and a message: send the serialized transaction with signatures');
  }
  if (!(asMessage instanceof CoordinatorError)) return asMessage;
  const reason = (error: CoordinatorError): string => error.message.replace(/^.*?unsignedTransaction: /, '');
  throw malformed(
    `not a Solana transaction: ${reason(asTransaction)}; nor a message: ${reason(asMessage)}; ` +
      'send hex of the serialized transaction',
  );
}

/**
 * Parses a message alone, as it is signed.
 * @throws {CoordinatorError} INVALID_ARGUMENT
 */
export function parseSolanaMessage(message: Uint8Array, steps: Steps): SolanaTransaction {
  if (message.length > MAX_TRANSACTION_LENGTH) {
    throw malformed(`it is ${message.length} bytes long, the network takes ${MAX_TRANSACTION_LENGTH}`);
  }
  steps.take('instructionPart', message.length / 2);
  return parseMessage(message);
}

const HEADER_LENGTH = 3;

/** Whether the header and the number of keys are those of a legacy message that fits into a packet. */
export function mayBeLegacyMessage(message: Uint8Array): boolean {
  const [required = 0, readonlySigned = 0, readonlyUnsigned = 0, count = 0] = message;
  return (
    readonlySigned < required &&
    required + readonlyUnsigned <= count &&
    HEADER_LENGTH + 1 + (count + 1) * KEY_LENGTH < message.length &&
    1 + required * SIGNATURE_LENGTH + message.length <= MAX_TRANSACTION_LENGTH
  );
}

/** Whether an address is among the account keys of any of these messages; what is not a message has none that matter. */
export function accountsOf(messages: readonly Uint8Array[]): (address: string) => boolean {
  const keys = new Set(messages.flatMap(keysIn));
  return (address) => keys.has(hex(base58.decode(address)));
}

function keysIn(message: Uint8Array): readonly string[] {
  const at = HEADER_LENGTH + ((message[0] ?? 0) < VERSION_FLAG ? 0 : 1);
  const count = Math.min(message[at] ?? 0, Math.floor(MAX_TRANSACTION_LENGTH / KEY_LENGTH));
  return Array.from({ length: count }, (_, key) =>
    hex(message.subarray(at + 1 + key * KEY_LENGTH, at + 1 + (key + 1) * KEY_LENGTH)),
  );
}

/** The programs that a transaction calls, as far as it can be parsed. */
export function programsOf(unsignedTransaction: string): ReadonlySet<string> {
  if (unsignedTransaction.length > MAX_TEXT_LENGTH) return new Set();
  const transaction = attempt(() => parseUnsignedSolana(unsignedTransaction, new Steps()));
  if (transaction instanceof CoordinatorError) return new Set();
  return new Set(transaction.instructions.map(({ programKey }) => programKey));
}

function attempt(parse: () => SolanaTransaction): SolanaTransaction | CoordinatorError {
  try {
    return parse();
  } catch (error) {
    if (error instanceof CoordinatorError) return error;
    throw error;
  }
}

function parseTransaction(bytes: Uint8Array): SolanaTransaction {
  const reader = new ByteReader(bytes);
  const count = compactU16(reader, 'the number of signatures');
  const signatures = Array.from({ length: count }, (_, at) => reader.take(SIGNATURE_LENGTH, `signature ${at}`));
  const transaction = parseMessage(bytes.slice(reader.position));
  const required = transaction.signatures.length;
  if (count !== required) {
    throw malformed(
      `it has ${count} signatures but its message requires ${required}: leave 64 zero bytes for each one missing`,
    );
  }
  return { ...transaction, signatures };
}

function parseMessage(message: Uint8Array): SolanaTransaction {
  const reader = new ByteReader(message);
  const isVersioned = (reader.peek('the message header') & VERSION_FLAG) !== 0;
  if (isVersioned) {
    const number = reader.byte('the version') & ~VERSION_FLAG;
    if (number !== 0) throw malformed(`message version ${number} is not supported: use a legacy or version 0 message`);
  }
  const required = reader.byte('the number of required signatures');
  const readonlySigned = reader.byte('the number of read-only signers');
  const readonlyUnsigned = reader.byte('the number of read-only accounts');
  const keys = list(reader, 'the number of account keys', (at) =>
    base58.encode(reader.take(KEY_LENGTH, `account key ${at}`)),
  );
  checkHeader({ required, readonlySigned, readonlyUnsigned, keys });
  const recentBlockhash = base58.encode(reader.take(KEY_LENGTH, 'the recent blockhash'));
  const compiled = list(reader, 'the number of instructions', (at) => ({
    programIndex: reader.byte(`the program index of instruction ${at}`),
    accountIndexes: [...byteList(reader, `the accounts of instruction ${at}`)],
    data: byteList(reader, `the data of instruction ${at}`),
  }));
  const addressTableLookups = isVersioned ? readLookups(reader) : [];
  reader.end('the message');
  const length = 1 + required * SIGNATURE_LENGTH + message.length;
  if (length > MAX_TRANSACTION_LENGTH) {
    throw malformed(`with its signatures it is ${length} bytes long, the network takes ${MAX_TRANSACTION_LENGTH}`);
  }

  const accounts: readonly SolanaAccount[] = [
    ...keys.map((key, at) => {
      const signer = at < required;
      const writable = signer ? at < required - readonlySigned : at < keys.length - readonlyUnsigned;
      return { key, signer, writable };
    }),
    ...addressTableLookups.flatMap(({ writableIndexes }) =>
      writableIndexes.map(() => ({ key: LOOKED_UP, signer: false, writable: true })),
    ),
    ...addressTableLookups.flatMap(({ readonlyIndexes }) =>
      readonlyIndexes.map(() => ({ key: LOOKED_UP, signer: false, writable: false })),
    ),
  ];
  if (accounts.length > MAX_ACCOUNTS) {
    throw malformed(`it uses ${accounts.length} accounts, a message takes at most ${MAX_ACCOUNTS}`);
  }
  const instructions = compiled.map(({ programIndex, accountIndexes, data }, at) => {
    // Index 0 is the fee payer, which the node refuses as a program; a looked-up program would hide what is called.
    const programKey = programIndex === 0 ? undefined : keys[programIndex];
    if (programKey === undefined) {
      throw malformed(
        `instruction ${at} calls account ${programIndex}: a program must be one of the account keys 1 to ${keys.length - 1}`,
      );
    }
    const outside = accountIndexes.find((index) => index >= accounts.length);
    if (outside !== undefined) {
      throw malformed(`instruction ${at} uses account ${outside}, but there are only ${accounts.length}`);
    }
    return { programKey, accountIndexes, data };
  });
  return {
    version: isVersioned ? 0 : 'legacy',
    message,
    signatures: Array.from({ length: required }, () => new Uint8Array(SIGNATURE_LENGTH)),
    staticAccountCount: keys.length,
    accounts,
    recentBlockhash,
    instructions,
    addressTableLookups,
  };
}

function checkHeader(header: {
  readonly required: number;
  readonly readonlySigned: number;
  readonly readonlyUnsigned: number;
  readonly keys: readonly string[];
}): void {
  const { required, readonlySigned, readonlyUnsigned, keys } = header;
  if (required === 0) throw malformed('its header requires no signature, but the fee payer always signs');
  if (required + readonlyUnsigned > keys.length) {
    throw malformed(
      `its header counts ${required} signers and ${readonlyUnsigned} read-only accounts among ${keys.length} account keys`,
    );
  }
  if (readonlySigned >= required) {
    throw malformed(
      `its header makes ${readonlySigned} of ${required} signers read-only, but the fee payer is writable`,
    );
  }
  const repeated = keys.find((key, at) => keys.indexOf(key) !== at);
  if (repeated !== undefined) throw malformed(`account key \`${repeated}\` is there twice`);
}

function readLookups(reader: ByteReader): readonly AddressTableLookup[] {
  return list(reader, 'the number of address table lookups', (at) => {
    const lookup = {
      tableKey: base58.encode(reader.take(KEY_LENGTH, `the table of lookup ${at}`)),
      writableIndexes: [...byteList(reader, `the writable indexes of lookup ${at}`)],
      readonlyIndexes: [...byteList(reader, `the read-only indexes of lookup ${at}`)],
    };
    if (lookup.writableIndexes.length + lookup.readonlyIndexes.length === 0) {
      throw malformed(`lookup ${at} takes nothing from its table`);
    }
    return lookup;
  });
}

function list<T>(reader: ByteReader, what: string, item: (at: number) => T): T[] {
  const count = compactU16(reader, what);
  const items: T[] = [];
  for (let at = 0; at < count; at++) items.push(item(at));
  return items;
}

function byteList(reader: ByteReader, what: string): Uint8Array {
  return reader.take(compactU16(reader, `the length of ${what}`), what);
}

/** Solana's compact-u16: 7 bits a byte, low bits first, at most 3 bytes, and only the shortest form. */
function compactU16(reader: ByteReader, what: string): number {
  let value = 0;
  for (let shift = 0; shift < 21; shift += 7) {
    const byte = reader.byte(what);
    value |= (byte & 0x7f) << shift;
    if ((byte & 0x80) !== 0) continue;
    if (byte === 0 && shift > 0) throw malformed(`${what} at byte ${reader.position} is not in its shortest form`);
    if (value <= 0xffff) return value;
    break;
  }
  throw malformed(`${what} at byte ${reader.position} is more than 65535`);
}

/**
 * What the key (32 bytes) signs with Ed25519: the message itself, and which of the required signers it is. Throws
 * INVALID_ARGUMENT if the transaction does not require its signature.
 */
export function solanaSigningInput(
  transaction: SolanaTransaction,
  publicKey: Uint8Array,
): { readonly message: Uint8Array; readonly signerIndex: number } {
  const key = base58.encode(publicKey);
  const signers = transaction.accounts.filter(({ signer }) => signer).map((account) => account.key);
  const signerIndex = signers.indexOf(key);
  if (signerIndex === -1) {
    const names = signers.map((signer) => `\`${signer}\``).join(', ');
    throw malformed(`\`${key}\` is not a signer of the transaction: it requires ${names}`);
  }
  return { message: transaction.message, signerIndex };
}

/** Hex of the transaction with one signer's signature inserted; the others stay as they were. */
export function assembleSolana(
  transaction: SolanaTransaction,
  signerIndex: number,
  signature: TransactionSignature,
): string {
  const signatures = transaction.signatures.map((old, at) => (at === signerIndex ? signatureBytes(signature) : old));
  // At most 19 signatures fit into a packet, so their number is one byte.
  return hex(Buffer.concat([Uint8Array.of(signatures.length), ...signatures, transaction.message]));
}

/**
 * The value of `solana.tx` (docs/protocol.md, policy namespaces). Amounts are lamports and atomic token units.
 * `parsed_instruction_data` is undefined for an instruction that no interface has, and for the parts of a batch. `calls` are
 * the results of `solanaCalls` for each instruction.
 */
export function solanaPolicyValue(
  transaction: SolanaTransaction,
  calls: readonly (SolanaCall | Unreadable | undefined)[],
): PolicyValue {
  const { accounts, instructions, addressTableLookups } = transaction;
  const places = lookedUpPlaces(transaction);
  const called = new Set(instructions.map(({ programKey }) => programKey));
  const accountsOf = ({ accountIndexes }: SolanaInstruction) => accountIndexes.map((index) => accounts[index]!);
  const instructionValue = (instruction: SolanaInstruction, call?: SolanaCall | Unreadable) => ({
    program_key: instruction.programKey,
    accounts: accountsOf(instruction).map((account) => ({
      account_key: keyValue(account),
      signer: account.signer,
      writable: account.writable,
    })),
    instruction_data_hex: hex(instruction.data),
    address_table_lookups: lookupsOf(transaction, instruction, places),
    parsed_instruction_data: parsedInstructionValue(call, accountsOf(instruction)),
  });
  return {
    account_keys: accounts.map(keyValue),
    program_keys: accounts.filter(({ key }) => called.has(key)).map(({ key }) => key),
    instructions: instructions.flatMap((instruction, at) => {
      // What is in a batch counts as the instructions that it stands for.
      const parts = batchParts({ ...instruction, accounts: instruction.accountIndexes });
      if (!parts) return [instructionValue(instruction, calls[at])];
      const { programKey } = instruction;
      return parts.map((part) => instructionValue({ programKey, data: part.data, accountIndexes: part.accounts }));
    }),
    ...solanaTransfers(
      instructions.map((instruction) => ({
        ...instruction,
        accounts: accountsOf(instruction).map((account) => ({ key: keyValue(account), signer: account.signer })),
      })),
    ),
    recent_blockhash: transaction.recentBlockhash,
    address_table_lookups: addressTableLookups.map(lookupValue),
  };
}

function keyValue({ key }: SolanaAccount): PolicyValue {
  return key === LOOKED_UP ? ANY_KEY : key;
}

function lookupValue({ tableKey, writableIndexes, readonlyIndexes }: AddressTableLookup): PolicyValue {
  return {
    address_table_key: tableKey,
    writable_indexes: writableIndexes.map(BigInt),
    readonly_indexes: readonlyIndexes.map(BigInt),
  };
}

interface LookedUpPlace {
  readonly lookup: AddressTableLookup;
  readonly kind: 'writableIndexes' | 'readonlyIndexes';
  readonly index: number;
}

/** In the order of `accounts`: the writable ones of every table, then the read-only ones of every table. */
function lookedUpPlaces({ addressTableLookups }: SolanaTransaction): readonly LookedUpPlace[] {
  return (['writableIndexes', 'readonlyIndexes'] as const).flatMap((kind) =>
    addressTableLookups.flatMap((lookup) => lookup[kind].map((index) => ({ lookup, kind, index }))),
  );
}

/** What one instruction takes from the tables, table by table. */
function lookupsOf(
  { addressTableLookups, staticAccountCount }: SolanaTransaction,
  { accountIndexes }: SolanaInstruction,
  places: readonly LookedUpPlace[],
): PolicyValue[] {
  const used = accountIndexes.flatMap((index) => places[index - staticAccountCount] ?? []);
  return addressTableLookups.flatMap((lookup) => {
    const indexes = (kind: 'writableIndexes' | 'readonlyIndexes') =>
      used.filter((place) => place.lookup === lookup && place.kind === kind).map(({ index }) => index);
    const part = {
      ...lookup,
      writableIndexes: indexes('writableIndexes'),
      readonlyIndexes: indexes('readonlyIndexes'),
    };
    return part.writableIndexes.length + part.readonlyIndexes.length === 0 ? [] : [lookupValue(part)];
  });
}

/**
 * The call in each instruction, by the interface of its program; undefined if it does not have it. Those of a program whose
 * interface cannot be read are unreadable, and those of one with several: more than one is refused when it is uploaded
 * (`checkNewContractInterface`).
 */
export function solanaCalls(
  { instructions }: SolanaTransaction,
  programs: readonly DeployedProgram[],
  steps: Steps,
): readonly (SolanaCall | Unreadable | undefined)[] {
  const budget = new BorshBudget(steps);
  const byAddress = new Map<string, DeployedProgram[]>();
  for (const program of programs) {
    byAddress.set(program.address, [...(byAddress.get(program.address) ?? []), program]);
  }
  return instructions.map(({ programKey, data }) => {
    const [program, ...others] = byAddress.get(programKey) ?? [];
    if (program === undefined) return undefined;
    if (others.length > 0) return severalInterfaces(programKey);
    if (program.interface instanceof Unreadable) return program.interface;
    return decodeSolanaArgs(program.interface, data, budget);
  });
}

function parsedInstructionValue(
  call: SolanaCall | Unreadable | undefined,
  accounts: readonly SolanaAccount[],
): PolicyValue | undefined {
  if (call === undefined || call instanceof Unreadable) return call;
  const named = call.accountNames.slice(0, accounts.length).map((name, at) => [name, keyValue(accounts[at]!)] as const);
  return {
    instruction_name: call.instructionName,
    discriminator: call.discriminator,
    named_accounts: Object.fromEntries(named),
    program_call_args: call.programCallArgs,
  };
}
