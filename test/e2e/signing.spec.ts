import { createPublicKey, verify } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { schnorr } from '@noble/curves/secp256k1.js';
import {
  address as solanaAddress,
  appendTransactionMessageInstructions,
  assertIsFullySignedTransaction,
  blockhash,
  compileTransaction,
  createTransactionMessage,
  getPublicKeyFromAddress,
  getTransactionDecoder,
  getTransactionEncoder,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
  verifySignature,
} from '@solana/kit';
import { bech32m } from '@scure/base';
import type { Turnkey } from '@turnkey/sdk-server';
import { Transaction, verifyMessage, verifyTypedData } from 'ethers';
import {
  createWalletClient,
  custom,
  encodeFunctionData,
  hashMessage,
  parseTransaction,
  recoverMessageAddress,
  recoverTransactionAddress,
  recoverTypedDataAddress,
  serializeTransaction,
  serializeTypedData,
  type Hex,
  type TransactionSerializable,
  type TypedDataDefinition,
} from 'viem';
import { toAccount } from 'viem/accounts';
import { verifyAuthorization } from 'viem/utils';
import type { ActivityEnvelope } from '../../src/wire/envelope.js';
import {
  startCoordinator,
  type ApiKeyPair,
  type StampingClient,
  type TestCoordinator,
  type TestUser,
} from '../../src/testing/index.js';
import type { EventMetadata } from '../../src/ledger/chain.js';
import { denial, objectWith, refusal, textLike } from './exchange.js';

// The package's index also loads its browser actions, which need what nothing here uses.
const sdkFile = new URL('../../node_modules/@turnkey/sdk-server/dist/sdk-client.mjs', import.meta.url).pathname;
const { TurnkeyServerSDK } = (await import(sdkFile)) as { TurnkeyServerSDK: typeof Turnkey };

interface Account {
  readonly curve: string;
  readonly path: string;
  readonly addressFormat: string;
}
const ethereumAccount: Account = {
  curve: 'CURVE_SECP256K1',
  path: "m/44'/60'/0'/0/0",
  addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
};
const solanaAccount: Account = {
  curve: 'CURVE_ED25519',
  path: "m/44'/501'/0'/0'",
  addressFormat: 'ADDRESS_FORMAT_SOLANA',
};
const taprootAccount: Account = {
  curve: 'CURVE_SECP256K1',
  path: "m/86'/0'/0'/0/0",
  addressFormat: 'ADDRESS_FORMAT_BITCOIN_MAINNET_P2TR',
};

let coordinator: TestCoordinator;
let walletId: string;
let ethereum: Hex;
let solana: string;
let taproot: string;

beforeAll(async () => {
  coordinator = await startCoordinator({ store: 'memory', at: new Date() });
  const wallet = await newWallet('Treasury', [ethereumAccount, solanaAccount, taprootAccount]);
  ({ walletId } = wallet);
  [ethereum, solana, taproot] = wallet.addresses as [Hex, string, string];
});

afterAll(() => coordinator.close());

async function newWallet(walletName: string, accounts: readonly Account[]) {
  const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_WALLET', {
    walletName,
    accounts: accounts.map((account) => ({ pathFormat: 'PATH_FORMAT_BIP32', ...account })),
  });
  return result['createWalletResult'] as { walletId: string; addresses: string[] };
}

interface Signature {
  readonly r: string;
  readonly s: string;
  readonly v: string;
}
const correlationOf = ({ metadata }: { metadata: unknown }) => (metadata as EventMetadata).$correlationId;
const joined = ({ r, s }: Signature): Buffer => Buffer.from(r + s, 'hex');
const rawResult = ({ result }: ActivityEnvelope) => result['signRawPayloadResult'] as Signature;
const digest = 'ab'.repeat(32);
const rawPayload = (signWith: string, more: object = {}) => ({
  signWith,
  payload: digest,
  encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
  hashFunction: 'HASH_FUNCTION_NO_OP',
  ...more,
});
const signRaw = (client: StampingClient, signWith: string, more: object = {}) =>
  client.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', rawPayload(signWith, more));
const signTransaction = (client: StampingClient, signWith: string, type: string, unsignedTransaction: string) =>
  client.submit('ACTIVITY_TYPE_SIGN_TRANSACTION_V2', {
    signWith,
    type: `TRANSACTION_TYPE_${type}`,
    unsignedTransaction,
  });

/** An account of viem that signs as `@turnkey/viem` does: what it sends, and what it makes of the answers. */
function viemAccount(client: StampingClient, address: Hex) {
  const raw = async (payload: string, encoding: string): Promise<Hex> => {
    const activity = await signRaw(client, address, { payload, encoding });
    const { r, s, v } = rawResult(activity);
    return `0x${r}${s}${(27 + parseInt(v, 16)).toString(16)}`;
  };
  return {
    ...toAccount({
      address,
      signMessage: ({ message }) => raw(hashMessage(message), 'PAYLOAD_ENCODING_HEXADECIMAL'),
      signTypedData: (typedData) =>
        raw(serializeTypedData(typedData as TypedDataDefinition), 'PAYLOAD_ENCODING_EIP712'),
      async signTransaction(transaction, options) {
        const serializer = (options?.serializer ?? serializeTransaction) as typeof serializeTransaction;
        const unsigned = serializer(transaction as TransactionSerializable);
        const { result } = await signTransaction(client, address, 'ETHEREUM', unsigned.slice(2));
        const { signedTransaction } = result['signTransactionResult'] as { signedTransaction: string };
        return `0x${signedTransaction}`;
      },
    }),
    authorize: (authorization: { address: Hex; chainId: number; nonce: number }) =>
      raw(JSON.stringify(authorization), 'PAYLOAD_ENCODING_EIP7702_AUTHORIZATION'),
  };
}

const permit = {
  domain: {
    name: 'Dai Stablecoin',
    version: '1',
    chainId: 1,
    verifyingContract: '0x6B175474E89094C44Da98b954EedeAC495271d0F',
  },
  types: {
    Permit: [
      { name: 'holder', type: 'address' },
      { name: 'nonce', type: 'uint256' },
      { name: 'allowed', type: 'bool' },
    ],
  },
  primaryType: 'Permit',
  message: { holder: '0x00000000000000000000000000000000000000aa', nonce: 2n ** 200n, allowed: true },
} as const;

/** Typed data as JSON; the type of the domain follows from its members. */
const jsonOf = (typedData: object): string =>
  JSON.stringify(typedData, (_name, value: unknown) => (typeof value === 'bigint' ? String(value) : value));

const payment = (to: Hex, value: bigint, more: object = {}) =>
  ({
    type: 'eip1559',
    chainId: 1,
    nonce: 7,
    to,
    value,
    gas: 21_000n,
    maxFeePerGas: 3n,
    maxPriorityFeePerGas: 1n,
    ...more,
  }) as const;
const treasury: Hex = '0x00000000000000000000000000000000000000aa';
const stranger: Hex = '0x00000000000000000000000000000000000000bb';

function solanaPayment(from: string, lamports: bigint): string {
  const amount = Buffer.alloc(8);
  amount.writeBigUInt64LE(lamports);
  const message = setTransactionMessageFeePayer(solanaAddress(from), createTransactionMessage({ version: 0 }));
  const lifetime = { blockhash: blockhash('J4NYrSRccTUGXP7wmFwiByakqWKZb5RwpiAoskpgAQRb'), lastValidBlockHeight: 1n };
  const transfer = {
    programAddress: solanaAddress('11111111111111111111111111111111'),
    accounts: [
      { address: solanaAddress(from), role: 3 },
      { address: solanaAddress('SysvarRent111111111111111111111111111111111'), role: 1 },
    ],
    data: Uint8Array.from([2, 0, 0, 0, ...amount]),
  };
  const lived = setTransactionMessageLifetimeUsingBlockhash(lifetime, message);
  const compiled = compileTransaction(appendTransactionMessageInstructions([transfer], lived));
  return Buffer.from(getTransactionEncoder().encode(compiled)).toString('hex');
}

function isEd25519(publicKey: Uint8Array, message: Uint8Array, signature: Signature): boolean {
  const spki = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), publicKey]);
  return verify(null, message, createPublicKey({ key: spki, format: 'der', type: 'spki' }), joined(signature));
}

describe('@turnkey/sdk-server, as it comes', () => {
  const sdk = ({ publicKey, privateKey }: ApiKeyPair) =>
    new TurnkeyServerSDK({
      apiBaseUrl: coordinator.url,
      apiPublicKey: publicKey,
      apiPrivateKey: privateKey,
      defaultOrganizationId: coordinator.organizationId,
      activityPoller: { intervalMs: 10, numRetries: 3 },
    }).apiClient();

  test('signs one payload', async () => {
    const { r, s, v, activity } = await sdk(coordinator.client.key).signRawPayload({
      signWith: ethereum,
      payload: hashMessage('hello'),
      encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
      hashFunction: 'HASH_FUNCTION_NO_OP',
    });
    expect(activity.status).toBe('ACTIVITY_STATUS_COMPLETED');
    const signature: Hex = `0x${r}${s}${(27 + Number(v)).toString(16)}`;
    expect(await recoverMessageAddress({ message: 'hello', signature })).toBe(ethereum);
  });

  test('signs several, in order', async () => {
    const messages = ['one', 'two', 'three'];
    const { signatures } = await sdk(coordinator.client.key).signRawPayloads({
      signWith: ethereum,
      payloads: messages.map((message) => hashMessage(message)),
      encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
      hashFunction: 'HASH_FUNCTION_NO_OP',
    });
    for (const [index, { r, s, v }] of signatures!.entries()) {
      const signature: Hex = `0x${r}${s}${(27 + Number(v)).toString(16)}`;
      expect(await recoverMessageAddress({ message: messages[index]!, signature })).toBe(ethereum);
    }
    expect(signatures).toHaveLength(3);
  });

  test('signs a transaction', async () => {
    const { signedTransaction } = await sdk(coordinator.client.key).signTransaction({
      signWith: ethereum,
      type: 'TRANSACTION_TYPE_ETHEREUM',
      unsignedTransaction: serializeTransaction(payment(treasury, 1n)).slice(2),
    });
    expect(Transaction.from(`0x${signedTransaction}`).from).toBe(ethereum);
  });
});

describe('as @turnkey/viem signs', () => {
  const account = () => viemAccount(coordinator.client, ethereum);

  test('messages are signed so that viem and ethers recover the address', async () => {
    for (const message of ['hello', 'grüß dich 👋', { raw: '0xdeadbeef' as Hex }]) {
      const signature = await account().signMessage({ message });
      expect(await recoverMessageAddress({ message, signature })).toBe(ethereum);
    }
    expect(verifyMessage('hello', await account().signMessage({ message: 'hello' }))).toBe(ethereum);
  });

  test('typed data are signed so that viem and ethers recover the address', async () => {
    // The client adds the type of the domain, which the account would otherwise leave out.
    const client = createWalletClient({
      account: account(),
      transport: custom({ request: () => Promise.reject(new Error('nothing is asked')) }),
    });
    const signature = await client.signTypedData(permit);
    expect(await recoverTypedDataAddress({ ...permit, signature })).toBe(ethereum);
    const { domain, types, message } = permit;
    const fields = { Permit: [...types.Permit] };
    expect(verifyTypedData(domain, fields, message, signature)).toBe(ethereum);
  });

  test.each<[string, TransactionSerializable]>([
    ['legacy', { type: 'legacy', chainId: 1, nonce: 1, to: treasury, value: 5n, gas: 21_000n, gasPrice: 9n }],
    ['EIP-2930', { type: 'eip2930', chainId: 10, nonce: 0, to: treasury, gas: 21_000n, gasPrice: 9n, accessList: [] }],
    ['EIP-1559', payment(treasury, 12n)],
    ['EIP-1559 that creates a contract', { ...payment(treasury, 0n), to: undefined, data: '0x60006000' }],
  ])('transactions are signed: %s', async (_name, transaction) => {
    const serializedTransaction = (await account().signTransaction(transaction as never)) as `0x02${string}`;
    expect(await recoverTransactionAddress({ serializedTransaction })).toBe(ethereum);
    expect(Transaction.from(serializedTransaction).from).toBe(ethereum);
    expect(parseTransaction(serializedTransaction)).toMatchObject({
      type: transaction.type!,
      chainId: transaction.chainId!,
    });
  });

  test('authorizations of EIP-7702 are signed', async () => {
    const authorization = { address: treasury, chainId: 1, nonce: 69 };
    const signature = await account().authorize(authorization);
    expect(await verifyAuthorization({ address: ethereum, authorization, signature })).toBe(true);
  });
});

describe('keys of other chains', () => {
  test('sign a message for Solana, and a transaction that the network would take', async () => {
    const more = {
      payload: 'I own this',
      encoding: 'PAYLOAD_ENCODING_TEXT_UTF8',
      hashFunction: 'HASH_FUNCTION_NOT_APPLICABLE',
    };
    const signature = rawResult(await signRaw(coordinator.client, solana, more));
    const key = await getPublicKeyFromAddress(solanaAddress(solana));
    const raw = new Uint8Array(await crypto.subtle.exportKey('raw', key));
    expect(isEd25519(raw, Buffer.from('I own this'), signature)).toBe(true);

    const { result } = await signTransaction(coordinator.client, solana, 'SOLANA', solanaPayment(solana, 5n));
    const { signedTransaction } = result['signTransactionResult'] as { signedTransaction: string };
    const transaction = getTransactionDecoder().decode(Buffer.from(signedTransaction, 'hex'));
    assertIsFullySignedTransaction(transaction);
    const [first] = Object.values(transaction.signatures);
    expect(await verifySignature(key, first!, transaction.messageBytes)).toBe(true);
  });

  test('sign for taproot with BIP-340 under the output key, which is what the address spells', async () => {
    const outputKey = Uint8Array.from(bech32m.fromWords(bech32m.decode(taproot as `bc1${string}`).words.slice(1)));
    const signature = rawResult(await signRaw(coordinator.client, taproot));
    expect(schnorr.verify(joined(signature), Buffer.from(digest, 'hex'), outputKey)).toBe(true);
  });

  test('one activity signs a thousand payloads', async () => {
    const payloads = Array.from({ length: 1_000 }, (_, index) => index.toString(16).padStart(64, '0'));
    const { result } = await coordinator.client.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOADS', {
      signWith: solana,
      payloads,
      encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
      hashFunction: 'HASH_FUNCTION_NOT_APPLICABLE',
    });
    const { signatures } = result['signRawPayloadsResult'] as { signatures: Signature[] };
    expect(signatures).toHaveLength(1_000);
    const key = await getPublicKeyFromAddress(solanaAddress(solana));
    const raw = new Uint8Array(await crypto.subtle.exportKey('raw', key));
    for (const index of [0, 7, 8, 9, 500, 999]) {
      expect(isEd25519(raw, Buffer.from(payloads[index]!, 'hex'), signatures[index]!)).toBe(true);
    }
  });

  test('the same request again is the same activity, and signs nothing again', async () => {
    const body = coordinator.client.submitBody('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', rawPayload(ethereum));
    const path = '/public/v1/submit/sign_raw_payload';
    const [one, again] = [
      (await coordinator.client.post<{ activity: ActivityEnvelope }>(path, body)).body.activity,
      (await coordinator.client.post<{ activity: ActivityEnvelope }>(path, body)).body.activity,
    ];
    expect(again).toEqual(one);
    const recorded = (await coordinator.events()).filter((event) => correlationOf(event) === one.id);
    expect(recorded.map(({ type }) => type)).toEqual(['ActivitySubmitted', 'ActivityCompleted']);
  });
});

describe('a request to sign is refused', () => {
  test('with a key that nobody has', async () => {
    expect(await refusal(signRaw(coordinator.client, stranger))).toMatchObject({
      status: 404,
      code: 5,
      message: textLike(/^Could not find any resource to sign with\. Addresses are case sensitive\./),
    });
  });

  test('as a whole for one bad payload, whose place it names', async () => {
    const before = (await coordinator.events()).length;
    const attempt = coordinator.client.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOADS', {
      signWith: ethereum,
      payloads: [digest, digest, 'abcd'],
      encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
      hashFunction: 'HASH_FUNCTION_NO_OP',
    });
    expect(await refusal(attempt)).toMatchObject({
      status: 400,
      message: textLike(/parameters\.payloads\[2\]: expected a 32-bytes-long digest/),
    });
    expect((await coordinator.events()).length).toBe(before);
  });

  test('with a wallet that was deleted', async () => {
    const { walletId: gone, addresses } = await newWallet('Short-lived', [ethereumAccount]);
    await signRaw(coordinator.client, addresses[0]!);
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_WALLETS', { walletIds: [gone], deleteWithoutExport: true });
    expect(await refusal(signRaw(coordinator.client, addresses[0]!))).toMatchObject({ status: 404, code: 5 });
  });
});

describe('policies', () => {
  let names = 0;

  /** Somebody who may sign under these conditions, and nothing else. */
  async function signerWho(condition: string, consensus = ''): Promise<TestUser> {
    const signer = await coordinator.createUser(`Signer ${++names}`);
    await coordinator.createPolicy({
      policyName: `signer ${names}`,
      condition: `activity.action == 'SIGN' && ${condition}`,
      consensus: `approvers.any(user, user.id == '${signer.userId}')${consensus}`,
    });
    return signer;
  }

  test('without one nobody else signs; the answer says so, and holds no signature', async () => {
    const mallory = await coordinator.createUser('Mallory');
    const refused = await refusal(signRaw(mallory.client, ethereum));
    expect(refused).toMatchObject({ status: 403, code: 7 });
    expect(denial(refused).message).toBe('No policies evaluated to outcome: Allow');
    expect(JSON.stringify(refused)).not.toMatch(/"r"|"s"/);
  });

  test('the treasurer has to agree: until then there is no signature', async () => {
    const treasurer = await coordinator.createUser('Treasurer');
    const asker = await signerWho(
      `wallet.id == '${walletId}'`,
      ` && approvers.any(user, user.id == '${treasurer.userId}')`,
    );
    const asked = await signRaw(asker.client, ethereum);
    expect(asked).toMatchObject({ status: 'ACTIVITY_STATUS_CONSENSUS_NEEDED', result: {} });
    const approved = await treasurer.client.approve(asked.fingerprint);
    expect(approved.status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect(rawResult(approved)).toEqual(rawResult(await signRaw(coordinator.client, ethereum)));

    const { walletId: gone, addresses } = await newWallet('Gone before the vote', [ethereumAccount]);
    await coordinator.createPolicy({
      policyName: 'two for the wallet that goes',
      condition: `wallet.id == '${gone}'`,
      consensus: `approvers.any(user, user.id == '${treasurer.userId}') && approvers.any(user, user.id == '${asker.userId}')`,
    });
    const waiting = await signRaw(asker.client, addresses[0]!);
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_WALLETS', { walletIds: [gone], deleteWithoutExport: true });
    // Policies cannot read of a wallet that is gone, so nobody's consensus can be met any more.
    expect(await refusal(treasurer.client.approve(waiting.fingerprint))).toMatchObject({ status: 403 });
  });

  test('a wallet that goes before the last vote of the root quorum: the activity fails, and says why', async () => {
    const one = await startCoordinator({ seed: 'quorum' });
    try {
      const second = await one.createUser('Second');
      const { result } = await one.client.submit('ACTIVITY_TYPE_CREATE_WALLET', {
        walletName: 'Shared',
        accounts: [{ pathFormat: 'PATH_FORMAT_BIP32', ...ethereumAccount }],
      });
      const shared = result['createWalletResult'] as { walletId: string; addresses: string[] };
      await one.client.submit('ACTIVITY_TYPE_UPDATE_ROOT_QUORUM', {
        threshold: 2,
        userIds: [one.root.userId, second.userId],
      });
      const waiting = await signRaw(one.client, shared.addresses[0]!);
      const deletion = await one.client.submit('ACTIVITY_TYPE_DELETE_WALLETS', {
        walletIds: [shared.walletId],
        deleteWithoutExport: true,
      });
      await second.client.approve(deletion.fingerprint);
      const failed = await second.client.approve(waiting.fingerprint);
      expect(failed).toMatchObject({ status: 'ACTIVITY_STATUS_FAILED', result: {} });
      expect(failed.failure).toMatchObject({ message: textLike(/^Could not find any resource to sign with/) });
    } finally {
      await one.close();
    }
  });

  test('they decide by receiver and amount of an Ethereum transaction, and deny what hides them', async () => {
    const signer = await signerWho(
      `eth.tx.to == '${treasury.toUpperCase().replace('0X', '0x')}' && eth.tx.value <= 1000`,
    );
    const pay = (to: Hex, value: bigint) =>
      signTransaction(signer.client, ethereum, 'ETHEREUM', serializeTransaction(payment(to, value)));
    expect((await pay(treasury, 1_000n)).status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect(denial(await refusal(pay(treasury, 1_001n))).policyEvaluations).toContainEqual(
      objectWith({ outcome: 'OUTCOME_DENY_IMPLICIT' }),
    );
    expect(await refusal(pay(stranger, 1n))).toMatchObject({ status: 403 });
    const blind = denial(await refusal(signRaw(signer.client, ethereum)));
    expect(blind.policyEvaluations).toContainEqual(objectWith({ outcome: 'OUTCOME_ERROR', error: textLike(/eth/) }));
  });

  test('they decide by the function that is called, with an uploaded ABI', async () => {
    const contract: Hex = '0x6b175474e89094c44da98b954eedeac495271d0f';
    const abi = [
      {
        type: 'function',
        name: 'transfer',
        inputs: [
          { name: 'dst', type: 'address' },
          { name: 'wad', type: 'uint256' },
        ],
        outputs: [],
        stateMutability: 'nonpayable',
      },
      {
        type: 'function',
        name: 'approve',
        inputs: [
          { name: 'usr', type: 'address' },
          { name: 'wad', type: 'uint256' },
        ],
        outputs: [],
        stateMutability: 'nonpayable',
      },
    ] as const;
    const signer = await signerWho(
      `eth.tx.function_name == 'transfer' && eth.tx.contract_call_args['wad'] < 100 && eth.tx.value == 0`,
    );
    const call = (functionName: 'transfer' | 'approve', wad: bigint) =>
      signTransaction(
        signer.client,
        ethereum,
        'ETHEREUM',
        serializeTransaction(
          payment(contract, 0n, { data: encodeFunctionData({ abi, functionName, args: [stranger, wad] }) }),
        ),
      );
    expect(denial(await refusal(call('transfer', 99n))).policyEvaluations).toContainEqual(
      objectWith({ outcome: 'OUTCOME_ERROR', error: textLike(/eth\.tx\.(?:function_name|contract_call_args)/) }),
    );
    await coordinator.client.submit('ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE', {
      smartContractAddress: contract,
      smartContractInterface: JSON.stringify(abi),
      type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
      label: 'Dai',
    });
    expect((await call('transfer', 99n)).status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect(await refusal(call('transfer', 100n))).toMatchObject({ status: 403 });
    expect(await refusal(call('approve', 1n))).toMatchObject({ status: 403 });
  });

  test('they decide by the contract that verifies typed data, of one and of each of several', async () => {
    const { verifyingContract } = permit.domain;
    const signer = await signerWho(`eth.eip_712.domain.verifying_contract == '${verifyingContract}'`);
    const elsewhere = { ...permit, domain: { ...permit.domain, verifyingContract: stranger } };
    const other = { ...permit, message: { ...permit.message, nonce: 1n } };
    const sign = (...all: readonly object[]) =>
      signer.client.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOADS', {
        signWith: ethereum,
        payloads: all.map(jsonOf),
        encoding: 'PAYLOAD_ENCODING_EIP712',
        hashFunction: 'HASH_FUNCTION_NO_OP',
      });
    expect((await sign(permit)).status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect((await sign(permit, other)).status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect(await refusal(sign(elsewhere))).toMatchObject({ status: 403 });
    // One that is allowed does not take another with it.
    expect(denial(await refusal(sign(permit, elsewhere))).policyEvaluations).toContainEqual(
      objectWith({ outcome: 'OUTCOME_DENY_IMPLICIT', payload: 'parameters.payloads[1]' }),
    );
  });

  test('they decide by the contract of an EIP-7702 authorization', async () => {
    const signer = await signerWho(`eth.eip_7702_authorization.address == '${treasury}'`);
    const authorize = (address: Hex) =>
      viemAccount(signer.client, ethereum).authorize({ address, chainId: 1, nonce: 1 });
    expect(await authorize(treasury)).toMatch(/^0x/);
    expect(await refusal(authorize(stranger))).toMatchObject({ status: 403 });
  });

  test('they decide by what a Solana transaction transfers', async () => {
    const signer = await signerWho(
      'solana.tx.transfers.all(t, t.amount <= 1000) && solana.tx.instructions.count() == 1',
    );
    const pay = (lamports: bigint) => signTransaction(signer.client, solana, 'SOLANA', solanaPayment(solana, lamports));
    expect((await pay(1_000n)).status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect(await refusal(pay(1_001n))).toMatchObject({ status: 403 });
  });

  test('the conditions that the guide gives are taken', async () => {
    const guide = await readFile(new URL('../../docs/how-to/sign-with-policies.md', import.meta.url), 'utf8');
    const rows = [
      ...guide.matchAll(/^\| [^|`]+ \| `((?:eth|solana|bitcoin|activity|wallet_account|private_key)\..+)` +\|$/gm),
    ];
    const blocks = [...guide.matchAll(/^ {2}(activity\..+)$/gm)];
    expect([rows.length, blocks.length]).toEqual([9, 1]);
    for (const [index, [, condition]] of [...rows, ...blocks].entries()) {
      await coordinator.createPolicy({
        policyName: `guide ${index}`,
        condition: `activity.kind == 'RECOVER_USER' && (${condition})`,
      });
    }
  });

  test('they decide by how a payload is written and hashed, and by the account', async () => {
    const signer = await signerWho(
      `activity.params.hash_function == 'HASH_FUNCTION_KECCAK256' && activity.params.encoding == 'PAYLOAD_ENCODING_TEXT_UTF8'` +
        ` && wallet_account.address == '${ethereum.toLowerCase()}'`,
    );
    const keccak = {
      payload: 'a text',
      encoding: 'PAYLOAD_ENCODING_TEXT_UTF8',
      hashFunction: 'HASH_FUNCTION_KECCAK256',
    };
    expect((await signRaw(signer.client, ethereum, keccak)).status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect(await refusal(signRaw(signer.client, ethereum))).toMatchObject({ status: 403 });
    expect(await refusal(signRaw(signer.client, taproot, keccak))).toMatchObject({ status: 403 });
  });
});

describe('private keys', () => {
  test('sign by id and by address, in the older versions too', async () => {
    const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_PRIVATE_KEYS_V2', {
      privateKeys: [
        {
          privateKeyName: 'hot',
          curve: 'CURVE_SECP256K1',
          privateKeyTags: [],
          addressFormats: ['ADDRESS_FORMAT_ETHEREUM'],
        },
      ],
    });
    const created = result['createPrivateKeysResultV2'] as {
      privateKeys: { privateKeyId: string; addresses: { address: Hex }[] }[];
    };
    const [{ privateKeyId, addresses }] = created.privateKeys as [(typeof created.privateKeys)[0]];
    const { address } = addresses[0]!;
    const message = 'from a private key';
    const v1 = await coordinator.client.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD', {
      privateKeyId,
      payload: hashMessage(message),
      encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
      hashFunction: 'HASH_FUNCTION_NO_OP',
    });
    expect(Object.keys(v1.intent)).toEqual(['signRawPayloadIntent']);
    const { r, s, v } = rawResult(v1);
    const signature: Hex = `0x${r}${s}${(27 + Number(v)).toString(16)}`;
    expect(await recoverMessageAddress({ message, signature })).toBe(address);
    expect(rawResult(await signRaw(coordinator.client, address, { payload: hashMessage(message) }))).toEqual({
      r,
      s,
      v,
    });

    const transaction = await coordinator.client.submit('ACTIVITY_TYPE_SIGN_TRANSACTION', {
      privateKeyId,
      type: 'TRANSACTION_TYPE_ETHEREUM',
      unsignedTransaction: serializeTransaction(payment(treasury, 1n)),
    });
    const { signedTransaction } = transaction.result['signTransactionResult'] as { signedTransaction: string };
    expect(Transaction.from(`0x${signedTransaction}`).from).toBe(address);
  });
});
