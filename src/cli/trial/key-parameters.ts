import { notApplicable, type PolicyValue } from '../../domain/policy/types.js';
import { NotExecuted, recordIn, refuseOthers } from './trial-facts.js';
import { newKey } from './trial-organization.js';
import type { Makers, Making } from './trial-parameters.js';
import { ethereum, type TrialKey } from './trial-resources.js';
import { transactionWith } from './trial-transaction.js';

const digest = 'ab'.repeat(32);
const account = { ...ethereum, path: "m/44'/60'/0'/0/1" };
const target = (): { targetPublicKey: string } => ({ targetPublicKey: newKey().publicKey });
const otherChains = ['solana', 'bitcoin', 'tron'] as const;

/** What uses, makes, changes and exports wallets and private keys. */
export const keyParameters: Makers = {
  async ACTIVITY_TYPE_SIGN_TRANSACTION_V2({ facts, resources }) {
    for (const chain of otherChains) {
      // Without facts, policies do not read it: it may be any chain.
      if (Object.keys(recordIn(facts[chain], chain)).length > 0)
        throw new NotExecuted(`nothing here makes a transaction of ${chain} with given values`);
    }
    const { unsignedTransaction, tx } = transactionWith(facts['eth']);
    const { address, resources: real } = await resources.keyOf(facts);
    const parameters = { signWith: address, type: 'TRANSACTION_TYPE_ETHEREUM', unsignedTransaction } as const;
    const chains = Object.fromEntries(otherChains.map((chain) => [chain, notApplicable]));
    return { parameters, resources: { ...real, ...chains, eth: { tx: { ...tx, from: address } } } };
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
  async ACTIVITY_TYPE_DELETE_WALLETS({ facts, resources }) {
    const { wallets = [{}] } = facts;
    if (!Array.isArray(wallets) || wallets.length === 0) throw new NotExecuted('nobody deletes no wallets');
    const made: TrialKey[] = [];
    for (const [index, one] of (wallets as readonly PolicyValue[]).entries())
      made.push(await resources.wallet(recordIn(one, `wallets[${index}]`)));
    return {
      parameters: { walletIds: made.map(({ id }) => id), deleteWithoutExport: true },
      resources: { wallets: made.map(({ resources: real }) => real['wallet']!) },
    };
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
};

/** The one wallet that an activity is about. */
async function walletOf({ facts, resources }: Making) {
  const { id: walletId, resources: real } = await resources.wallet(recordIn(facts['wallet'], 'wallet'));
  return { walletId, resources: { wallet: real['wallet']! } };
}

/** What is signed as it comes. */
async function payloadOf({ facts, resources, given }: Making) {
  const eth = recordIn(facts['eth'], 'eth');
  for (const [name, value] of Object.entries(eth)) refuseOthers(recordIn(value, `eth.${name}`), `eth.${name}`, []);
  const encoding = given('encoding') ?? 'PAYLOAD_ENCODING_HEXADECIMAL';
  if (encoding !== 'PAYLOAD_ENCODING_HEXADECIMAL' && encoding !== 'PAYLOAD_ENCODING_TEXT_UTF8')
    throw new NotExecuted(`nothing here makes a payload in ${encoding}`);
  const isText = encoding === 'PAYLOAD_ENCODING_TEXT_UTF8';
  const hashFunction = given('hash_function') ?? (isText ? 'HASH_FUNCTION_KECCAK256' : 'HASH_FUNCTION_NO_OP');
  const isHashed = hashFunction === 'HASH_FUNCTION_SHA256' || hashFunction === 'HASH_FUNCTION_KECCAK256';
  if (!isHashed && hashFunction !== 'HASH_FUNCTION_NO_OP')
    throw new NotExecuted(`nothing here makes a payload for ${hashFunction}`);
  const { address, resources: real } = await resources.keyOf(facts);
  // 32 bytes in either encoding: what is not hashed must be a digest.
  const payload = isText ? digest.slice(0, 32) : digest;
  return { payload, signWith: address, resources: real, encoding, hashFunction } as const;
}

async function keyTagIn({ organization: { founder } }: Making): Promise<string> {
  const given = { privateKeyTagName: 'Spare', privateKeyIds: [] };
  return (await founder.perform('ACTIVITY_TYPE_CREATE_PRIVATE_KEY_TAG', given)).privateKeyTagId;
}
