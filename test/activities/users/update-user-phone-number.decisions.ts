import { updateUserPhoneNumber } from '../../../src/activities/users/update-user-phone-number.js';
import type { VerificationClaims } from '../../../src/ports/tokens.js';
import type { OrganizationEvent } from '../../../src/domain/organization/organization.js';
import { preparePorts } from '../../coordinator/prepare-ports.js';
import { contextOf, someClaims } from '../auth/otp-facts.js';
import { anOrganization, aUser } from '../facts.js';
import { given, id } from '../given.js';

const ann = id(101);
const history = [anOrganization(), aUser(ann, { userPhoneNumber: '+13214567890' })];
const prepared = { claims: undefined };

describe('update user phone number', () => {
  it.each([
    ['changes the number', '+4915112345678'],
    ['removes the number', ''],
  ])('%s', (_what, userPhoneNumber) =>
    given(...history)
      .when(updateUserPhoneNumber, { userId: ann, userPhoneNumber }, { prepared })
      .then([{ type: 'UserUpdated', data: { userId: ann, userPhoneNumber } }], { userId: ann }),
  );

  it.each([
    ['no number', {}, /parameters\.userPhoneNumber: is required/],
    ['a number that is not E.164', { userPhoneNumber: '0151' }, /userPhoneNumber: must be a phone number in E\.164/],
  ])('refuses %s', (_what, intent, message) =>
    given(...history)
      .when(updateUserPhoneNumber, { userId: ann, ...intent }, { prepared })
      .thenRefused('INVALID_ARGUMENT', message),
  );

  it('refuses a user that is not there', () =>
    given(...history)
      .when(updateUserPhoneNumber, { userId: id(102), userPhoneNumber: '' }, { prepared })
      .thenRefused('NOT_FOUND', new RegExp(`no user \`${id(102)}\``)));

  describe('with a proof of the contact', () => {
    const claims = someClaims({ verificationType: 'OTP_TYPE_SMS', contact: '+13214567890' });
    const used: OrganizationEvent = {
      type: 'VerificationTokenUsed',
      data: { tokenId: id(600), usage: 'USAGE_TYPE_UPDATE_CONTACT', expiresAt: claims.expiresAt },
    };

    it('records that it is proved, once for a token', () => {
      const when = (...facts: readonly OrganizationEvent[]) =>
        given(...history, ...facts).when(
          updateUserPhoneNumber,
          { userId: ann, userPhoneNumber: '+13214567890' },
          { prepared: { claims } },
        );
      const events: readonly OrganizationEvent[] = [
        { type: 'UserUpdated', data: { userId: ann, userPhoneNumber: '+13214567890' } },
        { type: 'UserContactVerified', data: { userId: ann, contact: 'phone-number', issuerOrganizationId: id(700) } },
        used,
      ];
      when().then(events, { userId: ann });
      when(used).thenRefused('FAILED_PRECONDITION', /has already been used for USAGE_TYPE_UPDATE_CONTACT/);
      when({ ...used, data: { ...used.data, usage: 'USAGE_TYPE_SIGNUP' } }).then(events, { userId: ann });
    });

    const tokens: readonly (readonly [string, Partial<VerificationClaims> | undefined, string, RegExp])[] = [
      ['is none', undefined, '+13214567890', /not a compact JWS/],
      [
        'verifies a different contact',
        { verificationType: 'OTP_TYPE_SMS', contact: '+13214567890' },
        '+13214567899',
        /verifies a different contact/,
      ],
      [
        'proves a contact that is removed',
        { verificationType: 'OTP_TYPE_SMS', contact: '+13214567890' },
        '',
        /verifies a different contact/,
      ],
      [
        'proves a contact of another kind',
        { contact: 'new@example.com' },
        '+13214567890',
        /verifies a different contact/,
      ],
      [
        'is of another organization',
        { ...{ verificationType: 'OTP_TYPE_SMS', contact: '+13214567890' }, organizationId: id(702) },
        '+13214567890',
        /was issued by/,
      ],
    ];

    it.each(tokens)('refuses a token that %s', async (_what, more, userPhoneNumber, message) => {
      const ports = await preparePorts();
      const verificationToken = more ? await ports.tokens.signVerification(someClaims(more)) : 'a token';
      const asked = { userId: ann, userPhoneNumber, verificationToken };
      await expect(updateUserPhoneNumber.prepare!(asked, ports, contextOf(...history))).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringMatching(message) as string,
      });
    });

    it('takes a token of the parent, and none for none', async () => {
      const ports = await preparePorts();
      const child = contextOf(anOrganization({ parentOrganizationId: id(702) }), ...history.slice(1));
      const verificationToken = await ports.tokens.signVerification({ ...claims, organizationId: id(702) });
      const asked = { userId: ann, userPhoneNumber: '+13214567890' };
      expect(await updateUserPhoneNumber.prepare!({ ...asked, verificationToken }, ports, child)).toEqual({
        claims: { ...claims, organizationId: id(702) },
      });
      expect(await updateUserPhoneNumber.prepare!({ ...asked, verificationToken: '' }, ports, child)).toEqual({
        claims: undefined,
      });
    });
  });
});
