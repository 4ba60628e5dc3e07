import { CoordinatorError, invalidField } from '../../domain/errors.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import { featureNames, type FeatureName } from '../../domain/organization/settings.js';
import { OneOf, Text } from '../../schema/fields.js';

/** A switch of the organization and its value. */
export class Feature {
  @OneOf(featureNames)
  name!: FeatureName;

  @Text()
  value!: string;
}

/**
 * Refuses a value that the feature could not work with: a wrong list of origins would lock every passkey out.
 * @throws {CoordinatorError} INVALID_ARGUMENT
 */
export function checkFeatureValue(name: FeatureName, value: string): void {
  if (name !== 'FEATURE_NAME_WEBAUTHN_ORIGINS') return;
  for (const origin of value.split(',').map((one) => one.trim())) {
    if (!isOrigin(origin)) {
      throw invalidField(
        'parameters.value',
        `must be origins separated by commas, each exactly as a browser writes it, such as https://app.example.com; \`${origin.slice(0, 128)}\` is none`,
      );
    }
  }
}

/**
 * Refuses a way to log in that a sub-organization has switched off; organizations without a parent have no such switch.
 * @throws {CoordinatorError} FAILED_PRECONDITION
 */
export function checkLoginFeature(
  { organizationId, parentOrganizationId, features }: OrganizationView,
  name: FeatureName,
): void {
  if (parentOrganizationId === undefined || features.has(name)) return;
  throw new CoordinatorError(
    'FAILED_PRECONDITION',
    `\`${name}\` is switched off in sub-organization \`${organizationId}\`: ` +
      'log in another way, or have its root users switch it on with set_organization_feature',
  );
}

/** A web origin that may have passkeys (https, or http on this machine), or an app's (see `stamps/webauthn.ts`). */
function isOrigin(text: string): boolean {
  if (/^android:apk-key-hash:[A-Za-z0-9_-]{27,43}={0,2}$|^ios:bundle-id:[A-Za-z0-9.-]{1,155}$/.test(text)) return true;
  if (!URL.canParse(text)) return false;
  const { origin, protocol, hostname } = new URL(text);
  const isLoopback = /^(?:127\.0\.0\.1|\[::1\]|(?:[^.]+\.)*localhost)$/.test(hostname);
  // URL lets wildcards and other signs through that no host has.
  if (!/^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])$/.test(hostname)) return false;
  return origin === text && (protocol === 'https:' || (protocol === 'http:' && isLoopback));
}
