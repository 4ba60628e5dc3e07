import { AmbiguousText, unreadable, type PolicyValue } from '../domain/policy/types.js';

/** An instruction, with its accounts in order. */
export interface TransferInstruction {
  readonly programKey: string;
  readonly data: Uint8Array;
  readonly accounts: readonly { readonly key: PolicyValue; readonly signer: boolean }[];
}

type Accounts = TransferInstruction['accounts'];

/** What one instruction moves, as `transfers` and `spl_transfers` show it. */
interface Movements {
  readonly lamports: readonly PolicyValue[];
  readonly tokens: readonly PolicyValue[];
}

/** Undefined if an instruction may move something, but it is unknown what. */
type Reading = Movements | undefined;

const SYSTEM_PROGRAM = '11111111111111111111111111111111';
const STAKE_PROGRAM = 'Stake11111111111111111111111111111111111111';
const TOKEN_PROGRAM = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
const TOKEN_2022_PROGRAM = 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb';

const ANY_MINT = new AmbiguousText('', 'the instruction does not name the mint', () => true);
const NOTHING: Movements = { lamports: [], tokens: [] };

/**
 * `transfers` and `spl_transfers` of a transaction: what the instructions themselves move through the System Program,
 * the Stake program and the token programs. A list is unreadable as soon as one instruction of these programs could add to it in a way
 * that is not understood: from a newer version of the program, or malformed. So is one that hands over an account, with all
 * that it holds, or will hold.
 */
export function solanaTransfers(instructions: readonly TransferInstruction[]): {
  readonly transfers: PolicyValue;
  readonly spl_transfers: PolicyValue;
} {
  const lamports: PolicyValue[] = [];
  const tokens: PolicyValue[] = [];
  let [lamportsDoubt, tokensDoubt]: [string?, string?] = [];
  for (const [at, { programKey, data, accounts }] of instructions.entries()) {
    const isToken = programKey === TOKEN_PROGRAM || programKey === TOKEN_2022_PROGRAM;
    if (!isToken && programKey !== SYSTEM_PROGRAM && programKey !== STAKE_PROGRAM) continue;
    const moved = isToken
      ? tokenMovements(data, accounts, programKey)
      : programKey === SYSTEM_PROGRAM
        ? systemMovements(data, accounts)
        : stakeMovements(data, accounts);
    if (moved) {
      lamports.push(...moved.lamports);
      tokens.push(...moved.tokens);
      continue;
    }
    lamportsDoubt ??= `instruction ${at} of ${programKey} may move something, and what is not understood`;
    if (isToken) tokensDoubt ??= lamportsDoubt;
  }
  return {
    transfers: lamportsDoubt === undefined ? lamports : unreadable(lamportsDoubt),
    spl_transfers: tokensDoubt === undefined ? tokens : unreadable(tokensDoubt),
  };
}

/**
 * AdvanceNonceAccount and UpgradeNonceAccount give nobody an account, or control over one: 32-bit tags of bincode.
 * InitializeNonceAccount (6) and Allocate (8) do: any account of the right size becomes a nonce account of the named user,
 * without its own signature.
 */
const HARMLESS_SYSTEM: ReadonlySet<number> = new Set([4, 12]);

/**
 * CreateAccount (0), Transfer (2), CreateAccountWithSeed (3), WithdrawNonceAccount (5), TransferWithSeed (11). Bytes
 * after the instruction are ignored, as the program does. Assigning an account to a program, or a nonce account to
 * someone, hands over its contents, so it is not harmless.
 */
function systemMovements(data: Uint8Array, accounts: Accounts): Reading {
  const view = Buffer.from(data);
  if (view.length < 4) return undefined;
  const tag = view.readUInt32LE(0);
  const move = (amountAt: number, length: number, recipientAt: number): Reading => {
    const [from, to] = [accounts[0], accounts[recipientAt]];
    if (!from || !to || view.length < length) return undefined;
    return { lamports: [{ from: from.key, to: to.key, amount: view.readBigUInt64LE(amountAt) }], tokens: [] };
  };
  switch (tag) {
    case 0:
      return move(4, 52, 1);
    case 2:
    case 5:
      return move(4, 12, 1);
    case 3: {
      if (view.length < 44) return undefined;
      const seedEnd = 44 + Number(view.readBigUInt64LE(36));
      return move(seedEnd, seedEnd + 48, 1);
    }
    case 11:
      return move(4, 12, 2);
    default:
      return HARMLESS_SYSTEM.has(tag) ? NOTHING : undefined;
  }
}

/**
 * DelegateStake, Deactivate, GetMinimumDelegation and DeactivateDelinquent leave stake with whoever controls it: 32-bit tags of
 * bincode. The others hand over stake or move an amount that only the chain knows.
 */
const HARMLESS_STAKE: ReadonlySet<number> = new Set([2, 5, 13, 14]);
const WITHDRAW_STAKE = 4;

function stakeMovements(data: Uint8Array, [from, to]: Accounts): Reading {
  const view = Buffer.from(data);
  if (view.length < 4) return undefined;
  const tag = view.readUInt32LE(0);
  if (tag !== WITHDRAW_STAKE) return HARMLESS_STAKE.has(tag) ? NOTHING : undefined;
  if (!from || !to || view.length < 12) return undefined;
  return { lamports: [{ from: from.key, to: to.key, amount: view.readBigUInt64LE(4) }], tokens: [] };
}

// Instructions that move nothing now, including minting and burning. By their first byte.
const HARMLESS_TOKEN: ReadonlySet<number> = new Set([
  0, 1, 2, 5, 7, 8, 10, 11, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
]);
const HARMLESS_TOKEN_2022: ReadonlySet<number> = new Set([25, 28, 30, 32, 33, 34, 35, 36, 39, 40, 41, 43, 44]);
/** InitializeTransferFeeConfig and SetTransferFee of the transfer fee extension (26). */
const HARMLESS_FEE: ReadonlySet<number | undefined> = new Set([0, 5]);
/**
 * Of the metadata and group interfaces, which Token-2022 has too: the first 8 bytes of SHA-256 of
 * `spl_token_metadata_interface:initialize_account`, `updating_field`, `remove_key_ix`, `update_the_authority`, `emitter`,
 * and of `spl_token_group_interface:initialize_token_group`, `update_group_max_size`, `update_authority`,
 * `initialize_member`.
 */
const HARMLESS_INTERFACES: ReadonlySet<string> = new Set([
  'd2e11ea258b84d8d',
  'dde9312db5cadcc8',
  'ea122038598d25b5',
  'd7e4a6e45464567b',
  'faa6b4fa0d0cb846',
  '79716c2736330004',
  '6c25ab8ff81e126e',
  'a1695801edddd8cb',
  '9820deb0dfed7486',
]);
const ACCOUNT_OWNER = 2;
/**
 * CloseAccount, WithheldWithdraw, CloseMint and PermanentDelegate: who closes an account of wrapped SOL takes all of it, and the
 * others move what is not theirs.
 */
const TAKING_AUTHORITIES: ReadonlySet<number> = new Set([3, 5, 6, 8]);
const BATCH = 255;

function tokenMovements(data: Uint8Array, accounts: Accounts, programKey: string): Reading {
  const [tag, kind] = data;
  if (tag === undefined) return undefined;
  if (tag === BATCH) return batchMovements(data, accounts, programKey);
  const isToken2022 = programKey === TOKEN_2022_PROGRAM;
  const view = Buffer.from(data);
  switch (tag) {
    case 3:
      return view.length < 9 ? undefined : tokenTransfer(accounts, view.readBigUInt64LE(1), false);
    case 12:
      return view.length < 10 ? undefined : tokenTransfer(accounts, view.readBigUInt64LE(1), true);
    case 4:
    case 13:
      // A delegate may move as much as was approved.
      return view.length >= 9 && view.readBigUInt64LE(1) === 0n ? NOTHING : undefined;
    case 26:
      if (!isToken2022) return undefined;
      if (kind === 1 && view.length >= 19) return tokenTransfer(accounts, view.readBigUInt64LE(2), true);
      return HARMLESS_FEE.has(kind) ? NOTHING : undefined;
    case 6:
      // The new owner of an account gets its contents.
      if (kind === undefined || kind === ACCOUNT_OWNER) return undefined;
      return TAKING_AUTHORITIES.has(kind) && data[2] !== 0 ? undefined : NOTHING;
    case 9:
      return emptied(accounts, unreadable('closing an account moves all that it holds'), true);
    case 38:
      return emptied(accounts, unreadable('the instruction moves what an account holds beyond its rent'), false);
    case 45: {
      const isExact = kind === 1 && view.length === 10;
      const amount = isExact
        ? view.readBigUInt64LE(2)
        : unreadable('the instruction unwraps all that an account holds');
      return emptied(accounts, amount, true);
    }
  }
  if (HARMLESS_TOKEN.has(tag)) return NOTHING;
  if (!isToken2022) return undefined;
  const isHarmless = HARMLESS_TOKEN_2022.has(tag) || HARMLESS_INTERFACES.has(view.toString('hex', 0, 8));
  return isHarmless ? NOTHING : undefined;
}

function batchMovements(data: Uint8Array, accounts: Accounts, programKey: string): Reading {
  const parts = batchParts({ programKey, data, accounts });
  const moved = parts?.map((part) => tokenMovements(part.data, part.accounts, programKey));
  if (!moved?.every((one) => one !== undefined)) return undefined;
  return { lamports: moved.flatMap(({ lamports }) => lamports), tokens: moved.flatMap(({ tokens }) => tokens) };
}

/**
 * The instructions in a batch of a token program, each with its own accounts: consecutive, with the number of accounts, the
 * length, and the data. Undefined for what is none, or malformed; none of the parts is a batch.
 */
export function batchParts<Account>({
  programKey,
  data,
  accounts,
}: {
  readonly programKey: string;
  readonly data: Uint8Array;
  readonly accounts: readonly Account[];
}): readonly { readonly data: Uint8Array; readonly accounts: readonly Account[] }[] | undefined {
  if ((programKey !== TOKEN_PROGRAM && programKey !== TOKEN_2022_PROGRAM) || data[0] !== BATCH) return undefined;
  const parts: { data: Uint8Array; accounts: readonly Account[] }[] = [];
  let position = 1;
  let used = 0;
  while (position < data.length) {
    const [count, length] = [data[position], data[position + 1]];
    if (count === undefined || length === undefined) return undefined;
    const part = data.subarray(position + 2, position + 2 + length);
    const taken = accounts.slice(used, used + count);
    position += 2 + length;
    used += count;
    if (part.length !== length || taken.length !== count || part[0] === BATCH) return undefined;
    parts.push({ data: part, accounts: taken });
  }
  return parts;
}

function tokenTransfer([from, ...others]: Accounts, amount: bigint, isChecked: boolean): Reading {
  const mint = isChecked ? others[0] : undefined;
  const [to, owner, ...signers] = others.slice(isChecked ? 1 : 0);
  if (!from || !to || !owner) return undefined;
  return { lamports: [], tokens: [tokenValue(from, to, amount, owner, signers, mint?.key)] };
}

/** Lamports that leave a token account. Those of wrapped SOL are its tokens, so they are shown in both lists. */
function emptied([from, to, owner, ...signers]: Accounts, amount: PolicyValue, isToken: boolean): Reading {
  if (!from || !to || !owner) return undefined;
  return {
    lamports: [{ from: from.key, to: to.key, amount }],
    tokens: isToken ? [tokenValue(from, to, amount, owner, signers, undefined)] : [],
  };
}

function tokenValue(
  from: Accounts[number],
  to: Accounts[number],
  amount: PolicyValue,
  owner: Accounts[number],
  signers: Accounts,
  mint: PolicyValue | undefined,
): PolicyValue {
  return {
    from: from.key,
    to: to.key,
    amount,
    owner: owner.key,
    // An account that does not sign proves nothing about who agreed, so it is not a signer, wherever it appears.
    signers: signers.filter(({ signer }) => signer).map(({ key }) => key),
    token_mint: mint ?? ANY_MINT,
  };
}
