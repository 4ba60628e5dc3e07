import { KeyedLimit } from '../rate-limits/keyed-limit.js';

/** A message that somebody asks for. */
interface AskedMessage {
  /** An e-mail address or a phone number. */
  readonly contact: string;
  /** `known`: the account of the contact, or a member of the parent; `proxy`: somebody through the auth proxy. */
  readonly sender: 'known' | 'proxy' | 'stranger';
  /** Where it is asked for. */
  readonly organizationId: string;
}

const minute = 60_000;
const window = 3 * minute;

/** Messages to one contact over the whole installation. What strangers leave is for the account and the parent. */
const perContact = { all: 30, strangers: 4 } as const;
/** Messages of one organization of strangers: to one contact, and to all together within an hour. */
const perCaller = { toOneContact: 3, anHour: 60 } as const;

/**
 * How often a contact may be written to, whoever asks (security rule R6). Counted in this process: several coordinators
 * count each by itself, and a start begins anew (docs/adr/0032).
 */
export class ContactLimits {
  private readonly all: KeyedLimit;
  private readonly strangers: KeyedLimit;
  private readonly callersToContact: KeyedLimit;
  private readonly callers: KeyedLimit;

  /** @param maxKeys contacts, and callers, that are remembered at a time */
  constructor(clock: { now(): number }, maxKeys?: number) {
    const now = () => clock.now();
    const limit = (most: number, windowMs: number, name: string) =>
      new KeyedLimit({ most, windowMs, name, now, ...(maxKeys === undefined ? {} : { maxKeys }) });
    this.all = limit(perContact.all, window, `${perContact.all} messages to one contact in three minutes`);
    this.strangers = limit(
      perContact.strangers,
      window,
      `${perContact.strangers} messages to one contact in three minutes that neither its account nor the parent asks for`,
    );
    this.callersToContact = limit(
      perCaller.toOneContact,
      window,
      `${perCaller.toOneContact} messages of one organization to one contact in three minutes`,
    );
    this.callers = limit(
      perCaller.anHour,
      60 * minute,
      `${perCaller.anHour} messages of one sub-organization in an hour to contacts that nobody there has proved`,
    );
  }

  /**
   * Counts a message before it is made. @throws {CoordinatorError} RESOURCE_EXHAUSTED RATE_LIMIT_EXCEEDED, and then nothing
   * is counted
   */
  count({ contact, sender, organizationId }: AskedMessage): void {
    const key = contact.toLowerCase();
    if (sender === 'known') {
      this.all.take(key, { trusted: true });
      return;
    }
    const ofCaller = `${organizationId} ${key}`;
    // The proxy counts its own callers.
    const isOrganization = sender === 'stranger';
    if (isOrganization) {
      this.callersToContact.check(ofCaller);
      this.callers.check(organizationId);
    }
    this.strangers.check(key);
    this.all.take(key);
    this.strangers.take(key);
    if (!isOrganization) return;
    this.callersToContact.take(ofCaller);
    this.callers.take(organizationId);
  }
}
