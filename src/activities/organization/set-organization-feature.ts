import { featureList, featureNames, type FeatureName } from '../../domain/organization/settings.js';
import { ListOf, OneOf, Text } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { checkFeatureValue, Feature } from './organization-features.js';

class SetOrganizationFeatureIntent {
  @OneOf(featureNames, { about: 'The feature to enable.' })
  name!: FeatureName;

  @Text({ about: 'Value of the feature, which replaces the previous one; empty if it needs none.' })
  value!: string;
}

class SetOrganizationFeatureResult {
  @ListOf(() => Feature, { about: 'All enabled features.' })
  features!: Feature[];
}

/** Enables a feature of the organization. */
export const setOrganizationFeature = defineActivity({
  type: 'ACTIVITY_TYPE_SET_ORGANIZATION_FEATURE',
  summary: 'Enables a feature of the organization.',
  intent: SetOrganizationFeatureIntent,
  result: SetOrganizationFeatureResult,
  policy: 'root-quorum-only',

  decide({ name, value }, { organization }) {
    checkFeatureValue(name, value);
    return {
      events: [{ type: 'OrganizationFeatureSet', data: { name, value } }],
      result: { features: featureList(new Map([...organization.features, [name, value]])) },
    };
  },
});
