import { attestedCredential } from '../../../src/domain/organization/credentials-of-users.js';
import { emptyOrganization, evolve, type OrganizationEvent } from '../../../src/domain/organization/organization.js';

test('what a token of a contact stands for is lost with the proof of the contact, not only with the contact', () => {
  const organization = emptyOrganization();
  const [organizationId, userId, userEmail] = ['organization', 'ann', 'ann@example.com'];
  const record = (...events: readonly OrganizationEvent[]) => {
    for (const event of events) evolve(organization, event, 0);
  };
  const attestation = {
    kind: 'contact',
    tokenId: 'token',
    verificationType: 'OTP_TYPE_EMAIL',
    contact: 'Ann@example.com',
    organizationId,
    expiresAt: 1,
  } as const;
  const credential = () => attestedCredential(organization.users.get(userId)!, attestation, 'key');
  record(
    { type: 'OrganizationCreated', data: { organizationId, name: 'Acme' } },
    { type: 'UserCreated', data: { userId, userName: 'Ann', userEmail, userTags: [] } },
  );
  expect(credential()).toBeUndefined();
  record({
    type: 'UserContactVerified',
    data: { userId, contact: 'email', issuerOrganizationId: organizationId },
  });
  expect(credential()).toMatchObject({ id: 'token', userId, publicKey: 'key' });
  record({ type: 'UserUpdated', data: { userId, userEmail: 'other@example.com' } });
  expect(credential()).toBeUndefined();
  record({ type: 'UserUpdated', data: { userId, userEmail } });
  expect(credential()).toBeUndefined();
});
