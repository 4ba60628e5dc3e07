import { deleteUsers } from '../../../src/activities/users/delete-users.js';
import { anApiKey, anOrganization, aRootQuorum, aUser } from '../facts.js';
import { given, id } from '../given.js';

const ann = id(101);
const bob = id(102);
const cal = id(103);
const history = [anOrganization(), aUser(ann), aUser(bob), aUser(cal), anApiKey(bob, 11), aRootQuorum(1, ann)];

describe('delete users', () => {
  it('deletes the users in the order given', () =>
    given(...history)
      .when(deleteUsers, { userIds: [cal, bob] })
      .then(
        [
          { type: 'UserDeleted', data: { userId: cal } },
          { type: 'UserDeleted', data: { userId: bob } },
        ],
        { userIds: [cal, bob] },
      ));

  it('refuses a member of the root quorum, however many are left', () => {
    const refused = /is a member of the root quorum: remove the user from it with update_root_quorum first/;
    given(...history)
      .when(deleteUsers, { userIds: [bob, ann] })
      .thenRefused('FAILED_PRECONDITION', refused);
    given(...history, aRootQuorum(1, ann, bob, cal))
      .when(deleteUsers, { userIds: [bob] })
      .thenRefused('FAILED_PRECONDITION', refused);
  });

  it('deletes none when one is not there', () =>
    given(...history)
      .when(deleteUsers, { userIds: [bob, id(104)] })
      .thenRefused('NOT_FOUND', new RegExp(`no user \`${id(104)}\``)));

  it.each([
    ['an empty list', [], /parameters\.userIds: must have 1 to 100 elements/],
    ['a user twice', [bob, bob], /parameters\.userIds: must not list an id twice/],
  ])('refuses %s', (_what, userIds, message) =>
    given(...history)
      .when(deleteUsers, { userIds })
      .thenRefused('INVALID_ARGUMENT', message),
  );
});
