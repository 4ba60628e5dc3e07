import { initOtpAuth } from '../../../src/activities/auth/init-otp-auth.js';
import { OtpParams } from '../../../src/activities/auth/otp-params.js';
import { preparePorts } from '../../coordinator/prepare-ports.js';
import { anOrganization, aUser } from '../facts.js';
import { given, id } from '../given.js';
import { lifted } from '../lifted.js';
import { anOtp, contextOf, decidedAt, ended, feature, rightHash } from './otp-facts.js';

const ann = aUser(id(101), { userEmail: 'ann@example.com', userPhoneNumber: '+13214567890' });
const history = [anOrganization(), ann];
const intent = { otpType: 'OTP_TYPE_EMAIL', contact: 'ann@example.com', appName: 'Acme' } as const;
const prepared = { otpId: id(500), codeHash: rightHash, message: undefined };
const sent = anOtp(500);

describe('init otp auth', () => {
  it('records what is sent, without the code', () =>
    given(...history)
      .when(initOtpAuth, intent, { prepared })
      .then([sent], { otpId: id(500) }));

  it('uses the given lifetime and identifier', () =>
    given(...history)
      .when(initOtpAuth, { ...intent, expirationSeconds: '600', userIdentifier: 'an address' }, { prepared })
      .then([anOtp(500, { expiresAt: decidedAt + 600_000, userIdentifier: 'an address' })], { otpId: id(500) }));

  it('behaves the same for a contact that nobody has', () =>
    given(...history)
      .when(initOtpAuth, { ...intent, contact: 'Nobody@example.com' }, { prepared })
      .then([anOtp(500, { contact: 'Nobody@example.com', userIdentifier: 'nobody@example.com' })], { otpId: id(500) }));

  it('pushes out the oldest of three', () =>
    given(...history, anOtp(1), anOtp(2), anOtp(3))
      .when(initOtpAuth, intent, { prepared })
      .then([ended(1, 'replaced'), sent], { otpId: id(500) }));

  it('refuses a contact that two users have', () =>
    given(...history, aUser(id(102), { userEmail: 'Ann@example.com' }))
      .when(initOtpAuth, intent, { prepared })
      .thenRefused('FAILED_PRECONDITION', /2 users of organization .* have the contact `ann@example\.com`/));

  describe('in a sub-organization', () => {
    const child = [anOrganization({ parentOrganizationId: id(701) }), ann];
    const sms = { ...intent, otpType: 'OTP_TYPE_SMS', contact: '+13214567890' } as const;

    it.each([
      ['FEATURE_NAME_OTP_EMAIL_AUTH', intent, 'FEATURE_NAME_SMS_AUTH'],
      ['FEATURE_NAME_SMS_AUTH', sms, 'FEATURE_NAME_OTP_EMAIL_AUTH'],
    ] as const)('needs %s', (name, asked, other) => {
      const { contact } = asked;
      given(...child, feature(other))
        .when(initOtpAuth, asked, { prepared })
        .thenRefused('FAILED_PRECONDITION', new RegExp(`^\`${name}\` is disabled in sub-organization \`${id(700)}\``));
      const otpType = asked === sms ? 'OTP_TYPE_SMS' : 'OTP_TYPE_EMAIL';
      given(...child, feature(name))
        .when(initOtpAuth, asked, { prepared })
        .then([anOtp(500, { otpType, contact, userIdentifier: contact })], { otpId: id(500) });
    });
  });

  it.each([
    ['another way', { otpType: 'OTP_TYPE_PIGEON' }, /parameters\.otpType: must be one of OTP_TYPE_EMAIL, OTP_TYPE_SMS/],
    ['no address', { contact: 'ann' }, /parameters\.contact: must be an e-mail address, got `ann`/],
    [
      'a number without a country',
      { otpType: 'OTP_TYPE_SMS', contact: '3214567890' },
      /parameters\.contact: must be a phone/,
    ],
    ['a dot that is none', { contact: 'ann@bank\u2024com.example' }, /parameters\.contact: must be an e-mail address/],
    ['no name', { appName: '' }, /parameters\.appName/],
    ['a short code', { otpLength: 5 }, /parameters\.otpLength: must be a whole number from 6 to 9, got `5`/],
    ['a long code', { otpLength: 10 }, /parameters\.otpLength/],
    [
      'a long life',
      { expirationSeconds: '601' },
      /parameters\.expirationSeconds: must be a decimal string from "1" to "600"/,
    ],
    ['a sender that is none', { sendFromEmailAddress: 'Acme' }, /parameters\.sendFromEmailAddress/],
    ['a link without a place', { emailCustomization: { magicLinkTemplate: 'https://a.example' } }, /magicLinkTemplate/],
    ['a logo that is not https', { emailCustomization: { logoUrl: 'http://a.example/l.png' } }, /logoUrl/],
    ['variables that are none', { emailCustomization: { templateVariables: '[]' } }, /templateVariables/],
    [
      'a text without the code',
      { smsCustomization: { template: 'Hello' } },
      /smsCustomization\.template: must contain/,
    ],
    [
      'the name in two places',
      { emailCustomization: { appName: 'Acme' } },
      /emailCustomization\.appName: is not a field/,
    ],
  ])('refuses %s', (_what, changed, message) =>
    given(...history)
      .when(initOtpAuth, { ...intent, ...changed }, { prepared })
      .thenRefused('INVALID_ARGUMENT', message),
  );

  describe('older versions', () => {
    const { appName: _name, ...rest } = intent;

    it('have the name of who asks among the looks', () => {
      const emailCustomization = { appName: 'Acme', logoUrl: 'https://a.example/l.png' };
      const newest = { ...intent, emailCustomization: { logoUrl: 'https://a.example/l.png' } };
      expect(lifted('ACTIVITY_TYPE_INIT_OTP_AUTH', { ...rest, emailCustomization })).toEqual(newest);
      const shaped = { otpLength: 6, alphanumeric: false };
      expect(lifted('ACTIVITY_TYPE_INIT_OTP_AUTH_V2', { ...rest, ...shaped, emailCustomization })).toEqual({
        ...newest,
        ...shaped,
      });
    });

    it('may say no name, and the first has no shape', () => {
      expect(lifted('ACTIVITY_TYPE_INIT_OTP_AUTH', rest)).toEqual({ ...rest, appName: '', emailCustomization: {} });
      expect(() => lifted('ACTIVITY_TYPE_INIT_OTP_AUTH', { ...rest, otpLength: 6 })).toThrow(
        /otpLength: is not a field/,
      );
      expect(() => lifted('ACTIVITY_TYPE_INIT_OTP_AUTH_V2', { ...rest, expirationSeconds: '60' })).toThrow(
        /is not a field/,
      );
    });
  });

  describe('what is prepared', () => {
    const params = (changed: Partial<OtpParams> = {}): OtpParams => Object.assign(new OtpParams(), intent, changed);
    const code = /^ *([QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{9})$/m;

    it('is a code of nine letters and digits in a mail, and its hash', async () => {
      const ports = await preparePorts();
      const { otpId, codeHash, message, ...none } = await initOtpAuth.prepare!(params(), ports, contextOf(...history));
      expect([otpId, none]).toEqual([id(1), {}]);
      expect(message).toMatchObject({ channel: 'email', to: 'ann@example.com', otpId, expiresAt: decidedAt + 300_000 });
      expect(message!.subject).toBe('Your code for Acme');
      const [, found] = code.exec(message!.text)!;
      expect(codeHash).toBe(await ports.loginSecrets.hashCode(otpId, found!));
    });

    it('takes its looks and its sender from the request', async () => {
      const looks = {
        ...intent,
        otpLength: 6,
        alphanumeric: false,
        emailCustomization: { magicLinkTemplate: 'https://a.example/%s', templateVariables: '{"userName":"Ann"}' },
        sendFromEmailAddress: 'no-reply@example.com',
        sendFromEmailSenderName: 'Acme',
        replyToEmailAddress: 'help@example.com',
        expirationSeconds: '61',
      } as const;
      const { message } = await initOtpAuth.prepare!(params(looks), await preparePorts(), contextOf(...history));
      expect(message).toMatchObject({ from: 'no-reply@example.com', fromName: 'Acme', replyTo: 'help@example.com' });
      expect(message!.text).toMatch(/Hello Ann,[^]*^ *[0-9]{6}$[^]*https:\/\/a\.example\/[0-9]{6}$[^]*2 minutes/m);
    });

    it('is a text message for a phone', async () => {
      const sms = { otpType: 'OTP_TYPE_SMS', contact: '+13214567890', otpLength: 6, alphanumeric: false } as const;
      const ports = await preparePorts();
      const prepare = (more: Partial<OtpParams>) =>
        initOtpAuth.prepare!(params({ ...sms, ...more }), ports, contextOf(...history));
      const { message } = await prepare({});
      expect(message).toMatchObject({ channel: 'sms', to: '+13214567890' });
      expect(message!.text).toMatch(/^[0-9]{6} is your code for Acme\./);
      const custom = await prepare({ smsCustomization: { template: 'Acme: {{.OtpCode}}' } });
      expect(custom.message!.text).toMatch(/^Acme: [0-9]{6}$/);
    });

    it("asks in the organization's name when the request has none", async () => {
      const { message } = await initOtpAuth.prepare!(
        params({ appName: '' }),
        await preparePorts(),
        contextOf(...history),
      );
      expect(message!.subject).toBe('Your code for Acme');
    });

    it('is all the same for a contact that nobody has, but for the message', async () => {
      const nobody = params({ contact: 'nobody@example.com' });
      const { message, ...rest } = await initOtpAuth.prepare!(nobody, await preparePorts(), contextOf(...history));
      expect(message).toBeUndefined();
      expect(rest).toEqual({ otpId: id(1), codeHash: expect.stringMatching(/^[0-9a-f]{64}$/) as string });
    });

    it('is refused after three sends in three minutes, for somebody and for nobody', async () => {
      const ports = await preparePorts();
      for (const contact of ['ann@example.com', 'nobody@example.com']) {
        const three = [1, 2, 3].map((number) => anOtp(number, { contact, userIdentifier: contact }));
        await expect(
          initOtpAuth.prepare!(params({ contact }), ports, contextOf(...history, ...three)),
        ).rejects.toMatchObject({
          code: 'RESOURCE_EXHAUSTED',
        });
      }
    });
  });
});
