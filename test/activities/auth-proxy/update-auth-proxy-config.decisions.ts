import { updateAuthProxyConfig } from '../../../src/activities/auth-proxy/update-auth-proxy-config.js';
import { anOrganization } from '../facts.js';
import type { OrganizationEvent } from '../../../src/domain/organization/organization.js';
import { given, id } from '../given.js';
import { enabledProxy } from './facts.js';

const initial = {
  allowedOrigins: ['*'],
  allowedAuthMethods: ['email', 'sms', 'passkey', 'wallet', 'oauth'],
  verificationTokenRequiredForGetAccountPii: true,
};
const update = (intent: object, ...more: readonly OrganizationEvent[]) =>
  given(anOrganization(), ...enabledProxy, ...more).when(updateAuthProxyConfig, intent);

describe('update auth proxy config', () => {
  it('changes what is there, as decimal strings and plain JSON, and leaves the rest', () =>
    update({
      allowedOrigins: ['https://app.example.com', 'http://localhost:3000'],
      otpLength: 6,
      sessionExpirationSeconds: 3600,
      walletKitSettings: { enabledSocialProviders: ['google'], oauthClientIds: { google: 'client' } },
    }).then(
      [
        {
          type: 'AuthProxyUpdated',
          data: {
            settings: {
              ...initial,
              allowedOrigins: ['https://app.example.com', 'http://localhost:3000'],
              otpLength: '6',
              sessionExpirationSeconds: '3600',
              walletKitSettings: { enabledSocialProviders: ['google'], oauthClientIds: { google: 'client' } },
            },
          },
        },
      ],
      { configId: id(304) },
    ));

  it('removes a text that is sent empty', () =>
    update(
      { sendFromEmailAddress: '' },
      {
        type: 'AuthProxyUpdated',
        data: { settings: { ...initial, sendFromEmailAddress: 'a@example.com', otpLength: '7' } },
      },
    ).then([{ type: 'AuthProxyUpdated', data: { settings: { ...initial, otpLength: '7' } } }], { configId: id(304) }));

  it.each([
    '*',
    'https://app.example.com',
    'https://app.example.com:8443',
    'http://[::1]:3000',
    'capacitor://localhost',
  ])('takes the origin %s', (origin) =>
    update({ allowedOrigins: [origin] }).then(
      [{ type: 'AuthProxyUpdated', data: { settings: { ...initial, allowedOrigins: [origin] } } }],
      { configId: id(304) },
    ),
  );

  it.each([
    'https://*.example.com',
    'https://app.example.com/',
    'https://app.example.com/login',
    'https://App.example.com',
    'HTTPS://app.example.com',
    'https://app.example.com:443',
    'http://app.example.com:80',
    'https://user@app.example.com',
    'https://app.example.com?x',
    'app.example.com',
    'https://',
    'null',
    '',
    '**',
    ' https://app.example.com',
    'https://ex\u00e4mple.com',
  ])('refuses the origin %j', (origin) =>
    update({ allowedOrigins: ['https://fine.example.com', origin] }).thenRefused(
      'INVALID_ARGUMENT',
      /parameters\.allowedOrigins\[1\]/,
    ),
  );

  it.each([
    [{ allowedOrigins: [] }, /allowedOrigins/],
    [{ allowedAuthMethods: ['carrier-pigeon'] }, /allowedAuthMethods/],
    [{ otpLength: 5 }, /otpLength/],
    [{ otpLength: 10 }, /otpLength/],
    [{ otpExpirationSeconds: 601 }, /otpExpirationSeconds/],
    [{ sessionExpirationSeconds: 2_592_001 }, /sessionExpirationSeconds/],
    [{ sendFromEmailAddress: 'nobody' }, /sendFromEmailAddress/],
    [{ walletKitSettings: { oauthClientIds: { myspace: 'x' } } }, /myspace/],
    [{ configId: id(304) }, /configId/],
  ])('refuses %j', (intent, message) => update(intent).thenRefused('INVALID_ARGUMENT', message));

  it('does not take a captcha for granted', () => {
    update({ captchaEnabled: true }).thenRefused('UNIMPLEMENTED', /captcha/);
  });

  it('refuses where there is no auth proxy', () =>
    given(anOrganization())
      .when(updateAuthProxyConfig, { otpLength: 6 })
      .thenRefused('FAILED_PRECONDITION', /has no auth proxy: enable it with enable_auth_proxy first/));
});
