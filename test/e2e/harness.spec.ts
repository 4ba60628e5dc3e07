import { Writable } from 'node:stream';
import { base58 } from '@scure/base';
import {
  AccountRole,
  decompileTransactionMessage,
  getCompiledTransactionMessageDecoder,
  getTransactionDecoder,
} from '@solana/kit';
import { parseTransaction } from 'viem';
import {
  ethTransaction,
  ManualClock,
  SeededRandomness,
  solanaTransfer,
  startCoordinator,
  type TestCoordinator,
} from '../../src/testing/index.js';
import '../../src/testing/jest.js';
import { refusal } from './exchange.js';

/** A little of everything that is recorded: users, a policy, votes, a denial, time that passes. */
async function story(coordinator: TestCoordinator): Promise<string> {
  const alice = await coordinator.createUser('Alice', { userEmail: 'alice@example.com' });
  const bob = await coordinator.createUser('Bob');
  await coordinator.createPolicy({
    policyName: 'two rename',
    condition: "activity.kind == 'UPDATE_USER_NAME'",
    consensus: 'approvers.count() >= 2',
  });
  const rename = { userId: alice.userId, userName: 'Alicia' };
  const asked = await alice.client.submit('ACTIVITY_TYPE_UPDATE_USER_NAME', rename);
  coordinator.clock.advance('90m');
  await bob.client.approve(asked.fingerprint);
  await refusal(bob.client.submit('ACTIVITY_TYPE_DELETE_USERS', { userIds: [alice.userId] }));
  return JSON.stringify(
    [
      ...(await coordinator.events()),
      ...(await coordinator.events(`denials-${coordinator.organizationId}`)),
      ...(await coordinator.events('installation-root')),
    ].map((event) => ({ ...event, position: String(event.position) })),
  );
}

async function storyOf(seed: string): Promise<string> {
  const coordinator = await startCoordinator({ seed });
  try {
    return await story(coordinator);
  } finally {
    await coordinator.close();
  }
}

test('the same seed and the same requests are recorded byte for byte alike, another seed is not', async () => {
  const [one, again, other] = await Promise.all([storyOf('one'), storyOf('one'), storyOf('other')]);
  expect(one.length).toBeGreaterThan(5_000);
  expect(again).toBe(one);
  expect(other).not.toBe(one);
});

test('ten coordinators side by side are independent', async () => {
  const names = Array.from({ length: 10 }, (_, index) => `User ${index}`);
  // One seed for all: even ids that are alike must not meet.
  const all = await Promise.all(names.map(() => startCoordinator({ seed: 'same' })));
  try {
    expect(new Set(all.map(({ url }) => url)).size).toBe(10);
    await Promise.all(all.map((coordinator, index) => coordinator.createUser(names[index]!)));
    const known = await Promise.all(
      all.map(async ({ client }) => {
        const { users } = await client.query<{ users: { userName: string }[] }>('list_users');
        return users.map(({ userName }) => userName);
      }),
    );
    expect(known).toEqual(names.map((name) => ['Root user', 'Auth proxy', name]));
    all[0]!.clock.advance('3h');
    expect(all[1]!.clock.now()).toBe(Date.UTC(2026, 0, 1));
  } finally {
    await Promise.all(all.map((coordinator) => coordinator.close()));
  }
});

test('the clock stands at the given time, and what is recorded carries it', async () => {
  const coordinator = await startCoordinator({ at: new Date('2030-05-06T07:08:09.010Z') });
  try {
    const before = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'one' });
    coordinator.clock.advance('1.5h');
    const after = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'two' });
    expect([before.createdAt, after.createdAt]).toEqual(['2030-05-06T07:08:09.010Z', '2030-05-06T08:38:09.010Z']);
    expect(after.timestampMs).toBe(String(Date.parse('2030-05-06T08:38:09.010Z')));
  } finally {
    await coordinator.close();
  }
});

test('a clock advances by every unit, never goes back, and refuses an invalid duration', () => {
  const clock = new ManualClock(0);
  for (const [by, now] of [
    [5, 5],
    ['5ms', 10],
    ['1s', 1_010],
    ['2m', 121_010],
    ['1h', 3_721_010],
    ['1d', 90_121_010],
  ] as const) {
    clock.advance(by);
    expect(clock.now()).toBe(now);
  }
  clock.set(new Date(100_000_000));
  expect(clock.now()).toBe(100_000_000);
  expect(() => clock.set(99_999_999)).toThrow('cannot go back');
  expect(() => clock.advance('1 week' as '1d')).toThrow('`1 week`');
  expect(() => clock.advance(-1)).toThrow('cannot go back');
  expect(clock.now()).toBe(100_000_000);
});

test('seeded bytes do not depend on how they are asked for', () => {
  const [one, other] = [new SeededRandomness('seed'), new SeededRandomness('seed')];
  const inPieces = [1, 31, 32, 33, 3].flatMap((count) => [...one.bytes(count)]);
  expect(inPieces).toEqual([...other.bytes(100)]);
  expect([...new SeededRandomness('another').bytes(100)]).not.toEqual(inPieces);
});

test.each(['memory', 'sqlite'] as const)(
  'a restart on %s keeps what was recorded, and clients follow it',
  async (store) => {
    const coordinator = await startCoordinator({ store });
    try {
      const alice = await coordinator.createUser('Alice');
      const [events, url] = [await coordinator.events(), coordinator.url];
      expect(await coordinator.restart()).toBe(coordinator);
      expect(coordinator.url).not.toBe(url);
      expect(await coordinator.events()).toEqual(events);
      expect(coordinator.root).toMatchObject({ apiUrl: coordinator.url, authProxyUrl: coordinator.url });
      expect(await alice.client.query('whoami')).toMatchObject({ username: 'Alice' });
      expect(await coordinator.client.query('get_user', { userId: alice.userId })).toMatchObject({
        user: { userName: 'Alice' },
      });
    } finally {
      await coordinator.close();
    }
  },
);

test('a restart takes other settings, and refuses unknown ones', async () => {
  await using coordinator = await startCoordinator({ settings: { RATE_LIMIT_PER_CREDENTIAL: '100' } });
  const whoami = () => coordinator.client.query('whoami');
  await coordinator.restart({ settings: { RATE_LIMIT_PER_CREDENTIAL: '1' } });
  await whoami();
  expect(await refusal(whoami())).toMatchObject({ code: 8 });
  await expect(coordinator.restart({ settings: { RATE_LIMIT_PER_CREDENTAL: '1' } })).rejects.toThrow(
    'RATE_LIMIT_PER_CREDENTIAL',
  );
});

test('closing twice, or at the end of a block, is closing once', async () => {
  let url: string;
  {
    await using coordinator = await startCoordinator();
    ({ url } = coordinator);
    await coordinator.close();
  }
  await expect(fetch(`${url}/health/ready`)).rejects.toThrow('fetch failed');
});

describe('builders', () => {
  let coordinator: TestCoordinator;
  beforeAll(async () => {
    coordinator = await startCoordinator({ seed: 'builders', settings: { ALLOW_PRIVATE_NETWORK: 'true' } });
  });
  afterAll(() => coordinator.close());

  test('a tag, a wallet and a policy with a time make a treasurer who may sign in the year of the clock', async () => {
    const tom = await coordinator.createUser('Tom');
    const treasurer = await coordinator.createTag('treasurer', [tom]);
    const { addresses } = await coordinator.createWallet('Treasury');
    const [from] = addresses;
    await coordinator.createPolicy({
      policyName: 'treasurers sign',
      condition: "activity.action == 'SIGN'",
      consensus: `approvers.any(user, user.tags.contains('${treasurer}'))`,
      time: "time.now < Timestamp('2027-01-01T00:00:00Z')",
    });
    const sign = () =>
      tom.client.submit('ACTIVITY_TYPE_SIGN_TRANSACTION_V2', {
        signWith: from!,
        type: 'TRANSACTION_TYPE_ETHEREUM',
        unsignedTransaction: ethTransaction({ to: `0x${'11'.repeat(20)}`, value: 5n }),
      });
    await expect(sign()).toBeAllowed();
    coordinator.clock.advance('366d');
    await expect(sign()).toBeDeniedBy();
    await expect(sign()).not.toBeAllowed();
  });

  test('transactions are those that viem and Solana’s own library read', () => {
    const to = `0x${'ab'.repeat(20)}`;
    const eth = ethTransaction({ to, value: 10n ** 18n, data: '0xa9059cbb', chainId: 8453n, nonce: 7n });
    expect(parseTransaction(eth as `0x02${string}`)).toMatchObject({
      type: 'eip1559',
      chainId: 8453,
      nonce: 7,
      to,
      value: 10n ** 18n,
      data: '0xa9059cbb',
      gas: 21_000n,
    });
    const [from, receiver] = [base58.encode(new Uint8Array(32).fill(3)), base58.encode(new Uint8Array(32).fill(4))];
    const solana = solanaTransfer({ from, to: receiver, lamports: 2n ** 63n });
    const { messageBytes, signatures } = getTransactionDecoder().decode(Buffer.from(solana, 'hex'));
    expect(Object.keys(signatures)).toEqual([from]);
    const message = decompileTransactionMessage(getCompiledTransactionMessageDecoder().decode(messageBytes));
    expect(message.instructions).toEqual([
      {
        programAddress: '11111111111111111111111111111111',
        accounts: [
          { address: from, role: AccountRole.WRITABLE_SIGNER },
          { address: receiver, role: AccountRole.WRITABLE },
        ],
        data: new Uint8Array([2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 128]),
      },
    ]);
  });

  test('deliveries are available once everything has settled', async () => {
    await coordinator.listenForWebhooks();
    const tagId = await coordinator.createTag('delivered');
    await coordinator.settled();
    expect(coordinator.webhooks().map(({ body }) => body)).toContainEqual(
      expect.objectContaining({
        type: 'ACTIVITY_TYPE_CREATE_USER_TAG',
        result: { createUserTagResult: { userTagId: tagId, userIds: [] } },
      }),
    );
    const { headers } = coordinator.webhooks()[0]!;
    expect(Object.keys(headers)).toContain('x-turnkey-signature');
  });

  test('matchers say what happened instead', async () => {
    const [ann, bea] = [await coordinator.createUser('Ann'), await coordinator.createUser('Bea')];
    const two = `approvers.filter(user, user.id == '${ann.userId}' || user.id == '${bea.userId}').count() >= 2`;
    await coordinator.createPolicy({
      policyName: 'two',
      condition: "activity.kind == 'UPDATE_WALLET'",
      consensus: two,
    });
    await coordinator.createPolicy({
      policyName: 'no deletion',
      effect: 'EFFECT_DENY',
      condition: "activity.kind == 'DELETE_WALLETS'",
    });
    const { walletId } = await coordinator.createWallet('Of two');
    const asked = await ann.client.submit('ACTIVITY_TYPE_UPDATE_WALLET', { walletId, walletName: 'Of both' });
    await expect(asked).toNeedApprovalFrom(bea);
    await expect(expect(asked).toNeedApprovalFrom(ann)).rejects.toThrow(`may not approve it: ${ann.userId}`);
    await expect(expect(asked).toBeAllowed()).rejects.toThrow('is ACTIVITY_STATUS_CONSENSUS_NEEDED');
    await expect(bea.client.approve(asked.fingerprint)).toBeAllowed();
    await expect(coordinator).toHaveRecorded('WalletUpdated', { walletName: 'Of both' });
    const another = expect(coordinator).toHaveRecorded('WalletUpdated', { walletName: 'x' });
    await expect(another).rejects.toThrow(/The last of them:[^]+-.*"walletName": "x"[^]+\+.*"walletName": "Of both"/);
    const deletion = () => ann.client.submit('ACTIVITY_TYPE_DELETE_WALLETS', { walletIds: [walletId] });
    await expect(deletion()).toBeDeniedBy('no deletion');
    await expect(expect(deletion()).toBeDeniedBy('two')).rejects.toThrow('no deletion: OUTCOME_DENY_EXPLICIT');
    await expect(expect(deletion()).toBeAllowed()).rejects.toThrow('403');
    await expect(expect(Promise.resolve({})).toBeAllowed()).rejects.toThrow('an activity or a promise of one');
  });

  test('what is performed gives its result, or says that it was not completed', async () => {
    const { userTagId } = await coordinator.client.perform('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'done' });
    expect(userTagId).toMatch(/^[0-9a-f-]{36}$/);
    const cleo = await coordinator.createUser('Cleo');
    await coordinator.createPolicy({
      policyName: 'two tag',
      condition: "activity.kind == 'CREATE_USER_TAG'",
      consensus: 'approvers.count() >= 2',
    });
    const waiting = cleo.client.perform('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'waits' });
    await expect(waiting).rejects.toThrow('is ACTIVITY_STATUS_CONSENSUS_NEEDED; use submit');
  });
});

test('webhooks require a setting that permits loopback', async () => {
  await using coordinator = await startCoordinator();
  await expect(coordinator.listenForWebhooks()).rejects.toThrow("ALLOW_PRIVATE_NETWORK: 'true'");
});

const openWorkers = () => process.getActiveResourcesInfo().filter((name) => name === 'MessagePort').length;

test('an invalid setting fails the start and leaves nothing running', async () => {
  const before = openWorkers();
  const start = startCoordinator({ store: 'sqlite', settings: { TRUST_PROXY: 'perhaps' } });
  await expect(start).rejects.toThrow('TRUST_PROXY=perhaps: must be one of true, false');
  expect(openWorkers()).toBe(before);
});

test('a misspelled option is refused, with those that there are', async () => {
  const options: object = { sed: 'approvals' };
  await expect(startCoordinator(options)).rejects.toThrow(
    'startCoordinator has no option `sed`: use seed, at, store, settings, history, logLevel, log',
  );
});

test('log lines go where they are told to', async () => {
  const lines: string[] = [];
  const log = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(chunk.toString());
      done();
    },
  });
  const coordinator = await startCoordinator({ logLevel: 'debug', log });
  await coordinator.close();
  expect(lines.join('')).toContain('Nest application successfully started');
});
