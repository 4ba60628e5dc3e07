import { updateUserTag } from '../../../src/activities/tags/update-user-tag.js';
import { anOrganization, aUser, aUserTag } from '../facts.js';
import { given, id } from '../given.js';

const ann = id(101);
const bob = id(102);
const admins = id(401);
const robots = id(402);
const history = [
  anOrganization(),
  aUserTag(admins, 'admins'),
  aUserTag(robots, 'robots'),
  aUser(ann, { userTags: [robots, admins] }),
  aUser(bob),
];

describe('update user tag', () => {
  it('renames the tag, gives it and takes it', () =>
    given(...history)
      .when(updateUserTag, {
        userTagId: admins,
        newUserTagName: 'owners',
        addUserIds: [bob],
        removeUserIds: [ann],
      })
      .then(
        [
          { type: 'UserTagUpdated', data: { tagId: admins, tagName: 'owners' } },
          { type: 'UserUpdated', data: { userId: bob, userTags: [admins] } },
          { type: 'UserUpdated', data: { userId: ann, userTags: [robots] } },
        ],
        { userTagId: admins },
      ));

  it('does nothing for users who carry it already, or do not carry it', () =>
    given(...history)
      .when(updateUserTag, { userTagId: admins, addUserIds: [ann], removeUserIds: [bob] })
      .then([], { userTagId: admins }));

  it.each([{}, { addUserIds: [], removeUserIds: [] }])('changes nothing when nothing is sent: %j', (changes) =>
    given(...history)
      .when(updateUserTag, { userTagId: admins, ...changes })
      .then([], { userTagId: admins }),
  );

  it('keeps its own name', () =>
    given(...history)
      .when(updateUserTag, { userTagId: admins, newUserTagName: 'admins', addUserIds: [], removeUserIds: [] })
      .then([{ type: 'UserTagUpdated', data: { tagId: admins, tagName: 'admins' } }], { userTagId: admins }));

  it.each([
    ['the name of another', { newUserTagName: 'robots' }, /^user tag label must be unique: `robots`/],
    [
      'a user in both lists',
      { addUserIds: [bob, ann], removeUserIds: [ann] },
      new RegExp(`parameters\\.removeUserIds: lists user \`${ann}\`, who is also in addUserIds`),
    ],
  ])('refuses %s', (_what, changes, message) =>
    given(...history)
      .when(updateUserTag, { userTagId: admins, ...changes })
      .thenRefused('INVALID_ARGUMENT', message),
  );

  it.each([
    ['tag', { userTagId: id(403), addUserIds: [ann] }, /no user tag/],
    ['user to give it to', { userTagId: admins, addUserIds: [id(103)] }, /no user `/],
    ['user to take it from', { userTagId: admins, removeUserIds: [id(103)] }, /no user `/],
  ])('refuses a %s that is not there', (_what, intent, message) =>
    given(...history)
      .when(updateUserTag, intent)
      .thenRefused('NOT_FOUND', message),
  );
});
