import { updateUserEmail } from '../../../src/activities/users/update-user-email.js';
import { anOrganization, aUser } from '../facts.js';
import { given, id } from '../given.js';

const ann = id(101);
const history = [anOrganization(), aUser(ann, { userEmail: 'old@example.com' })];

describe('update user email', () => {
  it.each([
    ['changes the address', 'new@example.com'],
    ['removes the address', ''],
  ])('%s', (_what, userEmail) =>
    given(...history)
      .when(updateUserEmail, { userId: ann, userEmail })
      .then([{ type: 'UserUpdated', data: { userId: ann, userEmail } }], { userId: ann }),
  );

  it.each([
    ['no address', {}, /parameters\.userEmail: is required/],
    ['what is no address', { userEmail: 'ann' }, /parameters\.userEmail: must be an e-mail address, got `ann`/],
    [
      'a token that nobody issued',
      { userEmail: 'new@example.com', verificationToken: 'eyJhbGciOiJFUzI1NiJ9' },
      /^invalid request: parameters\.verificationToken: is not a token of this server, which has not issued any yet: send none, and the contact stays unverified$/,
    ],
  ])('refuses %s', (_what, intent, message) =>
    given(...history)
      .when(updateUserEmail, { userId: ann, ...intent })
      .thenRefused('INVALID_ARGUMENT', message),
  );

  it('refuses a user that is not there', () =>
    given(...history)
      .when(updateUserEmail, { userId: id(102), userEmail: '' })
      .thenRefused('NOT_FOUND', new RegExp(`no user \`${id(102)}\``)));
});
