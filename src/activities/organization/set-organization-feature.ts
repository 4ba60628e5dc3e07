import { featureList, featureNames, type FeatureName } from '../../domain/organization/settings.js';
import { ListOf, OneOf, Text } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { checkFeatureValue, Feature } from './organization-features.js';

class SetOrganizationFeatureIntent {
  @OneOf(featureNames, { about: 'The feature to switch on.' })
  name!: FeatureName;

  @Text({ about: 'Its value; may be empty for a feature that needs none. Replaces the value so far.' })
  value!: string;
}

class SetOrganizationFeatureResult {
  @ListOf(() => Feature, { about: 'All features that are on.' })
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
