import { RecordedActivity } from '../../activities/recorded-activity.js';
import type { DecisionContext, Prepared, Voter } from '../../decide/decision-context.js';
import { activityVersion, newestIntent, type Registry } from '../../decide/registry.js';
import { attestedCredential, credentialsOf, passkeyOf } from '../../domain/organization/credentials-of-users.js';
import { invitedBy, testKeyCaller } from '../../decide/resolve-caller.js';
import type { Decision, Vote } from '../../domain/activity/events.js';
import { CoordinatorError } from '../../domain/errors.js';
import type { LoadedOrganization } from '../../ledger/loaded-organization.js';
import type { OrganizationEvent, OrganizationView } from '../../domain/organization/organization.js';

/** A parent as a decision in its sub-organization saw it: at one revision of its stream. */
export type ParentAt = (
  authority: NonNullable<Decision['authority']>,
) => Pick<LoadedOrganization, 'organization' | 'revision' | 'hash'>;

/** The deciding parent, as it was seen. @throws {Error} if its stream does not exist */
export function authorityOf({ authority }: Decision, parentAt: ParentAt): ReturnType<ParentAt> | undefined {
  if (!authority) return undefined;
  const { organization, revision, hash } = parentAt(authority);
  const seen = { organizationId: organization.organizationId, revision };
  if (seen.organizationId !== authority.organizationId || seen.revision !== authority.revision) {
    throw new Error(`decided by ${JSON.stringify(authority)}, whose stream is missing: ${JSON.stringify(seen)}`);
  }
  return { organization, revision, hash };
}

/**
 * The voter, with the credential as the organization knew it before the vote.
 * @throws {Error} if the user or the credential does not exist
 */
export function voterOf({ organization, now }: DecisionContext, vote: Vote): Voter {
  const { userId, credentialId, publicKey, attestation, webauthn, scheme } = vote;
  const isAttested = scheme === 'SIGNATURE_SCHEME_TK_ATTESTED_P256';
  const isPasskeys = scheme === 'SIGNATURE_SCHEME_TK_WEBAUTHN';
  if (isAttested !== (attestation !== undefined) || isPasskeys !== (webauthn !== undefined)) {
    throw new Error(`a vote with the scheme \`${scheme}\`, which is not that of its stamp`);
  }
  const invited = invitedBy(publicKey, organization, now);
  if (invited?.user.userId === userId && invited.credential.id === credentialId)
    return { userId, credential: invited.credential };
  const user = organization.users.get(userId);
  if (!user) throw new Error(`a vote by user \`${userId}\`, who does not exist`);
  const standIn = testKeyCaller(organization, publicKey);
  if (standIn?.user.userId === userId && standIn.credential.id === credentialId) {
    return { userId, credential: standIn.credential };
  }
  const attested = attestation && attestedCredential(user, attestation, publicKey);
  const credential = [...(attested ? [attested] : []), ...credentialsOf(user)].find(({ id }) => id === credentialId);
  const passkey = webauthn && passkeyOf(organization, webauthn.credentialId);
  const isOther = webauthn && passkey?.authenticatorId !== credentialId;
  if (credential?.publicKey !== publicKey || isOther) {
    throw new Error(`user \`${userId}\` has no credential \`${credentialId}\``);
  }
  return { userId, credential };
}

/** The output that `prepare` must have had, or why it failed. */
export function preparation(
  registry: Registry,
  type: string,
  parameters: object,
  effects: readonly OrganizationEvent[],
  organization: OrganizationView,
): Prepared {
  const version = activityVersion(registry, type);
  const { definition } = version;
  const end = effects.at(-1);
  if (!definition.recall || !end) return undefined;
  // One that fails with effects was decided to fail, by what it had prepared.
  if (end.type === 'ActivityFailed' && effects.length === 1) {
    const { code, message } = end.data.failure;
    return { refusal: new CoordinatorError(code, message) };
  }
  const recorded = new RecordedActivity(effects);
  return { value: definition.recall(newestIntent(version, parameters), recorded, organization) };
}
