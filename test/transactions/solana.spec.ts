import {
  AccountRole,
  address,
  appendTransactionMessageInstructions,
  assertIsFullySignedTransaction,
  blockhash,
  compileTransaction,
  compressTransactionMessageUsingAddressLookupTables,
  createTransactionMessage,
  decompileTransactionMessage,
  getAddressDecoder,
  getCompiledTransactionMessageDecoder,
  getPublicKeyFromAddress,
  getTransactionDecoder,
  getTransactionEncoder,
  isSignerRole,
  isWritableRole,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
  verifySignature,
  type Address,
  type Instruction,
  type Transaction,
} from '@solana/kit';
import fc from 'fast-check';
import { CoordinatorError } from '../../src/domain/errors.js';
import { solanaTxType } from '../../src/domain/policy/resource-namespaces.js';
import { Unreadable } from '../../src/domain/policy/types.js';
import { publicKeyOf } from '../../src/keyring/curves.js';
import { signPayload } from '../../src/keyring/signing.js';
import { assembleSolana, solanaSigningInput } from '../../src/transactions/solana.js';
import { parseContractInterface, parseUnsignedSolana, solanaPolicyValue } from './decoders.js';
import { conforms } from '../domain/policy/conforms.js';
import { mutationsOf } from './mutations.js';
import { plain } from './plain.js';

/** Milliseconds for thousands of random cases, on a slow and busy machine. */
const LONG = 120_000;

const privateKey = (fill: number) => new Uint8Array(32).fill(fill);
const publicKey = (fill: number) => publicKeyOf('CURVE_ED25519', privateKey(fill));
const addressOf = (bytes: Uint8Array): Address => getAddressDecoder().decode(bytes);
const signer = (fill: number): Address => addressOf(publicKey(fill));
const account = (fill: number): Address => addressOf(new Uint8Array(32).fill(fill));
const hex = (bytes: Iterable<number>): string => Buffer.from([...bytes]).toString('hex');
const u64 = (value: bigint): Uint8Array => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(value);
  return bytes;
};

const SYSTEM = address('11111111111111111111111111111111');
const STAKE = address('Stake11111111111111111111111111111111111111');
const TOKEN = address('TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA');
const TOKEN_2022 = address('TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb');
const BLOCKHASH = blockhash('J4NYrSRccTUGXP7wmFwiByakqWKZb5RwpiAoskpgAQRb');
const PAYER = signer(1);

const { READONLY, WRITABLE, READONLY_SIGNER, WRITABLE_SIGNER } = AccountRole;
const instruction = (
  programAddress: Address,
  accounts: readonly (readonly [Address, AccountRole])[],
  data: Iterable<number>,
): Instruction => ({
  programAddress,
  accounts: accounts.map(([key, role]) => ({ address: key, role })),
  data: Uint8Array.from(data),
});
const transfer = (from: Address, to: Address, lamports: bigint): Instruction =>
  instruction(
    SYSTEM,
    [
      [from, WRITABLE_SIGNER],
      [to, WRITABLE],
    ],
    [2, 0, 0, 0, ...u64(lamports)],
  );

function compile(instructions: readonly Instruction[], version: 'legacy' | 0 = 'legacy', payer = PAYER): Transaction {
  const message = setTransactionMessageFeePayer(payer, createTransactionMessage({ version }));
  const lived = setTransactionMessageLifetimeUsingBlockhash(
    { blockhash: BLOCKHASH, lastValidBlockHeight: 1n },
    message,
  );
  return compileTransaction(appendTransactionMessageInstructions(instructions, lived));
}

function compileWithTable(instructions: readonly Instruction[], tables: Record<Address, Address[]>): Transaction {
  const message = setTransactionMessageFeePayer(PAYER, createTransactionMessage({ version: 0 }));
  const lived = setTransactionMessageLifetimeUsingBlockhash(
    { blockhash: BLOCKHASH, lastValidBlockHeight: 1n },
    message,
  );
  const whole = appendTransactionMessageInstructions(instructions, lived);
  return compileTransaction(compressTransactionMessageUsingAddressLookupTables(whole, tables));
}

const wire = (transaction: Transaction): string => hex(getTransactionEncoder().encode(transaction));
const policyOf = (transaction: Transaction) =>
  plain(solanaPolicyValue(parseUnsignedSolana(wire(transaction)), [])) as Record<string, unknown>;
const splTransfers = (...instructions: Instruction[]) => policyOf(compile(instructions, 0)).spl_transfers;

describe('Solana transactions that @solana/kit built', () => {
  it('are shown to policies: a transfer', () => {
    const value = policyOf(compile([transfer(PAYER, account(9), 5_000n)]));

    expect(value).toEqual({
      account_keys: [PAYER, account(9), SYSTEM],
      program_keys: [SYSTEM],
      instructions: [
        {
          program_key: SYSTEM,
          accounts: [
            { account_key: PAYER, signer: true, writable: true },
            { account_key: account(9), signer: false, writable: true },
          ],
          instruction_data_hex: '020000008813000000000000',
          address_table_lookups: [],
          parsed_instruction_data: undefined,
        },
      ],
      transfers: [{ from: PAYER, to: account(9), amount: 5_000n }],
      spl_transfers: [],
      recent_blockhash: BLOCKHASH,
      address_table_lookups: [],
    });
    expect(conforms(solanaTxType, value as never)).toEqual([]);
  });

  it('are shown to policies: a transfer from an account derived with a seed', () => {
    const seed = Buffer.from('vault');
    const withSeed = instruction(
      SYSTEM,
      [
        [account(8), WRITABLE],
        [PAYER, READONLY_SIGNER],
        [account(9), WRITABLE],
      ],
      [11, 0, 0, 0, ...u64(7n), ...u64(BigInt(seed.length)), ...seed, ...new Uint8Array(32)],
    );

    expect(policyOf(compile([withSeed])).transfers).toEqual([{ from: account(8), to: account(9), amount: 7n }]);
  });

  it('are shown to policies: a transfer with bytes after it, which the network executes too', () => {
    const plain = transfer(PAYER, account(9), 5n);
    const longer = { ...plain, data: Uint8Array.from([...plain.data!, 0, 0]) };

    expect(policyOf(compile([longer])).transfers).toEqual([{ from: PAYER, to: account(9), amount: 5n }]);
  });

  it('are shown to policies: other instructions are no transfers', () => {
    const advance = instruction(SYSTEM, [[PAYER, WRITABLE_SIGNER]], [4, 0, 0, 0]);
    const notTheSystem = { ...transfer(PAYER, account(9), 5n), programAddress: account(10) };
    const mintTo = instruction(TOKEN, [], [7, ...u64(5n)]);

    const value = policyOf(compile([advance, notTheSystem, mintTo]));
    expect(value.transfers).toEqual([]);
    expect(value.spl_transfers).toEqual([]);
    expect(value.program_keys).toHaveLength(3);
  });

  it('are shown to policies: token transfers of every kind', () => {
    const [source, mint, destination, multisig] = [account(11), account(12), account(13), account(14)];
    const checked = (program: Address, data: readonly number[]) =>
      instruction(
        program,
        [
          [source, WRITABLE],
          [mint, READONLY],
          [destination, WRITABLE],
          [PAYER, READONLY_SIGNER],
        ],
        data,
      );
    const plain = instruction(
      TOKEN,
      [
        [source, WRITABLE],
        [destination, WRITABLE],
        [multisig, READONLY],
        [signer(2), READONLY_SIGNER],
        [account(15), READONLY],
        [signer(3), READONLY_SIGNER],
      ],
      [3, ...u64(1n)],
    );
    const common = { from: source, to: destination, signers: [] };

    const value = splTransfers(
      plain,
      checked(TOKEN, [12, ...u64(2n), 6]),
      checked(TOKEN_2022, [12, ...u64(2n ** 64n - 1n), 9]),
      checked(TOKEN_2022, [26, 1, ...u64(4n), 9, ...u64(1n)]),
      checked(TOKEN_2022, [26, 0, ...u64(5n), 9, ...u64(1n)]),
    );
    expect(value).toEqual([
      { ...common, amount: 1n, owner: multisig, signers: [signer(2), signer(3)], token_mint: '' },
      { ...common, amount: 2n, owner: PAYER, token_mint: mint },
      { ...common, amount: 2n ** 64n - 1n, owner: PAYER, token_mint: mint },
      { ...common, amount: 4n, owner: PAYER, token_mint: mint },
    ]);
  });

  const accounts = (...keys: Address[]) => keys.map((key) => [key, WRITABLE] as const);
  const ofSystem = (data: readonly number[], ...keys: Address[]) => instruction(SYSTEM, accounts(...keys), data);
  const ofStake = (data: readonly number[], ...keys: Address[]) => instruction(STAKE, accounts(...keys), data);
  const ofToken = (data: readonly number[], ...keys: Address[]) => instruction(TOKEN, accounts(...keys), data);
  const ofToken2022 = (data: readonly number[], ...keys: Address[]) => instruction(TOKEN_2022, accounts(...keys), data);
  const [from, to, owner, mint] = [account(51), account(52), account(53), account(54)];
  const listsOf = (...instructions: Instruction[]) => {
    const { transfers, spl_transfers: splTransfers } = policyOf(compile(instructions, 0));
    return { transfers, splTransfers };
  };

  it('are shown to policies: lamports that go into a new account, or out of the account of a nonce', () => {
    const seed = [...u64(3n), 97, 98, 99];
    const withSeed = [3, 0, 0, 0, ...new Uint8Array(32), ...seed, ...u64(7n), ...u64(0n), ...new Uint8Array(32)];
    expect(
      listsOf(
        ofSystem([0, 0, 0, 0, ...u64(6n), ...u64(0n), ...new Uint8Array(32)], from, to),
        ofSystem(withSeed, from, to, owner),
        ofSystem([5, 0, 0, 0, ...u64(8n)], from, to, owner, mint, PAYER),
      ).transfers,
    ).toEqual([6n, 7n, 8n].map((amount) => ({ from, to, amount })));
  });

  it('are shown to policies: what leaves a token account as lamports, wrapped SOL among them, in both lists', () => {
    const lamports = (amount: unknown) => ({ from, to, amount });
    const tokens = (amount: unknown) => ({ from, to, amount, owner, signers: [], token_mint: '' });
    const all = expect.any(Unreadable) as unknown;
    expect(listsOf(ofToken([9], from, to, owner))).toEqual({ transfers: [lamports(all)], splTransfers: [tokens(all)] });
    expect(listsOf(ofToken([45, 1, ...u64(4n)], from, to, owner), ofToken2022([45, 0], from, to, owner))).toEqual({
      transfers: [lamports(4n), lamports(all)],
      splTransfers: [tokens(4n), tokens(all)],
    });
    expect(listsOf(ofToken([38], from, to, owner))).toEqual({ transfers: [lamports(all)], splTransfers: [] });
  });

  it('are shown to policies: transfers in a batch, each with its own accounts', () => {
    const first = [3, 9, 3, ...u64(1n)];
    const second = [4, 10, 12, ...u64(2n), 6];
    const close = [3, 1, 9];
    for (const program of [TOKEN, TOKEN_2022]) {
      const batch = instruction(program, accounts(from, to, owner, from, mint, to, owner, from, to, owner), [
        255,
        ...first,
        ...second,
        ...close,
      ]);
      const common = { from, to, owner, signers: [], token_mint: '' };
      expect(listsOf(batch)).toEqual({
        transfers: [{ from, to, amount: expect.any(Unreadable) as unknown }],
        splTransfers: [
          { ...common, amount: 1n },
          { ...common, amount: 2n, token_mint: mint },
          { ...common, amount: expect.any(Unreadable) as unknown },
        ],
      });
    }
  });

  it('are shown to policies: what is in a batch, as the instructions that it stands for', () => {
    const [pay, approve] = [
      [3, 9, 3, ...u64(1n)],
      [3, 9, 4, ...u64(2n ** 64n - 1n)],
    ];
    const batch = ofToken([255, ...pay, ...approve], from, to, owner, from, mint, owner);
    const transaction = compile([transfer(PAYER, account(9), 1n), batch], 0);
    const { instructions } = policyOf(transaction);
    const [first, ...others] = (instructions as Record<string, unknown>[]).map((one) => ({
      program: one['program_key'],
      accounts: (one['accounts'] as Record<string, unknown>[]).map((key) => key['account_key']),
      data: one['instruction_data_hex'],
      parsed: one['parsed_instruction_data'],
    }));
    expect(first!.program).toBe(SYSTEM);
    const of = (keys: Address[], data: readonly number[]) => ({
      program: TOKEN,
      accounts: keys,
      data: Buffer.from(data).toString('hex'),
      parsed: undefined,
    });
    expect(others).toEqual([of([from, to, owner], pay.slice(2)), of([from, mint, owner], approve.slice(2))]);
    const malformed = compile([ofToken([255, 9, 9, 3, ...u64(1n)], from, to, owner)], 0);
    expect(policyOf(malformed).instructions).toHaveLength(1);
  });

  it.each<[string, (...keys: Address[]) => Instruction]>([
    ['a batch in a batch', (...keys) => ofToken([255, 3, 12, 255, 3, 9, 3, ...u64(1n)], ...keys)],
    ['a batch cut short', (...keys) => ofToken([255, 3, 9, 3], ...keys)],
    ['a batch of more accounts than there are', (...keys) => ofToken([255, 9, 9, 3, ...u64(1n)], ...keys)],
    ['a transfer cut short', (...keys) => ofToken([3, 1], ...keys)],
    ['a transfer without an owner', () => ofToken([3, ...u64(1n)], from, to)],
    ['nothing', (...keys) => ofToken([], ...keys)],
    ['a new owner of an account', (...keys) => ofToken([6, 2, 1, ...new Uint8Array(32)], ...keys)],
    [
      'somebody who may close an account, of wrapped SOL too',
      (...keys) => ofToken([6, 3, 1, ...new Uint8Array(32)], ...keys),
    ],
    ['somebody who may close one, cut short', (...keys) => ofToken([6, 3], ...keys)],
    ['somebody who takes withheld fees', (...keys) => ofToken2022([6, 5, 1, ...new Uint8Array(32)], ...keys)],
    ['somebody who may close a mint', (...keys) => ofToken2022([6, 6, 1, ...new Uint8Array(32)], ...keys)],
    ['somebody who may move what others have', (...keys) => ofToken2022([6, 8, 1, ...new Uint8Array(32)], ...keys)],
    ['a fee transfer in the program that has none', (...keys) => ofToken([26, 1, ...u64(1n), 9, ...u64(1n)], ...keys)],
    ['a delegate', (...keys) => ofToken([4, ...u64(1n)], ...keys)],
    ['a delegate of everything', (...keys) => ofToken2022([13, ...u64(2n ** 64n - 1n), 6], ...keys)],
    ['a delegate of an amount cut short', (...keys) => ofToken([4, 0, 0], ...keys)],
    ['a delegate in a batch', (...keys) => ofToken([255, 3, 9, 4, ...u64(1n)], ...keys)],
    ['withheld fees', (...keys) => ofToken2022([26, 2], ...keys)],
    ['a confidential transfer', (...keys) => ofToken2022([27, 7], ...keys)],
    ['an account that grows', (...keys) => ofToken2022([29, 1, 0], ...keys)],
    ['an instruction of tomorrow', (...keys) => ofToken([200], ...keys)],
    ['an instruction of tomorrow in Token-2022', (...keys) => ofToken2022([60], ...keys)],
  ])('may move tokens and lamports in a way that is not understood: %s', (_what, of) => {
    const { transfers, splTransfers } = listsOf(transfer(PAYER, account(9), 1n), of(from, to, owner));
    expect(splTransfers).toBeInstanceOf(Unreadable);
    expect(transfers).toMatchObject({
      reason: `instruction 1 of ${of(from, to, owner).programAddress} may move something, and what is not understood`,
    });
  });

  it.each<[string, readonly number[]]>([
    ['a transfer cut short', [2, 0, 0, 0, 1]],
    ['no tag', [2, 0]],
    ['a transfer to nobody', [11, 0, 0, 0, ...u64(1n)]],
    ['a seed longer than the data', [3, 0, 0, 0, ...new Uint8Array(32), ...u64(2n ** 63n), ...u64(1n)]],
    ['an account given to a program', [1, 0, 0, 0, ...new Uint8Array(32)]],
    ['a nonce given to somebody', [7, 0, 0, 0, ...new Uint8Array(32)]],
    // Such an account becomes a nonce account of whoever is named, without another signature of its own.
    ['an account made fit for a nonce', [8, 0, 0, 0, ...u64(80n)]],
    ['an account that becomes a nonce of somebody', [6, 0, 0, 0, ...new Uint8Array(32)]],
    ['an instruction of tomorrow', [13, 0, 0, 0]],
  ])('may move lamports in a way that is not understood: %s', (_what, data) => {
    const { transfers, splTransfers } = listsOf(transfer(PAYER, account(9), 1n), ofSystem(data, from, to));
    expect(transfers).toBeInstanceOf(Unreadable);
    expect(splTransfers).toEqual([]);
  });

  it('read what is withdrawn from stake', () => {
    const { transfers, splTransfers } = listsOf(ofStake([4, 0, 0, 0, ...u64(7n)], from, to));
    expect(transfers).toEqual([{ from, to, amount: 7n }]);
    expect(splTransfers).toEqual([]);
  });

  it.each<[string, readonly number[]]>([
    ['an authority', [1, 0, 0, 0, ...new Uint8Array(32), 1, 0, 0, 0]],
    ['an authority, checked', [10, 0, 0, 0, 1, 0, 0, 0]],
    ['a part', [3, 0, 0, 0, ...u64(7n)]],
    ['a merged account', [7, 0, 0, 0]],
    ['lamports of another account', [17, 0, 0, 0, ...u64(7n)]],
    ['a withdrawal cut short', [4, 0, 0, 0, 1]],
    ['no tag', [4, 0]],
    ['an instruction of tomorrow', [18, 0, 0, 0]],
  ])('may move stake in a way that is not understood: %s', (_what, data) => {
    const { transfers, splTransfers } = listsOf(transfer(PAYER, account(9), 1n), ofStake(data, from, to));
    expect(transfers).toBeInstanceOf(Unreadable);
    expect(splTransfers).toEqual([]);
  });

  it('move nothing by instructions that are understood: those of mints, authorities, extensions and metadata', () => {
    const harmless = [
      ofSystem([4, 0, 0, 0], from),
      ofStake([2, 0, 0, 0], from, to),
      ofStake([5, 0, 0, 0], from),
      ofToken([4, ...u64(0n)], from, to, owner),
      ofToken2022([13, ...u64(0n), 6], from, mint, to, owner),
      ofToken([17], from),
      ofToken([6, 0, 0], mint, owner),
      ofToken([6, 3, 0], from, owner),
      ofToken2022([6, 8, 0], mint, owner),
      ofToken2022([26, 5, 1], mint, owner),
      ofToken2022([36, 0], mint),
      ofToken2022([...Buffer.from('d2e11ea258b84d8d', 'hex'), 1, 2], mint),
    ];
    expect(listsOf(...harmless)).toEqual({ transfers: [], splTransfers: [] });
  });

  it('are shown to policies: accounts of lookup tables, whose keys only the chain knows', () => {
    const [program, tableA, tableB] = [account(20), account(21), account(22)];
    const own = account(25);
    const [writableA, readonlyA, writableB, readonlyB] = [account(31), account(32), account(33), account(34)];
    const call = instruction(
      program,
      [
        [readonlyB, READONLY],
        [writableA, WRITABLE],
        [own, READONLY],
      ],
      [1],
    );
    const other = instruction(
      program,
      [
        [readonlyA, READONLY],
        [writableB, WRITABLE],
      ],
      [2],
    );
    const transaction = compileWithTable([call, other, transfer(PAYER, writableB, 3n)], {
      [tableA]: [account(40), writableA, readonlyA],
      [tableB]: [readonlyB, writableB],
    });
    const lookup = (key: Address, writable: readonly bigint[], readonly: readonly bigint[]) => ({
      address_table_key: key,
      writable_indexes: writable,
      readonly_indexes: readonly,
    });
    const hidden = (writable: boolean) => ({ account_key: 'ADDRESS_TABLE_LOOKUP', signer: false, writable });

    const value = policyOf(transaction);
    expect(value.address_table_lookups).toEqual([lookup(tableA, [1n], [2n]), lookup(tableB, [1n], [0n])]);
    expect(value.account_keys).toEqual([
      PAYER,
      ...[program, own, SYSTEM].sort(byKeyOrder(transaction)),
      ...Array.from({ length: 4 }, () => 'ADDRESS_TABLE_LOOKUP'),
    ]);
    expect(value.instructions).toMatchObject([
      {
        accounts: [hidden(false), hidden(true), { account_key: own, signer: false, writable: false }],
        address_table_lookups: [lookup(tableA, [1n], []), lookup(tableB, [], [0n])],
      },
      {
        accounts: [hidden(false), hidden(true)],
        address_table_lookups: [lookup(tableA, [], [2n]), lookup(tableB, [1n], [])],
      },
      { accounts: [{ account_key: PAYER }, hidden(true)], address_table_lookups: [lookup(tableB, [1n], [])] },
    ]);
    expect(value.transfers).toEqual([{ from: PAYER, to: 'ADDRESS_TABLE_LOOKUP', amount: 3n }]);
    expect(conforms(solanaTxType, value as never)).toEqual([]);
  });

  it('are shown to policies: a call of a program whose IDL was uploaded', () => {
    const program = account(20);
    const idl = parseContractInterface(
      'SOLANA',
      JSON.stringify({
        instructions: [
          {
            name: 'deposit',
            accounts: [
              { name: 'depositor', isMut: true, isSigner: true },
              { name: 'pool', isMut: true, isSigner: false },
              { name: 'referrer', isMut: false, isSigner: false, isOptional: true },
            ],
            args: [
              { name: 'amount', type: 'u64' },
              { name: 'memo', type: 'string' },
            ],
          },
        ],
      }),
    );
    // sha256('global:deposit')[..8], which Anchor puts first.
    const data = [...Buffer.from('f223c68952e1f2b6', 'hex'), ...u64(42n), 2, 0, 0, 0, ...Buffer.from('hi')];
    const accounts: readonly (readonly [Address, AccountRole])[] = [
      [PAYER, WRITABLE_SIGNER],
      [account(21), WRITABLE],
    ];
    const transaction = parseUnsignedSolana(
      wire(compile([instruction(program, accounts, data), instruction(program, accounts, [9, 9])])),
    );

    const value = solanaPolicyValue(transaction, [
      { address: account(30), interface: parseContractInterface('SOLANA', '{"instructions":[]}') },
      { address: program, interface: idl },
    ]);
    expect(value).toMatchObject({
      instructions: [
        {
          parsed_instruction_data: {
            instruction_name: 'deposit',
            discriminator: 'f223c68952e1f2b6',
            named_accounts: { depositor: PAYER, pool: account(21) },
            program_call_args: { amount: 42n, memo: 'hi' },
          },
        },
        { parsed_instruction_data: undefined },
      ],
    });
    expect(conforms(solanaTxType, value)).toEqual([]);
    expect(policyOf(compile([instruction(program, accounts, data)]))).toMatchObject({
      instructions: [{ parsed_instruction_data: undefined }],
    });
  });

  it('are not read by several interfaces of one program, whether they agree or not', () => {
    const program = account(20);
    const idlOf = (name: string, first: number) =>
      parseContractInterface('SOLANA', JSON.stringify({ instructions: [{ name, discriminator: [first], args: [] }] }));
    const transaction = parseUnsignedSolana(wire(compile([instruction(program, [[PAYER, WRITABLE_SIGNER]], [9])])));
    const several = new Unreadable(`there are several interfaces of ${program}; delete all but one`);
    for (const second of [idlOf('withdraw', 9), idlOf('harmless', 9), idlOf('other', 8)]) {
      for (const pair of [
        [idlOf('withdraw', 9), second],
        [second, idlOf('withdraw', 9)],
      ]) {
        const programs = pair.map((one) => ({ address: program, interface: one }));
        expect(solanaPolicyValue(transaction, programs)).toMatchObject({
          instructions: [{ parsed_instruction_data: several }],
        });
      }
    }
  });

  it.each(['legacy', 0] as const)(
    'are read as the kit reads them (%s)',
    (version) => {
      const role = fc.constantFrom(READONLY, WRITABLE, READONLY_SIGNER, WRITABLE_SIGNER);
      const anyInstruction = fc.record({
        program: fc.integer({ min: 100, max: 103 }),
        accounts: fc.array(fc.tuple(fc.integer({ min: 10, max: 16 }), role), { maxLength: 5 }),
        data: fc.uint8Array({ maxLength: 150 }),
      });
      fc.assert(
        fc.property(fc.array(anyInstruction, { maxLength: 4 }), (instructions) => {
          const built = compile(
            instructions.map(({ program, accounts, data }) =>
              instruction(
                account(program),
                accounts.map(([key, as]) => [account(key), as] as const),
                data,
              ),
            ),
            version,
          );
          const byKit = decompileTransactionMessage(getCompiledTransactionMessageDecoder().decode(built.messageBytes));
          const parsed = parseUnsignedSolana(wire(built));
          expect(parsed.version).toBe(version);
          expect(parsed.instructions).toEqual(
            (byKit.instructions as readonly Instruction[]).map(({ programAddress, accounts, data }) => ({
              programKey: programAddress,
              accountIndexes: (accounts ?? []).map(({ address: key, role: as }) =>
                parsed.accounts.findIndex(
                  (one) => one.key === key && one.signer === isSignerRole(as) && one.writable === isWritableRole(as),
                ),
              ),
              data: Uint8Array.from(data ?? []),
            })),
          );
        }),
        { numRuns: 100 },
      );
    },
    LONG,
  );

  it('are signed by the fee payer, and the kit verifies the whole', async () => {
    for (const version of ['legacy', 0] as const) {
      const transaction = parseUnsignedSolana(wire(compile([transfer(PAYER, account(9), 1n)], version)));
      const { message, signerIndex } = solanaSigningInput(transaction, publicKey(1));
      const signed = assembleSolana(
        transaction,
        signerIndex,
        signPayload({ curve: 'CURVE_ED25519', privateKey: privateKey(1) }, message),
      );

      const decoded = getTransactionDecoder().decode(Buffer.from(signed, 'hex'));
      assertIsFullySignedTransaction(decoded);
      expect(await isSignedBy(decoded, PAYER)).toBe(true);
    }
  });

  it('are signed by one of several signers, and keep the signatures of the others', async () => {
    const second = signer(2);
    const unsigned = compile([transfer(PAYER, account(9), 1n), transfer(second, account(9), 2n)]);
    const first = parseUnsignedSolana(wire(unsigned));
    const input = solanaSigningInput(first, publicKey(2));
    const half = assembleSolana(
      first,
      input.signerIndex,
      signPayload({ curve: 'CURVE_ED25519', privateKey: privateKey(2) }, input.message),
    );

    const halfDecoded = getTransactionDecoder().decode(Buffer.from(half, 'hex'));
    expect(halfDecoded.signatures[PAYER]).toBeNull();
    expect(await isSignedBy(halfDecoded, second)).toBe(true);

    const again = parseUnsignedSolana(half);
    const own = solanaSigningInput(again, publicKey(1));
    const whole = assembleSolana(
      again,
      own.signerIndex,
      signPayload({ curve: 'CURVE_ED25519', privateKey: privateKey(1) }, own.message),
    );
    const decoded = getTransactionDecoder().decode(Buffer.from(whole, 'hex'));
    expect([await isSignedBy(decoded, PAYER), await isSignedBy(decoded, second)]).toEqual([true, true]);
  });

  it('can be sent as their message alone', () => {
    for (const version of ['legacy', 0] as const) {
      const built = compile([transfer(PAYER, account(9), 1n)], version);

      expect(parseUnsignedSolana(hex(built.messageBytes))).toEqual(parseUnsignedSolana(wire(built)));
      expect(parseUnsignedSolana(`0x${hex(built.messageBytes).toUpperCase()}`)).toEqual(
        parseUnsignedSolana(wire(built)),
      );
    }
  });
});

async function isSignedBy(transaction: Transaction, by: Address): Promise<boolean> {
  const signature = transaction.signatures[by];
  return Boolean(
    signature && (await verifySignature(await getPublicKeyFromAddress(by), signature, transaction.messageBytes)),
  );
}

function byKeyOrder(transaction: Transaction): (a: Address, b: Address) => number {
  const { staticAccounts } = getCompiledTransactionMessageDecoder().decode(transaction.messageBytes);
  return (a, b) => staticAccounts.indexOf(a) - staticAccounts.indexOf(b);
}

describe('a Solana transaction is refused', () => {
  interface Parts {
    header?: readonly number[];
    keys?: readonly (readonly number[])[];
    instructions?: readonly number[];
    rest?: readonly number[];
  }
  const key = (fill: number): number[] => [...new Uint8Array(32).fill(fill)];
  const NO_INSTRUCTIONS = [0];
  const message = ({
    header = [1, 0, 1],
    keys = [key(1), key(2)],
    instructions = NO_INSTRUCTIONS,
    rest = [],
  }: Parts) => [...header, keys.length, ...keys.flat(), ...key(99), ...instructions, ...rest];
  const versioned = (lookups: readonly number[], parts: Parts = {}) => [0x80, ...message(parts), ...lookups];
  const call = (program: number, accounts: readonly number[]) => [1, program, accounts.length, ...accounts, 0];

  const cases: readonly (readonly [string, readonly number[], RegExp])[] = [
    ['that is nothing Solana knows', [5, 1, 2], /not a Solana transaction: signature 0 .*; nor a message: .* send hex/],
    ['that ends in its header', [1, 0], /the number of read-only accounts was expected/],
    [
      'with fewer signatures than it requires',
      [1, ...key(0), ...key(0), ...message({ header: [2, 0, 0] })],
      /it has 1 signatures but its message requires 2/,
    ],
    ['with bytes after its end', message({ rest: [7] }), /1 bytes follow the end of the message/],
    ['that nobody has to sign', message({ header: [0, 0, 1] }), /requires no signature/],
    [
      'whose header counts more accounts than there are',
      message({ header: [1, 0, 2] }),
      /1 signers and 2 read-only accounts among 2/,
    ],
    ['whose fee payer is read-only', message({ header: [1, 1, 1] }), /makes 1 of 1 signers read-only/],
    ['with the same account twice', message({ keys: [key(1), key(1)] }), /is there twice/],
    ['that calls its fee payer', message({ instructions: call(0, []) }), /instruction 0 calls account 0: .* 1 to 1/],
    ['that calls an account it has not', message({ instructions: call(2, []) }), /instruction 0 calls account 2/],
    [
      'that calls an account of a lookup table',
      versioned([1, ...key(5), 1, 0, 0], { instructions: call(2, []) }),
      /instruction 0 calls account 2/,
    ],
    [
      'that uses an account it has not',
      message({ instructions: call(1, [2]) }),
      /instruction 0 uses account 2, but there are only 2/,
    ],
    ['with a lookup of nothing', versioned([1, ...key(5), 0, 0]), /lookup 0 takes nothing/],
    ['of a version that does not exist', [0x81, ...message({})], /message version 1 is not supported/],
    ['with a length in a longer form', message({ instructions: [0x80, 0x00] }), /not in its shortest form/],
    ['with a length of more than 16 bits', message({ instructions: [0xff, 0xff, 0x04] }), /more than 65535/],
    [
      'that is longer than a packet',
      message({ instructions: [1, 1, 0, 0x80, 0x09, ...new Uint8Array(1152)] }),
      /is 1[23]\d\d bytes long, the network takes 1232/,
    ],
    [
      'with more accounts than an index can name',
      versioned([1, ...key(5), 0xff, 0x01, ...new Uint8Array(255), 0]),
      /uses 257 accounts/,
    ],
  ];

  it.each(cases)('%s', (_what, bytes, reason) => {
    expect(() => parseUnsignedSolana(hex(bytes))).toThrow(reason);
    expect(() => parseUnsignedSolana(hex(bytes))).toThrow(CoordinatorError);
  });

  it('when its bytes are a transaction and a message at once', () => {
    const both = Array.from({ length: 166 }, (_, at) => at);
    const put = (at: number, ...content: number[]) => both.splice(at, content.length, ...content);
    put(0, 1, 0, 1, 3);
    // The message whose first byte counts one signature; here the second account key continues.
    put(65, 1, 0, 1, 2);
    // One instruction of the outer message, whose data goes to the end: in the inner one, a key's last byte and more.
    put(132, 1, 1, 0, 30);
    put(165, 0);

    expect(() => parseUnsignedSolana(hex(both))).toThrow('both a transaction and a message');
    put(65, 0);
    expect(parseUnsignedSolana(hex(both)).message).toHaveLength(166);
  });

  it('by a key that is not one of its signers', () => {
    const transaction = parseUnsignedSolana(wire(compile([transfer(PAYER, signer(2), 1n)])));

    expect(() => solanaSigningInput(transaction, publicKey(2))).toThrow(
      `\`${signer(2)}\` is not a signer of the transaction: it requires \`${PAYER}\``,
    );
  });

  it(
    'or parsed, whatever the bytes are',
    () => {
      const start = Uint8Array.from(
        getTransactionEncoder().encode(
          compileWithTable([transfer(PAYER, account(33), 3n)], { [account(21)]: [account(33)] }),
        ),
      );
      let refused = 0;
      const parse = (bytes: Uint8Array) => {
        try {
          solanaPolicyValue(parseUnsignedSolana(hex(bytes)), []);
        } catch (error) {
          if (!(error instanceof CoordinatorError) || error.code !== 'INVALID_ARGUMENT') throw error;
          refused += 1;
        }
      };
      fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), parse), { numRuns: 2_500 });
      fc.assert(fc.property(mutationsOf(start), parse), { numRuns: 2_500 });
      fc.assert(fc.property(mutationsOf(start.slice(65)), parse), { numRuns: 2_500 });
      expect(refused).toBeGreaterThan(3_000);
    },
    LONG,
  );
});
