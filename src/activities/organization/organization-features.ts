import { CoordinatorError, invalidField } from '../../domain/errors.js';
import { BadLimits, readLimits, limitsFeature } from '../../domain/organization/limits.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import { featureNames, type FeatureName } from '../../domain/organization/settings.js';
import { isPasskeyOrigin } from '../../domain/passkey-origins.js';
import { OneOf, Text } from '../../wire/fields.js';

/** A feature of the organization and its value. */
export class Feature {
  @OneOf(featureNames)
  name!: FeatureName;

  @Text()
  value!: string;
}

/**
 * Refuses a value that the feature could not work with: an invalid list of origins would lock out every passkey.
 * @throws {CoordinatorError} INVALID_ARGUMENT
 */
export function checkFeatureValue(name: FeatureName, value: string): void {
  if (name === limitsFeature) {
    try {
      readLimits(value);
    } catch (error) {
      throw error instanceof BadLimits ? invalidField('parameters.value', error.message) : error;
    }
  }
  if (name === 'FEATURE_NAME_ACTIVITY_TIMESTAMPS' && value !== 'object') {
    throw invalidField('parameters.value', `must be \`object\`, got \`${value.slice(0, 128)}\``);
  }
  if (name !== 'FEATURE_NAME_WEBAUTHN_ORIGINS') return;
  for (const origin of value.split(',').map((one) => one.trim())) {
    if (!isPasskeyOrigin(origin)) {
      throw invalidField(
        'parameters.value',
        `must be origins separated by commas, each exactly as a browser writes it, such as https://app.example.com, got \`${origin.slice(0, 128)}\``,
      );
    }
  }
}

/**
 * Refuses a login method that a sub-organization has switched off; organizations without a parent have no such switch.
 * @throws {CoordinatorError} FAILED_PRECONDITION
 */
export function checkLoginFeature(
  { organizationId, parentOrganizationId, features }: OrganizationView,
  name: FeatureName,
): void {
  if (parentOrganizationId === undefined || features.has(name)) return;
  throw new CoordinatorError(
    'FAILED_PRECONDITION',
    `\`${name}\` is disabled in sub-organization \`${organizationId}\`: ` +
      'log in another way, or have its root users enable it with set_organization_feature',
  );
}
