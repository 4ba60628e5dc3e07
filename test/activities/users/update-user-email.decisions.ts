import { updateUserEmail } from '../../../src/activities/users/update-user-email.js';
import type { VerificationClaims } from '../../../src/ports/tokens.js';
import type { OrganizationEvent } from '../../../src/domain/organization/organization.js';
import { preparePorts } from '../../coordinator/prepare-ports.js';
import { contextOf, someClaims } from '../auth/otp-facts.js';
import { anOrganization, aUser } from '../facts.js';
import { given, id } from '../given.js';

const ann = id(101);
const history = [anOrganization(), aUser(ann, { userEmail: 'old@example.com' })];
const prepared = { claims: undefined };

describe('update user email', () => {
  it.each([
    ['changes the address', 'new@example.com'],
    ['removes the address', ''],
  ])('%s', (_what, userEmail) =>
    given(...history)
      .when(updateUserEmail, { userId: ann, userEmail }, { prepared })
      .then([{ type: 'UserUpdated', data: { userId: ann, userEmail } }], { userId: ann }),
  );

  it.each([
    ['no address', {}, /parameters\.userEmail: is required/],
    ['what is no address', { userEmail: 'ann' }, /parameters\.userEmail: must be an e-mail address, got `ann`/],
  ])('refuses %s', (_what, intent, message) =>
    given(...history)
      .when(updateUserEmail, { userId: ann, ...intent }, { prepared })
      .thenRefused('INVALID_ARGUMENT', message),
  );

  it('refuses a user that is not there', () =>
    given(...history)
      .when(updateUserEmail, { userId: id(102), userEmail: '' }, { prepared })
      .thenRefused('NOT_FOUND', new RegExp(`no user \`${id(102)}\``)));

  describe('with a proof of the contact', () => {
    const claims = someClaims({ contact: 'NEW@example.com' });
    const used: OrganizationEvent = {
      type: 'VerificationTokenUsed',
      data: { tokenId: id(600), usage: 'USAGE_TYPE_UPDATE_CONTACT', expiresAt: claims.expiresAt },
    };

    it('records that it is proved, once for a token', () => {
      const when = (...facts: readonly OrganizationEvent[]) =>
        given(...history, ...facts).when(
          updateUserEmail,
          { userId: ann, userEmail: 'new@example.com' },
          { prepared: { claims } },
        );
      const events: readonly OrganizationEvent[] = [
        { type: 'UserUpdated', data: { userId: ann, userEmail: 'new@example.com' } },
        { type: 'UserContactVerified', data: { userId: ann, contact: 'email', issuerOrganizationId: id(700) } },
        used,
      ];
      when().then(events, { userId: ann });
      when(used).thenRefused('FAILED_PRECONDITION', /has already been used for USAGE_TYPE_UPDATE_CONTACT/);
      when({ ...used, data: { ...used.data, usage: 'USAGE_TYPE_SIGNUP' } }).then(events, { userId: ann });
    });

    const tokens: readonly (readonly [string, Partial<VerificationClaims> | undefined, string, RegExp])[] = [
      ['is none', undefined, 'new@example.com', /not a compact JWS/],
      [
        'verifies a different contact',
        { contact: 'NEW@example.com' },
        'other@example.com',
        /verifies a different contact/,
      ],
      ['proves a contact that is removed', { contact: 'NEW@example.com' }, '', /verifies a different contact/],
      [
        'proves a contact of another kind',
        { verificationType: 'OTP_TYPE_SMS', contact: '+13214567890' },
        'new@example.com',
        /verifies a different contact/,
      ],
      [
        'is of another organization',
        { ...{ contact: 'NEW@example.com' }, organizationId: id(702) },
        'new@example.com',
        /was issued by/,
      ],
    ];

    it.each(tokens)('refuses a token that %s', async (_what, more, userEmail, message) => {
      const ports = await preparePorts();
      const verificationToken = more ? await ports.tokens.signVerification(someClaims(more)) : 'a token';
      const asked = { userId: ann, userEmail, verificationToken };
      await expect(updateUserEmail.prepare!(asked, ports, contextOf(...history))).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringMatching(message) as string,
      });
    });

    it('takes a token of the parent, and none for none', async () => {
      const ports = await preparePorts();
      const child = contextOf(anOrganization({ parentOrganizationId: id(702) }), ...history.slice(1));
      const verificationToken = await ports.tokens.signVerification({ ...claims, organizationId: id(702) });
      const asked = { userId: ann, userEmail: 'new@example.com' };
      expect(await updateUserEmail.prepare!({ ...asked, verificationToken }, ports, child)).toEqual({
        claims: { ...claims, organizationId: id(702) },
      });
      expect(await updateUserEmail.prepare!({ ...asked, verificationToken: '' }, ports, child)).toEqual({
        claims: undefined,
      });
    });
  });
});
