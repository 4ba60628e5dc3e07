import { createHmac, randomBytes } from 'node:crypto';
import { mailboxOf } from '../domain/contact-key.js';
import { invalidOtpCode, isInvalidOtpCode, maxGuesses, otpLifeSeconds } from '../domain/organization/otps.js';
import { networkOf, networksOf } from '../rate-limits/caller.js';
import { KeyedLimit } from '../rate-limits/keyed-limit.js';

/**
 * Requests per minute, and what one client may do in ten minutes: have codes sent, to all contacts and to one, and sign
 * up; undefined means no limit.
 */
export interface ProxyLimits {
  readonly perAddress: number | undefined;
  readonly perConfiguration: number | undefined;
  readonly codesPerAddress: number | undefined;
  readonly perContact: number | undefined;
  readonly signUpsPerAddress: number | undefined;
  /** Number of keys that each of them keeps. */
  readonly keys?: number;
}

const minute = 60_000;
/** The part of a configuration's requests that each network has even when others have used up the rest. */
const own = 1 / 200;

/**
 * Rate limits for clients. Everything here is public, and codes cost money, so the limits are on unless switched off.
 */
export class Limits {
  private readonly address: KeyedLimit | undefined;
  private readonly configurations: KeyedLimit | undefined;
  private readonly few: KeyedLimit | undefined;
  private readonly codes: KeyedLimit | undefined;
  private readonly contacts: KeyedLimit | undefined;
  private readonly signUps: KeyedLimit | undefined;
  private readonly guesses: KeyedLimit;
  private readonly guessesPerAddress: KeyedLimit | undefined;
  private readonly key = randomBytes(32);

  constructor(limits: ProxyLimits) {
    const { perAddress, perConfiguration, codesPerAddress, perContact, signUpsPerAddress, keys: maxKeys } = limits;
    const bounded = (most: number, windowMs: number, what: string): KeyedLimit =>
      new KeyedLimit({ most, windowMs, name: `${most} ${what}`, ...(maxKeys === undefined ? {} : { maxKeys }) });
    const limit = (most: number | undefined, windowMs: number, what: string): KeyedLimit | undefined =>
      most === undefined ? undefined : bounded(most, windowMs, what);
    this.address = limit(perAddress, minute, 'requests a minute from one address to the auth proxy');
    this.configurations = limit(perConfiguration, minute, 'requests a minute for one configuration of the auth proxy');
    const perNetwork = perConfiguration === undefined ? undefined : Math.ceil(perConfiguration * own);
    this.few = limit(perNetwork, minute, 'requests a minute for one configuration from one network');
    this.codes = limit(codesPerAddress, 10 * minute, 'codes in ten minutes from one address through the auth proxy');
    this.contacts = limit(perContact, 10 * minute, 'codes in ten minutes from one address to one contact');
    this.signUps = limit(signUpsPerAddress, 10 * minute, 'sign-ups in ten minutes from one address');
    // No code lives longer than this.
    const codeLifeMs = otpLifeSeconds.max * 1000;
    this.guesses = bounded(maxGuesses, codeLifeMs, 'wrong guesses of one code from one address');
    const guessesOfCodes = codesPerAddress === undefined ? undefined : codesPerAddress * maxGuesses;
    this.guessesPerAddress = limit(guessesOfCodes, codeLifeMs, 'wrong codes in ten minutes from one address');
  }

  /** Counts a request from an address. @throws {CoordinatorError} RESOURCE_EXHAUSTED RATE_LIMIT_EXCEEDED */
  countAddress(address: string): void {
    this.address?.take(networksOf(networkOf(address)));
  }

  /**
   * Counts a request for a configuration that exists. Where others have used up its requests, a network still has a few of
   * its own.
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED RATE_LIMIT_EXCEEDED
   */
  countConfiguration(configId: string, address: string): void {
    if (this.few?.admits(under(configId, address))) this.configurations?.admits(configId, { trusted: true });
    else this.configurations?.take(configId, { trusted: true });
  }

  /** Counts a sign-up under a configuration. @throws {CoordinatorError} RESOURCE_EXHAUSTED RATE_LIMIT_EXCEEDED */
  countSignUp(configId: string, address: string): void {
    this.signUps?.take(under(configId, address));
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
    this.codes?.take(networksOf(network));
    this.contacts?.take(key);
    return createHmac('sha256', this.key).update(key).digest('hex').slice(0, 32);
  }

  /**
   * Makes a guess of a code, and counts it if it is wrong. The third wrong one ends the code for the network that made
   * them, and for no other, so that nobody can end somebody else's login. The API ends it for all (docs/adr/0018).
   * @param guess rejects with the API's refusal
   * @throws {CoordinatorError} INVALID_ARGUMENT in the words of a wrong guess; RESOURCE_EXHAUSTED RATE_LIMIT_EXCEEDED
   */
  async countGuess<Result>(otpId: string, address: string, guess: () => Promise<Result>): Promise<Result> {
    const network = networkOf(address);
    const networks = networksOf(network);
    const key = `${otpId.toLowerCase()} ${network}`;
    if (this.guesses.isReached(key)) throw invalidOtpCode();
    // Counted before the response, because many guesses may be made at once.
    this.guessesPerAddress?.take(networks);
    this.guesses.take(key);
    let isWrong = false;
    try {
      return await guess();
    } catch (error) {
      isWrong = isInvalidOtpCode(error);
      throw error;
    } finally {
      if (!isWrong) {
        this.guesses.giveBack(key);
        this.guessesPerAddress?.giveBack(networks);
      }
    }
  }
}

/** A configuration's keys for a network and those around it. */
function under(configId: string, address: string): readonly string[] {
  return networksOf(networkOf(address)).map((network) => `${configId} ${network}`);
}
