import { stampLogin } from '../../../src/activities/auth/stamp-login.js';
import type { Attestation } from '../../../src/domain/activity/events.js';
import type { OrganizationEvent } from '../../../src/domain/organization/organization.js';
import { anApiKey, anOrganization, aUser, identityOf, publicKeyOf } from '../facts.js';
import { given, id } from '../given.js';

const ann = id(101);
const history: readonly OrganizationEvent[] = [
  anOrganization(),
  aUser(ann, { userEmail: 'ann@example.com' }),
  { type: 'UserContactVerified', data: { userId: ann, contact: 'email', issuerOrganizationId: id(700) } },
];
const intent = { publicKey: publicKeyOf(50) };
const prepared = { userId: ann, session: 'a session' };
const result = { session: 'a session' };
const madeKey = anApiKey(ann, 50, {
  apiKeyId: id(1),
  apiKeyName: 'Login - 2026-01-02T00:00:00.000Z',
  credentialType: 'CREDENTIAL_TYPE_LOGIN',
  expirationSeconds: 900,
});
const token = {
  kind: 'contact',
  tokenId: id(600),
  verificationType: 'OTP_TYPE_EMAIL',
  contact: 'ann@example.com',
  organizationId: id(700),
  expiresAt: Date.UTC(2026, 0, 3),
} satisfies Attestation;
const used: OrganizationEvent = {
  type: 'VerificationTokenUsed',
  data: { tokenId: id(600), usage: 'USAGE_TYPE_LOGIN', expiresAt: token.expiresAt },
};

describe('stamp_login', () => {
  it("makes the client's key one of whoever has stamped", () =>
    given(...history)
      .when(stampLogin, intent, { submitterId: ann, prepared })
      .then([madeKey], result));

  it('removes the login keys if asked to, and no others', () =>
    given(
      ...history,
      anApiKey(ann, 1, { expirationSeconds: 900, credentialType: 'CREDENTIAL_TYPE_LOGIN' }),
      anApiKey(ann, 2, { expirationSeconds: 900, credentialType: 'CREDENTIAL_TYPE_READ_WRITE_SESSION_KEY_P256' }),
      anApiKey(ann, 3),
    )
      .when(stampLogin, { ...intent, invalidateExisting: true }, { submitterId: ann, prepared })
      .then([{ type: 'ApiKeyDeleted', data: { userId: ann, apiKeyId: id(1) } }, madeKey], result));

  it('uses up the verification token that has vouched for the key', () =>
    given(...history)
      .when(stampLogin, intent, { submitterId: ann, prepared, attestation: token })
      .then([used, madeKey], result));

  it('has nothing to use up of an identity', () =>
    given(...history)
      .when(stampLogin, intent, { submitterId: ann, prepared, attestation: { kind: 'identity', ...identityOf(1) } })
      .then([madeKey], result));

  it('refuses a verification token that was used for a login, and takes one that was used for the sign-up', () => {
    given(...history, used)
      .when(stampLogin, intent, { submitterId: ann, prepared, attestation: token })
      .thenRefused('FAILED_PRECONDITION', /has already been used for USAGE_TYPE_LOGIN/);
    given(...history, { ...used, data: { ...used.data, usage: 'USAGE_TYPE_SIGNUP' } })
      .when(stampLogin, intent, { submitterId: ann, prepared, attestation: token })
      .then([used, madeKey], result);
  });

  it('refuses a login by e-mail where those are switched off', () => {
    const sub = anOrganization({ parentOrganizationId: id(701) });
    const on: OrganizationEvent = {
      type: 'OrganizationFeatureSet',
      data: { name: 'FEATURE_NAME_OTP_EMAIL_AUTH', value: '' },
    };
    const [, ...users] = history;
    given(sub, on, ...users)
      .when(stampLogin, intent, { submitterId: ann, prepared, attestation: token })
      .then([used, madeKey], result);
    given(sub, ...users)
      .when(stampLogin, intent, { submitterId: ann, prepared, attestation: token })
      .thenRefused('FAILED_PRECONDITION', /FEATURE_NAME_OTP_EMAIL_AUTH|switched off/);
    given(sub, ...users)
      .when(stampLogin, intent, { submitterId: ann, prepared })
      .then([madeKey], result);
  });

  it('refuses a session that was signed for somebody else', () =>
    given(...history, aUser(id(102)))
      .when(stampLogin, intent, { submitterId: id(102), prepared })
      .thenRefused('ABORTED', /log in again/));

  it.each([
    ['a key that is none', { publicKey: '02ff' }, /parameters\.publicKey/],
    ['a session profile', { sessionProfileId: 'one' }, /parameters\.sessionProfileId/],
  ])('refuses %s', (_what, more, message) =>
    given(...history)
      .when(stampLogin, { ...intent, ...more }, { submitterId: ann, prepared })
      .thenRefused('INVALID_ARGUMENT', message),
  );
});
