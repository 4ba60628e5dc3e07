import type { DomainEvent, Evolvers } from './event.js';

/** The users who together may do anything: `threshold` of them are needed. */
export interface RootQuorum {
  readonly threshold: number;
  readonly userIds: readonly string[];
}

/** Switches of an organization (client protocol: FEATURE_NAME_…). */
export const featureNames = [
  'FEATURE_NAME_ROOT_USER_EMAIL_RECOVERY',
  'FEATURE_NAME_WEBAUTHN_ORIGINS',
  'FEATURE_NAME_EMAIL_AUTH',
  'FEATURE_NAME_EMAIL_RECOVERY',
  'FEATURE_NAME_WEBHOOK',
  'FEATURE_NAME_SMS_AUTH',
  'FEATURE_NAME_OTP_EMAIL_AUTH',
  'FEATURE_NAME_AUTH_PROXY',
] as const;

export type FeatureName = (typeof featureNames)[number];

export type SettingsEvent =
  | DomainEvent<'OrganizationCreated', { organizationId: string; name: string; parentOrganizationId?: string }>
  | DomainEvent<'OrganizationRenamed', { name: string }>
  | DomainEvent<'RootQuorumUpdated', RootQuorum>
  | DomainEvent<'OrganizationFeatureSet', { name: FeatureName; value: string }>
  | DomainEvent<'OrganizationFeatureRemoved', { name: FeatureName }>;

export const evolveSettings: Evolvers<SettingsEvent> = {
  OrganizationCreated(organization, data, at) {
    organization.organizationId = data.organizationId;
    organization.name = data.name;
    organization.parentOrganizationId = data.parentOrganizationId;
    organization.createdAt = at;
  },
  OrganizationRenamed(organization, { name }) {
    organization.name = name;
  },
  RootQuorumUpdated(organization, quorum) {
    organization.rootQuorum = quorum;
  },
  OrganizationFeatureSet(organization, { name, value }) {
    organization.features.set(name, value);
  },
  OrganizationFeatureRemoved(organization, { name }) {
    organization.features.delete(name);
  },
};
