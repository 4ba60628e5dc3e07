import { deleteUserTags } from '../../../src/activities/tags/delete-user-tags.js';
import { anOrganization, aUser, aUserTag } from '../facts.js';
import { given, id } from '../given.js';

const [ann, bob, cal] = [id(101), id(102), id(103)];
const [admins, robots, owners] = [id(401), id(402), id(403)];
const history = [
  anOrganization(),
  aUserTag(admins, 'admins'),
  aUserTag(robots, 'robots'),
  aUserTag(owners, 'owners'),
  aUser(ann, { userTags: [owners, admins, robots] }),
  aUser(bob, { userTags: [owners] }),
  aUser(cal, { userTags: [robots] }),
];

describe('delete user tags', () => {
  it('deletes the tags, takes them from whoever carried any, and names those', () =>
    given(...history)
      .when(deleteUserTags, { userTagIds: [robots, admins] })
      .then(
        [
          { type: 'UserUpdated', data: { userId: ann, userTags: [owners] } },
          { type: 'UserUpdated', data: { userId: cal, userTags: [] } },
          { type: 'UserTagDeleted', data: { tagId: robots } },
          { type: 'UserTagDeleted', data: { tagId: admins } },
        ],
        { userTagIds: [robots, admins], userIds: [ann, cal] },
      ));

  it('deletes a tag that nobody carries', () =>
    given(anOrganization(), aUserTag(admins, 'admins'), aUser(ann))
      .when(deleteUserTags, { userTagIds: [admins] })
      .then([{ type: 'UserTagDeleted', data: { tagId: admins } }], { userTagIds: [admins], userIds: [] }));

  it('deletes none when one is not there', () =>
    given(...history)
      .when(deleteUserTags, { userTagIds: [admins, id(404)] })
      .thenRefused('NOT_FOUND', new RegExp(`no user tag \`${id(404)}\``)));

  it('refuses an empty list', () =>
    given(...history)
      .when(deleteUserTags, { userTagIds: [] })
      .thenRefused('INVALID_ARGUMENT', /parameters\.userTagIds: must have 1 to 100 elements/));
});
