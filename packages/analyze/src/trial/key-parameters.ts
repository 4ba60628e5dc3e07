import { Doubt, notApplicable, Unreadable, type PolicyValue } from 'countersign/internal';
import { chainIn, ethereum, otherChains, transactionOf } from './trial-chains.js';
import { checkMade, NotExecuted, recordIn } from './trial-facts.js';
import type { TrialInterface } from './trial-call.js';
import { newKey, type TrialOrganization } from './trial-organization.js';
import type { Makers, Making } from './trial-parameters.js';
import type { TrialKey } from './trial-resources.js';
import { transactionWith } from './trial-transaction.js';
import { authorizationWith, typedDataWith, type MadePayload } from './trial-typed-data.js';

const digest = 'ab'.repeat(32);
const hashFunctions = [
  'HASH_FUNCTION_NO_OP',
  'HASH_FUNCTION_SHA256',
  'HASH_FUNCTION_KECCAK256',
  'HASH_FUNCTION_NOT_APPLICABLE',
] as const;
const account = { ...ethereum, path: "m/44'/60'/0'/0/1" };
const target = (): { targetPublicKey: string } => ({ targetPublicKey: newKey().publicKey });
/** What policies see of chains where nothing is signed for one. */
const noChain = Object.fromEntries(['eth', ...Object.keys(otherChains)].map((name) => [name, notApplicable]));

/** What uses, makes, changes and exports wallets and private keys. */
export const keyParameters = {
  async ACTIVITY_TYPE_SIGN_TRANSACTION_V2({ facts, organization, resources, given: input }) {
    const chain = chainIn(facts, input('type'));
    const { address, resources: real } = await resources.keyOf(facts, otherChains[chain ?? '']?.account);
    if (chain !== undefined) {
      const { tx, reads, ...made } = transactionOf(chain, facts, address);
      for (const read of reads) await upload(organization, read);
      return { parameters: { signWith: address, ...made }, resources: { ...noChain, ...real, [chain]: { tx } } };
    }
    const { unsignedTransaction, tx, read } = transactionWith(facts['eth']);
    if (read !== undefined) await upload(organization, read);
    const parameters = { signWith: address, type: 'TRANSACTION_TYPE_ETHEREUM', unsignedTransaction } as const;
    return { parameters, resources: { ...noChain, ...real, eth: { tx: { ...tx, from: address } } } };
  },
  async ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2(making) {
    const { payload, resources, ...rest } = await payloadOf(making);
    return { parameters: { payload, ...rest }, resources };
  },
  async ACTIVITY_TYPE_SIGN_RAW_PAYLOADS(making) {
    const { payload, resources, ...rest } = await payloadOf(making);
    return { parameters: { payloads: [payload], ...rest }, resources };
  },
  async ACTIVITY_TYPE_EXPORT_PRIVATE_KEY({ facts, resources }) {
    const { id, resources: real } = await resources.privateKey(recordIn(facts['private_key'], 'private_key'));
    return { parameters: { privateKeyId: id, ...target() }, resources: real };
  },
  async ACTIVITY_TYPE_EXPORT_WALLET(making) {
    const { walletId, resources } = await walletOf(making);
    return { parameters: { walletId, ...target() }, resources };
  },
  async ACTIVITY_TYPE_EXPORT_WALLET_ACCOUNT({ facts, resources }) {
    const { address, resources: real } = await resources.keyOf(facts);
    return { parameters: { address, ...target() }, resources: real };
  },
  async ACTIVITY_TYPE_CREATE_WALLET() {
    return { parameters: { walletName: 'Made by an example', accounts: [] } };
  },
  async ACTIVITY_TYPE_CREATE_WALLET_ACCOUNTS(making) {
    const { walletId, resources } = await walletOf(making);
    return { parameters: { walletId, accounts: [account] }, resources };
  },
  async ACTIVITY_TYPE_UPDATE_WALLET(making) {
    const { walletId, resources } = await walletOf(making);
    return { parameters: { walletId, walletName: 'Renamed by an example' }, resources };
  },
  async ACTIVITY_TYPE_DELETE_WALLETS(making) {
    const { walletIds, resources } = await walletsOf(making);
    return { parameters: { walletIds, deleteWithoutExport: true }, resources };
  },
  async ACTIVITY_TYPE_DELETE_WALLET_ACCOUNTS(making) {
    const { walletIds, resources } = await walletsOf(making);
    const walletAccountIds: string[] = [];
    for (const walletId of walletIds) {
      const { accounts } = await making.organization.founder.query('list_wallet_accounts', { walletId });
      walletAccountIds.push(...accounts.map((one) => one.walletAccountId));
    }
    return { parameters: { walletAccountIds, deleteWithoutExport: true }, resources };
  },
  async ACTIVITY_TYPE_CREATE_PRIVATE_KEYS_V2() {
    const key = { privateKeyName: 'Made by an example', curve: 'CURVE_SECP256K1' } as const;
    return { parameters: { privateKeys: [{ ...key, privateKeyTags: [], addressFormats: [] }] } };
  },
  async ACTIVITY_TYPE_DELETE_PRIVATE_KEYS({ resources }) {
    const { id } = await resources.privateKey({});
    return { parameters: { privateKeyIds: [id], deleteWithoutExport: true } };
  },
  async ACTIVITY_TYPE_CREATE_PRIVATE_KEY_TAG() {
    return { parameters: { privateKeyTagName: 'Made by an example', privateKeyIds: [] } };
  },
  async ACTIVITY_TYPE_UPDATE_PRIVATE_KEY_TAG(making) {
    const privateKeyTagId = await keyTagIn(making);
    return { parameters: { privateKeyTagId, newPrivateKeyTagName: 'Renamed by an example' } };
  },
  async ACTIVITY_TYPE_DELETE_PRIVATE_KEY_TAGS(making) {
    return { parameters: { privateKeyTagIds: [await keyTagIn(making)] } };
  },
} satisfies Makers;

/** What calls are read by. */
async function upload({ founder }: TrialOrganization, read: TrialInterface): Promise<void> {
  await founder.perform('ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE', { ...read, label: 'Called by an example' });
}

/** The one wallet that an activity is about. */
async function walletOf({ facts, resources }: Making) {
  const { id: walletId, resources: real } = await resources.wallet(recordIn(facts['wallet'], 'wallet'));
  return { walletId, resources: { wallet: real['wallet']! } };
}

/** All wallets that an activity is about. */
async function walletsOf({ facts, resources }: Making) {
  const { wallets = [{}] } = facts;
  if (!Array.isArray(wallets) || wallets.length === 0) throw new NotExecuted('nobody deletes no wallets');
  const made: TrialKey[] = [];
  for (const [index, one] of (wallets as readonly PolicyValue[]).entries())
    made.push(await resources.wallet(recordIn(one, `wallets[${index}]`)));
  return {
    walletIds: made.map(({ id }) => id),
    resources: { wallets: made.map(({ resources: real }) => real['wallet']!) },
  };
}

/** How the bytes of a transaction become what its signature is over. Those of Bitcoin are of one input each. */
const hashOf = {
  eth: 'HASH_FUNCTION_KECCAK256',
  solana: 'HASH_FUNCTION_NOT_APPLICABLE',
  tron: 'HASH_FUNCTION_SHA256',
} as const;

/** The chain whose transaction policies see in a raw payload. */
function transactionIn(facts: Making['facts']): keyof typeof hashOf | undefined {
  return (['eth', 'solana', 'tron'] as const).find((chain) => {
    const root = facts[chain];
    if (root === undefined || root instanceof Doubt) return false;
    const { tx } = recordIn(root, chain);
    return tx !== undefined && !(tx instanceof Doubt) && Object.keys(recordIn(tx, `${chain}.tx`)).length > 0;
  });
}

/** A transaction as a raw payload: the bytes that are hashed and signed. */
async function rawTransactionOf(chain: keyof typeof hashOf, { facts, organization, resources, given: input }: Making) {
  const encoding = 'PAYLOAD_ENCODING_HEXADECIMAL';
  const hashFunction = hashOf[chain];
  if ((input('encoding') ?? encoding) !== encoding || (input('hash_function') ?? hashFunction) !== hashFunction)
    throw new NotExecuted(`nothing here makes a transaction of \`${chain}\` in such a payload`);
  const { address, resources: real } = await resources.keyOf(facts, otherChains[chain]?.account);
  const ofEthereum = () => {
    const { unsignedTransaction, tx, read } = transactionWith(facts['eth']);
    return { unsignedTransaction, tx: { ...tx, from: address }, reads: read === undefined ? [] : [read] };
  };
  const { unsignedTransaction, tx, reads } = chain === 'eth' ? ofEthereum() : transactionOf(chain, facts, address);
  for (const read of reads) await upload(organization, read);
  // On Solana, signatures come first: their number in a byte, and 64 bytes for each.
  const signatures = chain === 'solana' ? 1 + 64 * Number.parseInt(unsignedTransaction.slice(0, 2), 16) : 0;
  const payload = unsignedTransaction.slice(2 * signatures);
  const seen: Readonly<Record<string, PolicyValue>> = { ...noChain, ...real, [chain]: { tx } };
  return { payload, signWith: address, resources: seen, encoding, hashFunction } as const;
}

/** What is signed as it comes, or what describes itself. */
async function payloadOf(making: Making) {
  const { facts, resources, given: input } = making;
  const chain = transactionIn(facts);
  if (chain) return rawTransactionOf(chain, making);
  const requested = recordIn(facts['eth'], 'eth');
  const described = describedBy(requested, input('encoding'));
  const { payload, encoding, hashFunction, chains, account } = described
    ? {
        ...described,
        hashFunction: 'HASH_FUNCTION_NO_OP' as const,
        chains: { eth: described.eth } as Readonly<Record<string, PolicyValue>>,
        account: undefined,
      }
    : plainPayload(making);
  checkMade(requested, chains['eth'], 'eth');
  const { address, resources: real } = await resources.keyOf(facts, account);
  const seen = { ...noChain, ...real, ...chains };
  return { payload, signWith: address, resources: seen, encoding, hashFunction } as const;
}

/** Undefined for what policies cannot look into. */
function describedBy(
  eth: Readonly<Record<string, PolicyValue>>,
  encoding: string | undefined,
): MadePayload | undefined {
  const isThere = (name: string): boolean => eth[name] !== undefined && !(eth[name] instanceof Doubt);
  if (encoding === 'PAYLOAD_ENCODING_EIP712' || (encoding === undefined && isThere('eip_712')))
    return typedDataWith(recordIn(eth['eip_712'], 'eth.eip_712'));
  const name = 'eip_7702_authorization';
  if (encoding === 'PAYLOAD_ENCODING_EIP7702_AUTHORIZATION' || (encoding === undefined && isThere(name)))
    return authorizationWith(recordIn(eth[name], `eth.${name}`));
  return undefined;
}

/** By the key of another chain if nothing of Ethereum is there: what an Ethereum key signs may be the digest of anything. */
function plainPayload({ facts, given: input }: Making) {
  const encoding = input('encoding') ?? 'PAYLOAD_ENCODING_HEXADECIMAL';
  if (encoding !== 'PAYLOAD_ENCODING_HEXADECIMAL' && encoding !== 'PAYLOAD_ENCODING_TEXT_UTF8')
    throw new NotExecuted(`nothing here makes a payload in ${encoding}`);
  const isText = encoding === 'PAYLOAD_ENCODING_TEXT_UTF8';
  const hashFunction = input('hash_function') ?? (isText ? 'HASH_FUNCTION_KECCAK256' : 'HASH_FUNCTION_NO_OP');
  if (!isOneOf(hashFunctions, hashFunction)) throw new NotExecuted(`nothing here makes a payload for ${hashFunction}`);
  const isEdwards = hashFunction === 'HASH_FUNCTION_NOT_APPLICABLE';
  const isOfEthereum = facts['eth'] !== undefined && !isEdwards;
  // 32 bytes in either encoding: what is not hashed must be a digest. Of typed data, hashes are hashed.
  const isHashed = isOfEthereum && hashFunction === 'HASH_FUNCTION_KECCAK256';
  const bytes = isText ? digest.slice(0, 32) : digest;
  const payload = isHashed ? `${isText ? '\x19\x01' : '1901'}${bytes}` : bytes;
  const account = isOfEthereum ? undefined : otherChains[isEdwards ? 'solana' : 'bitcoin']!.account;
  return { payload, encoding, hashFunction, chains: hiddenBy(hashFunction, isOfEthereum), account } as const;
}

/** What policies cannot see of what `plainPayload` signs. */
function hiddenBy(
  hashFunction: (typeof hashFunctions)[number],
  isOfEthereum: boolean,
): Readonly<Record<string, PolicyValue>> {
  const hidden = new Unreadable('the payload holds only hashes');
  const eth = { tx: hidden, eip_712: hidden, eip_7702_authorization: hidden };
  const tx = { tx: hidden };
  switch (hashFunction) {
    case 'HASH_FUNCTION_NO_OP':
      return isOfEthereum ? { eth, tron: tx, bitcoin: tx } : { bitcoin: tx };
    case 'HASH_FUNCTION_SHA256':
      return { bitcoin: tx };
    case 'HASH_FUNCTION_KECCAK256':
      return isOfEthereum ? { eth } : {};
    case 'HASH_FUNCTION_NOT_APPLICABLE':
      return {};
  }
}

const isOneOf = <Name extends string>(names: readonly Name[], name: string): name is Name =>
  names.some((one) => one === name);

async function keyTagIn({ organization: { founder } }: Making): Promise<string> {
  const input = { privateKeyTagName: 'Spare', privateKeyIds: [] };
  return (await founder.perform('ACTIVITY_TYPE_CREATE_PRIVATE_KEY_TAG', input)).privateKeyTagId;
}
