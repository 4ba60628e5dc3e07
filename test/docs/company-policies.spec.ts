import { readFileSync } from 'node:fs';
import { keccak256, serializeTransaction, toHex, type Hex } from 'viem';
import { startCoordinator, type StampingClient, type TestCoordinator, type TestUser } from '../../src/testing/index.js';
import { refusal } from '../e2e/exchange.js';

const page = readFileSync(new URL('../../docs/how-to/company-policies.md', import.meta.url), 'utf8');
const sections = [...page.matchAll(/^## (\d+)\. .+$[^]*?```json\n([^]*?)```/gm)];

let coordinator: TestCoordinator;
let people: Record<'ann' | 'tom' | 'tina' | 'otto' | 'ci' | 'second', TestUser>;
let ids: Record<string, string>;
let ethereum: Hex;

const [known, stranger]: readonly [Hex, Hex] = [
  '0x00000000000000000000000000000000000000aa',
  '0x00000000000000000000000000000000000000cc',
];

beforeAll(async () => {
  // A Friday, 13:00 in Berlin.
  coordinator = await startCoordinator({ seed: 'company policies', at: new Date('2026-01-02T12:00:00Z') });
  const tag = async (userTagName: string) => {
    const parameters = { userTagName, userIds: [] };
    const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', parameters);
    return (result['createUserTagResult'] as { userTagId: string }).userTagId;
  };
  const [treasurer, operator] = [await tag('treasurer'), await tag('operator')];
  people = {
    ann: await coordinator.createUser('Ann'),
    tom: await coordinator.createUser('Tom', { userTags: [treasurer] }),
    tina: await coordinator.createUser('Tina', { userTags: [treasurer] }),
    otto: await coordinator.createUser('Otto', { userTags: [operator] }),
    ci: await coordinator.createUser('CI'),
    second: await coordinator.createUser('Second'),
  };
  const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_WALLET', {
    walletName: 'Treasury',
    accounts: [
      {
        curve: 'CURVE_SECP256K1',
        pathFormat: 'PATH_FORMAT_BIP32',
        path: "m/44'/60'/0'/0/0",
        addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
      },
    ],
  });
  const wallet = result['createWalletResult'] as { walletId: string; addresses: [Hex] };
  [ethereum] = wallet.addresses;
  ids = {
    'treasury wallet': wallet.walletId,
    'treasurer tag': treasurer,
    'operator tag': operator,
    CI: people.ci.userId,
  };
});

afterAll(() => coordinator.close());

/** Writes the policy of a section, with our ids for what is in angle brackets, as long as `run` takes. */
async function under(number: number, run: () => Promise<void>): Promise<void> {
  const [, , json = ''] = sections.find(([, at]) => Number(at) === number)!;
  const text = json.replace(/<([^>]+)>/g, (_whole, name: string) => ids[name]!);
  const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_POLICY_V3', JSON.parse(text) as object);
  try {
    await run();
  } finally {
    const { policyId } = result['createPolicyResult'] as { policyId: string };
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
  }
}

/** As long as `run` takes, Ann alone may do all of a kind. */
async function annMay(condition: string, run: () => Promise<void>): Promise<void> {
  const consensus = `approvers.any(user, user.id == '${people.ann.userId}')`;
  const policyId = await coordinator.createPolicy({ policyName: `Ann may ${condition}`, condition, consensus });
  try {
    await run();
  } finally {
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
  }
}

const status = async (attempt: Promise<{ status: string }>) =>
  attempt.then(
    (activity) => activity.status.replace('ACTIVITY_STATUS_', ''),
    async (error: unknown) => (await refusal(Promise.reject(error as Error))).status,
  );
const raw = (client: StampingClient, more: object = {}) =>
  client.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', {
    signWith: ethereum,
    payload: 'ab'.repeat(32),
    encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
    hashFunction: 'HASH_FUNCTION_NO_OP',
    ...more,
  });
const transaction = (more: object) =>
  serializeTransaction({ type: 'legacy', chainId: 1, nonce: 0, gas: 90_000n, gasPrice: 1n, ...more });
const pay = (client: StampingClient, more: object) =>
  client.submit('ACTIVITY_TYPE_SIGN_TRANSACTION_V2', {
    signWith: ethereum,
    type: 'TRANSACTION_TYPE_ETHEREUM',
    unsignedTransaction: transaction(more),
  });
let names = 0;
const newWallet = (client: StampingClient) =>
  client.submit('ACTIVITY_TYPE_CREATE_WALLET', { walletName: `wallet ${++names}`, accounts: [] });

test('the page has eleven policies, of which test/e2e/stamp-login.spec.ts has the last', () => {
  expect(sections.map(([, number]) => Number(number))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
});

test('1: two treasurers sign; one of them with anybody else is not enough', () =>
  under(1, async () => {
    const { tom, tina, otto, ann } = people;
    expect(await status(raw(ann.client))).toBe(403);
    const asked = await raw(tom.client);
    expect(asked.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    expect(await status(otto.client.approve(asked.fingerprint))).toBe(403);
    expect(await status(tina.client.approve(asked.fingerprint))).toBe('COMPLETED');
  }));

test('2: a treasurer approves, but not the one who asked', () =>
  under(2, async () => {
    const { tom, tina, ann } = people;
    const byAnn = await newWallet(ann.client);
    expect(byAnn.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    expect(await status(tom.client.approve(byAnn.fingerprint))).toBe('COMPLETED');
    const byTom = await newWallet(tom.client);
    expect(byTom.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    expect(await status(tina.client.approve(byTom.fingerprint))).toBe('COMPLETED');
  }));

test('3: a freeze stops everybody but the root quorum', () =>
  annMay("activity.action == 'SIGN'", async () => {
    expect(await status(raw(people.ann.client))).toBe('COMPLETED');
    await under(3, async () => {
      expect(await status(raw(people.ann.client, { payload: 'cd'.repeat(32) }))).toBe(403);
      expect(await status(raw(coordinator.client))).toBe('COMPLETED');
    });
  }));

test('4: a limit holds over an ALLOW', () =>
  annMay("activity.action == 'SIGN'", () =>
    under(4, async () => {
      const { client } = people.ann;
      expect(await status(pay(client, { to: known, value: 10n ** 18n }))).toBe('COMPLETED');
      expect(await status(pay(client, { to: known, value: 10n ** 18n + 1n }))).toBe(403);
      expect(await status(pay(client, { to: known, value: 2n ** 127n }))).toBe(403);
      expect(await status(pay(client, { to: known, data: '0x12345678' }))).toBe(403);
    }),
  ));

test('5: only known receivers get anything', () =>
  annMay("activity.action == 'SIGN'", () =>
    under(5, async () => {
      const { client } = people.ann;
      expect(await status(pay(client, { to: known, value: 1n }))).toBe('COMPLETED');
      expect(await status(pay(client, { to: stranger, value: 1n }))).toBe(403);
      expect(await status(pay(client, { data: '0x6000' }))).toBe(403);
    }),
  ));

test('6: CI signs one kind of call', () =>
  under(6, async () => {
    const call = (more: object) => status(pay(people.ci.client, { to: known, data: '0x3fb5c1cb00', ...more }));
    expect(await call({})).toBe('COMPLETED');
    for (const more of [{ to: stranger }, { data: '0x3fb5c1cc' }, { chainId: 5 }, { value: 1n }]) {
      expect(await call(more)).toBe(403);
    }
    expect(await status(pay(people.ann.client, { to: known, data: '0x3fb5c1cb' }))).toBe(403);
    expect(await status(raw(people.ci.client))).toBe(403);
  }));

test('7: keys sign in office hours', () =>
  under(7, async () => {
    expect(await status(newWallet(people.otto.client))).toBe('COMPLETED');
    coordinator.clock.advance('5h');
    expect(await status(newWallet(people.otto.client))).toBe(403);
  }));

test('8: keys leave by the quorum alone', () =>
  annMay("activity.resource == 'WALLET'", () =>
    under(8, async () => {
      const target = `04${'ab'.repeat(64)}`;
      const exported = (client: StampingClient) =>
        client.submit('ACTIVITY_TYPE_EXPORT_WALLET', { walletId: ids['treasury wallet'], targetPublicKey: target });
      expect(await status(newWallet(people.ann.client))).toBe('COMPLETED');
      expect(await status(exported(people.ann.client))).toBe(403);
    }),
  ));

test('9: nobody signs blindly, neither a digest nor the bytes of it', () =>
  annMay("activity.action == 'SIGN'", () =>
    under(9, async () => {
      const { client } = people.ann;
      const bytes = transaction({ to: stranger, value: 5n });
      expect(await status(raw(client, { payload: keccak256(bytes) }))).toBe(403);
      expect(await status(raw(client, { payload: bytes, hashFunction: 'HASH_FUNCTION_KECCAK256' }))).toBe(403);
      const text = { payload: 'hello', encoding: 'PAYLOAD_ENCODING_TEXT_UTF8', hashFunction: 'HASH_FUNCTION_SHA256' };
      expect(await status(raw(client, text))).toBe(403);
      const several = client.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOADS', {
        signWith: ethereum,
        payloads: [toHex(1, { size: 32 })],
        encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
        hashFunction: 'HASH_FUNCTION_NO_OP',
      });
      expect(await status(several)).toBe(403);
      const typed = JSON.stringify({
        types: { EIP712Domain: [{ name: 'name', type: 'string' }], Mail: [{ name: 'text', type: 'string' }] },
        domain: { name: 'post' },
        primaryType: 'Mail',
        message: { text: 'hello' },
      });
      expect(await status(raw(client, { payload: typed, encoding: 'PAYLOAD_ENCODING_EIP712' }))).toBe('COMPLETED');
      expect(await status(pay(client, { to: known }))).toBe('COMPLETED');
    }),
  ));

test('10: nobody gives a role to themselves or to somebody they invite', () =>
  annMay("activity.resource in ['USER', 'INVITATION']", () =>
    under(10, async () => {
      const { client, userId } = people.ann;
      const treasurer = ids['treasurer tag']!;
      const attempts: readonly (readonly [string, object])[] = [
        ['UPDATE_USER_TAG', { userTagId: treasurer, addUserIds: [userId], removeUserIds: [] }],
        ['UPDATE_USER', { userId, userTagIds: [treasurer] }],
        [
          'CREATE_INVITATIONS',
          {
            invitations: [
              {
                receiverUserName: 'Eve',
                receiverUserEmail: 'eve@example.com',
                receiverUserTags: [treasurer],
                accessType: 'ACCESS_TYPE_ALL',
                senderUserId: userId,
              },
            ],
          },
        ],
      ];
      for (const [type, parameters] of attempts) {
        expect([type, await status(client.submit(`ACTIVITY_TYPE_${type}`, parameters))]).toEqual([type, 403]);
      }
      const renamed = client.submit('ACTIVITY_TYPE_UPDATE_USER_NAME', { userId, userName: 'Anna' });
      expect(await status(renamed)).toBe('COMPLETED');
    }),
  ));
