import { initOtp } from '../../../src/activities/auth/init-otp.js';
import type { OtpParams } from '../../../src/activities/auth/otp-params.js';
import { validate } from '../../../src/wire/validate.js';
import { preparePorts } from '../../coordinator/prepare-ports.js';
import { anOrganization, aUser } from '../facts.js';
import { given, id } from '../given.js';
import { lifted } from '../lifted.js';
import { anOtp, contextOf, decidedAt, ended, rightHash } from './otp-facts.js';

const history = [anOrganization()];
const intent = { otpType: 'OTP_TYPE_EMAIL', contact: 'ann@example.com', appName: 'Acme' } as const;
const prepared = { otpId: id(500), codeHash: rightHash, message: undefined };
const target = { vaultId: id(501), targetBundle: 'a bundle' };
const sent = (vaultId?: string) => anOtp(500, { purpose: 'verify', ...(vaultId === undefined ? {} : { vaultId }) });

describe('init otp', () => {
  it('records what is sent, and answers the key to seal the code to', () =>
    given(...history)
      .when(initOtp, intent, { prepared: { ...prepared, ...target } })
      .then([sent(id(501))], { otpId: id(500), otpEncryptionTargetBundle: 'a bundle' }));

  it('ends what it pushes out with its key', () =>
    given(...history, anOtp(1, { vaultId: id(502) }), anOtp(2), anOtp(3))
      .when(initOtp, intent, { prepared })
      .then([ended(1, 'replaced', { vaultId: id(502) }), sent()], { otpId: id(500) }));

  describe('in a sub-organization', () => {
    const child = anOrganization({ parentOrganizationId: id(701) });

    it('is for contacts of its own users, and asks no more: it is no login', () =>
      given(child, aUser(id(101), { userEmail: 'Ann@example.com' }))
        .when(initOtp, intent, { prepared })
        .then([sent()], { otpId: id(500) }));

    it('is refused for anybody else', () =>
      given(child, aUser(id(101), { userEmail: 'bob@example.com' }))
        .when(initOtp, intent, { prepared })
        .thenRefused('PERMISSION_DENIED', /may send codes only to contacts of its own users/));
  });

  it.each([
    ['no address', { contact: '+13214567890' }, /parameters\.contact: must be an e-mail address/],
    ['no name', { appName: undefined }, /parameters\.appName: is required/],
    ['a member of its own', { withoutTarget: true }, /parameters\.withoutTarget: is not a field of this request/],
  ])('refuses %s', (_what, changed, message) =>
    given(...history)
      .when(initOtp, { ...intent, ...changed }, { prepared })
      .thenRefused('INVALID_ARGUMENT', message),
  );

  const byName = { emailCustomization: { appName: 'Acme' }, otpType: 'OTP_TYPE_EMAIL', contact: 'ann@example.com' };

  describe.each([
    ['ACTIVITY_TYPE_INIT_OTP_V3', intent],
    ['ACTIVITY_TYPE_INIT_OTP_V2', intent],
    ['ACTIVITY_TYPE_INIT_OTP', byName],
  ] as const)('the numbers of %s', (type, asked) => {
    const taken = (changed: object) => {
      const wanted = { ...asked, ...changed };
      return (
        type === initOtp.type ? validate(initOtp.intent, wanted, 'parameters') : lifted(type, wanted)
      ) as OtpParams;
    };
    const codeFor = async (changed: object) => {
      const { message } = await initOtp.prepare!(taken(changed), await preparePorts(), contextOf(...history));
      return /^ *([0-9A-Z]+)$/m.exec(message!.text)![1]!;
    };

    it('are a code of 6 to 9 characters', async () => {
      for (const otpLength of [6, 7, 8, 9]) expect(await codeFor({ otpLength })).toHaveLength(otpLength);
      expect(await codeFor({})).toHaveLength(9);
      for (const otpLength of [5, 10]) {
        const words = `parameters.otpLength: must be a whole number from 6 to 9, got \`${otpLength}\``;
        expect(() => taken({ otpLength })).toThrow(words);
      }
    });

    it('are of the bech32 alphabet, or digits when that is asked for', async () => {
      expect(await codeFor({})).toMatch(/^[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{9}$/);
      expect(await codeFor({})).toMatch(/[A-Z]/);
      expect(await codeFor({ alphanumeric: true })).toBe(await codeFor({}));
      expect(await codeFor({ alphanumeric: false, otpLength: 6 })).toMatch(/^[0-9]{6}$/);
    });

    it.each([
      ['five minutes', {}, 300],
      ['a second', { expirationSeconds: '1' }, 1],
      ['ten minutes', { expirationSeconds: '600' }, 600],
    ])('are a life of %s, which is recorded', (_what, changed, seconds) => {
      // Not of the wire, and nothing of it is recorded.
      const { withoutTarget: _none, ...wanted } = taken(changed) as OtpParams & { withoutTarget?: true };
      const expiresAt = decidedAt + seconds * 1_000;
      given(...history)
        .when(initOtp, wanted, { prepared })
        .then([anOtp(500, { purpose: 'verify', expiresAt })], { otpId: id(500) });
    });

    it.each(['0', '601'])('are no life of %s seconds', (expirationSeconds) =>
      expect(() => taken({ expirationSeconds })).toThrow(
        /parameters\.expirationSeconds: must be a decimal string from "1" to "600"/,
      ),
    );
  });

  it('makes a key to seal the code to, which older versions do not know of', async () => {
    const ports = await preparePorts();
    const newest = await initOtp.prepare!(intent, ports, contextOf(...history));
    expect(Object.keys(JSON.parse(newest.targetBundle!) as object)).toContain('dataSignature');
    expect(await ports.vault.names(newest.vaultId!)).toEqual(['target']);
    expect(newest.message).toMatchObject({ to: 'ann@example.com', otpId: newest.otpId });
    const older = await initOtp.prepare!({ ...intent, withoutTarget: true }, ports, contextOf(...history));
    expect([older.vaultId, older.targetBundle]).toEqual([undefined, undefined]);
  });

  it('takes older versions', () => {
    const { appName, ...rest } = intent;
    const shape = { otpLength: 6, alphanumeric: false, expirationSeconds: '60' };
    expect(lifted('ACTIVITY_TYPE_INIT_OTP_V2', { ...intent, ...shape })).toEqual({
      ...intent,
      ...shape,
      withoutTarget: true,
    });
    expect(lifted('ACTIVITY_TYPE_INIT_OTP', { ...rest, ...shape, emailCustomization: { appName } })).toEqual({
      ...intent,
      ...shape,
      emailCustomization: {},
      withoutTarget: true,
    });
  });
});
