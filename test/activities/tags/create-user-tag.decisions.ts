import { createUserTag } from '../../../src/activities/tags/create-user-tag.js';
import { anOrganization, aUser, aUserTag } from '../facts.js';
import { given, id } from '../given.js';

const ann = id(101);
const bob = id(102);
const people = [aUser(ann, { userTags: [id(401)] }), aUser(bob)];
const history = [anOrganization(), aUserTag(id(401), 'admins'), ...people];
const tags = (count: number) => Array.from({ length: count }, (_, index) => aUserTag(id(500 + index), `t${index}`));

describe('create user tag', () => {
  it('creates the tag and gives it to the users', () =>
    given(...history)
      .when(createUserTag, { userTagName: 'robots', userIds: [bob, ann] })
      .then(
        [
          { type: 'UserTagCreated', data: { tagId: id(1), tagName: 'robots' } },
          { type: 'UserUpdated', data: { userId: bob, userTags: [id(1)] } },
          { type: 'UserUpdated', data: { userId: ann, userTags: [id(401), id(1)] } },
        ],
        { userTagId: id(1), userIds: [bob, ann] },
      ));

  it.each([[{}], [{ userIds: [] }]])('creates a tag that nobody carries: %j', (rest) =>
    given(...history)
      .when(createUserTag, { userTagName: 'robots', ...rest })
      .then([{ type: 'UserTagCreated', data: { tagId: id(1), tagName: 'robots' } }], {
        userTagId: id(1),
        userIds: [],
      }),
  );

  it('refuses a name that another tag has', () =>
    given(...history)
      .when(createUserTag, { userTagName: 'admins', userIds: [] })
      .thenRefused(
        'INVALID_ARGUMENT',
        new RegExp(`^user tag label must be unique: \`admins\` is taken, it is the name of user tag \`${id(401)}\`$`),
      ));

  it('refuses a user that is not there', () =>
    given(...history)
      .when(createUserTag, { userTagName: 'robots', userIds: [ann, id(103)] })
      .thenRefused('NOT_FOUND', new RegExp(`no user \`${id(103)}\``)));

  it.each([
    ['a hundred and first', anOrganization(), 100],
    ['an eleventh of a sub-organization', anOrganization({ parentOrganizationId: id(701) }), 10],
  ])('refuses %s', (_what, organization, most) => {
    given(organization, ...tags(most - 1))
      .when(createUserTag, { userTagName: 'last' })
      .then([expect.objectContaining({ type: 'UserTagCreated' })], { userTagId: id(1), userIds: [] });
    given(organization, ...tags(most))
      .when(createUserTag, { userTagName: 'more' })
      .thenRefused('RESOURCE_EXHAUSTED', new RegExp(`has ${most} user tags, which is the limit`));
  });

  it('refuses an empty name', () =>
    given(...history)
      .when(createUserTag, { userTagName: '', userIds: [] })
      .thenRefused('INVALID_ARGUMENT', /parameters\.userTagName: must have 1 to 255 characters/));
});
