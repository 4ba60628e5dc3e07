import { CoordinatorError } from '../errors.js';
import { presentMembers, type DomainEvent, type Evolvers } from './event.js';
import type { Organization, OrganizationView } from './organization.js';
import type { MessageSender } from './message-senders.js';
import { forgetOtp, noteOtp, otpsOfContact } from './otps-by-contact.js';
import { put, remove } from './slices.js';

/** How one-time codes are sent. */
export type OtpType = 'OTP_TYPE_EMAIL' | 'OTP_TYPE_SMS';

interface OtpFacts {
  readonly otpId: string;
  /** `verify` leads to a verification token, `auth` to credentials of a user. */
  readonly purpose: 'verify' | 'auth';
  readonly otpType: OtpType;
  readonly contact: string;
  /** Keyed hash of the code, hex; the code itself is stored nowhere. */
  readonly codeHash: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
  /** Whose sends are counted. */
  readonly userIdentifier: string;
  /** The vault with the key that the code must be sealed to; absent in older flows. */
  readonly vaultId?: string;
  /** The user who requested it. */
  readonly requestedBy: string;
}

/** A sent code that can still be used. */
export interface Otp extends OtpFacts {
  readonly failedGuesses: number;
  readonly sentAt: number;
}

export type OtpEvent =
  | DomainEvent<'OtpSent', OtpFacts>
  | DomainEvent<'OtpGuessFailed', { otpId: string }>
  /** Used, locked after too many guesses, displaced by newer ones, or expired: it is no longer valid. */
  | DomainEvent<
      'OtpInvalidated',
      { otpId: string; reason: 'used' | 'locked' | 'replaced' | 'expired'; vaultId?: string }
    >
  /** A verification token was used for something that it may be used for once. */
  | DomainEvent<'VerificationTokenUsed', TokenUse>
  /**
   * An OIDC token was recorded: from now on it registers no identity. `tokenId` is SHA-256 of the part signed by its
   * issuer, hex.
   */
  | DomainEvent<'OidcTokenUsed', TokenUse>;

/** A use of a token that cannot be repeated, or that rules out another. `expiresAt` is milliseconds since the epoch. */
export interface TokenUse {
  readonly tokenId: string;
  readonly usage: string;
  readonly expiresAt: number;
}

/** Characters of a code, and its lifetime in seconds (docs/protocol.md, one-time codes). */
export const otpLengths = { min: 6, max: 9, usual: 9 } as const;
export const otpLifeSeconds = { max: 600, usual: 300 } as const;
/** Lifetime in seconds of the verification token that a code is exchanged for (docs/protocol.md, verification tokens). */
export const tokenLifeSeconds = { max: 86_400, usual: 3_600 } as const;
/**
 * Wrong guesses after which a code is locked (docs/protocol.md, limits): those of one caller, and those of all
 * networks behind the auth proxy, which refuses the fourth guess of each network itself.
 */
export const maxGuesses = 3;
const maxGuessesThroughProxy = 9;
/** Live codes of one contact at a time (docs/protocol.md, limits). */
const maxLive = 3;
/** Live codes of one contact that strangers may hold together: one caller's three leave one for another. */
const maxLiveForStrangers = 4;
/** Sends per identifier within the window (docs/protocol.md, limits). */
const maxSends = 3;
const sendWindowMs = 3 * 60 * 1000;
/** Expired codes that end with one send: after a rush there may be many, and an append must not grow with them. */
const maxEndedAtOnce = 16;

export const evolveOtps: Evolvers<OtpEvent> = {
  OtpSent(organization, data, at) {
    forgetOver(organization, at);
    const otp = { ...data, failedGuesses: 0, sentAt: at };
    put(organization, 'otps', data.otpId, otp);
    noteOtp(organization.otps, otp);
    const times = recentSends(organization, data.userIdentifier, at);
    // Appended last, because forgetting goes from the front.
    remove(organization, 'otpSends', data.userIdentifier);
    put(organization, 'otpSends', data.userIdentifier, [...times, at]);
  },
  OtpGuessFailed(organization, { otpId }) {
    const otp = organization.otps.get(otpId);
    if (otp) put(organization, 'otps', otpId, { ...otp, failedGuesses: otp.failedGuesses + 1 });
  },
  OtpInvalidated(organization, { otpId }) {
    const { otps } = organization;
    const otp = otps.get(otpId);
    if (!otp) return;
    remove(organization, 'otps', otpId);
    forgetOtp(otps, otp);
  },
  VerificationTokenUsed(organization, { tokenId, usage, expiresAt }, at) {
    forgetOver(organization, at);
    put(organization, 'usedTokens', usedTokenKey(tokenId, usage), expiresAt);
  },
  // It counts in every organization, so `prepare` asks the read model about all of them.
  OidcTokenUsed: () => undefined,
};

/** The key under which a used verification token is remembered. */
export function usedTokenKey(tokenId: string, usage: string): string {
  return `${tokenId} ${usage}`;
}

/**
 * Refuses another code for an identifier that has reached its limit, and a stranger's code that would end an earlier
 * one.
 * @throws {CoordinatorError} RESOURCE_EXHAUSTED MAX_OTP_INITIATED
 */
export function checkOtpSends(
  organization: OrganizationView,
  { userIdentifier, contact }: Pick<OtpFacts, 'userIdentifier' | 'contact'>,
  now: number,
  sender: MessageSender,
): void {
  const times = recentSends(organization, userIdentifier, now);
  if (times.length >= maxSends) {
    const rule = `${maxSends} in ${sendWindowMs / 60_000} minutes`;
    throw tooManyCodes(userIdentifier, rule, times.at(-maxSends)! + sendWindowMs - now);
  }
  if (sender === 'trusted') return;
  const live = liveCodes(organization, contact, now);
  const own = live.filter((otp) => otp.userIdentifier === userIdentifier);
  const soonest = (codes: readonly Otp[]): number => Math.min(...codes.map(({ expiresAt }) => expiresAt)) - now;
  if (own.length >= maxLive) throw tooManyCodes(userIdentifier, `${maxLive} unused ones at a time`, soonest(own));
  if (live.length < maxLiveForStrangers) return;
  throw tooManyCodes(contact, `${live.length} unused ones at a time`, soonest(live));
}

/** Clients look for these words (docs/protocol.md, messages that clients match). */
function tooManyCodes(whom: string, rule: string, waitMs: number): CoordinatorError {
  const seconds = Math.ceil(waitMs / 1000);
  return new CoordinatorError(
    'RESOURCE_EXHAUSTED',
    `Max number of OTPs have been initiated for \`${whom}\`: ${rule}; try again in ${seconds} seconds`,
    { category: 'MAX_OTP_INITIATED', retryAfterSeconds: seconds },
  );
}

/** Codes of a contact that can still be used, oldest first. */
function liveCodes({ otps }: OrganizationView, contact: string, now: number): Otp[] {
  return otpsOfContact(otps, contact).filter(({ expiresAt }) => expiresAt > now);
}

/** Those that end with the next send: expired, oldest first. */
function expiredCodes({ otps }: OrganizationView, now: number): readonly Otp[] {
  const expired: Otp[] = [];
  for (const otp of otps.values()) {
    if (otp.expiresAt <= now) expired.push(otp);
    if (expired.length === maxEndedAtOnce) break;
  }
  return expired;
}

/**
 * The events of sending a code. Expired codes end with it, and the oldest one of a contact that has three; a stranger's
 * code never ends one that someone may be about to use.
 * @throws {CoordinatorError} RESOURCE_EXHAUSTED MAX_OTP_INITIATED
 */
export function otpSent(
  organization: OrganizationView,
  facts: OtpFacts,
  now: number,
  sender: MessageSender,
): OtpEvent[] {
  checkOtpSends(organization, facts, now, sender);
  const live = liveCodes(organization, facts.contact, now);
  const replaced = sender === 'trusted' ? live.slice(0, Math.max(0, live.length + 1 - maxLive)) : [];
  return [
    ...expiredCodes(organization, now).map((otp) => otpEnded(otp, 'expired')),
    ...replaced.map((otp) => otpEnded(otp, 'replaced')),
    { type: 'OtpSent', data: facts },
  ];
}

/**
 * The code of that id, if it can be used for a purpose. Without a time it may have expired.
 * @throws {CoordinatorError} INVALID_ARGUMENT, in the same words for every code that cannot be used
 */
export function usableOtp(
  { otps }: OrganizationView,
  otpId: string,
  purpose: OtpFacts['purpose'],
  now = Number.NEGATIVE_INFINITY,
): Otp {
  const otp = otps.get(otpId);
  if (otp?.purpose !== purpose || otp.expiresAt <= now) throw invalidOtpCode();
  return otp;
}

/** Compares the keyed hash of a code with that of the one sent, in constant time. */
export function isCodeOf({ codeHash }: Otp, guessHash: string): boolean {
  let difference = codeHash.length ^ guessHash.length;
  for (let index = 0; index < codeHash.length; index++) {
    difference |= codeHash.charCodeAt(index) ^ guessHash.charCodeAt(index);
  }
  return difference === 0;
}

/**
 * The events of a wrong guess: it counts, and the third locks the code. One that the auth proxy passes on may come from
 * any network, so there the ninth does.
 */
export function wrongGuess(
  otp: Otp,
  { isThroughProxy = false }: { readonly isThroughProxy?: boolean } = {},
): OtpEvent[] {
  const failed: OtpEvent = { type: 'OtpGuessFailed', data: { otpId: otp.otpId } };
  const most = isThroughProxy ? maxGuessesThroughProxy : maxGuesses;
  return otp.failedGuesses + 1 < most ? [failed] : [failed, otpEnded(otp, 'locked')];
}

/** The event by which a code ends; its target key is shredded. */
export function otpEnded(
  { otpId, vaultId }: Otp,
  reason: Extract<OtpEvent, { type: 'OtpInvalidated' }>['data']['reason'],
): OtpEvent {
  return { type: 'OtpInvalidated', data: { otpId, reason, ...presentMembers({ vaultId }) } };
}

/** Published clients look for these words. */
const invalidOtpWords = 'Invalid OTP code';

/** Says no more, so that nobody learns which codes exist. */
export function invalidOtpCode(): CoordinatorError {
  return new CoordinatorError(
    'INVALID_ARGUMENT',
    `${invalidOtpWords}: it is wrong, used, expired, or locked after three wrong attempts; request a new one`,
    { category: 'REQUEST_INVALID' },
  );
}

/** Whether a refusal, perhaps of another coordinator, is that of a wrong guess. */
export function isInvalidOtpCode(error: unknown): boolean {
  return error instanceof CoordinatorError && error.message.startsWith(invalidOtpWords);
}

function recentSends(
  { otpSends }: Pick<OrganizationView, 'otpSends'>,
  userIdentifier: string,
  now: number,
): readonly number[] {
  return (otpSends.get(userIdentifier) ?? []).filter((time) => time > now - sendWindowMs);
}

/** Forgets what has expired and become harmless, or the state would grow with every login. */
function forgetOver(organization: Organization, at: number): void {
  const { otpSends, usedTokens } = organization;
  // In recorded order: each walk stops at the first that has not expired, which is nearly exact and cheap. Expired
  // codes stay until an event ends them, because their vaults must go with them.
  for (const [identifier, times] of otpSends) {
    if (times.at(-1)! > at - sendWindowMs) break;
    remove(organization, 'otpSends', identifier);
  }
  for (const [key, expiresAt] of usedTokens) {
    if (expiresAt > at) break;
    remove(organization, 'usedTokens', key);
  }
}
