import { deleteApiKeys } from '../../../src/activities/credentials/delete-api-keys.js';
import { anApiKey, anOrganization, aPasskey, aRootQuorum, aUser } from '../facts.js';
import { given, id } from '../given.js';

const ann = id(101);
const bob = id(102);
const people = [anOrganization(), aUser(ann), aUser(bob, { userName: 'Bob' })];
const deleted = (userId: string, apiKeyId: string) => ({ type: 'ApiKeyDeleted', data: { userId, apiKeyId } }) as const;

describe('delete API keys', () => {
  it('deletes the keys in the order given', () =>
    given(...people, anApiKey(ann, 11), anApiKey(ann, 12), anApiKey(ann, 13))
      .when(deleteApiKeys, { userId: ann, apiKeyIds: [id(13), id(11)] })
      .then([deleted(ann, id(13)), deleted(ann, id(11))], { apiKeyIds: [id(13), id(11)] }));

  it('refuses a key of another user', () =>
    given(...people, anApiKey(bob, 11))
      .when(deleteApiKeys, { userId: ann, apiKeyIds: [id(11)] })
      .thenRefused('NOT_FOUND', new RegExp(`user \`${ann}\` has no API key \`${id(11)}\``)));

  it('refuses a user that is not there', () =>
    given(...people)
      .when(deleteApiKeys, { userId: id(103), apiKeyIds: [id(11)] })
      .thenRefused('NOT_FOUND', new RegExp(`no user \`${id(103)}\``)));

  it.each([
    ['an empty list', [], /parameters\.apiKeyIds: must have 1 to 100 elements/],
    ['a key twice', [id(11), id(11)], /parameters\.apiKeyIds: must not list an id twice/],
  ])('refuses %s', (_what, apiKeyIds, message) =>
    given(...people, anApiKey(ann, 11))
      .when(deleteApiKeys, { userId: ann, apiKeyIds })
      .thenRefused('INVALID_ARGUMENT', message),
  );

  describe('last credentials', () => {
    it('takes the last key of a user outside the root quorum', () =>
      given(...people, aRootQuorum(1, bob), anApiKey(bob, 12), anApiKey(ann, 11))
        .when(deleteApiKeys, { userId: ann, apiKeyIds: [id(11)] })
        .then([deleted(ann, id(11))], { apiKeyIds: [id(11)] }));

    it('takes the last key of a root user when the others are enough', () =>
      given(...people, aRootQuorum(1, ann, bob), anApiKey(ann, 11), anApiKey(bob, 12))
        .when(deleteApiKeys, { userId: ann, apiKeyIds: [id(11)] })
        .then([deleted(ann, id(11))], { apiKeyIds: [id(11)] }));

    it('refuses to put the root quorum out of reach', () =>
      given(...people, aRootQuorum(2, ann, bob), anApiKey(ann, 11), anApiKey(bob, 12))
        .when(deleteApiKeys, { userId: ann, apiKeyIds: [id(11)] })
        .thenRefused(
          'FAILED_PRECONDITION',
          /root quorum requires 2 of 2 users, but only 1 of them would have a credential/,
        ));

    it.each([
      ['is over', 60],
      ['lives for a while', 90_000],
    ])('does not count a key that %s', (_which, expirationSeconds) =>
      given(...people, aRootQuorum(1, ann), anApiKey(ann, 11), anApiKey(ann, 12, { expirationSeconds }))
        .when(deleteApiKeys, { userId: ann, apiKeyIds: [id(11)] })
        .thenRefused('FAILED_PRECONDITION', /only 0 of them would have a credential without expiry/),
    );

    it('lets a key go that ends, where nothing lasted before', () =>
      given(...people, aRootQuorum(1, ann), ...[11, 12].map((n) => anApiKey(ann, n, { expirationSeconds: 90_000 })))
        .when(deleteApiKeys, { userId: ann, apiKeyIds: [id(11)] })
        .then([deleted(ann, id(11))], { apiKeyIds: [id(11)] }));

    it('keeps the last key that lives, even if none lasts', () =>
      given(...people, aRootQuorum(1, ann), anApiKey(ann, 11, { expirationSeconds: 90_000 }))
        .when(deleteApiKeys, { userId: ann, apiKeyIds: [id(11)] })
        .thenRefused('FAILED_PRECONDITION', /only 0 of them/));

    it('counts a passkey', () =>
      given(...people, aRootQuorum(1, ann), anApiKey(ann, 11), aPasskey(ann, 21))
        .when(deleteApiKeys, { userId: ann, apiKeyIds: [id(11)] })
        .then([deleted(ann, id(11))], { apiKeyIds: [id(11)] }));

    const subOrganization = anOrganization({ parentOrganizationId: id(701) });
    const mailLogin = { type: 'OrganizationFeatureSet', data: { name: 'FEATURE_NAME_EMAIL_AUTH', value: '' } } as const;
    const rest = [aRootQuorum(1, ann), anApiKey(ann, 11), mailLogin];
    const founded = aUser(ann, { userEmail: 'ann@example.com' });
    const changed = { type: 'UserUpdated', data: { userId: ann, userEmail: 'other@example.com' } } as const;
    const proved = {
      type: 'UserContactVerified',
      data: { userId: ann, contact: 'email', issuerOrganizationId: id(700) },
    } as const;

    it.each([
      ['one that the parent has asserted', [subOrganization, founded, ...rest]],
      ['one that was proved', [subOrganization, aUser(ann), ...rest, changed, proved]],
    ])('counts a contact in a sub-organization: %s', (_which, history) =>
      given(...history)
        .when(deleteApiKeys, { userId: ann, apiKeyIds: [id(11)] })
        .then([deleted(ann, id(11))], { apiKeyIds: [id(11)] }),
    );

    it.each([
      ['somebody wrote in an organization without a parent', [anOrganization(), founded, ...rest]],
      ['was proved in an organization without a parent', [anOrganization(), aUser(ann), ...rest, changed, proved]],
      ['nobody has proved', [subOrganization, founded, ...rest, changed]],
      [
        'a stranger has asserted',
        [anOrganization({ parentOrganizationId: id(701), createdBy: 'auth-proxy' }), founded, ...rest],
      ],
      ['logs nobody in, as that is switched off', [subOrganization, founded, ...rest.slice(0, 2)]],
    ])('does not count a contact that %s', (_which, history) =>
      given(...history)
        .when(deleteApiKeys, { userId: ann, apiKeyIds: [id(11)] })
        .thenRefused('FAILED_PRECONDITION', /only 0 of them/),
    );
  });
});
