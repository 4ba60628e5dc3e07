import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { ed25519 } from '@noble/curves/ed25519.js';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { base58 } from '@scure/base';
import { createSignableMessage, type Address, type MessagePartialSigner } from '@solana/kit';
import { ApiKeyStamper } from '@turnkey/api-key-stamper';
import { TurnkeyClient } from '@turnkey/http';
import { Transaction, verifyMessage, verifyTypedData, type AbstractSigner } from 'ethers';
import {
  recoverMessageAddress,
  recoverTransactionAddress,
  recoverTypedDataAddress,
  toHex,
  type Hex,
  type LocalAccount,
} from 'viem';
import { generateApiKeyPair, startCoordinator, type TestCoordinator } from '../../src/testing/index.js';

const guide = new URL('../../docs/how-to/wallets-for-customers.md', import.meta.url);
// Inside the repository, where the packages are found.
const program = new URL('../../coverage/wallets-for-customers.mjs', import.meta.url);

type Requests = (request: { readonly method: string; readonly params?: readonly unknown[] }) => Promise<unknown>;

/** What the guide exports. */
interface Program {
  viemAccount(client: TurnkeyClient, organizationId: string, address: string): LocalAccount;
  EthersSigner: new (client: TurnkeyClient, organizationId: string, address: string) => AbstractSigner;
  solanaSigner(client: TurnkeyClient, organizationId: string, address: string): MessagePartialSigner;
  cosmosSigner(
    client: TurnkeyClient,
    organizationId: string,
    address: string,
    publicKey: string,
    makeSignBytes: (signDoc: Uint8Array) => Uint8Array,
  ): {
    getAccounts(): Promise<readonly { readonly address: string; readonly pubkey: Uint8Array }[]>;
    signDirect(address: string, signDoc: Uint8Array): Promise<{ readonly signature: { readonly signature: string } }>;
  };
  provider(account: LocalAccount, node: { readonly request: Requests }): { readonly request: Requests };
}

interface SubOrganization {
  readonly subOrganizationId: string;
  readonly wallet: { readonly walletId: string; readonly addresses: readonly [Hex, Address, string] };
}

let coordinator: TestCoordinator;
let its: Program;
let client: TurnkeyClient;
let founded: SubOrganization;

beforeAll(async () => {
  coordinator = await startCoordinator({ at: new Date() });
  const page = await readFile(guide, 'utf8');
  const blocks = [...page.matchAll(/^```js\n([^]*?)^```/gm)].map(([, block]) => block);
  await mkdir(new URL('.', program), { recursive: true });
  await writeFile(program, blocks.join('\n'));
  its = (await import(program.href)) as Program;

  const key = generateApiKeyPair(randomBytes);
  const parameters = JSON.parse(/^```json\n([^]*?)^```/m.exec(page)![1]!.replace('02…', key.publicKey)) as {
    wallet: { accounts: object[] };
  };
  parameters.wallet.accounts.push({
    curve: 'CURVE_SECP256K1',
    pathFormat: 'PATH_FORMAT_BIP32',
    path: "m/44'/118'/0'/0/0",
    addressFormat: 'ADDRESS_FORMAT_COSMOS',
  });
  const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', parameters);
  founded = result['createSubOrganizationResultV8'] as SubOrganization;
  const stamper = new ApiKeyStamper({ apiPublicKey: key.publicKey, apiPrivateKey: key.privateKey });
  client = new TurnkeyClient({ baseUrl: coordinator.url }, stamper);
});

afterAll(async () => {
  await coordinator?.close();
  await rm(program, { force: true });
});

const typedData = {
  domain: { name: 'Shop', version: '1', chainId: 1, verifyingContract: '0x00000000000000000000000000000000000000cc' },
  types: { Order: [{ name: 'price', type: 'uint256' }] },
  primaryType: 'Order',
  message: { price: 5n },
} as const;
const transfer = {
  type: 'eip1559',
  chainId: 1,
  nonce: 0,
  gas: 21_000n,
  maxFeePerGas: 2n,
  maxPriorityFeePerGas: 1n,
  to: '0x00000000000000000000000000000000000000aa',
  value: 1n,
} as const;

test('viem', async () => {
  const { subOrganizationId, wallet } = founded;
  const [address] = wallet.addresses;
  const account = its.viemAccount(client, subOrganizationId, address);
  const message = 'grüße';
  expect(await recoverMessageAddress({ message, signature: await account.signMessage({ message }) })).toBe(address);
  const signature = await account.signTypedData(typedData);
  expect(await recoverTypedDataAddress({ ...typedData, signature })).toBe(address);
  const serializedTransaction = await account.signTransaction(transfer);
  expect(await recoverTransactionAddress({ serializedTransaction: serializedTransaction as `0x02${string}` })).toBe(
    address,
  );
});

test('ethers', async () => {
  const { subOrganizationId, wallet } = founded;
  const [address] = wallet.addresses;
  const signer = new its.EthersSigner(client, subOrganizationId, address);
  expect(verifyMessage('hello', await signer.signMessage('hello'))).toBe(address);
  const { domain, message } = typedData;
  const types = { Order: [...typedData.types.Order] };
  expect(verifyTypedData(domain, types, message, await signer.signTypedData(domain, types, message))).toBe(address);
  const { gas: gasLimit, type: _type, ...fields } = transfer;
  const signed = await signer.signTransaction({ ...fields, type: 2, gasLimit, from: address });
  expect(Transaction.from(signed)).toMatchObject({ from: address, value: 1n });
});

test('Solana', async () => {
  const { subOrganizationId, wallet } = founded;
  const [, address] = wallet.addresses;
  const signer = its.solanaSigner(client, subOrganizationId, address);
  const message = createSignableMessage('hello');
  const [signatures] = await signer.signMessages([message]);
  expect(ed25519.verify(signatures![address]!, message.content, base58.decode(address))).toBe(true);
});

test('Cosmos', async () => {
  const { subOrganizationId, wallet } = founded;
  const [, , address] = wallet.addresses;
  const { accounts } = await client.getWalletAccounts({
    organizationId: subOrganizationId,
    walletId: wallet.walletId,
  });
  const { publicKey } = accounts.find((account) => account.address === address)!;
  const signer = its.cosmosSigner(client, subOrganizationId, address, publicKey!, (signDoc) => signDoc);
  const [account] = await signer.getAccounts();
  expect(account).toMatchObject({ address, pubkey: new Uint8Array(Buffer.from(publicKey!, 'hex')) });
  const signDoc = new TextEncoder().encode('what is signed');
  const { signature } = await signer.signDirect(address, signDoc);
  const bytes = new Uint8Array(Buffer.from(signature.signature, 'base64'));
  expect(secp256k1.verify(bytes, signDoc, account!.pubkey)).toBe(true);
});

test('a provider of EIP-1193 signs, and passes on what it does not know', async () => {
  const { subOrganizationId, wallet } = founded;
  const [address] = wallet.addresses;
  const node: Requests = ({ method }) => Promise.resolve(`the node’s ${method}`);
  const { request } = its.provider(its.viemAccount(client, subOrganizationId, address), { request: node });
  expect(await request({ method: 'eth_accounts' })).toEqual([address]);
  const signature = (await request({ method: 'personal_sign', params: [toHex('hello'), address] })) as Hex;
  expect(await recoverMessageAddress({ message: 'hello', signature })).toBe(address);
  expect(await request({ method: 'eth_chainId' })).toBe('the node’s eth_chainId');
});
