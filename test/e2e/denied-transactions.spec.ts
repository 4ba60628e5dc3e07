import { address as bitcoinAddress, networks, Psbt, Transaction as BitcoinTransaction } from 'bitcoinjs-lib';
import {
  address as solanaAddress,
  appendTransactionMessageInstructions,
  blockhash,
  compileTransaction,
  compressTransactionMessageUsingAddressLookupTables,
  createTransactionMessage,
  getTransactionEncoder,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
  type Instruction,
} from '@solana/kit';
import { generateP256KeyPair } from '@turnkey/crypto';
import { encodeFunctionData, serializeTransaction, toRlp, type Hex } from 'viem';
import { startCoordinator, type TestCoordinator, type TestUser } from '../../src/testing/index.js';
import { denial, objectWith, refusal } from './exchange.js';

/*
 * A DENY on what is signed holds against every way to say the same to the chain. Somebody may sign anything but what a
 * DENY names; each attack says what it names, in a form that a decoder of less care would not read.
 */

let coordinator: TestCoordinator;
let signer: TestUser;
let ethereum: Hex;
let solana: string;
let mainnet: string;
let testnet: string;

const token: Hex = '0x6b175474e89094c44da98b954eedeac495271d0f';
const bad: Hex = '0x00000000000000000000000000000000000bad00';
const fine: Hex = '0x000000000000000000000000000000000000f14e';

const abi = [
  {
    type: 'function',
    name: 'transfer',
    stateMutability: 'nonpayable',
    inputs: [
      { name: 'dst', type: 'address' },
      { name: 'wad', type: 'uint256' },
    ],
    outputs: [],
  },
  {
    type: 'function',
    name: 'exec',
    stateMutability: 'nonpayable',
    inputs: [
      { name: 'to', type: 'address' },
      { name: 'calls', type: 'bytes[]' },
    ],
    outputs: [],
  },
] as const;

beforeAll(async () => {
  coordinator = await startCoordinator({ seed: 'denied transactions' });
  const account = (curve: string, path: string, format: string) => ({
    curve: `CURVE_${curve}`,
    pathFormat: 'PATH_FORMAT_BIP32',
    path,
    addressFormat: `ADDRESS_FORMAT_${format}`,
  });
  const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_WALLET', {
    walletName: 'Treasury',
    accounts: [
      account('SECP256K1', "m/44'/60'/0'/0/0", 'ETHEREUM'),
      account('ED25519', "m/44'/501'/0'/0'", 'SOLANA'),
      // One path, so one key, under two names.
      account('SECP256K1', "m/84'/0'/0'/0/0", 'BITCOIN_MAINNET_P2WPKH'),
      account('SECP256K1', "m/84'/0'/0'/0/0", 'BITCOIN_TESTNET_P2WPKH'),
    ],
  });
  const { addresses } = result['createWalletResult'] as { addresses: string[] };
  [ethereum, solana, mainnet, testnet] = addresses as [Hex, string, string, string];
  await coordinator.client.submit('ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE', {
    smartContractAddress: token,
    smartContractInterface: JSON.stringify(abi),
    type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
    label: 'token',
  });
  signer = await coordinator.createUser('Signer');
  await coordinator.createPolicy({
    policyName: 'signs anything',
    condition: "activity.action == 'SIGN'",
    consensus: `approvers.any(user, user.id == '${signer.userId}')`,
  });
});

afterAll(() => coordinator.close());

const sign = (type: string, signWith: string, unsignedTransaction: string) =>
  signer.client.submit('ACTIVITY_TYPE_SIGN_TRANSACTION_V2', {
    signWith,
    type: `TRANSACTION_TYPE_${type}`,
    unsignedTransaction,
  });

let denials = 0;

/** Runs something while a DENY is in force. */
async function underDenial(condition: string, run: (policyId: string) => Promise<void>): Promise<void> {
  const policyId = await coordinator.createPolicy({
    policyName: `denial ${++denials}`,
    effect: 'EFFECT_DENY',
    condition,
  });
  try {
    await run(policyId);
  } finally {
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
  }
}

/** Each of the attempts is denied by the DENY, and each of the others is signed while it is in force. */
async function denies(
  condition: string,
  attacks: Readonly<Record<string, () => Promise<unknown>>>,
  others: Readonly<Record<string, () => Promise<unknown>>>,
): Promise<void> {
  await underDenial(condition, async (policyId) => {
    const outcomes: Record<string, unknown> = {};
    for (const [name, attack] of Object.entries(attacks)) {
      const refused = await refusal(attack());
      const evaluations = denial(refused).policyEvaluations ?? [];
      outcomes[name] = evaluations.find((evaluation) => evaluation.policyId === policyId)?.outcome;
    }
    expect(outcomes).toEqual(Object.fromEntries(Object.keys(attacks).map((name) => [name, 'OUTCOME_DENY_EXPLICIT'])));
    for (const other of Object.values(others)) {
      expect(await other()).toEqual(objectWith({ status: 'ACTIVITY_STATUS_COMPLETED' }));
    }
  });
}

const word = (value: number | bigint): string => BigInt.asUintN(256, BigInt(value)).toString(16).padStart(64, '0');
const call = (data: string) => () =>
  sign(
    'ETHEREUM',
    ethereum,
    serializeTransaction({
      type: 'eip1559',
      chainId: 1,
      nonce: 0,
      to: token,
      gas: 90_000n,
      maxFeePerGas: 3n,
      maxPriorityFeePerGas: 1n,
      data: data as Hex,
    }),
  );
const transferTo = (to: Hex) => encodeFunctionData({ abi, functionName: 'transfer', args: [to, 0x1000n] });

describe('a DENY on a transaction holds for', () => {
  test('the receiver, also where the call leaves out what is zero at its end', () =>
    denies(
      `eth.tx.contract_call_args['dst'] == '${bad}'`,
      {
        whole: call(transferTo(bad)),
        'without the last two zeros': call(transferTo(bad).slice(0, -2)),
        'without the amount': call(transferTo(bad).slice(0, 10 + 64)),
        // Six zeros end the address.
        'without the end of the address': call(transferTo(bad).slice(0, 10 + 62)),
        'with bits beyond the address': call(transferTo(bad).replace('0'.repeat(24), 'f'.repeat(24))),
      },
      { 'another receiver': call(transferTo(fine)), 'another receiver, cut': call(transferTo(fine).slice(0, -2)) },
    ));

  test('the target, also where the other arguments are many times the same', () => {
    const selector = encodeFunctionData({ abi, functionName: 'exec', args: [bad, []] }).slice(0, 10);
    const shared = (to: Hex, count: number) =>
      selector +
      to.slice(2).padStart(64, '0') +
      word(64) +
      word(count) +
      word(32 * count).repeat(count) +
      word(4096) +
      'ab'.repeat(4096);
    return denies(
      `eth.tx.contract_call_args['to'] == '${bad}'`,
      {
        '40 elements, one blob': call(shared(bad, 40)),
        '2 000 elements, one blob': call(shared(bad, 2_000)),
        'an offset that wraps around': call(selector + bad.slice(2).padStart(64, '0') + word(-4)),
        'a list without an end': call(selector + bad.slice(2).padStart(64, '0') + word(64) + word(2n ** 200n)),
      },
      { 'another target': call(shared(fine, 40)) },
    );
  });

  test('the function, by its first four bytes, whether or not an interface has it', () =>
    denies(
      `eth.tx.function_signature == '0xa9059cbb'`,
      {
        'with an interface': call(transferTo(fine)),
        'without one': () =>
          sign(
            'ETHEREUM',
            ethereum,
            serializeTransaction({ type: 'legacy', chainId: 1, to: fine, data: transferTo(fine) }),
          ),
        'three of the bytes': call('0xa9059c'),
      },
      { 'another function': call('0x12345678'), 'no call': call('0x') },
    ));

  test('a function by its name, in a call that the interface cannot read', () =>
    denies(
      `eth.tx.function_name == 'transfer'`,
      { 'a function that the interface has not': call('0x12345678') },
      { exec: call(encodeFunctionData({ abi, functionName: 'exec', args: [fine, []] })), 'no call': call('0x') },
    ));
});

test('the chain of a transaction that is valid on every chain', () => {
  // The six fields of a transaction before EIP-155.
  const anywhere = toRlp(['0x', '0x09', '0x5208', fine, '0x01', '0x']);
  const legacy = (chainId: number) => serializeTransaction({ type: 'legacy', chainId, to: fine, gasPrice: 9n });
  return denies(
    'eth.tx.chain_id != 1',
    { 'of no chain': () => sign('ETHEREUM', ethereum, anywhere), other: () => sign('ETHEREUM', ethereum, legacy(5)) },
    { mainnet: () => sign('ETHEREUM', ethereum, legacy(1)) },
  );
});

test('both fees, of a transaction that has one gas price', () => {
  const priced = (gasPrice: bigint) => () =>
    sign('ETHEREUM', ethereum, serializeTransaction({ type: 'legacy', chainId: 1, to: fine, gasPrice }));
  return denies(
    'eth.tx.max_fee_per_gas > 100 || eth.tx.max_priority_fee_per_gas > 100',
    { dear: priced(101n) },
    { cheap: priced(100n) },
  );
});

describe('a key under more than one name', () => {
  const scriptOf = (address: string) =>
    bitcoinAddress.toOutputScript(address, address.startsWith('tb') ? networks.testnet : networks.bitcoin);

  /** Pays to an address with a coin of the key; the bytes are the same on every network. */
  function psbt(to: string): string {
    const previous = new BitcoinTransaction();
    previous.addInput(new Uint8Array(32).fill(1), 0);
    previous.addOutput(scriptOf(mainnet), 10_000n);
    return new Psbt()
      .addInput({ hash: previous.getId(), index: 0, nonWitnessUtxo: previous.toBuffer() })
      .addOutput({ script: scriptOf(to), value: 9_000n })
      .toHex();
  }
  const payee = 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4';
  const payeeOnTestnet = 'tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx';
  const another = '1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2';
  const pay = (signWith: () => string, to: string) => () => sign('BITCOIN', signWith(), psbt(to));

  test.each([
    ['on mainnet', payee],
    ['on a test network', payeeOnTestnet],
    ['in capitals', payee.toUpperCase()],
  ])('a receiver of bitcoin is denied %s, whatever network the key was named on', (_where, address) =>
    denies(
      `bitcoin.tx.outputs.any(o, o.address in ['${address}', '${bad}'])`,
      { 'by its mainnet name': pay(() => mainnet, payee), 'by its testnet name': pay(() => testnet, payee) },
      { 'another receiver': pay(() => testnet, another), 'and by mainnet': pay(() => mainnet, another) },
    ),
  );

  test('an ALLOW for a test network is none for the same bytes on mainnet', async () => {
    const tester = await coordinator.createUser('Tester');
    await coordinator.createPolicy({
      policyName: 'tests',
      condition: `bitcoin.tx.outputs.all(o, o.address == '${payeeOnTestnet}')`,
      consensus: `approvers.any(user, user.id == '${tester.userId}')`,
    });
    const attempt = tester.client.submit('ACTIVITY_TYPE_SIGN_TRANSACTION_V2', {
      signWith: testnet,
      type: 'TRANSACTION_TYPE_BITCOIN',
      unsignedTransaction: psbt(payee),
    });
    expect(await refusal(attempt)).toMatchObject({ status: 403 });
  });

  test('an account is denied under the name of another account of the same key', () =>
    denies(
      `wallet_account.address == '${mainnet}'`,
      { 'its own name': pay(() => mainnet, another), 'the name on testnet': pay(() => testnet, another) },
      {
        'another account': () =>
          sign('ETHEREUM', ethereum, serializeTransaction({ type: 'legacy', chainId: 1, to: fine })),
      },
    ));

  test('the private key of an account is denied under the name of another account of the same key', async () => {
    const policyId = await coordinator.createPolicy({
      policyName: 'exports anything',
      condition: "activity.action == 'EXPORT'",
      consensus: `approvers.any(user, user.id == '${signer.userId}')`,
    });
    const { publicKeyUncompressed: targetPublicKey } = generateP256KeyPair();
    const exported = (address: () => string) => () =>
      signer.client.submit('ACTIVITY_TYPE_EXPORT_WALLET_ACCOUNT', { address: address(), targetPublicKey });
    await denies(
      `wallet_account.address == '${mainnet}'`,
      { 'its own name': exported(() => mainnet), 'the name on testnet': exported(() => testnet) },
      { 'another account': exported(() => ethereum) },
    );
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
  });
});

describe('a DENY on what moves on Solana holds for', () => {
  const SYSTEM = '11111111111111111111111111111111';
  const TOKEN = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
  const TOKEN_2022 = 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb';
  const thief = 'SysvarRent111111111111111111111111111111111';
  const friend = 'SysvarC1ock11111111111111111111111111111111';
  const source = 'Vote111111111111111111111111111111111111111';
  const mint = 'Stake11111111111111111111111111111111111111';
  const u64 = (value: number) => [value, 0, 0, 0, 0, 0, 0, 0];

  const instruction = (program: string, data: readonly number[], ...keys: string[]): Instruction => ({
    programAddress: solanaAddress(program),
    accounts: keys.map((key) => ({ address: solanaAddress(key), role: key === solana ? 3 : 1 })),
    data: Uint8Array.from(data),
  });

  function transaction(instructions: readonly Instruction[], table?: string): string {
    const lifetime = { blockhash: blockhash('J4NYrSRccTUGXP7wmFwiByakqWKZb5RwpiAoskpgAQRb'), lastValidBlockHeight: 1n };
    const payer = setTransactionMessageFeePayer(solanaAddress(solana), createTransactionMessage({ version: 0 }));
    const message = appendTransactionMessageInstructions(
      instructions,
      setTransactionMessageLifetimeUsingBlockhash(lifetime, payer),
    );
    const tables = table === undefined ? {} : { [solanaAddress(mint)]: [solanaAddress(table)] };
    const compiled = compileTransaction(compressTransactionMessageUsingAddressLookupTables(message, tables));
    return Buffer.from(getTransactionEncoder().encode(compiled)).toString('hex');
  }
  const act = (of: () => Instruction, table?: string) => () => sign('SOLANA', solana, transaction([of()], table));
  const transfer = [3, ...u64(9)];

  test('tokens to somebody: in a batch, out of a closed account, from a table', () => {
    const token = (data: readonly number[], ...keys: string[]) => instruction(TOKEN, data, ...keys);
    return denies(
      `solana.tx.spl_transfers.any(t, t.to == '${thief}')`,
      {
        plain: act(() => token(transfer, source, thief, solana)),
        'in a batch': act(() => token([255, 3, 9, ...transfer], source, thief, solana)),
        'second in a batch': act(() =>
          token([255, 3, 9, ...transfer, 4, 10, 12, ...u64(1), 6], source, friend, solana, source, mint, thief, solana),
        ),
        'in a batch of Token-2022': act(() => instruction(TOKEN_2022, [255, 3, 9, ...transfer], source, thief, solana)),
        'a closed account': act(() => token([9], source, thief, solana)),
        'unwrapped SOL': act(() => token([45, 1, ...u64(5)], source, thief, solana)),
        'a new owner': act(() => token([6, 2, 1, ...new Uint8Array(32)], source, solana)),
        'an unknown instruction': act(() => token([99], source, thief, solana)),
        'a confidential transfer': act(() => instruction(TOKEN_2022, [27, 7], source, thief, solana)),
        'from a lookup table': act(() => token(transfer, source, thief, solana), thief),
      },
      {
        'to somebody else': act(() => token(transfer, source, friend, solana)),
        'a batch to somebody else': act(() => token([255, 3, 9, ...transfer], source, friend, solana)),
        'an account closed to oneself': act(() => token([9], source, solana, solana)),
        'a payment': act(() => instruction(SYSTEM, [2, 0, 0, 0, ...u64(5)], solana, thief)),
      },
    );
  });

  test('lamports to somebody: as a new account, out of a nonce, from a table', () => {
    const system = (data: readonly number[], ...keys: string[]) => instruction(SYSTEM, data, ...keys);
    const key = [...new Uint8Array(32)];
    return denies(
      `solana.tx.transfers.any(t, t.to == '${thief}' && t.amount > 3)`,
      {
        plain: act(() => system([2, 0, 0, 0, ...u64(9)], solana, thief)),
        'a new account': act(() => system([0, 0, 0, 0, ...u64(9), ...u64(0), ...key], solana, thief)),
        'a new account with a seed': act(() =>
          system([3, 0, 0, 0, ...key, ...u64(1), 97, ...u64(9), ...u64(0), ...key], solana, thief),
        ),
        'out of a nonce': act(() => system([5, 0, 0, 0, ...u64(9)], source, thief, friend, mint, solana)),
        'out of a closed token account': act(() => instruction(TOKEN, [9], source, thief, solana)),
        'an account given to a program': act(() => system([1, 0, 0, 0, ...key], solana)),
        'from a lookup table': act(() => system([2, 0, 0, 0, ...u64(9)], solana, thief), thief),
      },
      { 'a little': act(() => system([2, 0, 0, 0, ...u64(3)], solana, thief)) },
    );
  });

  test('a mint, in a transfer that does not name it', () =>
    denies(
      `solana.tx.spl_transfers.any(t, t.token_mint == '${mint}')`,
      {
        named: act(() => instruction(TOKEN, [12, ...u64(9), 6], source, mint, friend, solana)),
        unnamed: act(() => instruction(TOKEN, transfer, source, friend, solana)),
      },
      { another: act(() => instruction(TOKEN, [12, ...u64(9), 6], source, friend, friend, solana)) },
    ));
});
