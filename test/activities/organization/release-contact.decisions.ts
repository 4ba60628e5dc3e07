import { releaseContact } from '../../../src/activities/organization/release-contact.js';
import type { OrganizationEvent } from '../../../src/domain/organization/organization.js';
import { anApiKey, anOrganization, aRootQuorum, aUser } from '../facts.js';
import { given, id } from '../given.js';

const [ann, bob] = [id(101), id(102)];
const contacts = { userEmail: 'ann@example.com', userPhoneNumber: '+13214567890' };
const released = (userId: string, contact: 'email' | 'phone-number'): OrganizationEvent => {
  return { type: 'UserContactReleased', data: { userId, contact } };
};
const mailFeature: OrganizationEvent = {
  type: 'OrganizationFeatureSet',
  data: { name: 'FEATURE_NAME_OTP_EMAIL_AUTH', value: '' },
};
const history: readonly OrganizationEvent[] = [
  anOrganization({ parentOrganizationId: id(701) }),
  aUser(ann, contacts),
  aUser(bob, { userName: 'Bob', userEmail: 'ANN@example.com' }),
  anApiKey(ann, 11),
  { type: 'UserContactVerified', data: { userId: ann, contact: 'email', issuerOrganizationId: id(700) } },
  aRootQuorum(1, ann),
  mailFeature,
];

describe('release contact', () => {
  it('releases it for everybody who has it, in whatever letter case, and no other contact', () => {
    given(...history)
      .when(releaseContact, { contact: 'Ann@example.com' })
      .then([released(ann, 'email'), released(bob, 'email')], { userIds: [ann, bob] });
    given(...history)
      .when(releaseContact, { contact: '+13214567890' })
      .then([released(ann, 'phone-number')], { userIds: [ann] });
  });

  it.each([
    ['was released before', [released(ann, 'email'), released(bob, 'email')]],
    [
      'was released before, and written down again',
      [
        released(ann, 'email'),
        released(bob, 'email'),
        { type: 'UserUpdated', data: { userId: ann, userEmail: 'ANN@EXAMPLE.com' } },
      ],
    ],
    [
      'is gone',
      [ann, bob].map((userId): OrganizationEvent => ({ type: 'UserUpdated', data: { userId, userEmail: '' } })),
    ],
  ] as const)('refuses one that %s', (_what, facts) =>
    given(...history, ...facts)
      .when(releaseContact, { contact: 'ann@example.com' })
      .thenRefused('NOT_FOUND', /no user of organization .* has `ann@example\.com` as an active contact/),
  );

  it('takes one that was proved anew', () =>
    given(...history, released(ann, 'email'), released(bob, 'email'), {
      type: 'UserContactVerified',
      data: { userId: ann, contact: 'email', issuerOrganizationId: id(700) },
    })
      .when(releaseContact, { contact: 'ann@example.com' })
      .then([released(ann, 'email')], { userIds: [ann] }));

  it('refuses the last way in of those whom the root quorum takes', () => {
    const keyGone: OrganizationEvent = { type: 'ApiKeyDeleted', data: { userId: ann, apiKeyId: id(11) } };
    given(...history, keyGone)
      .when(releaseContact, { contact: 'ann@example.com' })
      .thenRefused(
        'FAILED_PRECONDITION',
        /the root quorum .* has no way to log in other than this contact.*leaveUnreachable: true/,
      );
  });

  it.each([
    ['no contact', {}, /parameters\.contact/],
    ['what is no contact', { contact: 'ann' }, /parameters\.contact: must be an e-mail address, or a phone number/],
  ])('refuses %s', (_what, intent, message) =>
    given(...history)
      .when(releaseContact, intent)
      .thenRefused('INVALID_ARGUMENT', message),
  );
});
