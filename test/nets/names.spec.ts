import { Writable } from 'node:stream';
import { address as bitcoinAddress, networks, Psbt, Transaction as BitcoinTransaction } from 'bitcoinjs-lib';
import fc from 'fast-check';
import { encodeFunctionData, serializeTransaction, type Hex } from 'viem';
import { createCoordinator } from '../../src/app/create-coordinator.js';
import { readConfig } from '../../src/config/config.js';
import { derivedId } from '../../src/ledger/ids.js';
import { NoDelivery } from '../delivery/no-delivery.js';
import { organizationStream, type OrganizationEvent } from '../../src/domain/organization/organization.js';
import { chainEvent, GENESIS_HASH } from '../../src/ledger/chain.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { createLogger } from '../../src/logging/logger.js';
import { projectInMemory } from '../../src/read-models/projecting.js';
import {
  ApiError,
  ManualClock,
  SeededRandomness,
  startCoordinator,
  type StampingClient,
  type TestCoordinator,
  type TestUser,
} from '../../src/testing/index.js';
import { LocalKeyEncryption } from '../../src/vault/key-encryption.js';
import { until } from '../e2e/until.js';
import { isLong } from '../long.js';

/*
 * What policies name: texts that they compare with, tags and interfaces that they read by, and the addresses of one key. A
 * name that nothing can have is refused when it is written, one that a DENY needs cannot be taken away under it, and a key
 * has no name by which a policy says less of it (security rule R1).
 */

const seed = Number(process.env['SEED'] ?? 49);

let coordinator: TestCoordinator;
let signer: TestUser;
let count = 0;
const next = (what: string) => `${what} ${(count += 1)}`;

const tried = new Map<string, number>();
const note = (what: string) => tried.set(what, (tried.get(what) ?? 0) + 1);

beforeAll(async () => {
  coordinator = await startCoordinator({ seed: 'names' });
  signer = await coordinator.createUser('Signer');
  await coordinator.createPolicy({
    policyName: 'signs anything',
    condition: "activity.action == 'SIGN'",
    consensus: `approvers.any(user, user.id == '${signer.userId}')`,
  });
});

afterAll(async () => {
  await coordinator.close();
  process.stdout.write(`names, seed ${seed}:\n${[...tried].map(([what, times]) => `  ${what}: ${times}\n`).join('')}`);
});

async function done<Result>(type: string, parameters: object, client: StampingClient = coordinator.client) {
  coordinator.clock.advance(1);
  const { result } = await client.submit(`ACTIVITY_TYPE_${type}`, parameters);
  return Object.values(result)[0] as Result;
}

/** The status of an answer, and what a refusal says. */
async function answerTo(attempt: Promise<unknown>): Promise<{ readonly status: number; readonly message: string }> {
  try {
    await attempt;
    return { status: 200, message: '' };
  } catch (error) {
    if (error instanceof ApiError) return { status: error.status, message: error.body.message };
    throw error;
  }
}

const newUserTag = async (userIds: readonly string[] = []) =>
  (await done<{ userTagId: string }>('CREATE_USER_TAG', { userTagName: next('tag'), userIds })).userTagId;
const newKeyTag = async (privateKeyIds: readonly string[] = []) =>
  (
    await done<{ privateKeyTagId: string }>('CREATE_PRIVATE_KEY_TAG', {
      privateKeyTagName: next('key tag'),
      privateKeyIds,
    })
  ).privateKeyTagId;
const newPrivateKey = async (addressFormats: readonly string[]) => {
  const privateKeys = [
    { privateKeyName: next('key'), curve: 'CURVE_SECP256K1', privateKeyTags: [], addressFormats },
  ] as const;
  const made = await done<{ privateKeys: { privateKeyId: string; addresses: { address: string }[] }[] }>(
    'CREATE_PRIVATE_KEYS_V2',
    { privateKeys },
  );
  return made.privateKeys[0]!;
};
const account = (path: string, format: string) => ({
  curve: 'CURVE_SECP256K1',
  pathFormat: 'PATH_FORMAT_BIP32',
  path,
  addressFormat: `ADDRESS_FORMAT_${format}`,
});

interface Place {
  readonly clause: 'condition' | 'consensus';
  /** The whole clause, around what is said of `field`. */
  readonly within: (said: string) => string;
  readonly field: string;
  /** A list of texts, and not one text. */
  readonly isList?: true;
}

/** Where a literal may stand, by what it names: words of the language, or things of the organization. */
const places: readonly (Place & { readonly names: string })[] = [
  ...['type', 'kind', 'resource', 'action', 'params.encoding', 'params.hash_function'].map(
    (
      field,
    ): Place & {
      readonly names: string;
    } => ({ names: `activity.${field}`, clause: 'condition', within: (said) => said, field: `activity.${field}` }),
  ),
  { names: 'eth.tx.type', clause: 'condition', within: (said) => said, field: 'eth.tx.type' },
  { names: 'bitcoin.tx.locktime.type', clause: 'condition', within: (said) => said, field: 'bitcoin.tx.locktime.type' },
  {
    names: 'credential type',
    clause: 'consensus',
    within: (said) => `credentials.any(one, ${said})`,
    field: 'one.type',
  },
  { names: 'user', clause: 'condition', within: (said) => said, field: 'requester.id' },
  { names: 'user', clause: 'consensus', within: (said) => `approvers.all(user, ${said})`, field: 'user.id' },
  {
    names: 'user',
    clause: 'consensus',
    within: (said) => `credentials.filter(one, ${said}).count() > 1`,
    field: 'one.user_id',
  },
  { names: 'user tag', clause: 'condition', within: (said) => said, field: 'requester.tags', isList: true },
  {
    names: 'user tag',
    clause: 'consensus',
    within: (said) => `approvers.filter(user, ${said}).count() >= 2`,
    field: 'user.tags',
    isList: true,
  },
  { names: 'user tag', clause: 'consensus', within: (said) => said, field: 'approvers[0].tags', isList: true },
  { names: 'wallet', clause: 'condition', within: (said) => said, field: 'wallet.id' },
  { names: 'wallet', clause: 'condition', within: (said) => `wallets.any(one, ${said})`, field: 'one.id' },
  { names: 'private key', clause: 'condition', within: (said) => said, field: 'private_key.id' },
  { names: 'private key tag', clause: 'condition', within: (said) => said, field: 'private_key.tags', isList: true },
];

/** Ways to compare a text with a literal; `other` is one that is known. */
const comparisons: readonly ((field: string, literal: string, other: string) => string)[] = [
  (field, literal) => `${field} == '${literal}'`,
  (field, literal) => `'${literal}' == ${field}`,
  (field, literal) => `${field} != '${literal}'`,
  (field, literal) => `!(${field} == '${literal}')`,
  (field, literal, other) => `${field} in ['${other}', '${literal}']`,
  (field, literal, other) => `['${literal}', '${other}'].contains(${field})`,
  (field, literal, other) => `${field} == '${other}' || ${field} == '${literal}'`,
  (field, literal, other) => `!(${field} != '${other}' && ['${literal}'].contains(${field}))`,
];

/** Ways to look for a literal in a list. */
const searches: readonly ((field: string, literal: string, other: string) => string)[] = [
  (field, literal) => `${field}.contains('${literal}')`,
  (field, literal) => `'${literal}' in ${field}`,
  (field, literal) => `!${field}.contains('${literal}')`,
  (field, literal) => `${field}.any(text, text == '${literal}')`,
  (field, literal) => `!${field}.all(text, '${literal}' != text)`,
  (field, literal, other) => `${field}.filter(text, text in ['${other}', '${literal}']).count() > 0`,
  (field, literal) => `${field}[0] == '${literal}'`,
  (field, literal) => `${field}.filter(text, text == '${literal}')[0..1].contains('${literal}')`,
];

interface Named {
  readonly good: readonly [string, ...string[]];
  /** Texts that a request cannot have there. */
  readonly bad: readonly [string, ...string[]];
}

/** Words of the language, each with one letter wrong. */
function words(...good: [string, ...string[]]): Named {
  const bad = good.flatMap((word) => [
    `${word.slice(0, -1)}${word.at(-1)}${word.at(-1)}Z`,
    word.charAt(1) + word.charAt(0) + word.slice(2),
    word === word.toLowerCase() ? word.toUpperCase() : word.toLowerCase(),
  ]);
  return { good, bad: bad as [string, ...string[]] };
}

/** Things of the organization: what has no such id, the name of one in place of its id, and an id in capitals. */
function things(id: string, name: string, other: string): Named {
  return { good: [id, other], bad: [derivedId('nothing', id), name, id.toUpperCase()] };
}

async function vocabulary(): Promise<Readonly<Record<string, Named>>> {
  const { client, root } = coordinator;
  const { privateKeyId } = await newPrivateKey([]);
  const other = await newPrivateKey([]);
  const wallet = async () =>
    (await done<{ walletId: string }>('CREATE_WALLET', { walletName: next('wallet'), accounts: [] })).walletId;
  const [walletId, otherWallet] = [await wallet(), await wallet()];
  const [userTag, otherTag, keyTag, otherKeyTag] = [
    await newUserTag(),
    await newUserTag(),
    await newKeyTag(),
    await newKeyTag(),
  ];
  const nameOf = async (query: string, list: string, idOf: string, id: string, name: string) => {
    const { [list]: all } = await client.query<Readonly<Record<string, readonly Record<string, string>[]>>>(query);
    return all!.find((one) => one[idOf] === id)![name]!;
  };
  return {
    'activity.type': words('ACTIVITY_TYPE_CREATE_WALLET', 'ACTIVITY_TYPE_SIGN_TRANSACTION_V2'),
    'activity.kind': words('CREATE_WALLET', 'SIGN_TRANSACTION'),
    'activity.resource': words('WALLET', 'POLICY'),
    'activity.action': words('CREATE', 'SIGN'),
    'activity.params.encoding': words('PAYLOAD_ENCODING_EIP712', 'PAYLOAD_ENCODING_HEXADECIMAL'),
    'activity.params.hash_function': words('HASH_FUNCTION_NO_OP', 'HASH_FUNCTION_SHA256'),
    'eth.tx.type': words('LEGACY', 'TYPE_2'),
    'bitcoin.tx.locktime.type': words('Seconds', 'Blocks'),
    'credential type': words('CREDENTIAL_TYPE_API_KEY_P256', 'CREDENTIAL_TYPE_WEBAUTHN_AUTHENTICATOR'),
    user: things(signer.userId, 'Signer', root.userId),
    'user tag': things(userTag, await nameOf('list_user_tags', 'userTags', 'tagId', userTag, 'tagName'), otherTag),
    wallet: things(walletId, await nameOf('list_wallets', 'wallets', 'walletId', walletId, 'walletName'), otherWallet),
    'private key': things(
      privateKeyId,
      await nameOf('list_private_keys', 'privateKeys', 'privateKeyId', privateKeyId, 'privateKeyName'),
      other.privateKeyId,
    ),
    'private key tag': things(
      keyTag,
      await nameOf('list_private_key_tags', 'privateKeyTags', 'tagId', keyTag, 'tagName'),
      otherKeyTag,
    ),
  };
}

interface Clauses {
  readonly condition?: string;
  readonly consensus?: string;
}

const effects = ['EFFECT_ALLOW', 'EFFECT_DENY'] as const;

/** A clause with a literal somewhere in it. */
const saying = fc.constantFrom(...places).chain((place) =>
  fc.record({
    place: fc.constant(place),
    say: fc.constantFrom(...(place.isList ? searches : comparisons)),
    which: fc.nat(5),
    effect: fc.constantFrom(...effects),
    verb: fc.constantFrom('create_policy', 'create_policies', 'update_policy'),
  }),
);

test('a policy is written when all that it compares with can be, and refused for each text that cannot', async () => {
  const known = await vocabulary();
  const { client } = coordinator;
  const policyId = await coordinator.createPolicy({ policyName: 'to be changed', condition: 'true' });
  const write = (verb: string, effect: string, clauses: Clauses) => {
    coordinator.clock.advance(1);
    const policy = { policyName: next('policy'), effect, notes: '', ...clauses };
    switch (verb) {
      case 'create_policy':
        return client.submit('ACTIVITY_TYPE_CREATE_POLICY_V3', policy);
      case 'create_policies': {
        const good = { policyName: next('policy'), effect, notes: '', condition: "activity.resource == 'WALLET'" };
        return client.submit('ACTIVITY_TYPE_CREATE_POLICIES', { policies: [good, policy] });
      }
      default: {
        const { condition, consensus } = clauses;
        return client.submit('ACTIVITY_TYPE_UPDATE_POLICY_V2', {
          policyId,
          policyEffect: effect,
          ...(condition === undefined ? {} : { policyCondition: condition }),
          ...(consensus === undefined ? {} : { policyConsensus: consensus }),
        });
      }
    }
  };
  const seen = new Set<string>();
  for (const { place, say, which, effect, verb } of fc.sample(saying, { numRuns: isLong ? 3_000 : 100, seed })) {
    const { good, bad } = known[place.names]!;
    const other = good.at(-1)!;
    for (const literal of [good[which % good.length]!, bad[which % bad.length]!]) {
      const clauses = { [place.clause]: place.within(say(place.field, literal, other)) };
      const { status, message } = await answerTo(write(verb, effect, clauses));
      const isKnown = good.includes(literal);
      expect([clauses, verb, status, message.includes(`unknown`) && message.includes(`\`${literal}\``)]).toEqual([
        clauses,
        verb,
        isKnown ? 200 : 400,
        !isKnown,
      ]);
      note(`a literal that ${isKnown ? 'can' : 'cannot'} be: ${status}`);
    }
    seen.add(place.names);
    const { policies } = await client.query<{ policies: { policyId: string; policyName: string }[] }>('list_policies');
    const policyIds = policies.filter(({ policyName }) => /^policy \d/.test(policyName)).map((one) => one.policyId);
    if (policyIds.length > 0) await done('DELETE_POLICIES', { policyIds });
  }
  expect(seen.size).toBe(new Set(places.map(({ names }) => names)).size);
  await done('DELETE_POLICY', { policyId });
}, 300_000);

/** What a DENY can read by, which somebody may delete. */
interface Deletable {
  readonly what: string;
  /** Makes it; what it is named by, how it is deleted, and a request that only a DENY which reads by it denies. */
  make(isOther?: boolean): Promise<{ readonly id: string; remove(): Promise<unknown>; request(): Promise<unknown> }>;
  /** Clauses that deny that request by it; `other` is another of its kind. */
  readonly denials: readonly ((id: string, other: string) => Clauses)[];
}

const transfer = [
  {
    type: 'function',
    name: 'transfer',
    stateMutability: 'nonpayable',
    inputs: [
      { name: 'to', type: 'address' },
      { name: 'wad', type: 'uint256' },
    ],
    outputs: [],
  },
] as const;

const signingDigest = (by: StampingClient, signWith: string) => {
  coordinator.clock.advance(1);
  return by.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', {
    signWith,
    payload: 'ab'.repeat(32),
    encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
    hashFunction: 'HASH_FUNCTION_NO_OP',
  });
};

const inTags = (field: string, clause: 'condition' | 'consensus', within = (said: string) => said) =>
  searches
    // Those that are true of what carries the tag.
    .filter((_search, at) => at !== 2)
    .map((search) => (id: string, other: string): Clauses => ({ [clause]: within(search(field, id, other)) }));

const deletables: readonly Deletable[] = [
  {
    what: 'a user tag',
    async make(isOther = false) {
      const { privateKeyId } = await newPrivateKey([]);
      const id = await newUserTag(isOther ? [] : [signer.userId]);
      return {
        id,
        remove: () => done('DELETE_USER_TAGS', { userTagIds: [id] }),
        request: () => signingDigest(signer.client, privateKeyId),
      };
    },
    denials: [
      ...inTags('requester.tags', 'condition'),
      ...inTags('user.tags', 'consensus', (said) => `approvers.any(user, ${said})`),
    ],
  },
  {
    what: 'a private key tag',
    async make() {
      const { privateKeyId } = await newPrivateKey([]);
      const id = await newKeyTag([privateKeyId]);
      return {
        id,
        remove: () => done('DELETE_PRIVATE_KEY_TAGS', { privateKeyTagIds: [id] }),
        request: () => signingDigest(signer.client, privateKeyId),
      };
    },
    denials: inTags('private_key.tags', 'condition'),
  },
  {
    what: 'the interface of a contract',
    async make() {
      const id: Hex = `0x${derivedId('contract', next('contract')).replaceAll('-', '').padEnd(40, 'a')}`;
      const { addresses } = await newPrivateKey(['ADDRESS_FORMAT_ETHEREUM']);
      const { smartContractInterfaceId } = await done<{ smartContractInterfaceId: string }>(
        'CREATE_SMART_CONTRACT_INTERFACE',
        {
          smartContractAddress: id,
          smartContractInterface: JSON.stringify(transfer),
          type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
          label: id,
        },
      );
      const data = encodeFunctionData({ abi: transfer, functionName: 'transfer', args: [id, 9n] });
      return {
        id,
        remove: () => done('DELETE_SMART_CONTRACT_INTERFACE', { smartContractInterfaceId }),
        request: () => {
          coordinator.clock.advance(1);
          return signer.client.submit('ACTIVITY_TYPE_SIGN_TRANSACTION_V2', {
            signWith: addresses[0]!.address,
            type: 'TRANSACTION_TYPE_ETHEREUM',
            unsignedTransaction: serializeTransaction({ type: 'legacy', chainId: 1, to: id, data }),
          });
        },
      };
    },
    denials: ["eth.tx.function_name == 'transfer'", "eth.tx.contract_call_args['wad'] > 5"].flatMap((read) =>
      [
        () => read,
        (id: string) => `eth.tx.to == '${id}' && ${read}`,
        (id: string) => `${read} && '0x${id.slice(2).toUpperCase()}' == eth.tx.to`,
        (id: string, other: string) => `eth.tx.to in ['${other}', '${id}'] && ${read}`,
        (_id: string, other: string) => `eth.tx.to != '${other}' && ${read}`,
        (_id: string, other: string) => `!(eth.tx.to == '${other}') && ${read}`,
        (_id: string, other: string) => `!(eth.tx.to in ['${other}']) && ${read}`,
        (_id: string, other: string) => `eth.tx.to == '${other}' && eth.tx.value > 5 || ${read}`,
        (_id: string, other: string) => `!['${other}'].contains(eth.tx.to) && (eth.tx.value > 5 || ${read})`,
      ].map((condition) => (id: string, other: string): Clauses => ({ condition: condition(id, other) })),
    ),
  },
];

test('what a DENY reads by cannot be deleted under it, however the DENY says it', async () => {
  for (const { what, make, denials } of deletables) {
    const other = await make(true);
    for (const denial of denials.filter((_one, at) => isLong || at % 2 === 0)) {
      const one = await make();
      const clauses = denial(one.id, other.id);
      expect([clauses, (await answerTo(one.request())).status]).toEqual([clauses, 200]);
      const policyId = await coordinator.createPolicy({ policyName: next('deny'), effect: 'EFFECT_DENY', ...clauses });
      expect([clauses, (await answerTo(one.request())).status]).toEqual([clauses, 403]);
      const { status, message } = await answerTo(one.remove());
      // Whatever becomes of it, what was denied is denied.
      expect([clauses, status, (await answerTo(one.request())).status]).toEqual([clauses, 400, 403]);
      expect(message).toContain(`policy \`${policyId}\``);
      await done('DELETE_POLICY', { policyId });
      expect((await answerTo(one.remove())).status).toBe(200);
      note(`a DENY by ${what} that somebody deletes: refused`);
    }
    // An ALLOW allows less without it, which is nobody's loss.
    const one = await make();
    const clauses = denials[0]!(one.id, other.id);
    const policyId = await coordinator.createPolicy({ policyName: next('allow'), ...clauses });
    expect((await answerTo(one.remove())).status).toBe(200);
    await done('DELETE_POLICY', { policyId });
    note(`an ALLOW by ${what} that somebody deletes: done`);
  }
}, 300_000);

test('the interface of a contract that a DENY is not about can be deleted', async () => {
  const { make } = deletables.at(-1)!;
  const about = await make();
  const read = "eth.tx.function_name == 'transfer'";
  for (const condition of [
    `eth.tx.to == '${about.id}' && ${read}`,
    `${read} && eth.tx.to in ['${about.id}']`,
    `(eth.tx.to == '${about.id}' || '${about.id}' == eth.tx.to) && (eth.tx.value > 5 || ${read})`,
  ]) {
    const policyId = await coordinator.createPolicy({ policyName: next('deny'), effect: 'EFFECT_DENY', condition });
    expect([condition, (await answerTo((await make()).remove())).status]).toEqual([condition, 200]);
    await done('DELETE_POLICY', { policyId });
  }
});

describe('a key under several names', () => {
  const bitcoin = {
    MAINNET: networks.bitcoin,
    TESTNET: networks.testnet,
    REGTEST: networks.regtest,
  } as const;
  type Network = keyof typeof bitcoin;
  const payee = bitcoinAddress.toOutputScript('bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4', networks.bitcoin);
  const payeeOn = (network: Network) => bitcoinAddress.fromOutputScript(payee, bitcoin[network]);
  const format = (network: Network) => `BITCOIN_${network}_P2WPKH`;

  /** Pays to the payee with a coin of the key; the bytes are the same on every network. */
  function psbt(own: string): string {
    const [prefix = ''] = own.split('1');
    const network = Object.values(bitcoin).find(({ bech32 }) => bech32 === prefix)!;
    const previous = new BitcoinTransaction();
    previous.addInput(new Uint8Array(32).fill(1), 0);
    previous.addOutput(bitcoinAddress.toOutputScript(own, network), 10_000n);
    return new Psbt()
      .addInput({ hash: previous.getId(), index: 0, nonWitnessUtxo: previous.toBuffer() })
      .addOutput({ script: payee, value: 9_000n })
      .toHex();
  }

  const named: readonly (readonly [Network, ...Network[]])[] = [
    ['MAINNET'],
    ['TESTNET'],
    ['MAINNET', 'TESTNET'],
    ['REGTEST', 'MAINNET'],
    ['REGTEST', 'TESTNET', 'MAINNET'],
  ];

  /** Keys with these names, as accounts of a wallet or as a private key. */
  async function keysWith(formats: readonly Network[]): Promise<readonly (readonly string[])[]> {
    const path = `m/84'/0'/0'/0/${(count += 1)}`;
    const { addresses } = await done<{ addresses: string[] }>('CREATE_WALLET', {
      walletName: next('wallet'),
      accounts: [...formats.map((one) => account(path, format(one))), account(path, 'COMPRESSED')],
    });
    const made = await newPrivateKey(formats.map((one) => `ADDRESS_FORMAT_${format(one)}`));
    return [addresses, [...made.addresses.map(({ address }) => address), made.privateKeyId]];
  }

  test('is denied and allowed the same by each of them', async () => {
    for (const formats of named) {
      for (const names of await keysWith(formats)) {
        const pay = async (by: StampingClient, signWith: string) => {
          coordinator.clock.advance(1);
          const unsignedTransaction = psbt(names[0]!);
          const parameters = { signWith, type: 'TRANSACTION_TYPE_BITCOIN', unsignedTransaction };
          return (await answerTo(by.submit('ACTIVITY_TYPE_SIGN_TRANSACTION_V2', parameters))).status;
        };
        const all = async (by: StampingClient) => {
          const statuses: number[] = [];
          for (const name of names) statuses.push(await pay(by, name));
          return [...new Set(statuses)];
        };
        expect([formats, await all(signer.client)]).toEqual([formats, [200]]);
        for (const network of Object.keys(bitcoin) as Network[]) {
          const condition = `bitcoin.tx.outputs.any(o, o.address == '${payeeOn(network)}')`;
          const effect = 'EFFECT_DENY';
          const denial = await coordinator.createPolicy({ policyName: next('deny'), effect, condition });
          expect([formats, 'denied on', network, await all(signer.client)]).toEqual([
            formats,
            'denied on',
            network,
            [403],
          ]);
          await done('DELETE_POLICY', { policyId: denial });
          const somebody = await coordinator.createUser(next('Somebody'));
          const allow = await coordinator.createPolicy({
            policyName: next('allow'),
            condition: `bitcoin.tx.outputs.all(o, o.address == '${payeeOn(network)}')`,
            consensus: `approvers.any(user, user.id == '${somebody.userId}')`,
          });
          // As good on mainnet as anywhere, so it is mainnet's for a key that has a name there.
          const isAllowed = formats.includes('MAINNET') ? network === 'MAINNET' : network === formats[0];
          expect([formats, 'allowed on', network, await all(somebody.client)]).toEqual([
            formats,
            'allowed on',
            network,
            [isAllowed ? 200 : 403],
          ]);
          await done('DELETE_POLICY', { policyId: allow });
          note(`a key with ${names.length} names, under a DENY and an ALLOW of a network: the same by each`);
        }
      }
    }
  }, 300_000);
});

test('a start tells of each stored policy that compares with what nothing can be', async () => {
  const store = new InMemoryEventStore();
  const organizationId = derivedId('organization', 'old');
  const stream = organizationStream(organizationId);
  const known = await vocabulary();
  // Ids may have been there; words never were.
  const silent = places.flatMap((place) =>
    known[place.names]!.good.some((one) => /^[0-9a-f]{8}-/.test(one))
      ? []
      : (place.isList ? searches : comparisons).map((say, at) => {
          const { good, bad } = known[place.names]!;
          const literal = bad[at % bad.length]!;
          const policyId = derivedId('policy', `${place.names} ${at}`);
          return { policyId, literal, clauses: { [place.clause]: place.within(say(place.field, literal, good[0])) } };
        }),
  );
  const facts: readonly OrganizationEvent[] = [
    { type: 'OrganizationCreated', data: { organizationId, name: 'Old' } },
    ...silent.map(({ policyId, clauses }): OrganizationEvent => ({
      type: 'PolicyCreated',
      data: { policyId, policyName: policyId, effect: 'EFFECT_DENY', notes: '', ...clauses },
    })),
  ];
  let hash = GENESIS_HASH;
  const events = facts.map(({ type, data }, revision) => {
    const id = derivedId(stream, String(revision));
    const metadata = { at: 0, schemaVersion: 1, $correlationId: organizationId, $causationId: id };
    hash = chainEvent(hash, { stream, revision, id, type, data, metadata });
    return { id, type, data, metadata: { ...metadata, hash } };
  });
  await store.append(stream, events, 'no-stream');
  const lines: string[] = [];
  const log = new Writable({
    write(chunk: Buffer, _encoding, written) {
      lines.push(...chunk.toString().trim().split('\n'));
      written();
    },
  });
  const randomness = new SeededRandomness('old');
  const old = await createCoordinator(readConfig({ PORT: '0' }), {
    store,
    projecting: projectInMemory(),
    clock: new ManualClock(Date.UTC(2026, 0, 1)),
    randomness,
    delivery: new NoDelivery(),
    keyEncryption: new LocalKeyEncryption([randomness.bytes(32)], randomness),
    logger: createLogger('warn', log),
  });
  try {
    const told = () =>
      lines
        .map((line) => JSON.parse(line) as { msg?: string; policyId?: string; mistake?: string })
        .filter(({ mistake }) => mistake !== undefined);
    const missing = () =>
      silent.filter(
        ({ policyId, literal }) =>
          !told().some((one) => one.policyId === policyId && one.mistake!.includes(`\`${literal}\``)),
      );
    await until('all are told', () => missing().length === 0);
    note(`stored policies that a start tells of: ${silent.length}`);
  } finally {
    await old.close();
  }
});
