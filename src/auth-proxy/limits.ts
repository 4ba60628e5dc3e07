import { createHmac, randomBytes } from 'node:crypto';
import { mailboxOf } from '../domain/contact-key.js';
import { networkOf } from '../rate-limits/caller.js';
import { KeyedLimit } from '../rate-limits/keyed-limit.js';

/**
 * Requests per minute, and codes that one client may have sent in ten minutes, to all contacts and to one; undefined
 * means no limit.
 */
export interface ProxyLimits {
  readonly perAddress: number | undefined;
  readonly perConfiguration: number | undefined;
  readonly codesPerAddress: number | undefined;
  readonly perContact: number | undefined;
  /** Number of keys that each of them keeps. */
  readonly keys?: number;
}

const minute = 60_000;

/**
 * Rate limits for clients. Everything here is public, and codes cost money, so the limits are on unless switched off.
 */
export class Limits {
  private readonly address: KeyedLimit | undefined;
  private readonly configurations: KeyedLimit | undefined;
  private readonly codes: KeyedLimit | undefined;
  private readonly contacts: KeyedLimit | undefined;
  private readonly key = randomBytes(32);

  constructor({ perAddress, perConfiguration, codesPerAddress, perContact, keys: maxKeys }: ProxyLimits) {
    const limit = (most: number | undefined, windowMs: number, what: string): KeyedLimit | undefined => {
      if (most === undefined) return undefined;
      return new KeyedLimit({ most, windowMs, name: `${most} ${what}`, ...(maxKeys === undefined ? {} : { maxKeys }) });
    };
    this.address = limit(perAddress, minute, 'requests a minute from one address to the auth proxy');
    this.configurations = limit(perConfiguration, minute, 'requests a minute for one configuration of the auth proxy');
    this.codes = limit(codesPerAddress, 10 * minute, 'codes in ten minutes from one address through the auth proxy');
    this.contacts = limit(perContact, 10 * minute, 'codes in ten minutes from one address to one contact');
  }

  /** Counts a request from an address. @throws {CoordinatorError} RESOURCE_EXHAUSTED RATE_LIMIT_EXCEEDED */
  countAddress(address: string): void {
    this.address?.take(networkOf(address));
  }

  /** Counts a request for a configuration that exists. @throws {CoordinatorError} RESOURCE_EXHAUSTED RATE_LIMIT_EXCEEDED */
  countConfiguration(configId: string): void {
    this.configurations?.take(configId, { trusted: true });
  }

  /**
   * Counts a code that an address has sent to a contact, which must be one that can be reached. One client must not use
   * up what another is entitled to, so the API limits what all of them send to a contact.
   * @returns the key under which the API counts this client's codes to the contact; it reveals neither
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED RATE_LIMIT_EXCEEDED
   */
  countCode(configId: string, contact: string, address: string): string {
    const network = networkOf(address);
    const key = `${configId} ${mailboxOf(contact)} ${network}`;
    // What is refused for its contact must not use up what the address may send to others.
    this.contacts?.check(key);
    // Before the contact takes one of the keys that all networks share: each gets only so many.
    this.codes?.take(network);
    this.contacts?.take(key);
    return createHmac('sha256', this.key).update(key).digest('hex').slice(0, 32);
  }
}
