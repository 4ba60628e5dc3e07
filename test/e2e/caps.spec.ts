import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { refusal, textLike } from './exchange.js';

let coordinator: TestCoordinator;

beforeAll(async () => {
  const settings = { RATE_LIMIT_PER_ADDRESS: '100000', RATE_LIMIT_PER_ORGANIZATION: '100000' };
  coordinator = await startCoordinator({ seed: 'caps', settings });
});
afterAll(() => coordinator.close());

const usersNamed = (...names: readonly string[]) =>
  names.map((userName) => ({ userName, apiKeys: [], authenticators: [], oauthProviders: [], userTags: [] }));

test('of one submitter so many activities wait for votes, and so many characters; whoever decides makes room', async () => {
  const { client } = coordinator;
  const mallory = await coordinator.createUser('Mallory');
  await coordinator.createPolicy({
    policyName: 'creating needs the root user',
    condition: "activity.action == 'CREATE'",
    consensus: `approvers.any(user, user.id == '${mallory.userId}') && approvers.any(user, user.id == '${coordinator.root.userId}')`,
  });
  const tag = (name: string) =>
    mallory.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: name, userIds: [] });
  const waiting = [];
  for (let index = 0; index < 100; index++) waiting.push(await tag(`tag ${index}`));
  expect(await refusal(tag('one too many'))).toMatchObject({
    status: 429,
    code: 8,
    message: textLike(/100 activities may wait .* 100 wait/),
  });
  // Others are not concerned.
  expect((await client.submit('ACTIVITY_TYPE_UPDATE_ORGANIZATION_NAME', { organizationName: 'Acme' })).status).toBe(
    'ACTIVITY_STATUS_COMPLETED',
  );
  for (const { fingerprint } of waiting) await client.submit('ACTIVITY_TYPE_REJECT_ACTIVITY', { fingerprint });

  const large = (index: number) =>
    mallory.client.submit('ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE', {
      smartContractAddress: `0x${String(index).padStart(40, '0')}`,
      smartContractInterface: JSON.stringify([{ type: 'function', name: 'f', inputs: [] }]).padEnd(399_000),
      type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
      label: `large ${index}`,
    });
  for (let index = 0; index < 21; index++) await large(index);
  expect(await refusal(large(21))).toMatchObject({
    status: 429,
    message: textLike(/8388608 characters in all: 21 wait/),
  });
  expect((await tag('a small one')).status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
});

test('an organization has 100 users, and says so to whoever wants more', async () => {
  const { client } = coordinator;
  const { users } = await client.query<{ users: object[] }>('list_users');
  const create = (...names: readonly string[]) =>
    client.submit('ACTIVITY_TYPE_CREATE_USERS_V4', { users: usersNamed(...names) });
  const room = 100 - users.length;
  await create(...Array.from({ length: room - 1 }, (_, index) => `user ${index}`));
  expect(await refusal(create('two', 'more'))).toMatchObject({
    status: 429,
    code: 8,
    message: textLike('an organization may have 100 users: it has 99, and 2 more were to be created'),
  });
  await create('the last');
  expect(await refusal(create('one more'))).toMatchObject({ status: 429 });
});
