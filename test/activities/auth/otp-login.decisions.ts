import { verifySessionJwtSignature } from '@turnkey/crypto';
import { otpLogin } from '../../../src/activities/auth/otp-login.js';
import type { VerificationClaims } from '../../../src/ports/tokens.js';
import type { OrganizationEvent } from '../../../src/domain/organization/organization.js';
import { apiKeyPairFromPrivate } from '../../../src/stamps/sign.js';
import { preparePorts } from '../../coordinator/prepare-ports.js';
import { claimsOf, clientSignature } from '../../e2e/one-time-codes.js';
import { anApiKey, anOrganization, aUser, publicKeyOf } from '../facts.js';
import { given, id } from '../given.js';
import { lifted } from '../lifted.js';
import { contextOf, decidedAt, feature, someClaims } from './otp-facts.js';

const client = apiKeyPairFromPrivate('22'.repeat(32));
const annVerified: readonly OrganizationEvent[] = [
  aUser(id(101), { userEmail: 'ann@example.com', userPhoneNumber: '+13214567890' }),
  { type: 'UserContactVerified', data: { userId: id(101), contact: 'email', issuerOrganizationId: id(700) } },
];
const history = [anOrganization(), ...annVerified];
const anySignature = clientSignature(client, `.${Buffer.from('{}').toString('base64url')}.`, 'USAGE_TYPE_LOGIN', {});
const intent = { verificationToken: 'a token', publicKey: publicKeyOf(50), clientSignature: anySignature };
const prepared = { claims: someClaims(), userId: id(101), session: 'a session' };
const used: OrganizationEvent = {
  type: 'VerificationTokenUsed',
  data: { tokenId: id(600), usage: 'USAGE_TYPE_LOGIN', expiresAt: decidedAt + 3_600_000 },
};
const madeKey = anApiKey(id(101), 50, {
  apiKeyId: id(1),
  apiKeyName: 'Login - 2026-01-02T00:00:00.000Z',
  credentialType: 'CREDENTIAL_TYPE_LOGIN',
  expirationSeconds: 900,
});

describe('otp login', () => {
  it("makes the client's key one of the user's, and the token is used", () =>
    given(...history)
      .when(otpLogin, intent, { prepared })
      .then([used, madeKey], { session: 'a session' }));

  it('uses the given lifetime, and removes keys of its class', () =>
    given(
      ...history,
      anApiKey(id(101), 1, { expirationSeconds: 900, credentialType: 'CREDENTIAL_TYPE_LOGIN' }),
      anApiKey(id(101), 2, { expirationSeconds: 900 }),
    )
      .when(otpLogin, { ...intent, expirationSeconds: '60', invalidateExisting: true }, { prepared })
      .then(
        [
          used,
          { type: 'ApiKeyDeleted', data: { userId: id(101), apiKeyId: id(1) } },
          { ...madeKey, data: { ...madeKey.data, expirationSeconds: 60 } },
        ],
        { session: 'a session' },
      ));

  it('refuses a token that was used for a login, not one that was used for something else', () => {
    given(...history, used)
      .when(otpLogin, intent, { prepared })
      .thenRefused('FAILED_PRECONDITION', /has already been used for USAGE_TYPE_LOGIN/);
    given(...history, { ...used, data: { ...used.data, usage: 'USAGE_TYPE_SIGNUP' } })
      .when(otpLogin, intent, { prepared })
      .then([used, madeKey], { session: 'a session' });
  });

  it.each([
    ['is not proved', [aUser(id(101), { userEmail: 'ann@example.com' })]],
    [
      'has changed since it was proved',
      [...annVerified, { type: 'UserUpdated', data: { userId: id(101), userEmail: 'a@b.example' } }],
    ],
    ['is gone', []],
  ] as const)('refuses when the contact %s', (_what, users) =>
    given(anOrganization(), ...users)
      .when(otpLogin, intent, { prepared })
      .thenRefused('NOT_FOUND', /no user of organization .* has `ann@example\.com` as a verified contact/),
  );

  it('refuses when the contact is by now proved for another user', () =>
    given(...history)
      .when(otpLogin, intent, { prepared: { ...prepared, userId: id(102) } })
      .thenRefused('ABORTED', /log in again/));

  it.each([
    ['OTP_TYPE_EMAIL', 'ann@example.com', 'FEATURE_NAME_OTP_EMAIL_AUTH'],
    ['OTP_TYPE_SMS', '+13214567890', 'FEATURE_NAME_SMS_AUTH'],
  ] as const)('in a sub-organization by %s of %s needs %s', (verificationType, contact, name) => {
    const child = [
      anOrganization({ parentOrganizationId: id(701) }),
      ...annVerified,
      {
        type: 'UserContactVerified',
        data: { userId: id(101), contact: 'phone-number', issuerOrganizationId: id(700) },
      },
    ] as const;
    const proof = { ...prepared, claims: someClaims({ verificationType, contact }) };
    given(...child)
      .when(otpLogin, intent, { prepared: proof })
      .thenRefused('FAILED_PRECONDITION', new RegExp(name));
    given(...child, feature(name))
      .when(otpLogin, intent, { prepared: proof })
      .then([used, madeKey], { session: 'a session' });
  });

  it('in a sub-organization proves a contact that the parent’s own members have asserted, once', () => {
    const asserted = aUser(id(101), { userEmail: 'ann@example.com' });
    const on = feature('FEATURE_NAME_OTP_EMAIL_AUTH');
    const child = (more: object = {}) => anOrganization({ parentOrganizationId: id(701), ...more });
    const proof = { ...prepared, claims: someClaims({ organizationId: id(701) }) };
    const proved: OrganizationEvent = {
      type: 'UserContactVerified',
      data: { userId: id(101), contact: 'email', issuerOrganizationId: id(701) },
    };
    given(child(), asserted, on)
      .when(otpLogin, intent, { prepared: proof })
      .then([used, proved, madeKey], { session: 'a session' });
    given(child(), asserted, on, proved)
      .when(otpLogin, intent, { prepared: proof })
      .then([used, madeKey], { session: 'a session' });
    given(child({ createdBy: 'auth-proxy' }), asserted, on)
      .when(otpLogin, intent, { prepared: proof })
      .thenRefused('NOT_FOUND', /as a verified contact/);
  });

  it.each([
    ['no token', { verificationToken: '' }, /parameters\.verificationToken/],
    ['a key that is none', { publicKey: 'ff' }, /parameters\.publicKey: .* is not a SEC1 point/],
    ['no signature', { clientSignature: undefined }, /parameters\.clientSignature/],
    ['a session profile', { sessionProfileId: id(1) }, /parameters\.sessionProfileId: names no session profile/],
  ])('refuses %s', (_what, changed, message) =>
    given(...history)
      .when(otpLogin, { ...intent, ...changed }, { prepared })
      .thenRefused('INVALID_ARGUMENT', message),
  );

  it('takes the first version, which may lack a signature', () => {
    const { clientSignature: _none, ...unsigned } = intent;
    const more = { takesUnboundToken: true };
    expect(lifted('ACTIVITY_TYPE_OTP_LOGIN', unsigned)).toEqual({ ...unsigned, ...more });
    expect(lifted('ACTIVITY_TYPE_OTP_LOGIN', intent)).toEqual({ ...intent, ...more });
  });

  describe('what is prepared', () => {
    /** A token with those claims, and what may be asked with it. */
    async function proof(claims: Partial<VerificationClaims> = {}) {
      const ports = await preparePorts();
      const token = await ports.tokens.signVerification(someClaims({ publicKey: client.publicKey, ...claims }));
      const login = { publicKey: client.publicKey };
      return {
        ports,
        token,
        asked: {
          verificationToken: token,
          publicKey: client.publicKey,
          clientSignature: clientSignature(client, token, 'USAGE_TYPE_LOGIN', { login }),
        },
      };
    }
    const refused = async (
      claims: Partial<VerificationClaims>,
      changed: object,
      ...facts: readonly OrganizationEvent[]
    ) => {
      const { ports, asked } = await proof(claims);
      const context = contextOf(...history, ...facts);
      return otpLogin.prepare!({ ...asked, ...changed }, ports, context).then(
        () => 'not refused',
        (error: unknown) => (error as Error).message,
      );
    };

    it('is a session that the published client verifies, as long as its key', async () => {
      const { ports, asked } = await proof();
      const { session, userId } = await otpLogin.prepare!(
        { ...asked, expirationSeconds: '61' },
        ports,
        contextOf(...history),
      );
      expect(userId).toBe(id(101));
      const notarizer = ports.keys.publicKey('notarizer', 'uncompressed');
      expect(await verifySessionJwtSignature(session, notarizer)).toBe(true);
      expect(claimsOf(session)).toEqual({
        exp: decidedAt / 1000 + 61,
        public_key: client.publicKey,
        session_type: 'SESSION_TYPE_READ_WRITE',
        user_id: id(101),
        organization_id: id(700),
      });
    });

    it('takes a token of the parent, and refuses one of anybody else', async () => {
      const child = anOrganization({ parentOrganizationId: id(701) });
      const on = feature('FEATURE_NAME_OTP_EMAIL_AUTH');
      const { ports, asked } = await proof({ organizationId: id(701) });
      const made = await otpLogin.prepare!(asked, ports, contextOf(child, on, ...annVerified));
      expect(made.userId).toBe(id(101));
      await expect(otpLogin.prepare!(asked, ports, contextOf(...history))).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringMatching(/was issued by organization .* which is neither .* nor its parent/) as string,
      });
    });

    it.each([
      ['has expired', { expiresAt: decidedAt }, /has expired/],
      [
        'verifies a different contact',
        { contact: 'bob@example.com' },
        /no user .* has `bob@example\.com` as a verified contact/,
      ],
      ['looks like a proof', { contact: 'ANN@example.com', verificationType: 'OTP_TYPE_SMS' }, /no user/],
    ] as const)('is refused with a token that %s', async (_what, claims, message) => {
      expect(await refused(claims, {})).toMatch(message);
    });

    it('is refused with a signature that is missing, of another key, over another request, or forged', async () => {
      const other = apiKeyPairFromPrivate('33'.repeat(32));
      const { token, asked } = await proof();
      const login = { publicKey: client.publicKey };
      const signed = asked.clientSignature;
      const attempts = {
        'is required': undefined,
        'is not the key': clientSignature(other, token, 'USAGE_TYPE_LOGIN', { login }),
        'does not match the request': clientSignature(client, token, 'USAGE_TYPE_LOGIN', {
          login: { publicKey: other.publicKey },
        }),
        'must contain tokenId': clientSignature(client, token, 'USAGE_TYPE_SIGNUP', { login }),
        'is not a valid signature of the message by this key': {
          ...signed,
          signature: `${signed.signature.slice(0, -2)}00`,
        },
      };
      for (const [why, attempt] of Object.entries(attempts)) {
        expect(await refused({}, { clientSignature: attempt })).toContain(why);
      }
      expect(await refused({}, { publicKey: other.publicKey })).toContain('does not match the request');
    });

    it('is refused for a token that is bound to no key, which the first version takes', async () => {
      const ports = await preparePorts();
      const verificationToken = await ports.tokens.signVerification(someClaims());
      const { publicKey } = client;
      const asked = {
        verificationToken,
        publicKey,
        clientSignature: clientSignature(client, verificationToken, 'USAGE_TYPE_LOGIN', { login: { publicKey } }),
      };
      await expect(otpLogin.prepare!(asked, ports, contextOf(...history))).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringContaining('parameters.verificationToken: is not bound to a key') as string,
      });
      const first = { verificationToken, publicKey, takesUnboundToken: true } as const;
      expect((await otpLogin.prepare!(first, ports, contextOf(...history))).userId).toBe(id(101));
      const signed = { ...first, clientSignature: { ...asked.clientSignature, signature: '00'.repeat(64) } };
      await expect(otpLogin.prepare!(signed, ports, contextOf(...history))).rejects.toThrow(
        'is not a valid signature of the message by this key',
      );
    });

    it('is refused for a token that was used', async () => {
      expect(await refused({}, {}, used)).toContain('has already been used for USAGE_TYPE_LOGIN');
    });
  });
});
