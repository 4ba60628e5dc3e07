import type { DomainEvent, Evolvers } from './event.js';
import type { Organization } from './organization.js';

/** How one-time codes reach people. */
export type OtpType = 'OTP_TYPE_EMAIL' | 'OTP_TYPE_SMS';

interface OtpFacts {
  readonly otpId: string;
  /** `verify` gives a verification token, `auth` the credentials of a user. */
  readonly purpose: 'verify' | 'auth';
  readonly otpType: OtpType;
  readonly contact: string;
  /** Keyed hash of the code, hex; the code itself is nowhere. */
  readonly codeHash: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
  /** Whom sends are counted against. */
  readonly userIdentifier: string;
  /** The vault of the key that the code must be sealed to; absent in older flows. */
  readonly vaultId?: string;
}

/** A code that was sent and may still be used. */
export interface Otp extends OtpFacts {
  readonly failedGuesses: number;
  readonly sentAt: number;
}

export type OtpEvent =
  | DomainEvent<'OtpSent', OtpFacts>
  | DomainEvent<'OtpGuessFailed', { otpId: string }>
  /** Used, locked after too many guesses, or pushed out by newer ones: it opens nothing any more. */
  | DomainEvent<'OtpEnded', { otpId: string; reason: 'used' | 'locked' | 'replaced'; vaultId?: string }>
  /** A verification token was used for something that it may be used for once. */
  | DomainEvent<'VerificationTokenUsed', { tokenId: string; usage: string; expiresAt: number }>;

/** Wrong codes after which a code is locked; codes of one contact that may live at once (client protocol, section 11). */
export const maxOtpGuesses = 3;
export const maxLiveOtps = 3;
/** Sends per identifier within the window (client protocol, section 11). */
export const maxOtpSends = 3;
export const otpSendWindowMs = 3 * 60 * 1000;

export const evolveOtps: Evolvers<OtpEvent> = {
  OtpSent(organization, data, at) {
    forgetOver(organization, at);
    organization.otps.set(data.otpId, { ...data, failedGuesses: 0, sentAt: at });
    const earlier = organization.otpSends.get(data.userIdentifier) ?? [];
    organization.otpSends.set(data.userIdentifier, [...earlier.filter((time) => time > at - otpSendWindowMs), at]);
  },
  OtpGuessFailed(organization, { otpId }) {
    const otp = organization.otps.get(otpId);
    if (otp) organization.otps.set(otpId, { ...otp, failedGuesses: otp.failedGuesses + 1 });
  },
  OtpEnded(organization, { otpId }) {
    organization.otps.delete(otpId);
  },
  VerificationTokenUsed(organization, { tokenId, usage, expiresAt }, at) {
    forgetOver(organization, at);
    organization.usedTokens.set(usedTokenKey(tokenId, usage), expiresAt);
  },
};

/** What a used verification token is remembered by. */
export function usedTokenKey(tokenId: string, usage: string): string {
  return `${tokenId} ${usage}`;
}

/** What time has made harmless is not kept, or the state would grow with every login. */
function forgetOver({ otps, otpSends, usedTokens }: Organization, at: number): void {
  // In the order of recording, and lives differ by minutes: the first that lives on ends each walk, nearly exact and cheap.
  for (const [otpId, { expiresAt }] of otps) {
    if (expiresAt > at) break;
    otps.delete(otpId);
  }
  for (const [identifier, times] of otpSends) {
    if (times.at(-1)! > at - otpSendWindowMs) break;
    otpSends.delete(identifier);
  }
  for (const [key, expiresAt] of usedTokens) {
    if (expiresAt > at) break;
    usedTokens.delete(key);
  }
}
