import { deleteAuthenticators } from '../../../src/activities/credentials/delete-authenticators.js';
import { anApiKey, anOrganization, aPasskey, aRootQuorum, aUser } from '../facts.js';
import { given, id } from '../given.js';

const ann = id(101);
const bob = id(102);
const people = [anOrganization(), aUser(ann), aUser(bob, { userName: 'Bob' })];
const deleted = (userId: string, authenticatorId: string) =>
  ({ type: 'AuthenticatorDeleted', data: { userId, authenticatorId } }) as const;

describe('delete authenticators', () => {
  it('deletes the passkeys in the order given', () =>
    given(...people, aPasskey(ann, 21), aPasskey(ann, 22))
      .when(deleteAuthenticators, { userId: ann, authenticatorIds: [id(22), id(21)] })
      .then([deleted(ann, id(22)), deleted(ann, id(21))], { authenticatorIds: [id(22), id(21)] }));

  it('refuses a passkey of another user', () =>
    given(...people, aPasskey(bob, 21))
      .when(deleteAuthenticators, { userId: ann, authenticatorIds: [id(21)] })
      .thenRefused('NOT_FOUND', new RegExp(`user \`${ann}\` has no authenticator \`${id(21)}\``)));

  it('refuses a user that is not there', () =>
    given(...people)
      .when(deleteAuthenticators, { userId: id(103), authenticatorIds: [id(21)] })
      .thenRefused('NOT_FOUND', new RegExp(`no user \`${id(103)}\``)));

  it('refuses an empty list', () =>
    given(...people)
      .when(deleteAuthenticators, { userId: ann, authenticatorIds: [] })
      .thenRefused('INVALID_ARGUMENT', /parameters\.authenticatorIds: must have 1 to 100 elements/));

  it('refuses to put the root quorum out of reach', () =>
    given(...people, aRootQuorum(1, ann), aPasskey(ann, 21), aPasskey(ann, 22), anApiKey(bob, 11))
      .when(deleteAuthenticators, { userId: ann, authenticatorIds: [id(21), id(22)] })
      .thenRefused('FAILED_PRECONDITION', /root quorum requires 1 of 1 users, but only 0 of them/));

  it('leaves a root user one of two', () =>
    given(...people, aRootQuorum(1, ann), aPasskey(ann, 21), aPasskey(ann, 22))
      .when(deleteAuthenticators, { userId: ann, authenticatorIds: [id(21)] })
      .then([deleted(ann, id(21))], { authenticatorIds: [id(21)] }));
});
