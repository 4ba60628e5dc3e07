import { decryptCredentialBundle } from '@turnkey/crypto';
import { otpAuth } from '../../../src/activities/auth/otp-auth.js';
import { apiKeyPairFromPrivate } from '../../../src/stamps/sign.js';
import { preparePorts } from '../../coordinator/prepare-ports.js';
import { anApiKey, anOrganization, aUser, publicKeyOf } from '../facts.js';
import { given, id } from '../given.js';
import { anOtp, contextOf, decidedAt, ended, failedGuess, feature, rightHash, wrongHash } from './otp-facts.js';

const ann = aUser(id(101), { userEmail: 'Ann@Example.com' });
const history = [anOrganization(), ann, anOtp(500)];
const intent = { otpId: id(500), otpCode: 'QPZRY9X8G', targetPublicKey: publicKeyOf(60) };
const key = { publicKey: publicKeyOf(50), credentialBundle: 'a bundle' };
const right = { codeHash: rightHash, key };
const wrong = { codeHash: wrongHash, key };
const madeKey = anApiKey(id(101), 50, {
  apiKeyId: id(1),
  apiKeyName: 'OTP Auth - 2026-01-02T00:00:00.000Z',
  credentialType: 'CREDENTIAL_TYPE_OTP_AUTH_KEY_P256',
  expirationSeconds: 900,
});
const result = { userId: id(101), apiKeyId: id(1), credentialBundle: 'a bundle' };

describe('otp auth', () => {
  it('gives the user a key for 15 minutes, and the code is used', () =>
    given(...history)
      .when(otpAuth, intent, { prepared: right })
      .then([ended(500, 'used'), madeKey], result));

  it('uses the given name and lifetime, and removes keys of its class', () =>
    given(
      ...history,
      anApiKey(id(101), 1, { expirationSeconds: 900, credentialType: 'CREDENTIAL_TYPE_OTP_AUTH_KEY_P256' }),
      anApiKey(id(101), 2, { expirationSeconds: 900, credentialType: 'CREDENTIAL_TYPE_LOGIN' }),
    )
      .when(
        otpAuth,
        { ...intent, apiKeyName: 'phone', expirationSeconds: '61', invalidateExisting: true },
        { prepared: right },
      )
      .then(
        [
          ended(500, 'used'),
          { type: 'ApiKeyDeleted', data: { userId: id(101), apiKeyId: id(1) } },
          { ...madeKey, data: { ...madeKey.data, apiKeyName: 'phone', expirationSeconds: 61 } },
        ],
        result,
      ));

  it('says only who it is when no key is to be sealed', () =>
    given(...history)
      .when(otpAuth, { ...intent, targetPublicKey: '' }, { prepared: { codeHash: rightHash, key: undefined } })
      .then([ended(500, 'used')], { userId: id(101) }));

  it.each([0, 1])('counts a wrong code after %i others', (others) =>
    given(...history, ...Array.from({ length: others }, () => failedGuess(500)))
      .when(otpAuth, intent, { prepared: wrong })
      .thenFails([failedGuess(500)], 'INVALID_ARGUMENT', /^Invalid OTP code/),
  );

  it('locks at the third, and then even the right one is refused, and nothing more is recorded', () => {
    const two = [failedGuess(500), failedGuess(500)];
    given(...history, ...two)
      .when(otpAuth, intent, { prepared: wrong })
      .thenFails([failedGuess(500), ended(500, 'locked')], 'INVALID_ARGUMENT', /^Invalid OTP code/);
    given(...history, ...two, failedGuess(500), ended(500, 'locked'))
      .when(otpAuth, intent, { prepared: right })
      .thenRefused('INVALID_ARGUMENT', /^Invalid OTP code/);
  });

  it('counts the right code as wrong when nobody has the contact', () =>
    given(anOrganization(), anOtp(500))
      .when(otpAuth, intent, { prepared: right })
      .thenFails([failedGuess(500)], 'INVALID_ARGUMENT', /^Invalid OTP code/));

  it.each([
    ['was never sent', []],
    ['was used', [anOtp(500), ended(500, 'used')]],
    ['is over', [anOtp(500, { expiresAt: decidedAt })]],
    ['is for another purpose', [anOtp(500, { purpose: 'verify' })]],
  ] as const)('refuses a code that %s, without a word more', (_what, codes) =>
    given(anOrganization(), ann, ...codes)
      .when(otpAuth, intent, { prepared: right })
      .thenRefused('INVALID_ARGUMENT', /^Invalid OTP code: it is wrong, used, expired, or locked/),
  );

  it('refuses where such logins are switched off, also after the code was sent', () => {
    const child = [anOrganization({ parentOrganizationId: id(701) }), ann, anOtp(500)];
    given(...child)
      .when(otpAuth, intent, { prepared: right })
      .thenRefused('FAILED_PRECONDITION', /FEATURE_NAME_OTP_EMAIL_AUTH/);
    given(...child, feature('FEATURE_NAME_OTP_EMAIL_AUTH'))
      .when(otpAuth, intent, { prepared: right })
      .then([ended(500, 'used'), madeKey], result);
  });

  it('refuses when two users have the contact', () =>
    given(...history, aUser(id(102), { userEmail: 'ann@example.com' }))
      .when(otpAuth, intent, { prepared: right })
      .thenRefused('FAILED_PRECONDITION', /2 users/));

  it.each([
    ['no id', { otpId: '1' }, /parameters\.otpId: must be a UUID/],
    ['no code', { otpCode: '' }, /parameters\.otpCode/],
    [
      'a key that is not a point',
      { targetPublicKey: `04${'ff'.repeat(64)}` },
      /parameters\.targetPublicKey: .* is not a point/,
    ],
    ['no key', { targetPublicKey: undefined }, /parameters\.targetPublicKey: is required/],
    ['no life', { expirationSeconds: '0' }, /parameters\.expirationSeconds/],
  ])('refuses %s', (_what, changed, message) =>
    given(...history)
      .when(otpAuth, { ...intent, ...changed }, { prepared: right })
      .thenRefused('INVALID_ARGUMENT', message),
  );

  it('prepares a key that the published client opens, and the hash of the code in any letter case', async () => {
    const ports = await preparePorts();
    const client = apiKeyPairFromPrivate('22'.repeat(32));
    const prepare = (otpCode: string, targetPublicKey: string) =>
      otpAuth.prepare!({ otpId: id(500), otpCode, targetPublicKey }, ports, contextOf(...history));
    const made = await prepare('qpzry9x8g', client.publicKey);
    expect(made.codeHash).toBe(await ports.loginSecrets.hashCode(id(500), 'QPZRY9X8G'));
    const opened = decryptCredentialBundle(made.key!.credentialBundle, client.privateKey);
    expect(apiKeyPairFromPrivate(opened).publicKey).toBe(made.key!.publicKey);
    expect((await prepare('qpzry9x8g', '')).key).toBeUndefined();
  });
});
