import { removeOrganizationFeature } from '../../../src/activities/organization/remove-organization-feature.js';
import { anOrganization } from '../facts.js';
import { given } from '../given.js';

const set = (name: 'FEATURE_NAME_SMS_AUTH' | 'FEATURE_NAME_EMAIL_AUTH') =>
  ({ type: 'OrganizationFeatureSet', data: { name, value: 'v' } }) as const;

describe('remove organization feature', () => {
  it('switches the feature off, and answers those that are still on', () =>
    given(anOrganization(), set('FEATURE_NAME_SMS_AUTH'), set('FEATURE_NAME_EMAIL_AUTH'))
      .when(removeOrganizationFeature, { name: 'FEATURE_NAME_SMS_AUTH' })
      .then([{ type: 'OrganizationFeatureRemoved', data: { name: 'FEATURE_NAME_SMS_AUTH' } }], {
        features: [{ name: 'FEATURE_NAME_EMAIL_AUTH', value: 'v' }],
      }));

  it('refuses a feature that is not on', () =>
    given(anOrganization(), set('FEATURE_NAME_SMS_AUTH'))
      .when(removeOrganizationFeature, { name: 'FEATURE_NAME_EMAIL_AUTH' })
      .thenRefused('NOT_FOUND', /feature `FEATURE_NAME_EMAIL_AUTH` is not enabled/));

  it('refuses an unknown feature', () =>
    given(anOrganization())
      .when(removeOrganizationFeature, { name: 'FEATURE_NAME_FLYING' })
      .thenRefused('INVALID_ARGUMENT', /parameters\.name: must be one of/));
});
