import { updateUser } from '../../../src/activities/users/update-user.js';
import { anOrganization, aUser, aUserTag } from '../facts.js';
import { given, id } from '../given.js';

const ann = id(101);
const history = [
  anOrganization(),
  aUserTag(id(401), 'admins'),
  aUserTag(id(402), 'robots'),
  aUser(ann, { userTags: [id(401)] }),
];

describe('update user', () => {
  it('changes everything that is sent', () =>
    given(...history)
      .when(updateUser, {
        userId: ann,
        userName: 'Anna',
        userEmail: 'anna@example.com',
        userPhoneNumber: '+13214567890',
        userTagIds: [id(402)],
      })
      .then(
        [
          {
            type: 'UserUpdated',
            data: {
              userId: ann,
              userName: 'Anna',
              userEmail: 'anna@example.com',
              userPhoneNumber: '+13214567890',
              userTags: [id(402)],
            },
          },
        ],
        { userId: ann },
      ));

  it('leaves the tags alone when the list is empty, as clients send it when they do not mean tags', () =>
    given(...history)
      .when(updateUser, { userId: ann, userName: 'Anna', userTagIds: [] })
      .then([{ type: 'UserUpdated', data: { userId: ann, userName: 'Anna' } }], { userId: ann }));

  it.each([{}, { userTagIds: [] }])('changes nothing when nothing is sent: %j', (changes) =>
    given(...history)
      .when(updateUser, { userId: ann, ...changes })
      .then([], { userId: ann }),
  );

  it.each([{ userEmail: '' }, { userPhoneNumber: '' }])(
    'leaves a contact alone when its text is empty: %j',
    (changes) =>
      given(...history)
        .when(updateUser, { userId: ann, userName: 'Anna', ...changes })
        .then([{ type: 'UserUpdated', data: { userId: ann, userName: 'Anna' } }], { userId: ann }),
  );

  it.each(['userEmail', 'userPhoneNumber'])('refuses a contact that is blank: %s', (name) =>
    given(...history)
      .when(updateUser, { userId: ann, [name]: ' ' })
      .thenRefused('INVALID_ARGUMENT', new RegExp(`parameters\\.${name}: must be an? `)),
  );

  it('refuses a tag that is not there', () =>
    given(...history)
      .when(updateUser, { userId: ann, userTagIds: [id(403)] })
      .thenRefused('NOT_FOUND', new RegExp(`no user tag \`${id(403)}\``)));

  it('refuses a user that is not there', () =>
    given(...history)
      .when(updateUser, { userId: id(102), userName: 'Bob' })
      .thenRefused('NOT_FOUND', new RegExp(`no user \`${id(102)}\``)));
});
