import { updateRootQuorum } from '../../../src/activities/organization/update-root-quorum.js';
import { anApiKey, anOrganization, aPasskey, aRootQuorum, aUser } from '../facts.js';
import { given, id } from '../given.js';

const [ann, bob, cal] = [id(101), id(102), id(103)];
const history = [
  anOrganization(),
  aUser(ann),
  aUser(bob),
  aUser(cal),
  anApiKey(ann, 11),
  aPasskey(bob, 21),
  anApiKey(cal, 12, { expirationSeconds: 60 }),
  aRootQuorum(1, ann),
];

describe('update root quorum', () => {
  it('changes threshold and users', () =>
    given(...history)
      .when(updateRootQuorum, { threshold: 2, userIds: [bob, ann] })
      .then([{ type: 'RootQuorumUpdated', data: { threshold: 2, userIds: [bob, ann] } }], {}));

  it('takes users without a credential as long as the others are enough', () =>
    given(...history)
      .when(updateRootQuorum, { threshold: 2, userIds: [ann, bob, cal] })
      .then([{ type: 'RootQuorumUpdated', data: { threshold: 2, userIds: [ann, bob, cal] } }], {}));

  it('refuses a quorum that its users could not reach', () =>
    given(...history)
      .when(updateRootQuorum, { threshold: 2, userIds: [ann, cal] })
      .thenRefused(
        'FAILED_PRECONDITION',
        /the root quorum requires 2 of 2 users, but only 1 of them would have a credential/,
      ));

  it('refuses a user that is not there', () =>
    given(...history)
      .when(updateRootQuorum, { threshold: 1, userIds: [ann, id(104)] })
      .thenRefused('NOT_FOUND', new RegExp(`no user \`${id(104)}\``)));

  it.each([
    [
      'a threshold of none',
      { threshold: 0, userIds: [ann] },
      /parameters\.threshold: must be a whole number from 1 to 100/,
    ],
    ['half a user', { threshold: 1.5, userIds: [ann, bob] }, /parameters\.threshold: must be a whole number/],
    [
      'more than there are',
      { threshold: 2, userIds: [ann] },
      /parameters\.threshold: must not exceed the number of users, 1, got `2`/,
    ],
    ['nobody', { threshold: 1, userIds: [] }, /parameters\.userIds: must have 1 to 100 elements/],
    ['a user twice', { threshold: 2, userIds: [ann, ann] }, /parameters\.userIds: must not list an id twice/],
  ])('refuses %s', (_what, intent, message) =>
    given(...history)
      .when(updateRootQuorum, intent)
      .thenRefused('INVALID_ARGUMENT', message),
  );
});
