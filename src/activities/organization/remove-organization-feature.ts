import { CoordinatorError } from '../../domain/errors.js';
import { featureList, featureNames, type FeatureName } from '../../domain/organization/settings.js';
import { ListOf, OneOf } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { Feature } from './organization-features.js';

class RemoveOrganizationFeatureIntent {
  @OneOf(featureNames, { about: 'The feature to disable.' })
  name!: FeatureName;
}

class RemoveOrganizationFeatureResult {
  @ListOf(() => Feature, { about: 'All features that are still enabled.' })
  features!: Feature[];
}

/** Disables a feature of the organization. */
export const removeOrganizationFeature = defineActivity({
  type: 'ACTIVITY_TYPE_REMOVE_ORGANIZATION_FEATURE',
  summary: 'Disables a feature of the organization.',
  intent: RemoveOrganizationFeatureIntent,
  result: RemoveOrganizationFeatureResult,
  policy: 'root-quorum-only',

  decide({ name }, { organization }) {
    const left = new Map(organization.features);
    if (!left.delete(name)) {
      throw new CoordinatorError(
        'NOT_FOUND',
        `feature \`${name}\` is not enabled in organization \`${organization.organizationId}\``,
      );
    }
    return {
      events: [{ type: 'OrganizationFeatureRemoved', data: { name } }],
      result: { features: featureList(left) },
    };
  },
});
