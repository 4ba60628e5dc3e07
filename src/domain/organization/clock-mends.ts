import type { ActivityEvent } from '../activity/events.js';
import { invalidField } from '../errors.js';
import { loginCredentialTypes, type ApiKey, type CredentialEvent } from './credentials.js';
import type { DomainEvent, Evolvers } from './event.js';
import { openInvitations, type InvitationEvent } from './invitations.js';
import type { Organization, OrganizationEvent, OrganizationView } from './organization.js';
import { otpEnded, tokenLifeSeconds, usedTokenKey, type OtpEvent, type TokenUse } from './otps.js';
import { put, remove } from './slices.js';
import { changeUser } from './users.js';

/**
 * How far the last event of a stream may be ahead of the clock, and how far a step of the clock is adopted at once, in
 * milliseconds (security rule R8).
 */
export const longestLeadMs = 30 * 60 * 1000;

/** A false time that an operator has ended. Milliseconds since the epoch. */
export interface ClockMend {
  /** When it was ended: from here on, the time is right again. */
  readonly at: number;
  /** Recorded time of the last event before. */
  readonly lastTime: number;
}

/**
 * The events before it were recorded with a clock that was ahead: time runs backwards here, and nowhere else
 * (docs/adr/0007). What the false time could keep alive was ended by the events directly before it.
 */
export type ClockMendedEvent = DomainEvent<
  'ClockMended',
  {
    /** Recorded time of the last event before it, milliseconds since the epoch. */
    lastTime: number;
    /** Uses of tokens that are not expired, which the false time had forgotten: the tokens stay used. */
    usedTokens: readonly TokenUse[];
  }
>;

/** The events by which a mend ends what is left of the false time. */
export type EndedByMend =
  | Extract<ActivityEvent, { type: 'ActivityFailed' }>
  | Extract<CredentialEvent, { type: 'ApiKeyDeleted' }>
  | Extract<OtpEvent, { type: 'OtpInvalidated' }>
  | Extract<InvitationEvent, { type: 'InvitationClosed' }>;

export const evolveClockMends: Evolvers<ClockMendedEvent> = {
  ClockMended(organization, { lastTime, usedTokens }, at) {
    organization.clockMends = [...(organization.clockMends ?? []), { at, lastTime }];
    // A public sign-up of the false time lapses like one of today.
    if (organization.signUp === 'unproved') organization.createdAt = Math.min(organization.createdAt, at);
    for (const name of ['otpSends', 'foundings'] as const) {
      // They count as of now: a limit that was reached stays reached for its usual time.
      for (const [key, times] of organization[name]) {
        put(
          organization,
          name,
          key,
          times.map((time) => Math.min(time, at)),
        );
      }
    }
    for (const [id, invitation] of organization.invitations) {
      const { acceptedAt } = invitation;
      if (acceptedAt === undefined || acceptedAt <= at) continue;
      put(organization, 'invitations', id, { ...invitation, acceptedAt: at });
    }
    for (const [userId] of organization.users) datedAtMost(organization, userId, at);
    mendUsedTokens(organization, usedTokens, at);
  },
};

/** Whoever had a credential earlier comes first, and nobody can have had one before today that was added after it. */
function datedAtMost(organization: Organization, userId: string, at: number): void {
  changeUser(organization, userId, (user) => ({
    ...user,
    apiKeys: user.apiKeys.map((key) => ({ ...key, createdAt: Math.min(key.createdAt, at) })),
    authenticators: user.authenticators.map((one) => ({ ...one, createdAt: Math.min(one.createdAt, at) })),
  }));
}

/** Uses of its own tokens of the false time need no memory: those tokens count no longer. */
function mendUsedTokens(organization: Organization, forgotten: readonly TokenUse[], at: number): void {
  const longest = at + longestLeadMs + tokenLifeSeconds.max * 1000;
  for (const [key, expiresAt] of organization.usedTokens) {
    if (expiresAt > longest) remove(organization, 'usedTokens', key);
  }
  for (const { tokenId, usage, expiresAt } of forgotten) {
    put(organization, 'usedTokens', usedTokenKey(tokenId, usage), expiresAt);
  }
}

/** How often the false time of an organization was ended: a token counts only if it was issued after the last. */
export function mendsOf({ clockMends }: Pick<OrganizationView, 'clockMends'>): number {
  return clockMends?.length ?? 0;
}

/** What a token says of the mends before it was issued; nothing if there was none. */
export function issuedAfterMends(issuer: Pick<OrganizationView, 'clockMends'>): { readonly clockMends?: number } {
  const clockMends = mendsOf(issuer);
  return clockMends === 0 ? {} : { clockMends };
}

/**
 * Refuses a token that was issued before the clock of its issuer was mended: only the token says when it ends.
 * @param issuedAfter how often the clock had been mended by then
 * @throws {CoordinatorError} INVALID_ARGUMENT
 */
export function checkIssuedSinceMend(field: string, issuedAfter: number | undefined, issuer: OrganizationView): void {
  if ((issuedAfter ?? 0) === mendsOf(issuer)) return;
  throw invalidField(
    field,
    `ended when the clock of organization \`${issuer.organizationId}\`, which issued it, was mended: verify the contact or log in again`,
  );
}

/** Whether a request of that time may have been recorded with a false clock, so that others may have read it. */
export function isOfFalseTime({ clockMends }: Pick<OrganizationView, 'clockMends'>, timestampMs: number): boolean {
  return clockMends?.some(({ at, lastTime }) => timestampMs > at && timestampMs <= lastTime + longestLeadMs) ?? false;
}

/**
 * What a mend has to end, in this order: every session, every waiting activity with its approvals, every code, and other
 * keys and invitations of the false time, or expired in it.
 * @param lastTime recorded time of the last event
 * @param now the right time; both in milliseconds since the epoch
 */
export function endingsOf(organization: OrganizationView, lastTime: number, now: number): readonly EndedByMend[] {
  const isOfIt = (createdAt: number, expiresAt: number): boolean => createdAt > now || expiresAt <= lastTime;
  const ends = (key: ApiKey): boolean => {
    if (loginCredentialTypes.has(key.credentialType)) return true;
    const { createdAt, expirationSeconds } = key;
    return expirationSeconds !== undefined && isOfIt(createdAt, createdAt + expirationSeconds * 1000);
  };
  return [
    ...[...organization.users.values()].flatMap(({ userId, apiKeys }) =>
      apiKeys.filter(ends).map(({ apiKeyId }): EndedByMend => ({ type: 'ApiKeyDeleted', data: { userId, apiKeyId } })),
    ),
    ...[...organization.openActivities.keys()].map(failedByMend),
    ...[...organization.otps.values()].map((otp) => otpEnded(otp, 'expired')),
    ...openInvitations(organization, -Infinity)
      .filter(({ createdAt, expiresAt }) => isOfIt(createdAt, expiresAt))
      .map(({ invitationId }): EndedByMend => ({
        type: 'InvitationClosed',
        data: { invitationId, reason: 'expired' },
      })),
  ] as readonly EndedByMend[];
}

function failedByMend(activityId: string): EndedByMend {
  const message =
    'the clock of this organization was wrong and has been mended, so approvals of before count no longer';
  return {
    type: 'ActivityFailed',
    data: { activityId, status: 'ACTIVITY_STATUS_FAILED', failure: { code: 'ABORTED', message } },
  };
}

/** Whether an event ends something that a mend may end; which of it has to end is known once the mend is recorded. */
export function mayEndByMend(
  { users, openActivities, otps, invitations }: OrganizationView,
  event: OrganizationEvent,
): boolean {
  switch (event.type) {
    case 'ApiKeyDeleted': {
      const { userId, apiKeyId } = event.data;
      const key = users.get(userId)?.apiKeys.find((one) => one.apiKeyId === apiKeyId);
      return key !== undefined && (key.expirationSeconds !== undefined || loginCredentialTypes.has(key.credentialType));
    }
    case 'ActivityFailed':
      return openActivities.has(event.data.activityId);
    case 'OtpInvalidated':
      return otps.has(event.data.otpId) && event.data.reason === 'expired';
    case 'InvitationClosed':
      return invitations.has(event.data.invitationId) && event.data.reason === 'expired';
    default:
      return false;
  }
}
