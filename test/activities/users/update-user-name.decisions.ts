import { updateUserName } from '../../../src/activities/users/update-user-name.js';
import { given, id } from '../given.js';

const ann = { type: 'UserCreated', data: { userId: id(101), userName: 'Ann', userTags: [] } } as const;

describe('update user name', () => {
  it('renames the user', () =>
    given(ann)
      .when(updateUserName, { userId: id(101), userName: 'Anna' })
      .then([{ type: 'UserUpdated', data: { userId: id(101), userName: 'Anna' } }], { userId: id(101) }));

  it('refuses a user that is not there, naming it', () =>
    given(ann)
      .when(updateUserName, { userId: id(102), userName: 'Bob' })
      .thenRefused('NOT_FOUND', new RegExp(`no user \`${id(102)}\``)));

  it.each([
    ['an empty name', { userId: id(101), userName: '' }, /parameters\.userName: must have 1 to 255 characters, has 0/],
    ['a name of a wrong type', { userId: id(101), userName: 7 }, /parameters\.userName: must be a string/],
    ['no user', { userName: 'Anna' }, /parameters\.userId: is required/],
    ['an unknown field', { userId: id(101), userName: 'A', x: 1 }, /parameters\.x: is not a field of this request/],
  ])('refuses %s', (_what, intent, message) =>
    given(ann).when(updateUserName, intent).thenRefused('INVALID_ARGUMENT', message),
  );
});
