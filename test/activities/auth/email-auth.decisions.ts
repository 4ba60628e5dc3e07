import { decryptCredentialBundle } from '@turnkey/crypto';
import { emailAuth } from '../../../src/activities/auth/email-auth.js';
import { apiKeyPairFromPrivate } from '../../../src/stamps/sign.js';
import { preparePorts } from '../../coordinator/prepare-ports.js';
import { anApiKey, anOrganization, aUser, publicKeyOf } from '../facts.js';
import { given, id } from '../given.js';
import { lifted } from '../lifted.js';
import { contextOf, decidedAt, feature } from './otp-facts.js';

const history = [anOrganization(), aUser(id(101), { userEmail: 'ann@example.com' })];
const client = apiKeyPairFromPrivate('22'.repeat(32));
const intent = {
  email: 'ann@example.com',
  targetPublicKey: client.publicKey,
  emailCustomization: { appName: 'Acme' },
};
const message = { channel: 'email', to: 'ann@example.com', subject: '', text: 'a', html: '', expiresAt: 0 } as const;
const prepared = { publicKey: publicKeyOf(50), message };
const madeKey = anApiKey(id(101), 50, {
  apiKeyId: id(1),
  apiKeyName: 'Email Auth - 2026-01-02T00:00:00.000Z',
  credentialType: 'CREDENTIAL_TYPE_EMAIL_AUTH_KEY_P256',
  expirationSeconds: 900,
});

describe('email auth', () => {
  it('gives the user a key for 15 minutes; the credentials are in no event and no answer', () =>
    given(...history)
      .when(emailAuth, intent, { prepared })
      .then([madeKey], { userId: id(101), apiKeyId: id(1) }));

  it('uses the given name and lifetime, and removes keys of its class', () =>
    given(
      ...history,
      anApiKey(id(101), 1, { expirationSeconds: 900, credentialType: 'CREDENTIAL_TYPE_EMAIL_AUTH_KEY_P256' }),
      anApiKey(id(101), 2, { expirationSeconds: 900, credentialType: 'CREDENTIAL_TYPE_OTP_AUTH_KEY_P256' }),
    )
      .when(
        emailAuth,
        { ...intent, apiKeyName: 'mail', expirationSeconds: '60', invalidateExisting: true },
        { prepared },
      )
      .then(
        [
          { type: 'ApiKeyDeleted', data: { userId: id(101), apiKeyId: id(1) } },
          { ...madeKey, data: { ...madeKey.data, apiKeyName: 'mail', expirationSeconds: 60 } },
        ],
        { userId: id(101), apiKeyId: id(1) },
      ));

  it('refuses an address that nobody has, and one that two have', () => {
    given(...history)
      .when(emailAuth, { ...intent, email: 'bob@example.com' }, { prepared })
      .thenRefused('NOT_FOUND', /no user of organization .* has the e-mail address `bob@example\.com`/);
    given(...history, aUser(id(102), { userEmail: 'ann@example.com' }))
      .when(emailAuth, intent, { prepared })
      .thenRefused('FAILED_PRECONDITION', /2 users/);
  });

  it('needs FEATURE_NAME_EMAIL_AUTH in a sub-organization', () => {
    const child = [anOrganization({ parentOrganizationId: id(701) }), ...history.slice(1)];
    given(...child, feature('FEATURE_NAME_OTP_EMAIL_AUTH'))
      .when(emailAuth, intent, { prepared })
      .thenRefused('FAILED_PRECONDITION', /`FEATURE_NAME_EMAIL_AUTH` is disabled/);
    given(...child, feature('FEATURE_NAME_EMAIL_AUTH'))
      .when(emailAuth, intent, { prepared })
      .then([madeKey], { userId: id(101), apiKeyId: id(1) });
  });

  it.each([
    ['no address', { email: 'ann' }, /parameters\.email: must be an e-mail address/],
    ['a key that is none', { targetPublicKey: '02' }, /parameters\.targetPublicKey: .* is not a SEC1 point/],
    ['no looks', { emailCustomization: undefined }, /parameters\.emailCustomization: is required|must be an object/],
    ['no name', { emailCustomization: {} }, /parameters\.emailCustomization\.appName: is required/],
    [
      'a link that runs a script',
      { emailCustomization: { appName: 'Acme', magicLinkTemplate: 'javascript:alert(%s)' } },
      /magicLinkTemplate/,
    ],
  ])('refuses %s', (_what, changed, refusal) =>
    given(...history)
      .when(emailAuth, { ...intent, ...changed }, { prepared })
      .thenRefused('INVALID_ARGUMENT', refusal),
  );

  it('mails the key sealed, in a link if there is one', async () => {
    const ports = await preparePorts();
    const emailCustomization = { appName: 'Acme', magicLinkTemplate: 'https://a.example/login?bundle=%s' };
    const asked = { ...intent, emailCustomization, sendFromEmailSenderName: 'Acme' };
    const made = await emailAuth.prepare!(asked, ports, contextOf(...history));
    expect(made.message).toMatchObject({
      channel: 'email',
      to: 'ann@example.com',
      subject: 'Sign in to Acme',
      fromName: 'Acme',
      expiresAt: decidedAt + 900_000,
    });
    const [, bundle] = /login\?bundle=(\w+)/.exec(made.message.text)!;
    const opened = decryptCredentialBundle(bundle!, client.privateKey);
    expect(apiKeyPairFromPrivate(opened).publicKey).toBe(made.publicKey);
  });

  it('takes older versions, which may lack a name', async () => {
    const { emailCustomization, ...rest } = intent;
    for (const type of ['ACTIVITY_TYPE_EMAIL_AUTH', 'ACTIVITY_TYPE_EMAIL_AUTH_V2']) {
      expect(lifted(type, { ...rest, emailCustomization })).toEqual(intent);
      expect(lifted(type, rest)).toEqual({ ...rest, emailCustomization: { appName: '' } });
    }
    const nameless = { ...rest, emailCustomization: { appName: '' } };
    const made = await emailAuth.prepare!(nameless, await preparePorts(), contextOf(...history));
    expect(made.message.subject).toBe('Sign in to Acme');
  });
});
