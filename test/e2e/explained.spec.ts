import { Transaction } from 'ethers';
import { encodeFunctionData } from 'viem';
import type { ActivityEnvelope } from '../../src/wire/envelope.js';
import {
  ethTransaction,
  matchers,
  solanaTransfer,
  startCoordinator,
  type StampingClient,
  type TestCoordinator,
  type TestUser,
} from '../../src/testing/index.js';
import { denial, objectWith, refusal, textLike } from './exchange.js';
import { invitationLinkOf } from './invitation-links.js';
import { until } from './until.js';

/** What a denial and a waiting activity say, to whom; and what approvers see of what they approve. */

let coordinator: TestCoordinator;
let alice: TestUser;
let bob: TestUser;
let carol: TestUser;
let treasury: string;
let wallet: { readonly addresses: readonly string[] };
let policyId: string;

const receiver = '0x1111111111111111111111111111111111111111';
const contract = '0x6b175474e89094c44da98b954eedeac495271d0f';

beforeAll(async () => {
  coordinator = await startCoordinator({ settings: { ALLOW_PRIVATE_NETWORK: 'true', VOTE_NOTICES: 'true' } });
  alice = await coordinator.createUser('Alice');
  treasury = await coordinator.createTag('treasury');
  bob = await coordinator.createUser('Bob', { userTags: [treasury], userEmail: 'bob@example.com' });
  carol = await coordinator.createUser('Carol "the boss"', { userTags: [treasury] });
  wallet = await coordinator.createWallet('Treasury', [
    {
      curve: 'CURVE_SECP256K1',
      pathFormat: 'PATH_FORMAT_BIP32',
      path: "m/44'/60'/0'/0/0",
      addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
    },
    {
      curve: 'CURVE_ED25519',
      pathFormat: 'PATH_FORMAT_BIP32',
      path: "m/44'/501'/0'/0'",
      addressFormat: 'ADDRESS_FORMAT_SOLANA',
    },
  ]);
  policyId = await coordinator.createPolicy({
    policyName: 'two people sign',
    condition: `activity.action == 'SIGN' && (\n  wallet.label == 'Treasury' &&\n  activity.kind != 'SIGN_RAW_PAYLOADS'\n)`,
    consensus: `approvers.any(user, user.id == '${alice.userId}') && approvers.filter(user, user.tags.contains('${treasury}')).count() >= 1`,
  });
  await coordinator.createPolicy({
    policyName: 'not to the burned',
    effect: 'EFFECT_DENY',
    condition: `eth.tx.chain_id != 1 || eth.tx.to == '0x000000000000000000000000000000000000dead'`,
  });
});
afterAll(() => coordinator.close());

const signEth = (client: StampingClient, transaction: Parameters<typeof ethTransaction>[0]) =>
  client.submit('ACTIVITY_TYPE_SIGN_TRANSACTION_V2', {
    signWith: wallet.addresses[0]!,
    type: 'TRANSACTION_TYPE_ETHEREUM',
    unsignedTransaction: ethTransaction(transaction),
  });

const read = async (client: StampingClient, activityId: string) =>
  (await client.query<{ activity: ActivityEnvelope }>('get_activity', { activityId })).activity;

const said = async (attempt: Promise<unknown>) => denial(await refusal(attempt)).policyEvaluations!;

describe('a denial names the clause that decided', () => {
  test('the operand that is false, as it is written, for each policy; the consensus where the condition holds', async () => {
    const outsider = await coordinator.createUser('Outsider');
    const evaluations = await said(signEth(outsider.client, { to: receiver, value: 1n }));
    expect(evaluations).toContainEqual({
      policyId,
      policyName: 'two people sign',
      // The transaction was not even read for somebody whom nothing could allow it.
      outcome: 'OUTCOME_ERROR',
      doubt: 'unreadable',
      error: textLike(/wallet cannot be read/),
      clause: { name: 'consensus', text: `approvers.any(user, user.id == '${alice.userId}')`, outcome: 'false' },
    });
    const raw = await said(
      alice.client.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOADS', {
        signWith: wallet.addresses[0]!,
        payloads: ['00'.repeat(32)],
        encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
        hashFunction: 'HASH_FUNCTION_NO_OP',
      }),
    );
    expect(raw).toContainEqual(
      objectWith({
        policyId,
        clause: { name: 'condition', text: "activity.kind != 'SIGN_RAW_PAYLOADS'", outcome: 'false' },
      }),
    );
  });

  test('what a DENY denies, and what it could not read', async () => {
    const burned = await said(signEth(alice.client, { to: '0x000000000000000000000000000000000000dEaD' }));
    expect(burned).toContainEqual(
      objectWith({
        policyName: 'not to the burned',
        outcome: 'OUTCOME_DENY_EXPLICIT',
        clause: {
          name: 'condition',
          text: "eth.tx.to == '0x000000000000000000000000000000000000dead'",
          outcome: 'true',
        },
      }),
    );
    // From before EIP-155: it is valid on every chain, so its chain cannot be read.
    const legacy = Transaction.from({ type: 0, to: receiver, gasPrice: 1n, gasLimit: 21_000n, nonce: 0 });
    const doubted = await refusal(
      alice.client.submit('ACTIVITY_TYPE_SIGN_TRANSACTION_V2', {
        signWith: wallet.addresses[0]!,
        type: 'TRANSACTION_TYPE_ETHEREUM',
        unsignedTransaction: legacy.unsignedSerialized,
      }),
    );
    expect(denial(doubted).policyEvaluations).toContainEqual(
      objectWith({
        policyName: 'not to the burned',
        doubt: 'unreadable',
        clause: { name: 'condition', text: 'eth.tx.chain_id != 1', outcome: 'unreadable' },
      }),
    );
  });

  test('of a DENY that a vote completes, the consensus, and not the condition that was true before', async () => {
    const rename = "activity.kind == 'UPDATE_USER_NAME'";
    const policyIds = [
      await coordinator.createPolicy({
        policyName: 'three rename',
        condition: rename,
        consensus: 'approvers.count() >= 3',
      }),
      await coordinator.createPolicy({
        policyName: 'Alice and Bob rename nobody',
        effect: 'EFFECT_DENY',
        condition: rename,
        consensus: `['${alice.userId}', '${bob.userId}'].all(id, approvers.any(user, user.id == id))`,
      }),
    ];
    const parameters = { userId: carol.userId, userName: 'Caroline' };
    const asked = await alice.client.submit('ACTIVITY_TYPE_UPDATE_USER_NAME', parameters);
    expect(asked.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    expect(await said(bob.client.approve(asked.fingerprint))).toContainEqual({
      policyId: policyIds[1],
      policyName: 'Alice and Bob rename nobody',
      outcome: 'OUTCOME_DENY_EXPLICIT',
      clause: {
        name: 'consensus',
        text: textLike(/^\['.*'\]\.all\(id, approvers\.any\(user, user\.id == id\)\)$/),
        outcome: 'true',
      },
    });
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICIES', { policyIds });
  });

  test('recorded with the denial, for members; bounded, however long the policies are', async () => {
    const long = (index: number) => `approvers.any(user, user.alias == '${String(index).repeat(600).slice(0, 600)}')`;
    const policyIds: string[] = [];
    for (let index = 0; index < 50; index += 1) {
      policyIds.push(await coordinator.createPolicy({ policyName: `long ${index}`, consensus: long(index) }));
    }
    const outsider = await coordinator.createUser('Another');
    const rename = { userId: alice.userId, userName: 'Alicia' };
    const denied = await refusal(outsider.client.submit('ACTIVITY_TYPE_UPDATE_USER_NAME', rename));
    const evaluations = denial(denied).policyEvaluations as readonly { clause?: { text: string } }[];
    const texts = evaluations.flatMap(({ clause }) => clause?.text ?? []);
    expect(Math.max(...texts.map((text) => text.length))).toBeLessThanOrEqual(201);
    expect(texts.join('').length).toBeLessThanOrEqual(8_192);
    // A refusal has no position that a reader could wait for.
    const newest = async () =>
      (await bob.client.query<{ denials: { userId: string; details: unknown }[] }>('list_denials')).denials[0];
    await until('the denial is listed', async () => (await newest())?.userId === outsider.userId);
    const { denialId: _ofResponse, ...detail } = denied.details[0]!;
    expect((await newest())!.details).toEqual([detail]);
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICIES', { policyIds });
  });

  test('not to someone who is not a member yet', async () => {
    await coordinator.client.submit('ACTIVITY_TYPE_CREATE_INVITATIONS', {
      invitations: [
        {
          receiverUserName: 'Dora',
          receiverUserEmail: 'dora@example.com',
          receiverUserTags: [],
          accessType: 'ACCESS_TYPE_ALL',
          senderUserId: coordinator.root.userId,
        },
      ],
    });
    await coordinator.settled();
    const { client, invitationId } = await invitationLinkOf(coordinator, 'dora@example.com');
    await coordinator.createPolicy({
      policyName: 'nobody joins',
      effect: 'EFFECT_DENY',
      condition: "activity.kind == 'ACCEPT_INVITATION'",
    });
    const key = coordinator.newKey();
    const denied = await refusal(
      client.submit('ACTIVITY_TYPE_ACCEPT_INVITATION', {
        invitationId,
        apiKeys: [{ apiKeyName: 'mine', publicKey: key.publicKey, curveType: key.curve }],
      }),
    );
    expect(denied.status).toBe(403);
    expect(JSON.stringify(denied)).not.toMatch(/nobody joins|ACCEPT_INVITATION'/);
  });
});

describe('a waiting activity says what it waits for', () => {
  test('how many approvals, whose, and by which part of which policy', async () => {
    const asked = await signEth(alice.client, { to: receiver, value: 1n });
    const clause = {
      name: 'consensus',
      text: `approvers.filter(user, user.tags.contains('${treasury}')).count() >= 1`,
      outcome: 'false',
    };
    const waitsFor = {
      text:
        `Waiting for 1 more approval from "Bob" or "Carol the boss" (policy "two people sign": ${clause.text}); ` +
        'or 1 more approval from the root quorum ("Root user").',
      policies: [
        {
          policyId,
          policyName: 'two people sign',
          clause,
          approvalsMissing: 1,
          approverIds: [bob.userId, carol.userId],
        },
      ],
      rootQuorum: { approvalsMissing: 1, approverIds: [coordinator.root.userId] },
    };
    expect(asked.waitsFor).toEqual(waitsFor);
    expect((await read(bob.client, asked.id)).waitsFor).toEqual(waitsFor);
    const { now } = await bob.client.query<{ now: object[] }>('get_policy_evaluations', { activityId: asked.id });
    expect(now).toContainEqual({
      policyId,
      policyName: 'two people sign',
      outcome: 'OUTCOME_REQUIRES_CONSENSUS',
      clause,
    });

    // Somebody who has no part in it is told nothing for which it would have to be read.
    const outsider = await coordinator.createUser('Somebody');
    expect((await read(outsider.client, asked.id)).waitsFor).toBeUndefined();

    const done = await bob.client.approve(asked.fingerprint);
    expect([done.status, done.waitsFor, done.decoded]).toEqual(['ACTIVITY_STATUS_COMPLETED', undefined, undefined]);
    const after = await bob.client.query<{ now?: object[] }>('get_policy_evaluations', { activityId: asked.id });
    expect(after.now).toBeUndefined();
  });

  test('from people, and not from the auth proxy', async () => {
    await coordinator.createPolicy({
      policyName: 'anyone else renames',
      condition: "activity.kind == 'UPDATE_USER_TAG'",
      consensus: 'approvers.count() >= 2',
    });
    const asked = await alice.client.submit('ACTIVITY_TYPE_UPDATE_USER_TAG', {
      userTagId: treasury,
      newUserTagName: 'treasury',
      addUserIds: [],
      removeUserIds: [],
    });
    expect(asked.waitsFor!.text).toMatch(/1 more approval from .*"Bob"/);
    expect(asked.waitsFor!.text).not.toMatch(/Auth proxy"/);
    const { users } = await coordinator.client.query<{ users: { userId: string; userName: string }[] }>('list_users');
    const proxy = users.find(({ userName }) => userName === 'Auth proxy')!;
    expect(asked.waitsFor!.policies[0]!.approverIds).not.toContain(proxy.userId);
    await bob.client.reject(asked.fingerprint);

    const either = await coordinator.createPolicy({
      policyName: 'the proxy or two more',
      condition: "activity.kind == 'UPDATE_USER_NAME'",
      consensus: `approvers.any(user, user.id == '${proxy.userId}') || approvers.count() >= 3`,
    });
    const parameters = { userId: carol.userId, userName: 'Carol' };
    const renamed = await alice.client.submit('ACTIVITY_TYPE_UPDATE_USER_NAME', parameters);
    expect(renamed.waitsFor!.policies).toMatchObject([{ policyId: either, approvalsMissing: 2 }]);
    await bob.client.reject(renamed.fingerprint);
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICIES', { policyIds: [either] });
  });

  test('in a list of activities too, to whoever could vote on them', async () => {
    const waiting: ActivityEnvelope[] = [];
    for (let nonce = 50n; nonce < 53n; nonce += 1n) {
      waiting.push(await signEth(alice.client, { to: receiver, value: 5n, nonce }));
    }
    const list = async (client: StampingClient, limit: string) => {
      const filterByStatus = ['ACTIVITY_STATUS_CONSENSUS_NEEDED'];
      const asked = { filterByStatus, paginationOptions: { limit } };
      return (await client.query<{ activities: ActivityEnvelope[] }>('list_activities', asked)).activities;
    };
    const told = (one: ActivityEnvelope) => [one.id, one.waitsFor, one.decoded, one.canApprove];
    const alone = await Promise.all(waiting.toReversed().map(async ({ id }) => told(await read(bob.client, id))));
    expect((await list(bob.client, '3')).map(told)).toEqual(alone);
    expect(alone[0]).toEqual([waiting[2]!.id, objectWith({ text: textLike(/Bob/) }), [objectWith({})], true]);

    // Nothing to whoever has no part in it, and nothing that says there was something to tell.
    const outsider = await coordinator.createUser('A stranger');
    for (const one of await list(outsider.client, '3')) {
      expect([one.waitsFor, one.decoded, one.waitsForNotComputed]).toEqual([undefined, undefined, undefined]);
    }
  });

  test('later rows of a page say that it was not told, and keep their rights', async () => {
    const small = await startCoordinator();
    try {
      const [asker, voter] = [await small.createUser('Asker'), await small.createUser('Voter')];
      for (const name of ['Third', 'Fourth']) await small.createUser(name);
      // Where order matters every sequence of voters is another, so telling who could still matter takes long.
      await small.createPolicy({
        policyName: 'costly',
        condition: "activity.kind == 'UPDATE_USER_NAME'",
        consensus: `approvers[0].id == '${asker.userId}' && approvers.count() >= 4`,
      });
      for (let index = 0; index < 15; index += 1) {
        const parameters = { userId: asker.userId, userName: `Asker ${index}` };
        await asker.client.submit('ACTIVITY_TYPE_UPDATE_USER_NAME', parameters);
      }
      const asked = { filterByStatus: ['ACTIVITY_STATUS_CONSENSUS_NEEDED'], paginationOptions: { limit: '15' } };
      const { activities } = await voter.client.query<{ activities: ActivityEnvelope[] }>('list_activities', asked);
      expect(activities.map(({ canApprove }) => canApprove)).toEqual(activities.map(() => true));
      const isTold = activities.map(({ waitsFor, waitsForNotComputed }) => [
        waitsFor !== undefined,
        waitsForNotComputed,
      ]);
      expect(isTold[0]).toEqual([true, undefined]);
      expect(isTold.at(-1)).toEqual([false, true]);
      expect(isTold).toEqual(isTold.toSorted(([a], [b]) => Number(b) - Number(a)));
    } finally {
      await small.close();
    }
  });

  test('the matchers of the harness show the clause and what is missing', async () => {
    expect.extend(matchers);
    const refuses = async (assertion: () => Promise<unknown>, said: RegExp) => {
      await expect(assertion()).rejects.toThrow(said);
    };
    const asked = signEth(alice.client, { to: receiver, value: 2n });
    const outsider = await coordinator.createUser('Nobody');
    const outcome = await matchers.toNeedApprovalFrom.call({ isNot: false, equals: Object.is }, asked, outsider);
    expect([outcome.pass, outcome.message()]).toEqual([false, textLike(/Waiting for 1 more approval from "Bob"/)]);
    const denied = signEth(outsider.client, { to: receiver, value: 2n });
    const allowed = await matchers.toBeAllowed.call({ isNot: false, equals: Object.is }, denied);
    expect(allowed.message()).toMatch(/two people sign.*consensus `approvers\.any.*` is false/s);
    await refuses(async () => {
      const { pass, message } = await matchers.toBeDeniedBy.call({ isNot: false, equals: Object.is }, asked, 'x');
      if (!pass) throw new Error(message());
    }, /Waiting for 1 more approval/);
  });
});

interface Evaluated {
  readonly policyEvaluations: readonly {
    readonly voteId: string;
    readonly outcome: string;
    readonly policyEvaluations: readonly { readonly policyId: string; readonly outcome: string }[];
  }[];
  readonly now?: readonly object[];
  readonly notExplained?: string;
}

const evaluated = (client: StampingClient, activityId: string, request: object = {}) =>
  client.query<Evaluated>('get_policy_evaluations', { activityId, ...request });

describe('a past decision says why, as of then', () => {
  const consensus = {
    name: 'consensus',
    text: textLike(/^approvers\.filter\(user, user\.tags\.contains\('.*'\)\)\.count\(\) >= 1$/),
    outcome: 'false',
  };
  const denying = { policyName: 'not to the burned', outcome: 'OUTCOME_DENY_IMPLICIT' };

  test('with the name that each policy had, its outcome and the clause, after it was renamed and deleted', async () => {
    const rename = (policyName: string) =>
      coordinator.client.submit('ACTIVITY_TYPE_UPDATE_POLICY_V2', { policyId, policyName });
    const asked = await signEth(alice.client, { to: receiver, value: 7n });
    await rename('two of us sign');
    await bob.client.approve(asked.fingerprint);
    const before = await evaluated(bob.client, asked.id);
    const [waiting, allowed] = before.policyEvaluations;
    expect([waiting!.outcome, allowed!.outcome]).toEqual(['consensus-needed', 'allow']);
    expect(waiting!.policyEvaluations).toEqual(
      expect.arrayContaining([
        { policyId, policyName: 'two people sign', outcome: 'OUTCOME_REQUIRES_CONSENSUS', clause: consensus },
        objectWith({ ...denying, clause: objectWith({ name: 'condition', outcome: 'false' }) }),
      ]),
    );
    expect(allowed!.policyEvaluations).toContainEqual({
      policyId,
      policyName: 'two of us sign',
      outcome: 'OUTCOME_ALLOW',
    });
    expect(before.notExplained).toBeUndefined();
    await rename('two people sign');

    const other = await coordinator.createPolicy({
      policyName: 'Alice renames',
      condition: "activity.kind == 'UPDATE_USER_NAME'",
      consensus: `approvers.any(user, user.id == '${alice.userId}')`,
    });
    const renamed = await alice.client.submit('ACTIVITY_TYPE_UPDATE_USER_NAME', {
      userId: carol.userId,
      userName: 'Carol "the boss"',
    });
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICIES', { policyIds: [other] });
    const { policyEvaluations } = await evaluated(carol.client, renamed.id);
    expect(policyEvaluations[0]!.policyEvaluations).toContainEqual({
      policyId: other,
      policyName: 'Alice renames',
      outcome: 'OUTCOME_ALLOW',
    });
    // Told, but not recorded: what happened is as it was.
    const recorded = JSON.stringify((await coordinator.events()).map(({ data }) => data));
    expect(recorded).not.toMatch(/"policies":\[[^\]]*"(policyName|clause)"/);

    await coordinator.restart();
    expect(await evaluated(bob.client, asked.id)).toEqual(before);
  });

  test('the current outcomes beside it, while it waits', async () => {
    const asked = await signEth(alice.client, { to: receiver, value: 8n });
    const { policyEvaluations, now } = await evaluated(bob.client, asked.id);
    expect(policyEvaluations[0]!.policyEvaluations).toEqual(now);
    await bob.client.reject(asked.fingerprint);
    // A vote against it is no decision by policies.
    expect((await evaluated(bob.client, asked.id)).policyEvaluations).toHaveLength(1);
  });

  test('for the parent’s members only, where the parent’s policies decided', async () => {
    const owner = coordinator.newKey();
    const created = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V7', {
      subOrganizationName: 'Child',
      rootUsers: [
        {
          userName: 'Owner',
          userEmail: 'owner@example.com',
          apiKeys: [{ apiKeyName: 'key', publicKey: owner.publicKey, curveType: owner.curve }],
          authenticators: [],
          oauthProviders: [],
        },
      ],
      rootQuorumThreshold: 1,
    });
    const { subOrganizationId } = Object.values(created.result)[0] as { subOrganizationId: string };
    const codes = await coordinator.createPolicy({
      policyName: 'Alice sends codes',
      condition: "activity.kind == 'INIT_OTP_AUTH'",
      consensus: `approvers.any(user, user.id == '${alice.userId}')`,
    });
    const inDoubt = await coordinator.createPolicy({
      policyName: 'Whoever it is that it names',
      condition: "activity.kind == 'INIT_OTP_AUTH' && requester.email == 'chief@example.com'",
    });
    const { id } = await alice.client.submit(
      'ACTIVITY_TYPE_INIT_OTP_AUTH',
      { otpType: 'OTP_TYPE_EMAIL', contact: 'owner@example.com' },
      { organizationId: subOrganizationId },
    );
    const asked = { organizationId: subOrganizationId };
    const [ofParent] = (await evaluated(bob.client, id, asked)).policyEvaluations;
    expect(ofParent!.policyEvaluations).toContainEqual({
      policyId: codes,
      policyName: 'Alice sends codes',
      outcome: 'OUTCOME_ALLOW',
    });
    const ownerClient = coordinator.clientFor(owner, subOrganizationId);
    const [ofChild] = (await evaluated(ownerClient, id)).policyEvaluations;
    expect(ofChild!.policyEvaluations).toContainEqual({ policyId: codes, outcome: 'OUTCOME_ALLOW' });
    expect(JSON.stringify(ofChild)).not.toMatch(/Alice sends codes|approvers/);
    // Why a policy is in doubt quotes its text, and the set is all that the parent has.
    const recordedFor = async (client: typeof bob.client, more = {}) => {
      const { events } = await client.query<{ events: { revision: string; data: object; redacted?: true }[] }>(
        'list_activity_events',
        {
          activityId: id,
          ...more,
        },
      );
      return events[0]!;
    };
    expect(JSON.stringify(ofParent)).toContain('requester.email');
    expect(JSON.stringify(ofChild)).not.toContain('requester.email');
    const toParent = await recordedFor(bob.client, asked);
    expect(JSON.stringify(toParent)).toContain('requester.email');
    expect(JSON.stringify(toParent)).toContain('policySet');
    const toChild = await recordedFor(ownerClient);
    expect(toChild.redacted).toBe(true);
    expect(JSON.stringify(toChild)).not.toMatch(/requester\.email|policySet/);
    // Nor where the parent lets its sub-organizations read their whole histories.
    await coordinator.client.submit('ACTIVITY_TYPE_SET_ORGANIZATION_FEATURE', {
      name: 'FEATURE_NAME_SUB_ORGANIZATION_EVENTS',
      value: '',
    });
    const { revision } = toParent;
    const wholeFor = async (client: typeof bob.client, more = {}) => {
      const whole = await client.query('list_events', { limit: '100', ...more });
      return [whole, await client.query('get_event', { revision, ...more })].map((told) => JSON.stringify(told));
    };
    for (const told of await wholeFor(coordinator.client, asked)) expect(told).toMatch(/requester\.email.*policySet/);
    for (const told of await wholeFor(ownerClient)) expect(told).not.toMatch(/requester\.email|policySet/);
    await coordinator.client.submit('ACTIVITY_TYPE_REMOVE_ORGANIZATION_FEATURE', {
      name: 'FEATURE_NAME_SUB_ORGANIZATION_EVENTS',
    });
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICIES', { policyIds: [codes, inDoubt] });
  });
});

describe('approvers see what they approve', () => {
  const mailTo = async (address: string) => {
    await coordinator.settled();
    return coordinator.messages().findLast(({ to }) => to === address)!;
  };

  test('receiver and amount in the unit of the chain; in the activity, the mail and the webhook', async () => {
    await coordinator.listenForWebhooks();
    const asked = await signEth(alice.client, { to: receiver, value: 1_500_000_000_000_000_000n });
    const [decoded] = asked.decoded!;
    expect(decoded!.text).toBe(`1.5 ETH to ${receiver}, on chain 1.`);
    expect(decoded!.facts).toEqual(
      expect.arrayContaining([
        { name: 'To', value: receiver },
        { name: 'Value', value: '1.5 ETH' },
        { name: 'Chain', value: '1' },
        { name: 'Highest fee', value: '0.00042 ETH' },
      ]),
    );
    expect((await read(bob.client, asked.id)).decoded).toEqual(asked.decoded);
    const { text } = await mailTo('bob@example.com');
    expect(text).toContain(`It would sign: 1.5 ETH to ${receiver}, on chain 1.`);
    expect(text).toContain('Value: 1.5 ETH');
    const told = coordinator.webhooks().map(({ body }) => body as ActivityEnvelope);
    expect(told.find(({ id }) => id === asked.id)!.decoded).toEqual(asked.decoded);
  });

  test('the call and its arguments by an uploaded interface, and that there is none', async () => {
    const abi = [
      {
        type: 'function',
        name: 'transfer',
        inputs: [
          { name: 'dst', type: 'address' },
          { name: 'note', type: 'string' },
          { name: 'wads', type: 'uint256[]' },
        ],
        outputs: [],
        stateMutability: 'nonpayable',
      },
    ] as const;
    const note = `${'A'.repeat(300)}\r\nhttps://evil.example \u202e`;
    const data = encodeFunctionData({ abi, functionName: 'transfer', args: [receiver, note, [1n, 2n]] });
    const blind = await signEth(alice.client, { to: contract, data });
    expect(blind.decoded![0]).toMatchObject({
      text: `A call to ${contract}, on chain 1.`,
      notDecoded: textLike(/decoded only where an interface of the contract is uploaded/),
    });
    await coordinator.client.submit('ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE', {
      smartContractAddress: contract,
      smartContractInterface: JSON.stringify(abi),
      type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
      label: 'Dai',
    });
    const asked = await signEth(alice.client, { to: contract, data, nonce: 1n });
    const facts = asked.decoded![0]!.facts;
    expect(facts).toEqual(
      expect.arrayContaining([
        { name: 'Function', value: 'transfer' },
        { name: 'argument.dst', value: receiver },
        { name: 'argument.note', value: `"${'A'.repeat(200)}…"` },
        { name: 'argument.wads[0]', value: '1' },
        { name: 'argument.wads[1]', value: '2' },
      ]),
    );
    const mail = await mailTo('bob@example.com');
    expect(mail.text).toContain(asked.id);
    expect(`${mail.text} ${mail.html}`).not.toMatch(/AAAA|evil|note|transfer/);
    expect(mail.text).toContain('And: more than is shown here: see the activity');
  });

  test('typed data, with words of its own in quotes, on one line and in no mail', async () => {
    const typed = {
      types: {
        EIP712Domain: [
          { name: 'name', type: 'string' },
          { name: 'chainId', type: 'uint256' },
          { name: 'verifyingContract', type: 'address' },
        ],
        Permit: [
          { name: 'spender', type: 'address' },
          { name: 'value', type: 'uint256' },
          { name: 'memo', type: 'string' },
        ],
      },
      primaryType: 'Permit',
      domain: { name: 'Evil\nhttps://evil.example', chainId: 1, verifyingContract: contract },
      message: { spender: receiver, value: '7', memo: 'pay\u2028me' },
    };
    await coordinator.createPolicy({
      policyName: 'typed data',
      condition: "activity.kind == 'SIGN_RAW_PAYLOAD'",
      consensus: 'approvers.count() >= 2',
    });
    const sign = (payload: string, encoding: string, signWith = wallet.addresses[0]!) =>
      alice.client.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', {
        signWith,
        payload,
        encoding,
        hashFunction: signWith.startsWith('0x') ? 'HASH_FUNCTION_NO_OP' : 'HASH_FUNCTION_NOT_APPLICABLE',
      } as never);
    const asked = await sign(JSON.stringify(typed), 'PAYLOAD_ENCODING_EIP712');
    expect(asked.decoded).toEqual([
      {
        text: `Typed data (EIP-712) for ${contract} on chain 1.`,
        facts: [
          { name: 'Type', value: '"Permit"' },
          { name: 'Contract', value: contract },
          { name: 'Chain', value: '1' },
          { name: 'Domain', value: '"Evil https://evil.example"' },
          { name: 'message.spender', value: receiver },
          { name: 'message.value', value: '7' },
          { name: 'message.memo', value: '"pay me"' },
        ],
      },
    ]);
    const mail = await mailTo('bob@example.com');
    expect(mail.text).toContain(asked.decoded![0]!.text);
    expect(`${mail.text} ${mail.html}`).not.toMatch(/evil|Permit|memo/i);

    // On Solana: a digest for the Ethereum address would be denied, since it may be that of too much.
    const blind = await sign('ab'.repeat(32), 'PAYLOAD_ENCODING_HEXADECIMAL', wallet.addresses[1]);
    expect(blind.decoded).toEqual([
      { text: 'Something that could not be decoded.', facts: [], notDecoded: textLike(/cannot be decoded as one/) },
    ]);
  });

  test('a transfer on Solana', async () => {
    const [, from] = wallet.addresses as [string, string];
    const to = 'So11111111111111111111111111111111111111112';
    await coordinator.createPolicy({
      policyName: 'solana',
      condition: "activity.params.type == 'TRANSACTION_TYPE_SOLANA'",
      consensus: 'approvers.count() >= 2',
    });
    const asked = await bob.client.submit('ACTIVITY_TYPE_SIGN_TRANSACTION_V2', {
      signWith: from,
      type: 'TRANSACTION_TYPE_SOLANA',
      unsignedTransaction: solanaTransfer({ from, to, lamports: 1_250_000_000n }),
    });
    expect(asked.decoded).toMatchObject([
      {
        text: `1.25 SOL to ${to}, in a Solana transaction of 1 instruction.`,
        facts: [{ name: 'Transfer', value: `1.25 SOL to ${to}` }, {}],
      },
    ]);
  });
});
