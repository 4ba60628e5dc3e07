import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { refusal, textLike } from './exchange.js';

/*
 * A policy that compares with what nothing can be says nothing, and nobody sees that a DENY is silent: it is refused when it
 * is written. test/nets/names.spec.ts tries each place and each way to say it.
 */

let coordinator: TestCoordinator;
const nobody = '00000000-0000-4000-8000-000000000000';

beforeAll(async () => {
  coordinator = await startCoordinator({ seed: 'known literals' });
});

afterAll(() => coordinator.close());

async function result<Result>(type: string, parameters: object, key: string): Promise<Result> {
  return (await coordinator.client.submit(`ACTIVITY_TYPE_${type}`, parameters)).result[key] as Result;
}
const newUserTag = async (userTagName: string) =>
  (await result<{ userTagId: string }>('CREATE_USER_TAG', { userTagName, userIds: [] }, 'createUserTagResult'))
    .userTagId;
const deleteUserTag = (userTagId: string) =>
  coordinator.client.submit('ACTIVITY_TYPE_DELETE_USER_TAGS', { userTagIds: [userTagId] });

describe('a policy that compares with what nothing can be is refused, with what was meant', () => {
  const typo = {
    policyName: 'wallets',
    effect: 'EFFECT_DENY',
    notes: '',
    condition: "activity.resource == 'WALLETS'",
  } as const;
  const meant =
    /^invalid policy condition: unknown activity resource `WALLETS`: did you mean `WALLET`\? \(line 1, column 22\)/;

  test('by create_policy and create_policies', async () => {
    const submit = (type: string, parameters: object) =>
      refusal(coordinator.client.submit(`ACTIVITY_TYPE_${type}`, parameters));
    expect(await submit('CREATE_POLICY_V3', typo)).toMatchObject({ status: 400, code: 3, message: textLike(meant) });
    const good = { ...typo, policyName: 'wallet', condition: "activity.resource == 'WALLET'" };
    expect(await submit('CREATE_POLICIES', { policies: [good, typo] })).toMatchObject({
      status: 400,
      message: textLike(/did you mean `WALLET`\?.*\(policies\[1\], `wallets`\)/),
    });
    expect(
      await submit('CREATE_POLICY_V3', {
        ...typo,
        condition: undefined,
        consensus: `approvers.any(user, user.tags.contains('${nobody}'))`,
      }),
    ).toMatchObject({
      status: 400,
      message: textLike(`^invalid policy consensus: unknown user tag \`${nobody}\` \\(line 1`),
    });
  });

  test('by update_policy, which looks only at what it is sent', async () => {
    const tagId = await newUserTag('passing');
    const policyId = await coordinator.createPolicy({
      policyName: 'by tag',
      consensus: `approvers.any(user, user.tags.contains('${tagId}'))`,
    });
    const update = (changes: object) =>
      coordinator.client.submit('ACTIVITY_TYPE_UPDATE_POLICY_V2', { policyId, ...changes });
    expect(await refusal(update({ policyCondition: typo.condition }))).toMatchObject({ message: textLike(meant) });
    // An ALLOW does not hold a tag: without it, it allows nothing any more.
    await deleteUserTag(tagId);
    expect(await update({ policyName: 'by a tag that is gone' })).toMatchObject({
      status: 'ACTIVITY_STATUS_COMPLETED',
    });
  });
});
