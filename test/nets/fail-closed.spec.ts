import fc from 'fast-check';
import { ApiError, startCoordinator, type Port, type TestCoordinator, type TestUser } from '../../src/testing/index.js';

/*
 * Whatever cannot be read or does not work, nothing is allowed that was not allowed before (security rule R1). The same
 * requests are made twice under the same policies, with and without a doubt; the verdict with it may only be worse.
 */

/** Sets of policies tried; `LONG=1` tries many. */
const sets = process.env['LONG'] === '1' ? 400 : 24;
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
async function under<T>(policies: readonly Clauses[], act: () => Promise<T>): Promise<T> {
  const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_POLICIES', {
    policies: policies.map((clauses) => ({ policyName: `policy ${(policyNumber += 1)}`, notes: '', ...clauses })),
  });
  const { policyIds } = result['createPoliciesResult'] as { policyIds: string[] };
  try {
    return await act();
  } finally {
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICIES', { policyIds });
  }
}

/** From the best to the worst. One that failed after it was allowed was allowed. */
const verdicts = ['allowed', 'waits', 'denied'] as const;
type Verdict = (typeof verdicts)[number];
interface Answer {
  readonly verdict: Verdict;
  readonly fingerprint: string;
}
const isNoBetter = (one: Verdict, than: Verdict) => verdicts.indexOf(one) >= verdicts.indexOf(than);

async function judged(attempt: Promise<{ status: string; fingerprint: string }>): Promise<Answer> {
  try {
    const { status, fingerprint } = await attempt;
    return { verdict: status === 'ACTIVITY_STATUS_CONSENSUS_NEEDED' ? 'waits' : 'allowed', fingerprint };
  } catch (error) {
    if (error instanceof ApiError) return { verdict: 'denied', fingerprint: '' };
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

function compare(what: string, clear: Verdict, clouded: Verdict, policies: readonly Clauses[]): void {
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
        const clear = await judged(sign({ payloads: [typedData(asked)] }));
        for (const [what, doubt] of Object.entries(doubts)) {
          const clouded = await judged(sign(doubt(asked)));
          compare(`${what}, at the submit`, clear.verdict, clouded.verdict, policies);
        }
      });
    }),
    { numRuns: sets, seed },
  );
}, 600_000);

test('nor at a vote, by policies that came meanwhile', async () => {
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
        for (const ask of all) answers.push(await judged(ask()));
        return answers;
      });
      expect([clear!, ...clouded].map(({ verdict }) => verdict)).toEqual([clear!, ...clouded].map(() => 'waits'));
      await under(policies, async () => {
        const first = await judged(bob.client.approve(clear!.fingerprint));
        for (const [index, what] of Object.keys(doubts).entries()) {
          const { verdict } = await judged(bob.client.approve(clouded[index]!.fingerprint));
          compare(`${what}, at a vote`, first.verdict, verdict, policies);
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
        const clouded = await judged(bob.client.approve(gone!.fingerprint));
        const clear = await judged(bob.client.approve(kept!.fingerprint));
        compare('a deleted wallet, at a vote', clear.verdict, clouded.verdict, policies);
      });
    }),
    { numRuns: Math.ceil(sets / 2), seed },
  );
}, 600_000);

test('no port that fails gets a request allowed, at its submit and at each vote', async () => {
  const own = await startCoordinator({ seed: 'ports', store: 'sqlite' });
  let running = own;
  try {
    const [asker, other, outsider] = [
      await own.createUser('Asker'),
      await own.createUser('Other'),
      await own.createUser('Outsider'),
    ];
    await own.createPolicy({
      policyName: 'two of them make tags',
      condition: "activity.kind == 'CREATE_USER_TAG'",
      consensus: `['${asker.userId}', '${other.userId}'].all(id, approvers.any(user, user.id == id))`,
    });
    let tags = 0;
    const tag = (by: TestUser) =>
      running.clientFor(by.key).submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: `tag ${(tags += 1)}` });
    const made = async () =>
      (await running.events()).filter(({ type }) => type === 'UserTagCreated' || type === 'ActivityCompleted').length;

    for (const port of ['append', 'read', 'messages'] satisfies Port[]) {
      const asked = await tag(asker);
      const before = await made();
      // Reads fail where they are made: by a process that knows nothing yet.
      if (port === 'read') running = await running.restart();
      const vote = (by: TestUser) => {
        running.clock.advance(1);
        return judged(running.clientFor(by.key).approve(asked.fingerprint));
      };
      running.fail(port);
      expect([port, (await judged(tag(outsider))).verdict]).toEqual([port, 'denied']);
      expect([port, (await vote(outsider)).verdict]).toEqual([port, 'denied']);
      expect((await judged(tag(asker))).verdict).not.toBe('allowed');
      // The last vote counts once it is recorded, and only then.
      const last = await vote(other);
      note(`${port} fails, at the last vote: ${last.verdict}`);
      running.fail(port, false);
      const after = await made();
      expect([port, after - before]).toEqual([port, last.verdict === 'allowed' ? 2 : 0]);
      if (last.verdict !== 'allowed') expect((await vote(other)).verdict).toBe('allowed');
      expect((await vote(outsider)).verdict).toBe('denied');
    }
  } finally {
    await running.close();
  }
});

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
      judged(own.clientFor(key).submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: `tag ${(tags += 1)}` }));
    await own.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'after it has ended' });
    expect((await tag()).verdict).toBe('denied');
    for (const back of [1, 4_000, 5_000, 6_000, 3_000_000, 100_000_000]) {
      own.clock.turnBack(back);
      expect([back, (await tag()).verdict]).toEqual([back, 'denied']);
      own.clock.advance(back);
      note('a clock set back: denied → denied');
    }
  } finally {
    await own.close();
  }
});
