import { liveApprovals, type Decision, type Vote } from '../activity/events.js';
import { contactName, type ContactKind } from './contacts.js';
import { loginCredentialTypes, type ApiKeyCredentialType } from './credentials.js';
import type { Organization, OrganizationEvent, OrganizationView } from './organization.js';
import { contactKey } from '../contact-key.js';
import { credentialOfVote } from './credentials-of-users.js';
import { put, remove } from './slices.js';

/** A credential, contact or identity that a user got after being created, from neither the user nor the root quorum. */
export interface Addition {
  readonly userId: string;
  readonly what: 'API key' | 'authenticator' | 'OAuth provider' | 'e-mail address' | 'phone number';
  /** The user who submitted it, or who first approved it with a credential that was still there. */
  readonly addedBy: string;
}

/** On whose authority the events being folded were recorded. */
export interface Acting {
  /** The organization's own root quorum, not its parent's. */
  readonly byRootQuorum: boolean;
  /** Its parent's users and policies allowed it. */
  readonly fromParent: boolean;
  /** The submission and the approvals that counted. */
  readonly votes: readonly Pick<Vote, 'userId' | 'credentialId' | 'attestation'>[];
  /** Users that it has created so far. */
  readonly created: readonly string[];
}

/** What others have added to a user, by its identifier. */
export function additionsTo({ additions }: OrganizationView, userId: string): readonly (readonly [string, Addition])[] {
  return [...additions].filter(([, addition]) => addition.userId === userId);
}

/**
 * Tracks who adds what to whom. Called with each event before it is folded. Anything done with a credential that
 * another has added counts as the other's doing: a key created with such a key is an addition too.
 */
export function noteAdditions(organization: Organization, event: OrganizationEvent, at: number): void {
  switch (event.type) {
    case 'ActivitySubmitted':
      if (event.data.status !== 'ACTIVITY_STATUS_CONSENSUS_NEEDED') {
        organization.acting = acting(event.data.decision, [event.data.vote]);
      }
      break;
    case 'ActivityApproved':
      if (event.data.status !== 'ACTIVITY_STATUS_CONSENSUS_NEEDED') {
        const { activityId, decision, vote } = event.data;
        organization.acting = acting(decision, [...earlierVotes(organization, activityId, decision, at), vote]);
      }
      break;
    case 'ActivityCompleted':
    case 'ActivityFailed':
      organization.acting = undefined;
      break;
    case 'UserCreated':
      created(organization, event.data);
      break;
    case 'UserDeleted': {
      const { userId } = event.data;
      for (const [name] of additionsTo(organization, userId)) remove(organization, 'additions', name);
      for (const kind of ['email', 'phone-number'] as const)
        remove(organization, 'foundingContacts', contactName(userId, kind));
      break;
    }
    case 'UserUpdated': {
      const { userId, userEmail, userPhoneNumber } = event.data;
      contactChanged(organization, userId, 'email', userEmail);
      contactChanged(organization, userId, 'phone-number', userPhoneNumber);
      break;
    }
    case 'UserContactReleased':
      remove(organization, 'foundingContacts', contactName(event.data.userId, event.data.contact));
      break;
    case 'ApiKeyCreated':
      added(organization, event.data.apiKeyId, { ...event.data, what: 'API key' });
      break;
    case 'AuthenticatorCreated':
      added(organization, event.data.authenticatorId, { ...event.data, what: 'authenticator' });
      break;
    case 'OauthProviderCreated':
      added(organization, event.data.providerId, { ...event.data, what: 'OAuth provider' });
      break;
    case 'ApiKeyDeleted':
      remove(organization, 'additions', event.data.apiKeyId);
      break;
    case 'AuthenticatorDeleted':
      remove(organization, 'additions', event.data.authenticatorId);
      break;
    case 'OauthProviderDeleted':
      remove(organization, 'additions', event.data.providerId);
      break;
  }
}

/**
 * The approvals before the last that counted: one whose credential its user has lost does not, so that what is done with
 * a key that another has added stays the other's doing when the key is gone.
 */
function earlierVotes(
  organization: OrganizationView,
  activityId: string,
  { authority }: Decision,
  at: number,
): readonly Vote[] {
  const live = liveApprovals(organization.openActivities.get(activityId)?.votes ?? [], at);
  // The users of a parent are in its own stream.
  if (authority !== undefined) return live;
  return live.filter((vote) => credentialOfVote(organization, vote) !== undefined);
}

function acting({ decidedBy: by, authority }: Decision, votes: Acting['votes']): Acting {
  const fromParent = authority !== undefined;
  return {
    byRootQuorum: by === 'root-quorum' && !fromParent,
    fromParent,
    votes: votes.map(({ userId, credentialId, attestation }) => ({
      userId,
      credentialId,
      ...(attestation ? { attestation } : {}),
    })),
    created: [],
  };
}

function created(organization: Organization, data: Extract<OrganizationEvent, { type: 'UserCreated' }>['data']): void {
  const { acting: now, createdBy, parentOrganizationId } = organization;
  const { userId, userEmail, userPhoneNumber } = data;
  if (now) organization.acting = { ...now, created: [...now.created, userId] };
  // Before the first activity, and by the parent's own members: the auth proxy speaks for strangers.
  if (now || createdBy === 'auth-proxy' || parentOrganizationId === undefined) return;
  if (userEmail) put(organization, 'foundingContacts', contactName(userId, 'email'), userEmail);
  if (userPhoneNumber) put(organization, 'foundingContacts', contactName(userId, 'phone-number'), userPhoneNumber);
}

function contactChanged(
  organization: Organization,
  userId: string,
  kind: ContactKind,
  contact: string | undefined,
): void {
  if (contact === undefined) return;
  const user = organization.users.get(userId);
  const held = (kind === 'email' ? user?.userEmail : user?.userPhoneNumber) ?? '';
  const name = contactName(userId, kind);
  const isOwn = isOwnDoing(organization, userId);
  // Setting the same value again vouches for it if the user does it; otherwise it changes nothing.
  if (contactKey(held) === contactKey(contact) && !isOwn) return;
  if (contactKey(held) !== contactKey(contact)) remove(organization, 'foundingContacts', name);
  remove(organization, 'additions', name);
  if (contact) added(organization, name, { userId, what: kind === 'email' ? 'e-mail address' : 'phone number' });
}

function added(
  organization: Organization,
  name: string,
  { userId, what, credentialType }: Omit<Addition, 'addedBy'> & { readonly credentialType?: ApiKeyCredentialType },
): void {
  const votes = organization.acting?.votes ?? [];
  const [submission] = votes;
  if (!submission || organization.acting!.created.includes(userId) || isOwnDoing(organization, userId)) return;
  const isLogin = credentialType !== undefined && loginCredentialTypes.has(credentialType);
  const isLinked = what === 'OAuth provider' && organization.acting!.fromParent;
  // A stamp proves nothing about the user if another has added its credential.
  const isProved = (isLogin || isLinked) && !votes.some((vote) => vote.userId === userId);
  if (isProved && isProvedByOwn(organization, userId)) return;
  put(organization, 'additions', name, { userId, what, addedBy: submission.userId });
}

/** Whether the root quorum approved it, or the user submitted or approved it with something that no other has added. */
function isOwnDoing({ acting: now, additions }: OrganizationView, userId: string): boolean {
  if (!now || now.byRootQuorum) return true;
  return now.votes.some(({ credentialId, attestation, ...vote }) => {
    if (vote.userId !== userId) return false;
    if (attestation?.kind !== 'contact') return !additions.has(credentialId);
    const kind = attestation.verificationType === 'OTP_TYPE_EMAIL' ? 'email' : 'phone-number';
    return !additions.has(contactName(userId, kind));
  });
}

/**
 * Whether everything that could have proved the user in a login is the user's own: the events do not say which it was.
 */
function isProvedByOwn(organization: OrganizationView, userId: string): boolean {
  return !additionsTo(organization, userId).some(([, { what }]) => what !== 'API key' && what !== 'authenticator');
}
