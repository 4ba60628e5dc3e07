import { updateUserPhoneNumber } from '../../../src/activities/users/update-user-phone-number.js';
import { anOrganization, aUser } from '../facts.js';
import { given, id } from '../given.js';

const ann = id(101);
const history = [anOrganization(), aUser(ann, { userPhoneNumber: '+13214567890' })];

describe('update user phone number', () => {
  it.each([
    ['changes the number', '+4915112345678'],
    ['removes the number', ''],
  ])('%s', (_what, userPhoneNumber) =>
    given(...history)
      .when(updateUserPhoneNumber, { userId: ann, userPhoneNumber })
      .then([{ type: 'UserUpdated', data: { userId: ann, userPhoneNumber } }], { userId: ann }),
  );

  it.each([
    ['no number', {}, /parameters\.userPhoneNumber: is required/],
    ['a number that is not E.164', { userPhoneNumber: '0151' }, /userPhoneNumber: must be a phone number in E\.164/],
    [
      'a token that nobody issued',
      { userPhoneNumber: '', verificationToken: 'eyJhbGciOiJFUzI1NiJ9' },
      /parameters\.verificationToken: is not a token of this server/,
    ],
  ])('refuses %s', (_what, intent, message) =>
    given(...history)
      .when(updateUserPhoneNumber, { userId: ann, ...intent })
      .thenRefused('INVALID_ARGUMENT', message),
  );

  it('refuses a user that is not there', () =>
    given(...history)
      .when(updateUserPhoneNumber, { userId: id(102), userPhoneNumber: '' })
      .thenRefused('NOT_FOUND', new RegExp(`no user \`${id(102)}\``)));
});
