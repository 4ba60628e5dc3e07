import { encryptOtpCodeToBundle, verifyOtpVerificationToken } from '@turnkey/crypto';
import type { OrganizationEvent } from '../../../src/domain/organization/organization.js';
import { verifyOtp } from '../../../src/activities/auth/verify-otp.js';
import { preparePorts } from '../../coordinator/prepare-ports.js';
import { anOrganization, publicKeyOf } from '../facts.js';
import { given, id } from '../given.js';
import { lifted } from '../lifted.js';
import { anOtp, contextOf, decidedAt, ended, failedGuess, rightHash, wrongHash } from './otp-facts.js';

const sealed = anOtp(500, { purpose: 'verify', vaultId: id(501) });
const history = [anOrganization(), sealed];
const intent = { otpId: id(500), encryptedOtpBundle: '{}' };
const right = { codeHash: rightHash, verificationToken: 'header.claims.signature' };
const wrong = { codeHash: wrongHash, verificationToken: undefined };

describe('verify otp', () => {
  it('gives a token, recorded without what proves it, and the code is used, and its key with it', () =>
    given(...history)
      .when(verifyOtp, intent, { prepared: right })
      .then([ended(500, 'used', { vaultId: id(501) })], { verificationToken: 'header.claims.' }));

  it('counts a wrong code, and locks at the third', () => {
    given(...history)
      .when(verifyOtp, intent, { prepared: wrong })
      .thenFails([failedGuess(500)], 'INVALID_ARGUMENT', /^Invalid OTP code/);
    given(...history, failedGuess(500), failedGuess(500))
      .when(verifyOtp, intent, { prepared: wrong })
      .thenFails(
        [failedGuess(500), ended(500, 'locked', { vaultId: id(501) })],
        'INVALID_ARGUMENT',
        /^Invalid OTP code/,
      );
  });

  it('locks at the ninth wrong code through the auth proxy, which counts three for each network', () => {
    const proxy: OrganizationEvent = {
      type: 'AuthProxyEnabled',
      data: {
        configId: id(801),
        userId: id(900),
        policyId: id(802),
        vaultId: id(803),
        publicKey: publicKeyOf(3),
        settings: { allowedOrigins: ['*'], allowedAuthMethods: ['email'] },
      },
    };
    const guessed = (times: number) => Array.from({ length: times }, () => failedGuess(500));
    given(...history, proxy, ...guessed(7))
      .when(verifyOtp, intent, { prepared: wrong })
      .thenFails([failedGuess(500)], 'INVALID_ARGUMENT', /^Invalid OTP code/);
    given(...history, proxy, ...guessed(8))
      .when(verifyOtp, intent, { prepared: wrong })
      .thenFails(
        [failedGuess(500), ended(500, 'locked', { vaultId: id(501) })],
        'INVALID_ARGUMENT',
        /^Invalid OTP code/,
      );
  });

  it.each([
    ['was never sent', []],
    ['was locked', [sealed, ended(500, 'locked', { vaultId: id(501) })]],
    ['is over', [anOtp(500, { purpose: 'verify', vaultId: id(501), expiresAt: decidedAt })]],
    ['is for a login', [anOtp(500)]],
  ] as const)('refuses a code that %s', (_what, codes) =>
    given(anOrganization(), ...codes)
      .when(verifyOtp, intent, { prepared: right })
      .thenRefused('INVALID_ARGUMENT', /^Invalid OTP code/),
  );

  it.each([
    ['no id', { otpId: '' }, /parameters\.otpId: must be a UUID/],
    ['nothing', { encryptedOtpBundle: '' }, /parameters\.encryptedOtpBundle/],
    ['a life of more than a day', { expirationSeconds: '86401' }, /parameters\.expirationSeconds/],
    ['a code in the clear', { otpCode: '123456' }, /parameters\.otpCode: is not a field/],
    ['a member of its own', { plain: { code: '1' } }, /parameters\.plain: is not a field/],
  ])('refuses %s', (_what, changed, message) =>
    given(...history)
      .when(verifyOtp, { ...intent, ...changed }, { prepared: right })
      .thenRefused('INVALID_ARGUMENT', message),
  );

  it('refuses what is sealed when the code was sent without a key', () =>
    given(anOrganization(), anOtp(500, { purpose: 'verify' }))
      .when(verifyOtp, intent, { prepared: right })
      .thenRefused(
        'INVALID_ARGUMENT',
        /parameters\.encryptedOtpBundle: cannot be decrypted: .*ACTIVITY_TYPE_INIT_OTP_V3/,
      ));

  it('takes the first version, with the code in the clear', () => {
    const plain = { otpId: id(500), otpCode: '123456' };
    expect(
      lifted('ACTIVITY_TYPE_VERIFY_OTP', { ...plain, publicKey: publicKeyOf(1), expirationSeconds: '60' }),
    ).toEqual({
      otpId: id(500),
      encryptedOtpBundle: '',
      expirationSeconds: '60',
      plain: { code: '123456', publicKey: publicKeyOf(1) },
    });
    expect(lifted('ACTIVITY_TYPE_VERIFY_OTP', { ...plain, publicKey: '' })).toMatchObject({
      plain: { code: '123456' },
    });
  });

  describe('what is prepared', () => {
    /** A code that was sent, with everything real. */
    async function sent(now = decidedAt) {
      const ports = await preparePorts();
      const { vaultId, targetBundle } = await ports.loginSecrets.startOtpTarget(id(700));
      const codeHash = await ports.loginSecrets.hashCode(id(500), '123456');
      const facts = { purpose: 'verify', codeHash, vaultId, expiresAt: now + 1_000 } as const;
      const context = { ...contextOf(anOrganization(), anOtp(500, facts)), now };
      const signer = ports.keys.publicKey('verification-token', 'uncompressed');
      const prepare = (asked: object) => verifyOtp.prepare!({ ...intent, ...asked }, ports, context);
      const seal = (code: string) => encryptOtpCodeToBundle(code, targetBundle, publicKeyOf(1), signer);
      return { prepare, seal, signer, codeHash };
    }

    it('is a token bound to the key that was sealed with the right code', async () => {
      // Its verifier looks at the wall clock.
      const now = Date.now();
      const { prepare, seal, signer, codeHash } = await sent(now);
      const made = await prepare({ encryptedOtpBundle: await seal('123456'), expirationSeconds: '600' });
      expect(made.codeHash).toBe(codeHash);
      expect(await verifyOtpVerificationToken(made.verificationToken!, signer)).toMatchObject({
        id: id(1),
        verification_type: 'OTP_TYPE_EMAIL',
        contact: 'ann@example.com',
        organization_id: id(700),
        public_key: publicKeyOf(1),
        exp: String(now + 600_000),
      });
    });

    it('is for an hour unless told, and bound to no key when the first version names none', async () => {
      const { prepare } = await sent();
      const { verificationToken } = await prepare({ plain: { code: '123456' } });
      const claims = JSON.parse(Buffer.from(verificationToken!.split('.')[1]!, 'base64url').toString()) as object;
      expect(claims).toMatchObject({ exp: String(decidedAt + 3_600_000) });
      expect(claims).not.toHaveProperty('public_key');
    });

    it('is no token for a wrong code, and nothing at all for what cannot be opened', async () => {
      const { prepare, seal, codeHash } = await sent();
      const made = await prepare({ encryptedOtpBundle: await seal('123457') });
      expect(made.verificationToken).toBeUndefined();
      expect(made.codeHash).not.toBe(codeHash);
      await expect(prepare({ encryptedOtpBundle: '{}' })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    });
  });
});
