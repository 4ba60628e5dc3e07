import { readFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { encryptOauth2ClientSecret } from '@turnkey/crypto';
import fc from 'fast-check';
import { ApiError, ports, startCoordinator, type TestCoordinator, type TestUser } from '../../src/testing/index.js';
import { clientSecret, IdentityProvider } from '../e2e/identity-provider.js';
import { discoveryKeys } from '../e2e/login-world.js';
import { furnish, sampleSettings, submitSamples } from '../e2e/samples.js';
import { until } from '../e2e/until.js';
import { WebhookReceiver } from '../e2e/webhook-receiver.js';
import { alwaysReadable, contract, contractInterface, doubtful, type Addresses } from './unreadable-members.js';
import { isLong } from '../long.js';

/*
 * Whatever cannot be read or does not work, nothing is allowed that was not allowed before (security rule R1). The same
 * requests are made twice under the same policies, with and without a doubt; the outcome with it may only be worse.
 */

/** Sets of policies tried; `LONG=1` tries many. */
const sets = isLong ? 400 : 12;
const seed = Number(process.env['SEED'] ?? 11);

let coordinator: TestCoordinator;
let alice: TestUser;
let bob: TestUser;
/** Like Alice, but that it has no address to read. */
let nameless: TestUser;
let address: string;
let policyNumber = 0;

beforeAll(async () => {
  coordinator = await startCoordinator({ seed: 'fail closed' });
  alice = await coordinator.createUser('Asker', { userEmail: 'alice@example.com' });
  nameless = await coordinator.createUser('Asker without an address');
  bob = await coordinator.createUser('Bob');
  ({
    addresses: [address],
  } = await newWallet('Treasury'));
});

afterAll(() => coordinator.close());

async function newWallet(walletName: string) {
  const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_WALLET', {
    walletName,
    accounts: [
      {
        curve: 'CURVE_SECP256K1',
        pathFormat: 'PATH_FORMAT_BIP32',
        path: "m/44'/60'/0'/0/0",
        addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
      },
    ],
  });
  return result['createWalletResult'] as { walletId: string; addresses: [string] };
}

interface Clauses {
  readonly effect: 'EFFECT_ALLOW' | 'EFFECT_DENY';
  readonly condition: string;
  readonly consensus?: string;
}

/** Does something while exactly these policies are there, beside the built-in one. */
async function under<T>(policies: readonly Clauses[], act: () => Promise<T>, where = coordinator): Promise<T> {
  const { result } = await where.client.submit('ACTIVITY_TYPE_CREATE_POLICIES', {
    policies: policies.map((clauses) => ({ policyName: `policy ${(policyNumber += 1)}`, notes: '', ...clauses })),
  });
  const { policyIds } = result['createPoliciesResult'] as { policyIds: string[] };
  try {
    return await act();
  } finally {
    await where.client.submit('ACTIVITY_TYPE_DELETE_POLICIES', { policyIds });
  }
}

/** From the best to the worst. One that failed after it was allowed was allowed. */
const outcomes = ['allowed', 'waits', 'denied'] as const;
type Outcome = (typeof outcomes)[number];
interface Answer {
  readonly outcome: Outcome;
  readonly fingerprint: string;
}
const isNoBetter = (one: Outcome, than: Outcome) => outcomes.indexOf(one) >= outcomes.indexOf(than);

async function outcomeOf(attempt: Promise<{ status: string; fingerprint: string }>): Promise<Answer> {
  try {
    const { status, fingerprint } = await attempt;
    return { outcome: status === 'ACTIVITY_STATUS_CONSENSUS_NEEDED' ? 'waits' : 'allowed', fingerprint };
  } catch (error) {
    if (error instanceof ApiError) return { outcome: 'denied', fingerprint: '' };
    throw error;
  }
}

/** What a request to sign says; an undefined member is left out. */
interface Order {
  readonly chainId?: number | undefined;
  readonly verifyingContract?: string | undefined;
  readonly amount: number | string;
  readonly items: readonly number[];
}

function typedData({ amount, items, ...domain }: Order): string {
  const types = { chainId: 'uint256', verifyingContract: 'address' };
  const present = Object.entries(domain).filter(([, value]) => value !== undefined);
  return JSON.stringify({
    types: {
      EIP712Domain: present.map(([name]) => ({ name, type: types[name as keyof typeof types] })),
      Order: [
        { name: 'amount', type: typeof amount === 'string' ? 'string' : 'uint256' },
        { name: 'items', type: 'uint256[]' },
      ],
    },
    primaryType: 'Order',
    domain: Object.fromEntries(present),
    message: { amount, items },
  });
}

interface Asked {
  readonly by?: TestUser;
  readonly payloads: readonly string[];
  readonly encoding?: string;
}

let nonce = 0;
const sign = ({ by = alice, payloads, encoding = 'EIP712' }: Asked) => {
  // No two bodies are alike, or the second would be answered like the first.
  coordinator.clock.advance(1);
  nonce += 1;
  return by.client.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOADS', {
    signWith: address,
    payloads: [...payloads],
    encoding: `PAYLOAD_ENCODING_${encoding}`,
    hashFunction: 'HASH_FUNCTION_NO_OP',
  });
};

/** Ways in which something that policies read of an order is there and cannot be read. */
const doubts: Readonly<Record<string, (order: Order) => Asked>> = {
  'no chain id': (order) => ({ payloads: [typedData({ ...order, chainId: undefined })] }),
  'no contract': (order) => ({ payloads: [typedData({ ...order, verifyingContract: undefined })] }),
  'an amount of another type': (order) => ({ payloads: [typedData({ ...order, amount: 'much' })] }),
  'a list beyond the budget of steps': (order) => ({
    payloads: [typedData({ ...order, items: [...Array.from({ length: 35_000 }, () => 1), ...order.items] })],
  }),
  'one payload of several': (order) => ({
    payloads: [typedData(order), typedData({ ...order, verifyingContract: undefined })],
  }),
  'beside a payload that says otherwise': (order) => ({
    payloads: [
      typedData({ chainId: order.chainId === 1 ? 5 : 1, verifyingContract: good, amount: 5, items: [1] }),
      typedData(order),
    ],
  }),
  'sent as a digest': () => ({ payloads: [(nonce + 2 ** 20).toString(16).padStart(64, '0')], encoding: 'HEXADECIMAL' }),
  'a requester without an address': (order) => ({ by: nameless, payloads: [typedData(order)] }),
};

const good = `0x${'11'.repeat(20)}`;
const evil = `0x${'ee'.repeat(20)}`;
const signing = "activity.action == 'SIGN'";

const order: fc.Arbitrary<Order> = fc.record({
  chainId: fc.constantFrom(1, 5),
  verifyingContract: fc.constantFrom(good, evil),
  amount: fc.constantFrom(5, 5_000),
  items: fc.constantFrom([1], [1, 666]),
});

/** Everything that policies can read of a request to sign an order, or to change a wallet. */
const atoms = {
  order: [
    'eth.eip_712.domain.chain_id == 1',
    `eth.eip_712.domain.verifying_contract == '${evil}'`,
    "eth.eip_712.message['amount'] > 1000",
    "eth.eip_712.message['items'].any(item, item == 666)",
    "eth.eip_712.message['items'].filter(item, item == 666).count() == 1",
    "666 in eth.eip_712.message['items']",
    "requester.email == 'alice@example.com'",
    "wallet.label == 'Treasury'",
    "private_key.label == 'x'",
  ],
  wallet: ["wallet.label != 'x'", 'wallet.imported', 'wallet.exported', "requester.email == 'alice@example.com'"],
};

function conditions(of: keyof typeof atoms): fc.Arbitrary<string> {
  const atom = fc.constantFrom(...atoms[of]);
  return fc.oneof(
    { weight: 3, arbitrary: atom },
    atom.map((one) => `!(${one})`),
    fc.tuple(atom, atom).map(([one, other]) => `${one} && ${other}`),
    fc.tuple(atom, atom).map(([one, other]) => `${one} || ${other}`),
  );
}

/** An ALLOW, and what stands in its way. */
function policySets(of: keyof typeof atoms, subject: string): fc.Arbitrary<readonly Clauses[]> {
  const consensus = fc.constantFrom({}, { consensus: 'approvers.count() >= 2' });
  const allow = fc
    .tuple(fc.oneof({ weight: 3, arbitrary: fc.constant('') }, conditions(of)), consensus)
    .map(([more, votes]): Clauses => ({
      effect: 'EFFECT_ALLOW',
      condition: more === '' ? subject : `${subject} && (${more})`,
      ...votes,
    }));
  const deny = conditions(of).map((condition): Clauses => ({ effect: 'EFFECT_DENY', condition }));
  return fc.tuple(allow, fc.array(deny, { maxLength: 2 })).map(([one, others]) => [one, ...others]);
}

/** What was tried, for whoever reads the log. */
const tried = new Map<string, number>();
const note = (what: string) => tried.set(what, (tried.get(what) ?? 0) + 1);

function compare(what: string, clear: Outcome, clouded: Outcome, policies: readonly Clauses[]): void {
  note(`${what}: ${clear} → ${clouded}`);
  if (isNoBetter(clouded, clear)) return;
  throw new Error(`${what} made \`${clear}\` of a request \`${clouded}\` under ${JSON.stringify(policies, null, 1)}`);
}

afterAll(() => {
  const lines = [...tried].sort().map(([what, times]) => `  ${what}: ${times}`);
  process.stdout.write(`Fail closed, seed ${seed}, ${sets} sets of policies:\n${lines.join('\n')}\n`);
});

test('no value that cannot be read gets a request allowed, at its submit', async () => {
  await fc.assert(
    fc.asyncProperty(policySets('order', signing), order, async (policies, asked) => {
      await under(policies, async () => {
        const clear = await outcomeOf(sign({ payloads: [typedData(asked)] }));
        for (const [what, doubt] of Object.entries(doubts)) {
          const clouded = await outcomeOf(sign(doubt(asked)));
          compare(`${what}, at the submit`, clear.outcome, clouded.outcome, policies);
        }
      });
    }),
    { numRuns: sets, seed },
  );
}, 600_000);

test('no value that cannot be read gets a request allowed at a vote, by policies that came meanwhile', async () => {
  const waiting: readonly Clauses[] = [
    { effect: 'EFFECT_ALLOW', condition: signing, consensus: 'approvers.count() >= 2' },
  ];
  await fc.assert(
    fc.asyncProperty(policySets('order', signing), order, async (policies, asked) => {
      const [clear, ...clouded] = await under(waiting, async () => {
        const all = [
          () => sign({ payloads: [typedData(asked)] }),
          ...Object.values(doubts).map((one) => () => sign(one(asked))),
        ];
        const answers: Answer[] = [];
        for (const ask of all) answers.push(await outcomeOf(ask()));
        return answers;
      });
      expect([clear!, ...clouded].map(({ outcome }) => outcome)).toEqual([clear!, ...clouded].map(() => 'waits'));
      await under(policies, async () => {
        const first = await outcomeOf(bob.client.approve(clear!.fingerprint));
        for (const [index, what] of Object.keys(doubts).entries()) {
          const { outcome } = await outcomeOf(bob.client.approve(clouded[index]!.fingerprint));
          compare(`${what}, at a vote`, first.outcome, outcome, policies);
        }
      });
    }),
    { numRuns: Math.ceil(sets / 2), seed },
  );
}, 600_000);

test('nor is anything allowed because what it is about is gone by the time of the vote', async () => {
  const subject = "activity.kind == 'UPDATE_WALLET'";
  const waiting: readonly Clauses[] = [
    { effect: 'EFFECT_ALLOW', condition: subject, consensus: 'approvers.count() >= 2' },
  ];
  await fc.assert(
    fc.asyncProperty(policySets('wallet', subject), async (policies) => {
      const wallets = [await newWallet(`Spare ${(nonce += 1)}`), await newWallet(`Spare ${(nonce += 1)}`)];
      const [kept, gone] = await under(waiting, () =>
        Promise.all(
          wallets.map(({ walletId }) =>
            alice.client.submit('ACTIVITY_TYPE_UPDATE_WALLET', { walletId, walletName: `Mine ${(nonce += 1)}` }),
          ),
        ),
      );
      await coordinator.client.submit('ACTIVITY_TYPE_DELETE_WALLETS', {
        walletIds: [wallets[1]!.walletId],
        deleteWithoutExport: true,
      });
      await under(policies, async () => {
        const clouded = await outcomeOf(bob.client.approve(gone!.fingerprint));
        const clear = await outcomeOf(bob.client.approve(kept!.fingerprint));
        compare('a deleted wallet, at a vote', clear.outcome, clouded.outcome, policies);
      });
    }),
    { numRuns: Math.ceil(sets / 2), seed },
  );
}, 600_000);

/** Policies that what is in doubt must not meet, and those that it must: all at once, for a refusal tells of each. */
const allowsOn = (doubts: readonly string[], subject: string): readonly Clauses[] =>
  doubts.flatMap((doubt) =>
    [`${subject} && ${doubt}`, `${subject} && !(${doubt})`, `${subject} || ${doubt}`].map((condition): Clauses => {
      return { effect: 'EFFECT_ALLOW', condition };
    }),
  );
const denialsOf = (doubts: readonly string[]): readonly Clauses[] =>
  doubts.flatMap((doubt) => [doubt, `!(${doubt})`].map((condition): Clauses => ({ effect: 'EFFECT_DENY', condition })));

/** By record, its members, as the reference of the policy language lists them. */
function membersOfTheReference(): ReadonlyMap<string, readonly string[]> {
  const page = readFileSync(new URL('../../docs/reference/policy-language.md', import.meta.url), 'utf8');
  const rows = [...page.matchAll(/^\| ([A-Z]\w+) \| (`\w+` .*) \|$/gm)];
  return new Map(
    rows.map(([, record, fields]) => [record!, [...fields!.matchAll(/`(\w+)`/g)].map(([, name]) => name!)]),
  );
}

/** What is gone once it is deleted: conditions that read each member of it, which compare with ids of others. */
const readsOfGone = {
  wallet: (id: string) => ({
    'Wallet.id': `wallet.id == '${id}'`,
    'Wallet.label': "wallet.label == 'x'",
    'Wallet.imported': 'wallet.imported',
    'Wallet.exported': 'wallet.exported',
    'WalletAccount.address': `wallet_account.address == '${good}'`,
    'WalletAccount.path_indexes': 'wallet_account.path_indexes[0] == 44',
    'WalletAccount.path_hardened': 'wallet_account.path_hardened[0] == true',
  }),
  privateKey: (id: string, tagId: string) => ({
    'PrivateKey.id': `private_key.id == '${id}'`,
    'PrivateKey.tags': `private_key.tags.contains('${tagId}')`,
    'PrivateKey.label': "private_key.label == 'x'",
    'PrivateKey.imported': 'private_key.imported',
    'PrivateKey.exported': 'private_key.exported',
  }),
  requester: (id: string, tagId: string) => ({
    'requester.id': `requester.id == '${id}'`,
    'requester.alias': "requester.alias == 'x'",
    'requester.email': "requester.email == 'x'",
    'requester.tags': `requester.tags.contains('${tagId}')`,
  }),
};

test('whatever member of the policy language cannot be read, nothing is allowed by it: at a submit, and at a vote', async () => {
  const own = await startCoordinator({ seed: 'members' });
  try {
    const { client } = own;
    const asker = await own.createUser('Asker');
    const voter = await own.createUser('Voter');
    const account = (curve: string, path: string, format: string) => ({
      curve: `CURVE_${curve}`,
      pathFormat: 'PATH_FORMAT_BIP32',
      path,
      addressFormat: `ADDRESS_FORMAT_${format}`,
    });
    const made = await client.submit('ACTIVITY_TYPE_CREATE_WALLET', {
      walletName: 'Treasury',
      accounts: [
        account('SECP256K1', "m/44'/60'/0'/0/0", 'ETHEREUM'),
        account('ED25519', "m/44'/501'/0'/0'", 'SOLANA'),
        account('SECP256K1', "m/44'/195'/0'/0/0", 'TRON'),
      ],
    });
    const [ethereum, solana, tron] = (made.result['createWalletResult'] as { addresses: [string, string, string] })
      .addresses;
    const addresses: Addresses = { ethereum, solana, tron };
    await client.submit('ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE', {
      smartContractAddress: contract,
      smartContractInterface: contractInterface,
      type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
      label: 'contract',
    });
    const ask = (type: string, parameters: object, by = asker) => {
      own.clock.advance(1);
      return by.client.submit(type, parameters);
    };
    const vote = (fingerprint: string) => {
      own.clock.advance(1);
      return voter.client.approve(fingerprint);
    };
    const twoSign: readonly Clauses[] = [
      { effect: 'EFFECT_ALLOW', condition: signing, consensus: 'approvers.count() >= 2' },
    ];
    /** What a refusal says of each policy. */
    const refusalOf = async (attempt: Promise<unknown>) => {
      const error = await attempt.then(
        () => undefined,
        (reason: unknown) => reason,
      );
      if (!(error instanceof ApiError)) throw error instanceof Error ? error : new Error('it was allowed');
      const outcomes = error.body.details.flatMap(
        ({ policyEvaluations = [] }) => policyEvaluations as readonly { readonly outcome: string }[],
      );
      return { status: error.status, outcomes };
    };
    /** Nothing that reads a member in doubt allows a request, and everything that denies by one denies it. */
    const check = async (reads: Readonly<Record<string, string>>, attempts: readonly (() => Promise<unknown>)[]) => {
      const doubts = Object.values(reads);
      await under(
        allowsOn(doubts, signing),
        async () => {
          for (const attempt of attempts) expect((await refusalOf(attempt())).status).toBe(403);
        },
        own,
      );
      const denials = denialsOf(doubts);
      await under(
        [{ effect: 'EFFECT_ALLOW', condition: signing }, ...denials],
        async () => {
          for (const attempt of attempts) {
            const { status, outcomes } = await refusalOf(attempt());
            const denying = outcomes.filter(({ outcome }) => outcome === 'OUTCOME_DENY_EXPLICIT');
            expect([status, Object.keys(reads), denying.length]).toEqual([403, Object.keys(reads), denials.length]);
          }
        },
        own,
      );
      for (const member of Object.keys(reads)) {
        seen.add(member.split(' ')[0]!);
        for (const _attempt of attempts) note('a member in doubt, under five policies: denied');
      }
    };

    const seen = new Set<string>();
    for (const { type, parameters, reads } of doubtful) {
      const body = parameters(addresses);
      const waiting = await under(twoSign, () => ask(type, body), own);
      await check(reads, [() => ask(type, body), () => vote(waiting.fingerprint)]);
      // Not because it could not be signed, or nobody could have voted.
      const voted = await under(twoSign, () => vote(waiting.fingerprint), own);
      expect([type, voted.status]).toEqual([type, 'ACTIVITY_STATUS_COMPLETED']);
    }

    // What is there at the submit and gone by the vote.
    const spare = await client.submit('ACTIVITY_TYPE_CREATE_WALLET', {
      walletName: 'Spare',
      accounts: [account('SECP256K1', "m/44'/60'/0'/0/0", 'ETHEREUM')],
    });
    const { walletId, addresses: spareAddresses } = spare.result['createWalletResult'] as {
      walletId: string;
      addresses: [string];
    };
    const newPrivateKey = async (privateKeyName: string) => {
      const { result } = await client.submit('ACTIVITY_TYPE_CREATE_PRIVATE_KEYS_V2', {
        privateKeys: [{ privateKeyName, curve: 'CURVE_SECP256K1', privateKeyTags: [], addressFormats: [] }],
      });
      return (result['createPrivateKeysResultV2'] as { privateKeyIds: [string] }).privateKeyIds[0];
    };
    const [privateKeyId, otherKeyId] = [await newPrivateKey('spare'), await newPrivateKey('other')];
    const tag = async (kind: 'USER' | 'PRIVATE_KEY', parameters: object) => {
      const { result } = await client.submit(`ACTIVITY_TYPE_CREATE_${kind}_TAG`, parameters);
      return Object.values(Object.values(result)[0] as object)[0] as string;
    };
    const userTagId = await tag('USER', { userTagName: 'staff' });
    const keyTagId = await tag('PRIVATE_KEY', { privateKeyTagName: 'cold', privateKeyIds: [otherKeyId] });
    const leaver = await own.createUser('Leaver', { userEmail: 'leaver@example.com' });
    const wait = (signWith: string, by = asker) => {
      const parameters = {
        signWith,
        payload: 'ab'.repeat(32),
        encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
        hashFunction: 'HASH_FUNCTION_NO_OP',
      };
      return under(twoSign, () => ask('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', parameters, by), own);
    };
    const treasuryId = (made.result['createWalletResult'] as { walletId: string }).walletId;
    const gone = [
      { reads: readsOfGone.wallet(treasuryId), asked: await wait(spareAddresses[0]) },
      { reads: readsOfGone.privateKey(otherKeyId, keyTagId), asked: await wait(privateKeyId) },
      { reads: readsOfGone.requester(asker.userId, userTagId), asked: await wait(ethereum, leaver) },
    ];
    await client.submit('ACTIVITY_TYPE_DELETE_WALLETS', { walletIds: [walletId], deleteWithoutExport: true });
    await client.submit('ACTIVITY_TYPE_DELETE_PRIVATE_KEYS', {
      privateKeyIds: [privateKeyId],
      deleteWithoutExport: true,
    });
    await client.submit('ACTIVITY_TYPE_DELETE_USERS', { userIds: [leaver.userId] });
    for (const { reads, asked } of gone) await check(reads, [() => vote(asked.fingerprint)]);

    const all = [...membersOfTheReference()].flatMap(([record, names]) => names.map((name) => `${record}.${name}`));
    const readable = Object.entries(alwaysReadable).flatMap(([record, names]) =>
      names.map((name) => `${record}.${name}`),
    );
    expect(all.length).toBeGreaterThan(80);
    expect([...all].sort()).toEqual(
      [...seen]
        .filter((member) => !member.startsWith('requester.'))
        .concat(readable)
        .sort(),
    );
  } finally {
    await own.close();
  }
}, 240_000);

/** Verbs that everybody may do for oneself, and those that take a vote or an invitation. */
const everybodys = /(?:STAMP_LOGIN|READ_WRITE_SESSION|READ_ONLY_SESSION|ACCEPT_INVITATION)/;

describe('a port that fails', () => {
  /** Activities that were recorded as done, and everything that was recorded of activities. */
  const recordedIn = async (of: TestCoordinator) => {
    const events = (await of.events()).filter(({ type }) => type.startsWith('Activity'));
    return { all: events.length, done: events.filter(({ type }) => type === 'ActivityCompleted').length };
  };

  test('gets nobody without a right anything, with any verb', async () => {
    const own = await startCoordinator({ seed: 'ports and verbs', settings: sampleSettings });
    let running = own;
    try {
      const furnished = await furnish(own);
      const outsider = await own.createUser('Outsider');
      const samples = Object.entries(submitSamples(furnished)).filter(([type]) => !everybodys.test(type));
      const before = await recordedIn(own);
      for (const port of ports) {
        // Reads fail where they are made: by a process that knows nothing yet.
        if (port === 'read') running = await running.restart();
        const client = running.clientFor(outsider.key);
        running.fail(port);
        for (const [type, parameters] of samples) {
          running.clock.advance(1);
          const { outcome } = await outcomeOf(client.submit(type, parameters));
          expect([port, type, outcome]).toEqual([port, type, 'denied']);
        }
        running.fail(port, false);
        note(`a port fails, ${samples.length} verbs without a right: denied`);
        expect([port, await recordedIn(running)]).toEqual([port, before]);
      }
    } finally {
      await running.close();
    }
  }, 120_000);

  test('gets nothing allowed at a vote, and nothing recorded as done that was not', async () => {
    const own = await startCoordinator({ seed: 'ports' });
    let running = own;
    try {
      const [asker, other, outsider] = [
        await own.createUser('Asker'),
        await own.createUser('Other'),
        await own.createUser('Outsider'),
      ];
      await own.createPolicy({
        policyName: 'two of them',
        condition: "activity.kind in ['CREATE_USER_TAG', 'CREATE_WALLET']",
        consensus: `['${asker.userId}', '${other.userId}'].all(id, approvers.any(user, user.id == id))`,
      });
      let number = 0;
      const requests = {
        'a tag': () => ['ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: `tag ${(number += 1)}` }] as const,
        // Its secret is made and sealed by the last vote.
        'a wallet': () => {
          const accounts = [
            {
              curve: 'CURVE_SECP256K1',
              pathFormat: 'PATH_FORMAT_BIP32',
              path: "m/44'/60'/0'/0/0",
              addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
            },
          ];
          return ['ACTIVITY_TYPE_CREATE_WALLET', { walletName: `wallet ${(number += 1)}`, accounts }] as const;
        },
      };
      for (const port of ports) {
        for (const [what, request] of Object.entries(requests)) {
          const submit = (by: TestUser) => {
            const [type, parameters] = request();
            return running.clientFor(by.key).submit(type, parameters);
          };
          const asked = await submit(asker);
          const before = await recordedIn(running);
          if (port === 'read') running = await running.restart();
          const vote = (by: TestUser) => {
            running.clock.advance(1);
            return outcomeOf(running.clientFor(by.key).approve(asked.fingerprint));
          };
          running.fail(port);
          expect([port, what, (await outcomeOf(submit(outsider))).outcome]).toEqual([port, what, 'denied']);
          expect([port, what, (await vote(outsider)).outcome]).toEqual([port, what, 'denied']);
          expect((await outcomeOf(submit(asker))).outcome).not.toBe('allowed');
          // The last vote counts once it is recorded, and only then.
          const last = await vote(other);
          note(`${port} fails, at the last vote on ${what}: ${last.outcome}`);
          running.fail(port, false);
          const after = await recordedIn(running);
          expect([port, what, after.done > before.done || last.outcome !== 'allowed']).toEqual([port, what, true]);
          expect([port, what, after.done - before.done]).toEqual([port, what, after.done > before.done ? 1 : 0]);
          if (after.done === before.done)
            expect([port, what, (await vote(other)).outcome]).toEqual([port, what, 'allowed']);
          expect((await vote(outsider)).outcome).toBe('denied');
        }
      }
      // Every wallet that is said to be there is: it signs.
      const { accounts } = await running.client.query<{ accounts: readonly { address: string }[] }>(
        'list_wallet_accounts',
        { paginationOptions: { limit: '100' } },
      );
      const made = (await running.events()).filter(({ type }) => type === 'WalletCreated');
      expect(made.length).toBeGreaterThan(ports.length / 2);
      expect(accounts.length).toBe(made.length);
      for (const { address: signWith } of accounts) {
        const signed = await running.client.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', {
          signWith,
          payload: 'ab'.repeat(32),
          encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
          hashFunction: 'HASH_FUNCTION_NO_OP',
        });
        expect(signed.status).toBe('ACTIVITY_STATUS_COMPLETED');
      }
    } finally {
      await running.close();
    }
  }, 120_000);
});

/** What stands behind a URL, and what it does instead of answering. */
async function startNeighbours() {
  const sockets = new Set<Socket>();
  const listen = async (meet: (socket: Socket) => void) => {
    const server = createServer((socket) => {
      sockets.add(socket);
      // Whoever hangs up in the middle is no error of ours.
      socket.on('error', () => undefined);
      meet(socket);
    });
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    return server;
  };
  const servers = {
    'sends garbage': await listen((socket) => socket.end('\0\u0001 garbage\r\n\r\n')),
    'hangs up': await listen((socket) => socket.destroy()),
    'never answers': await listen(() => undefined),
    'answers 500': await listen((socket) =>
      socket.end('HTTP/1.1 500 No\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}'),
    ),
    refuses: await listen(() => undefined),
  };
  const urls = Object.fromEntries(
    Object.entries(servers).map(([what, server]) => [
      what,
      `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ]),
  ) as Readonly<Record<keyof typeof servers, string>>;
  const close = async () => {
    for (const socket of sockets) socket.destroy();
    for (const server of Object.values(servers)) await new Promise((closed) => server.close(closed));
  };
  await new Promise((closed) => servers.refuses.close(closed));
  return { urls, close };
}

describe('what others run, in trouble', () => {
  let neighbours: Awaited<ReturnType<typeof startNeighbours>>;
  beforeAll(async () => {
    neighbours = await startNeighbours();
  });
  afterAll(() => neighbours.close());

  const recordedIn = async (of: TestCoordinator) => (await of.events()).map(({ type }) => type);
  const endsIn = async (of: TestCoordinator) =>
    (await recordedIn(of)).filter((type) => type === 'ActivityCompleted').length;

  test('a webhook target changes no decision, at a submit and at each vote', async () => {
    const receiver = await WebhookReceiver.start();
    const own = await startCoordinator({ seed: 'targets', settings: { ALLOW_PRIVATE_NETWORK: 'true' } });
    try {
      const members = [await own.createUser('A'), await own.createUser('B'), await own.createUser('C')];
      const outsider = await own.createUser('Outsider');
      await own.createPolicy({
        policyName: 'three of them',
        condition: "activity.kind == 'CREATE_USER_TAG'",
        consensus: `[${members.map(({ userId }) => `'${userId}'`).join(', ')}].all(id, approvers.any(user, user.id == id))`,
      });
      let number = 0;
      const run = async (): Promise<readonly string[]> => {
        const ask = (by: TestUser) =>
          by.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: `tag ${(number += 1)}`, userIds: [] });
        const said: string[] = [];
        const asked = await ask(members[0]!);
        said.push(asked.status, (await outcomeOf(ask(outsider))).outcome);
        for (const by of [outsider, members[1]!, outsider, members[2]!]) {
          own.clock.advance(1);
          said.push((await outcomeOf(by.client.approve(asked.fingerprint))).outcome);
        }
        return said;
      };
      const before = (await recordedIn(own)).length;
      const calm = await run();
      const calmly = (await recordedIn(own)).slice(before);
      expect(calm).toEqual(['ACTIVITY_STATUS_CONSENSUS_NEEDED', 'denied', 'denied', 'waits', 'denied', 'allowed']);
      const targets = { 'that is well': `${receiver.url}/hook`, ...neighbours.urls };
      for (const [what, url] of Object.entries(targets)) {
        const { result } = await own.client.submit('ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT', {
          name: what,
          url,
          subscriptions: [{ eventType: 'ACTIVITY_UPDATES' }],
        });
        const { endpointId } = Object.values(result)[0] as { endpointId: string };
        const from = (await recordedIn(own)).length;
        expect([what, await run()]).toEqual([what, calm]);
        expect([what, (await recordedIn(own)).slice(from)]).toEqual([what, calmly]);
        // One that is well is told, so the others are called as well.
        if (url.startsWith(receiver.url)) await until('it is told', () => receiver.at('/hook').length > 1);
        await own.client.submit('ACTIVITY_TYPE_DELETE_WEBHOOK_ENDPOINT', { endpointId });
        note(`a webhook target ${what}: as without`);
      }
    } finally {
      await own.close();
      await receiver.close();
    }
  }, 60_000);

  /** An OpenID provider in trouble logs nobody in. */
  const logsNobodyIn = async () => {
    const provider = await IdentityProvider.start();
    const own = await startCoordinator({ seed: 'providers', settings: provider.settings });
    try {
      const { clock, client, newKey } = own;
      const person = await own.createUser('Person');
      const token = (publicKey?: string) =>
        provider.idToken({ subject: 'person', at: clock.now(), ...(publicKey === undefined ? {} : { publicKey }) });
      await client.submit('ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS_V2', {
        userId: person.userId,
        oauthProviders: [{ providerName: 'provider', oidcToken: await token() }],
      });
      const logIn = async () => {
        const { publicKey } = newKey();
        return client.submit('ACTIVITY_TYPE_OAUTH_LOGIN', { publicKey, oidcToken: await token(publicKey) });
      };
      expect((await outcomeOf(logIn())).outcome).toBe('allowed');
      const before = await endsIn(own);
      const configuration = '/.well-known/openid-configuration';
      const troubles: readonly NonNullable<IdentityProvider['trouble']>[] = [
        { path: configuration, status: 503, body: '' },
        { path: configuration, status: 200, body: 'not JSON' },
        { path: configuration, status: 200, body: '{"issuer":"https://other.example","jwks_uri":"x"}' },
        { path: '/jwks', status: 404, body: '{}' },
        { path: '/jwks', status: 200, body: '{"keys":[]}' },
        { path: '/jwks', status: 200, body: '{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA","kid":"key"}]}' },
        { path: '/jwks', hangs: true },
      ];
      for (const trouble of troubles) {
        // Until the keys that are known are too old to serve.
        clock.advance('8h');
        provider.trouble = trouble;
        const { outcome } = await outcomeOf(logIn());
        expect([trouble, outcome, await endsIn(own)]).toEqual([trouble, 'denied', before]);
        note(`a provider in trouble, at a login: ${outcome}`);
      }
      provider.trouble = undefined;
      clock.advance('8h');
      expect((await outcomeOf(logIn())).outcome).toBe('allowed');
    } finally {
      await own.close();
      await provider.close();
    }
  };

  /** An OAuth 2.0 provider in trouble gives nobody a token: what it says is told in the answer to a submit, and to no vote. */
  const givesNobodyATokenAtASubmit = async () => {
    const provider = await IdentityProvider.start();
    const well = JSON.parse(provider.settings['OAUTH2_PROVIDERS']!) as Readonly<Record<string, object>>;
    const x = well['OAUTH2_PROVIDER_X'] as { tokenUrl: string; userUrl: string };
    // Each trouble at either of its doors.
    const troubled = Object.fromEntries(
      Object.entries(neighbours.urls).flatMap(([what, url], at) => [
        [`OAUTH2_PROVIDER_T${at}`, { ...x, tokenUrl: `${url}/token`, what }],
        [`OAUTH2_PROVIDER_U${at}`, { ...x, userUrl: `${url}/user`, what }],
      ]),
    );
    const providers = Object.fromEntries(
      Object.entries({ ...well, ...troubled }).map(([name, { what: _what, ...one }]: [string, { what?: string }]) => [
        name,
        one,
      ]),
    );
    const own = await startCoordinator({
      seed: 'oauth2',
      settings: { ...provider.settings, OAUTH2_PROVIDERS: JSON.stringify(providers) },
    });
    try {
      const outsider = await own.createUser('Outsider');
      const { oauthSecretEncryption } = await discoveryKeys(own);
      const encryptedClientSecret = await encryptOauth2ClientSecret(clientSecret, oauthSecretEncryption);
      const grant = { redirectUri: 'https://app.example/back', codeVerifier: 'v'.repeat(43) };
      const credentials = new Map<string, { readonly id: string; readonly clientId: string }>();
      for (const name of ['OAUTH2_PROVIDER_X', ...Object.keys(troubled)]) {
        const clientId = `app of ${name}`;
        const { result } = await own.client.submit('ACTIVITY_TYPE_CREATE_OAUTH2_CREDENTIAL', {
          provider: name,
          clientId,
          encryptedClientSecret,
        });
        const { oauth2CredentialId } = Object.values(result)[0] as { oauth2CredentialId: string };
        credentials.set(name, { id: oauth2CredentialId, clientId });
      }
      const authenticate = (name: string, by = own.client) => {
        const { id, clientId } = credentials.get(name)!;
        own.clock.advance(1);
        return outcomeOf(
          by.submit('ACTIVITY_TYPE_OAUTH2_AUTHENTICATE', {
            oauth2CredentialId: id,
            ...grant,
            authCode: provider.newCode({ ...grant, clientId, personId: '1' }),
            nonce: 'ab'.repeat(32),
          }),
        );
      };
      expect((await authenticate('OAUTH2_PROVIDER_X')).outcome).toBe('allowed');
      const before = await endsIn(own);
      const outcomes = await Promise.all(Object.keys(troubled).map((name) => authenticate(name)));
      for (const [at, [, { what }]] of Object.entries(troubled).entries()) {
        expect([what, outcomes[at]!.outcome]).toEqual([what, 'denied']);
        note(`an OAuth 2.0 provider that ${what}: denied`);
      }
      // Nor does it to somebody who may not ask, whatever state it is in.
      for (const name of credentials.keys()) expect((await authenticate(name, outsider.client)).outcome).toBe('denied');
      expect(await endsIn(own)).toBe(before);
      expect((await authenticate('OAUTH2_PROVIDER_X')).outcome).toBe('allowed');
    } finally {
      await own.close();
      await provider.close();
    }
  };

  /** An OpenID provider in trouble gets nobody an identity at a vote. */
  const getsNobodyAnIdentityAtAVote = async () => {
    const provider = await IdentityProvider.start();
    const first = await startCoordinator({ seed: 'identities', settings: provider.settings });
    let running = first;
    try {
      const [asker, other, person] = [
        await running.createUser('Asker'),
        await running.createUser('Other'),
        await running.createUser('Person'),
      ];
      await running.createPolicy({
        policyName: 'two of them',
        condition: "activity.kind == 'CREATE_OAUTH_PROVIDERS'",
        consensus: `['${asker.userId}', '${other.userId}'].all(id, approvers.any(user, user.id == id))`,
      });
      const configuration = '/.well-known/openid-configuration';
      const troubles: readonly (IdentityProvider['trouble'] | undefined)[] = [
        { path: configuration, status: 500, body: '' },
        { path: configuration, status: 200, body: 'garbage' },
        { path: '/jwks', status: 200, body: '{"keys":[]}' },
        { path: '/jwks', hangs: true },
        undefined,
      ];
      for (const trouble of troubles) {
        const subject = JSON.stringify(trouble ?? 'well');
        const oidcToken = await provider.idToken({ subject, at: running.clock.now() });
        const asked = await running.clientFor(asker.key).submit('ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS_V2', {
          userId: person.userId,
          oauthProviders: [{ providerName: 'provider', oidcToken }],
        });
        expect(asked.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
        // What a process remembers of a provider would do.
        running = await running.restart();
        provider.trouble = trouble;
        const before = await endsIn(running);
        // It may be refused, or end as one that has failed.
        await outcomeOf(running.clientFor(other.key).approve(asked.fingerprint));
        provider.trouble = undefined;
        const made = (await running.events()).filter(({ type }) => type === 'OauthProviderCreated').length;
        const isWell = trouble === undefined;
        expect([trouble, (await endsIn(running)) - before, made]).toEqual(isWell ? [trouble, 1, 1] : [trouble, 0, 0]);
        note(`a provider ${isWell ? 'that is well: an identity' : 'in trouble: no identity'}, at the last vote`);
      }
    } finally {
      await running.close();
      await provider.close();
    }
  };

  test('a provider logs nobody in, and gives nobody a token or an identity', async () => {
    // At the same time: some hang, and are waited for.
    await Promise.all([logsNobodyIn(), givesNobodyATokenAtASubmit(), getsNobodyAnIdentityAtAVote()]);
  }, 120_000);
});

test('every decision names the rules that it was made by', async () => {
  const own = await startCoordinator({ seed: 'rules', settings: sampleSettings });
  try {
    const furnished = await furnish(own);
    const outsider = await own.createUser('Nobody');
    const { child, waiting } = furnished;
    const again = await furnished.carol.client.submit('ACTIVITY_TYPE_UPDATE_USER_NAME', {
      userId: furnished.carol.userId,
      userName: 'Carola',
    });
    for (const { fingerprint } of [again, waiting]) {
      await outcomeOf(own.client.reject(fingerprint));
      await outcomeOf(child.approve(fingerprint));
    }
    for (const [type, parameters] of Object.entries(submitSamples(furnished))) {
      for (const by of [outsider.client, furnished.carol.client, own.client]) {
        own.clock.advance(1);
        await outcomeOf(by.submit(type, parameters));
      }
    }
    let decisions = 0;
    for (const { type, data } of await own.recorded()) {
      const { decision } = data as { decision?: { rules?: number } };
      const deciding = decision ?? (type === 'ActivityRejected' ? (data as { rules?: number }) : undefined);
      if (deciding === undefined) continue;
      decisions += 1;
      expect([type, typeof deciding.rules]).toEqual([type, 'number']);
    }
    note(`decisions that name their rules: ${decisions}`);
    expect(decisions).toBeGreaterThan(60);
  } finally {
    await own.close();
  }
}, 60_000);

test('a clock that is set back gets nothing allowed', async () => {
  const own = await startCoordinator({ seed: 'clock' });
  try {
    const key = own.newKey();
    await own.client.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', {
      userId: own.root.userId,
      apiKeys: [{ apiKeyName: 'short', publicKey: key.publicKey, curveType: key.curve, expirationSeconds: '600' }],
    });
    own.clock.advance('1h');
    let tags = 0;
    const tag = () =>
      outcomeOf(own.clientFor(key).submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: `tag ${(tags += 1)}` }));
    await own.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'after it has ended' });
    expect((await tag()).outcome).toBe('denied');
    // A little is what clocks differ by: it is decided at the time of the last event.
    const late = own.newKey();
    await own.client.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', {
      userId: own.root.userId,
      apiKeys: [{ apiKeyName: 'late', publicKey: late.publicKey, curveType: late.curve, expirationSeconds: '600' }],
    });
    own.clock.advance('601s');
    await own.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'a second after it has ended' });
    own.clock.turnBack(3_000);
    const tagBy = (by: typeof key) =>
      outcomeOf(own.clientFor(by).submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: `tag ${(tags += 1)}` }));
    expect((await tagBy(late)).outcome).toBe('denied');
    expect((await tagBy(own.client.key)).outcome).toBe('allowed');
    // So is up to half an hour. More is doubt, and nobody's request is decided.
    own.clock.turnBack(1_797_000);
    expect((await tagBy(late)).outcome).toBe('denied');
    expect((await tagBy(own.client.key)).outcome).toBe('allowed');
    own.clock.turnBack(1);
    expect((await tagBy(own.client.key)).outcome).toBe('denied');
    own.clock.advance(1_800_001);
    for (const back of [1, 4_000, 5_000, 6_000, 3_000_000, 100_000_000]) {
      own.clock.turnBack(back);
      expect([back, (await tag()).outcome]).toEqual([back, 'denied']);
      own.clock.advance(back);
      note('a clock set back: denied → denied');
    }
  } finally {
    await own.close();
  }
});
