import { emptyOrganization, evolve, type OrganizationEvent } from '../../../src/domain/organization/organization.js';
import { checkQuorumMembers } from '../../../src/domain/organization/quorum-members.js';
import { anApiKey, anIdentity, anOrganization, aPasskey, aRootQuorum, aUser } from '../../activities/facts.js';
import { id } from '../../activities/given.js';

/*
 * The second line behind the verbs: whatever they say that they change, no event that changes what a member of the root quorum
 * logs in with is recorded on the word of others.
 */

const [member, other] = [id(1), id(2)];

const organization = (() => {
  const folded = emptyOrganization();
  const facts = [
    anOrganization(),
    ...[member, other].map((userId) => aUser(userId, { userEmail: `${userId}@example.com` })),
    ...[member, other].flatMap((userId, at) => [anApiKey(userId, 10 + at), aPasskey(userId, 20 + at)]),
    ...[member, other].map((userId, at) => anIdentity(userId, 30 + at)),
    aRootQuorum(1, member),
  ];
  for (const event of facts) evolve(folded, event, 0);
  return folded;
})();

/** Every event that changes what a user logs in with, of the member or of the other. */
const changes = (userId: string): readonly OrganizationEvent[] => {
  const at = userId === member ? 0 : 1;
  return [
    { type: 'UserUpdated', data: { userId, userEmail: 'mallory@example.com' } },
    { type: 'UserUpdated', data: { userId, userPhoneNumber: '+12025550111' } },
    { type: 'UserContactVerified', data: { userId, contact: 'email', issuerOrganizationId: id(700) } },
    { type: 'UserDeleted', data: { userId } },
    anApiKey(userId, 40),
    { type: 'ApiKeyDeleted', data: { userId, apiKeyId: id(10 + at) } },
    aPasskey(userId, 41),
    { type: 'AuthenticatorDeleted', data: { userId, authenticatorId: id(20 + at) } },
    anIdentity(userId, 42),
    { type: 'OauthProviderDeleted', data: { userId, providerId: id(30 + at) } },
  ];
};

test.each(changes(member).map((event) => [event.type, event] as const))(
  'of a member, %s is recorded on the member’s word or the quorum’s, and on no other',
  (_type, event) => {
    const record = (word: { isRootQuorums: boolean; userIds: readonly string[] }) =>
      checkQuorumMembers(organization, [event], word);
    expect(() => record({ isRootQuorums: false, userIds: [other] })).toThrow('is a member of the root quorum');
    expect(() => record({ isRootQuorums: false, userIds: [] })).toThrow('is a member of the root quorum');
    expect(() => record({ isRootQuorums: false, userIds: [other, member] })).not.toThrow();
    expect(() => record({ isRootQuorums: true, userIds: [] })).not.toThrow();
  },
);

test('what is added to other users is recorded as policies allow', () => {
  const word = { isRootQuorums: false, userIds: [member] };
  expect(() => checkQuorumMembers(organization, changes(other), word)).not.toThrow();
});
