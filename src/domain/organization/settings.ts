import type { DomainEvent, Evolvers } from './event.js';
import { noteFounding, limitsFeature } from './limits.js';
import type { OrganizationEvent } from './organization.js';
import { put, remove } from './slices.js';

/** The users who together may do anything: `threshold` of them are needed. */
export interface RootQuorum {
  readonly threshold: number;
  readonly userIds: readonly string[];
}

/** Features of an organization (`FEATURE_NAME_…`). */
export const featureNames = [
  'FEATURE_NAME_ROOT_USER_EMAIL_RECOVERY',
  'FEATURE_NAME_WEBAUTHN_ORIGINS',
  'FEATURE_NAME_EMAIL_AUTH',
  'FEATURE_NAME_EMAIL_RECOVERY',
  'FEATURE_NAME_WEBHOOK',
  'FEATURE_NAME_SMS_AUTH',
  'FEATURE_NAME_OTP_EMAIL_AUTH',
  'FEATURE_NAME_AUTH_PROXY',
  /** For a parent: its sub-organizations may invite people by mail. */
  'FEATURE_NAME_SUB_ORGANIZATION_INVITATIONS',
  /** For a parent: lower limits for its sub-organizations (see `limits.ts`). */
  limitsFeature,
  /** For a parent: the root quorums of its sub-organizations may read all of their events. */
  'FEATURE_NAME_SUB_ORGANIZATION_EVENTS',
  /** With the value `object`: activities of this organization have timestamp objects for every client. */
  'FEATURE_NAME_ACTIVITY_TIMESTAMPS',
] as const;

export type FeatureName = (typeof featureNames)[number];

export type SettingsEvent =
  | DomainEvent<
      'OrganizationCreated',
      {
        organizationId: string;
        name: string;
        parentOrganizationId?: string;
        /** Revision of the parent's event that this derives from; each sub-organization has it. */
        parentRevision?: number;
        /** Founded with the key of the parent's auth proxy, which speaks for strangers. */
        createdBy?: 'auth-proxy';
      }
    >
  | DomainEvent<'OrganizationRenamed', { name: string }>
  /**
   * In the parent's stream. `founding` is how the sub-organization's own stream begins, which is written next.
   */
  | DomainEvent<
      'SubOrganizationCreated',
      { subOrganizationId: string; name: string; initialEvents: readonly OrganizationEvent[] }
    >
  /** The last event of a sub-organization; its vaults are shredded. */
  | DomainEvent<'OrganizationDeleted', { organizationId: string; vaultIds: readonly string[] }>
  | DomainEvent<'RootQuorumUpdated', RootQuorum>
  | DomainEvent<'OrganizationFeatureSet', { name: FeatureName; value: string }>
  | DomainEvent<'OrganizationFeatureRemoved', { name: FeatureName }>;

export const evolveSettings: Evolvers<SettingsEvent> = {
  OrganizationCreated(organization, data, at) {
    organization.organizationId = data.organizationId;
    organization.name = data.name;
    organization.parentOrganizationId = data.parentOrganizationId;
    organization.parentRevision = data.parentRevision;
    organization.createdBy = data.createdBy;
    organization.signUp = data.createdBy && 'unproved';
    organization.createdAt = at;
  },
  // Sub-organizations are unlimited in number, and the parent's decisions only need to know how many were founded
  // recently.
  SubOrganizationCreated(organization, _data, at) {
    const submission = organization.acting?.votes[0];
    if (submission) noteFounding(organization, submission.userId, at);
  },
  OrganizationDeleted(organization) {
    organization.isDeleted = true;
  },
  OrganizationRenamed(organization, { name }) {
    organization.name = name;
  },
  RootQuorumUpdated(organization, quorum) {
    organization.rootQuorum = quorum;
  },
  OrganizationFeatureSet(organization, { name, value }) {
    put(organization, 'features', name, value);
  },
  OrganizationFeatureRemoved(organization, { name }) {
    remove(organization, 'features', name);
  },
};

/** The features of an organization ordered by name, as responses list them. */
export function featureList(features: ReadonlyMap<FeatureName, string>): { name: FeatureName; value: string }[] {
  return featureNames.flatMap((name) => {
    const value = features.get(name);
    return value === undefined ? [] : [{ name, value }];
  });
}

/** Whether activities of the organization have timestamp objects for every client. */
export function hasTimestampObjects({ features }: { readonly features: ReadonlyMap<FeatureName, string> }): boolean {
  return features.get('FEATURE_NAME_ACTIVITY_TIMESTAMPS') === 'object';
}
