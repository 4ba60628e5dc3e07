import { CoordinatorError } from '../../../src/domain/errors.js';
import { emptyOrganization, evolve, type OrganizationEvent } from '../../../src/domain/organization/organization.js';
import {
  checkOtpSends,
  isCodeOf,
  otpEnded,
  otpSent,
  usableOtp,
  wrongGuess,
} from '../../../src/domain/organization/otps.js';
import type { MessageSender } from '../../../src/domain/organization/message-senders.js';
import { vaultsEndedBy } from '../../../src/domain/organization/vaults.js';
import { anOtp, rightHash, wrongHash } from '../../activities/auth/otp-facts.js';

const start = Date.UTC(2026, 0, 2);
const second = 1_000;
const minute = 60 * second;

/** An organization in which codes are sent, and what was recorded of it. */
function sending() {
  const organization = emptyOrganization();
  const recorded: OrganizationEvent[] = [];
  const record = (events: readonly OrganizationEvent[], at: number) => {
    for (const event of events) evolve(organization, event, at);
    recorded.push(...events);
    return events;
  };
  return {
    organization,
    record,
    send: (number: number, at: number, more: Parameters<typeof anOtp>[1] = {}, sender: MessageSender = 'trusted') => {
      const facts = anOtp(number, { expiresAt: at + 5 * minute, userIdentifier: `somebody ${number}`, ...more }).data;
      return record(otpSent(organization, facts, at, sender), at).map(({ type, data }) =>
        type === 'OtpInvalidated' ? `${data.reason} ${Number(data.otpId.slice(-6))}` : type,
      );
    },
  };
}

const refusalOf = (attempt: () => unknown): CoordinatorError | undefined => {
  try {
    attempt();
    return undefined;
  } catch (error) {
    if (error instanceof CoordinatorError) return error;
    throw error;
  }
};

describe('sends to one identifier', () => {
  const ann = { userIdentifier: 'ann' };

  it('are three in three minutes, to the millisecond', () => {
    const { organization, send } = sending();
    send(1, start, ann);
    send(2, start + minute, ann);
    send(3, start + 2 * minute, ann);
    const refusal = refusalOf(() => send(4, start + 3 * minute - 1, ann));
    expect([refusal?.code, refusal?.category, refusal?.message]).toEqual([
      'RESOURCE_EXHAUSTED',
      'MAX_OTP_INITIATED',
      'Max number of OTPs have been initiated for `ann`: 3 in 3 minutes; try again in 1 seconds',
    ]);
    expect(organization.otps.size).toBe(3);
    checkOtpSends(organization, { userIdentifier: 'bob', contact: 'bob@example.com' }, start + 2 * minute, 'trusted');
    expect(send(4, start + 3 * minute, ann)).toContain('OtpSent');
    expect(refusalOf(() => send(5, start + 4 * minute - 1, ann))?.code).toBe('RESOURCE_EXHAUSTED');
    expect(send(5, start + 4 * minute, ann)).toContain('OtpSent');
  });

  it('are not remembered for longer, whoever else goes on sending', () => {
    const { organization, send } = sending();
    send(1, start, ann);
    send(2, start, { userIdentifier: 'bob' });
    for (let number = 3; number < 9; number++) send(number, start + (number - 2) * 2 * minute, ann);
    expect([...organization.otpSends.keys()]).toEqual(['ann']);
  });
});

describe('codes of one contact', () => {
  it('are three at once: a new one pushes the oldest out, in whatever letter case the contact is', () => {
    const { organization, send } = sending();
    send(1, start);
    send(2, start + 1, { contact: 'Ann@Example.COM' });
    send(3, start + 2, { contact: 'bob@example.com' });
    send(4, start + 3);
    expect(send(5, start + 4)).toEqual(['replaced 1', 'OtpSent']);
    expect(send(6, start + 5)).toEqual(['replaced 2', 'OtpSent']);
    expect(organization.otps.size).toBe(4);
  });

  it('do not count once they have expired', () => {
    const { send } = sending();
    for (const number of [1, 2, 3]) send(number, start, { expiresAt: start + minute });
    expect(send(4, start + minute - 1)).toEqual(['replaced 1', 'OtpSent']);
    expect(send(5, start + minute)).toEqual(['expired 2', 'expired 3', 'OtpSent']);
  });

  it('of strangers end no earlier one: beyond three of one caller, and four in all, they are refused', () => {
    const { organization, send } = sending();
    const stranger = (number: number, at: number, userIdentifier: string) =>
      send(number, at, { userIdentifier }, 'untrusted');
    for (const number of [1, 2, 3]) expect(stranger(number, start + number * minute, 'one')).toEqual(['OtpSent']);
    const again = refusalOf(() => stranger(4, start + 4 * minute, 'one'));
    expect([again?.category, again?.retryAfterSeconds]).toEqual(['MAX_OTP_INITIATED', 120]);
    expect(stranger(5, start + 4 * minute, 'other')).toEqual(['OtpSent']);
    const all = refusalOf(() => stranger(6, start + 4 * minute, 'a third'));
    expect(all?.message).toContain('`ann@example.com`: 4 unused ones at a time; try again in 120 seconds');
    expect(organization.otps.size).toBe(4);
    expect(send(7, start + 4 * minute)).toEqual(['replaced 1', 'replaced 2', 'OtpSent']);
  });

  it('are found without a look at the contacts of all others, as strangers may hold thousands of codes', () => {
    const { organization, record, send } = sending();
    const contacts = Array.from({ length: 300 }, (_, index) => `${index % 150}@example.com`);
    for (const [index, contact] of contacts.entries()) send(index, start, { contact });
    let reads = 0;
    for (const otp of organization.otps.values()) {
      const { contact } = otp;
      Object.defineProperty(otp, 'contact', { get: () => (++reads, contact), enumerable: true });
    }
    expect(send(300, start + 1, { contact: '7@EXAMPLE.com' })).toEqual(['OtpSent']);
    reads = 0;
    expect(send(301, start + 2, { contact: '7@example.com' })).toEqual(['replaced 7', 'OtpSent']);
    record([{ type: 'OtpInvalidated', data: { otpId: anOtp(157).data.otpId, reason: 'used' } }], start + 3);
    expect(send(302, start + 4, { contact: '7@example.com' })).toEqual(['OtpSent']);
    expect(send(303, start + 5, { contact: '7@example.com' })).toEqual(['replaced 300', 'OtpSent']);
    expect(organization.otps.size).toBe(301);
    expect(reads).toBeLessThan(20);
  });

  it('are told apart where letters only look alike', () => {
    const { send } = sending();
    for (const number of [1, 2, 3]) send(number, start, { contact: 'mas@example.com' });
    expect(send(4, start, { contact: 'ma\u017f@example.com' })).toEqual(['OtpSent']);
  });
});

describe('codes that are over', () => {
  it('end with the next that is sent, of whomever, and their vaults with them', () => {
    const { organization, record, send } = sending();
    send(1, start, { vaultId: 'vault-1', expiresAt: start + minute });
    send(2, start, { contact: 'bob@example.com' });
    // Something else that is recorded meanwhile must not make the organization forget the vault.
    record([{ type: 'VerificationTokenUsed', data: { tokenId: 't', usage: 'u', expiresAt: 0 } }], start + 2 * minute);
    const facts = anOtp(3, { contact: 'cal@example.com' }).data;
    const events = otpSent(organization, facts, start + 2 * minute, 'trusted');
    expect(events[0]).toEqual({
      type: 'OtpInvalidated',
      data: { otpId: anOtp(1).data.otpId, reason: 'expired', vaultId: 'vault-1' },
    });
    expect(events.flatMap(vaultsEndedBy)).toEqual(['vault-1']);
    expect(events).toHaveLength(2);
  });

  it('end a few at a time, until none is left', () => {
    const { organization, send } = sending();
    for (let number = 1; number <= 40; number++) send(number, start, { contact: `${number}@example.com` });
    const later = start + 10 * minute;
    const lengths = [51, 52, 53, 54].map((number) => send(number, later, { contact: `${number}@example.com` }).length);
    expect(lengths).toEqual([17, 17, 9, 1]);
    expect(organization.otps.size).toBe(4);
  });
});

describe('a code', () => {
  const otp = { ...anOtp(1, { vaultId: 'vault-1' }).data, failedGuesses: 0, sentAt: start };

  it('can be used until the millisecond at which it is over, for its purpose only', () => {
    const { organization, send } = sending();
    send(1, start, { expiresAt: start + minute });
    const { otpId } = anOtp(1).data;
    expect(usableOtp(organization, otpId, 'auth', start + minute - 1).otpId).toBe(otpId);
    const refused = [
      () => usableOtp(organization, otpId, 'auth', start + minute),
      () => usableOtp(organization, otpId, 'verify', start),
      () => usableOtp(organization, anOtp(2).data.otpId, 'auth', start),
      () => usableOtp(organization, '__proto__', 'auth', start),
    ].map(refusalOf);
    expect(new Set(refused.map((refusal) => `${refusal?.code} ${refusal?.message}`)).size).toBe(1);
    expect(refused[0]?.message).toContain('Invalid OTP code');
    expect(refused[0]?.code).toBe('INVALID_ARGUMENT');
  });

  it('is correct only if its whole hash matches', () => {
    expect(isCodeOf(otp, rightHash)).toBe(true);
    for (const guess of [wrongHash, '', rightHash.slice(0, -1), `${rightHash}a`, `b${rightHash.slice(1)}`]) {
      expect(isCodeOf(otp, guess)).toBe(false);
    }
  });

  it('is locked by the third wrong guess, and its vault ends', () => {
    expect(wrongGuess(otp).map(({ type }) => type)).toEqual(['OtpGuessFailed']);
    expect(wrongGuess({ ...otp, failedGuesses: 1 }).map(({ type }) => type)).toEqual(['OtpGuessFailed']);
    expect(wrongGuess({ ...otp, failedGuesses: 2 })).toEqual([
      { type: 'OtpGuessFailed', data: { otpId: otp.otpId } },
      otpEnded(otp, 'locked'),
    ]);
    expect(vaultsEndedBy(otpEnded(otp, 'locked'))).toEqual(['vault-1']);
  });

  it('is locked by the ninth wrong guess through the auth proxy, as no network has more than three', () => {
    const typesAfter = (failedGuesses: number) =>
      wrongGuess({ ...otp, failedGuesses }, { isThroughProxy: true }).map(({ type }) => type);
    for (let before = 0; before < 8; before++) expect(typesAfter(before)).toEqual(['OtpGuessFailed']);
    expect(typesAfter(8)).toEqual(['OtpGuessFailed', 'OtpInvalidated']);
  });
});
