import { setOrganizationFeature } from '../../../src/activities/organization/set-organization-feature.js';
import { anOrganization } from '../facts.js';
import { given } from '../given.js';

const name = 'FEATURE_NAME_WEBAUTHN_ORIGINS';
const sms = { type: 'OrganizationFeatureSet', data: { name: 'FEATURE_NAME_SMS_AUTH', value: '' } } as const;

describe('set organization feature', () => {
  it('switches a feature on, and answers all that are on', () =>
    given(anOrganization(), sms)
      .when(setOrganizationFeature, { name: 'FEATURE_NAME_EMAIL_AUTH', value: 'yes' })
      .then([{ type: 'OrganizationFeatureSet', data: { name: 'FEATURE_NAME_EMAIL_AUTH', value: 'yes' } }], {
        features: [
          { name: 'FEATURE_NAME_EMAIL_AUTH', value: 'yes' },
          { name: 'FEATURE_NAME_SMS_AUTH', value: '' },
        ],
      }));

  it('replaces a value', () =>
    given(anOrganization(), sms)
      .when(setOrganizationFeature, { name: 'FEATURE_NAME_SMS_AUTH', value: 'new' })
      .then([{ type: 'OrganizationFeatureSet', data: { name: 'FEATURE_NAME_SMS_AUTH', value: 'new' } }], {
        features: [{ name: 'FEATURE_NAME_SMS_AUTH', value: 'new' }],
      }));

  it.each([
    'https://app.example.com',
    'https://app.example.com, https://example.com:8443',
    'http://localhost:3000,http://127.0.0.1:8080,http://[::1]:8080,http://app.localhost',
    `https://app.example.com,android:apk-key-hash:${'a'.repeat(43)},ios:bundle-id:com.example.app`,
  ])('takes the origins %s', (value) =>
    given(anOrganization())
      .when(setOrganizationFeature, { name, value })
      .then([{ type: 'OrganizationFeatureSet', data: { name, value } }], { features: [{ name, value }] }),
  );

  it.each([
    '',
    '*',
    'app.example.com',
    'https://app.example.com/',
    'https://app.example.com/login',
    'https://APP.example.com',
    'https://app.example.com:443',
    'https://*.example.com',
    'http://app.example.com',
    'https://app.example.com,',
    'https://user@app.example.com',
    'https://app.example.com;https://example.com',
    'null',
  ])('refuses the origins `%s`', (value) =>
    given(anOrganization())
      .when(setOrganizationFeature, { name, value })
      .thenRefused(
        'INVALID_ARGUMENT',
        /parameters\.value: must be origins separated by commas, each exactly as a browser writes it/,
      ),
  );

  it.each([
    [
      'an unknown feature',
      { name: 'FEATURE_NAME_FLYING', value: '' },
      /parameters\.name: must be one of FEATURE_NAME_ROOT_USER_EMAIL_RECOVERY/,
    ],
    ['no value', { name }, /parameters\.value: is required/],
  ])('refuses %s', (_what, intent, message) =>
    given(anOrganization()).when(setOrganizationFeature, intent).thenRefused('INVALID_ARGUMENT', message),
  );
});
