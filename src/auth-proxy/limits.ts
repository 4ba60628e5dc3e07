import { createHmac, randomBytes } from 'node:crypto';
import { networkOf } from '../rate-limits/caller.js';
import { KeyedLimit } from '../rate-limits/keyed-limit.js';

/** Requests a minute, and codes that one caller may have sent to one contact in ten minutes; undefined is no limit. */
export interface ProxyLimits {
  readonly perAddress: number | undefined;
  readonly perConfiguration: number | undefined;
  readonly perContact: number | undefined;
  /** Keys that each of them remembers at a time. */
  readonly keys?: number;
}

const minute = 60_000;

/** How often callers may call. Everything is public here, and codes cost money: the limits are on unless switched off. */
export class Limits {
  private readonly address: KeyedLimit | undefined;
  private readonly configurations: KeyedLimit | undefined;
  private readonly contacts: KeyedLimit | undefined;
  private readonly key = randomBytes(32);

  constructor({ perAddress, perConfiguration, perContact, keys: maxKeys }: ProxyLimits) {
    const limit = (most: number | undefined, windowMs: number, what: string): KeyedLimit | undefined => {
      if (most === undefined) return undefined;
      return new KeyedLimit({ most, windowMs, name: `${most} ${what}`, ...(maxKeys === undefined ? {} : { maxKeys }) });
    };
    this.address = limit(perAddress, minute, 'requests a minute from one address to the auth proxy');
    this.configurations = limit(perConfiguration, minute, 'requests a minute for one configuration of the auth proxy');
    this.contacts = limit(perContact, 10 * minute, 'codes in ten minutes from one address to one contact');
  }

  /** Counts a request of an address. @throws {CoordinatorError} RESOURCE_EXHAUSTED RATE_LIMIT_EXCEEDED */
  countAddress(address: string): void {
    this.address?.take(networkOf(address));
  }

  /** Counts a request for a configuration that exists. @throws {CoordinatorError} RESOURCE_EXHAUSTED RATE_LIMIT_EXCEEDED */
  countConfiguration(configId: string): void {
    this.configurations?.take(configId, { trusted: true });
  }

  /**
   * Counts a code that an address has sent to a contact. One caller must not use up what another is owed, so what all of them
   * have sent to a contact together is for the API to limit.
   * @returns what the API counts this caller's codes to the contact by; it tells nothing of either
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED RATE_LIMIT_EXCEEDED
   */
  countCode(configId: string, contact: string, address: string): string {
    const key = `${configId} ${contact.toLowerCase()} ${networkOf(address)}`;
    this.contacts?.take(key);
    return createHmac('sha256', this.key).update(key).digest('hex').slice(0, 32);
  }
}
