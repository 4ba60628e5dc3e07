import { base58 } from '@scure/base';

/** An account as an instruction uses it; `key` is base58 of 32 bytes. */
export interface SolanaAccountUse {
  readonly key: string;
  readonly signer: boolean;
  readonly writable: boolean;
}

/** An instruction that is still to be put into a message. */
export interface SolanaInstructionToSend {
  readonly programKey: string;
  readonly accounts: readonly SolanaAccountUse[];
  readonly data: Uint8Array;
}

/** What a legacy transaction says. Each account has the rights of all its uses; `others` are there without being used. */
export interface UnsignedSolana {
  readonly feePayer: string;
  readonly instructions: readonly SolanaInstructionToSend[];
  readonly others?: readonly string[];
  /** Base58 of 32 bytes. */
  readonly recentBlockhash: string;
}

const keyLength = 32;
const signatureLength = 64;
// Of the message: accounts of each kind come together in this order (Solana documentation, "Transactions").
const kinds = [
  { signer: true, writable: true },
  { signer: true, writable: false },
  { signer: false, writable: true },
  { signer: false, writable: false },
] as const;

/** The accounts of the message, in order: the fee payer, other signers, and the rest. */
export function solanaAccounts({ feePayer, instructions, others = [] }: UnsignedSolana): readonly SolanaAccountUse[] {
  const uses = new Map<string, SolanaAccountUse>();
  const use = ({ key, signer, writable }: SolanaAccountUse): void => {
    const known = uses.get(key);
    uses.set(key, {
      key,
      signer: signer || known?.signer === true,
      writable: writable || known?.writable === true,
    });
  };
  use({ key: feePayer, signer: true, writable: true });
  for (const { accounts } of instructions) for (const one of accounts) use(one);
  for (const key of [...others, ...instructions.map(({ programKey }) => programKey)])
    use({ key, signer: false, writable: false });
  return kinds.flatMap(({ signer, writable }) =>
    [...uses.values()].filter((one) => one.signer === signer && one.writable === writable),
  );
}

/** The transaction with zeros for its signatures, in hexadecimal. @throws {TypeError} for a key that is none */
export function unsignedSolana(transaction: UnsignedSolana): string {
  const accounts = solanaAccounts(transaction);
  const place = new Map(accounts.map(({ key }, index) => [key, index]));
  const count = (signer: boolean, writable?: boolean): number =>
    accounts.filter((one) => one.signer === signer && (writable === undefined || one.writable === writable)).length;
  const message = Buffer.concat([
    Uint8Array.of(count(true), count(true, false), count(false, false)),
    listOf(accounts.map(({ key }) => bytesOf(key))),
    bytesOf(transaction.recentBlockhash),
    listOf(
      transaction.instructions.map(({ programKey, accounts: used, data }) =>
        Buffer.concat([
          Uint8Array.of(place.get(programKey)!),
          listOf(used.map(({ key }) => Uint8Array.of(place.get(key)!))),
          compactU16(data.length),
          data,
        ]),
      ),
    ),
  ]);
  return Buffer.concat([
    listOf(Array.from({ length: count(true) }, () => new Uint8Array(signatureLength))),
    message,
  ]).toString('hex');
}

function listOf(items: readonly Uint8Array[]): Buffer {
  return Buffer.concat([compactU16(items.length), ...items]);
}

/** 7 bits a byte, low bits first. */
function compactU16(value: number): Uint8Array {
  return value < 0x80
    ? Uint8Array.of(value)
    : Buffer.concat([Uint8Array.of((value & 0x7f) | 0x80), compactU16(value >> 7)]);
}

function bytesOf(key: string): Uint8Array {
  const bytes = base58.decode(key);
  if (bytes.length !== keyLength) throw new TypeError(`must be base58 of 32 bytes, got \`${key}\``);
  return bytes;
}
