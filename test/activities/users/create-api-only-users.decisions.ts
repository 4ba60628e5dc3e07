import { createApiOnlyUsers } from '../../../src/activities/users/create-api-only-users.js';
import { anApiKey, anOrganization, aUser, aUserTag, publicKeyOf } from '../facts.js';
import { given, id } from '../given.js';

const history = [anOrganization(), aUserTag(id(401), 'robots')];
const key = (number: number) => ({ apiKeyName: `key ${number}`, publicKey: publicKeyOf(number) });

describe('create API-only users', () => {
  it('creates each user with their keys and tags', () =>
    given(...history)
      .when(createApiOnlyUsers, {
        apiOnlyUsers: [
          { userName: 'Ann', userEmail: 'ann@example.com', apiKeys: [key(11)], userTags: [id(401)] },
          { userName: 'Bob' },
        ],
      })
      .then(
        [
          {
            type: 'UserCreated',
            data: { userId: id(1), userName: 'Ann', userEmail: 'ann@example.com', userTags: [id(401)] },
          },
          anApiKey(id(1), 11, { apiKeyId: id(2) }),
          { type: 'UserCreated', data: { userId: id(3), userName: 'Bob', userTags: [] } },
        ],
        { userIds: [id(1), id(3)] },
      ));

  it('refuses a key that the organization knows, naming the field', () =>
    given(...history, aUser(id(101)), anApiKey(id(101), 11))
      .when(createApiOnlyUsers, { apiOnlyUsers: [{ userName: 'Ann' }, { userName: 'Bob', apiKeys: [key(11)] }] })
      .thenRefused(
        'ALREADY_EXISTS',
        /parameters\.apiOnlyUsers\[1\]\.apiKeys\[0\]\.publicKey: .* is already registered/,
      ));
});
