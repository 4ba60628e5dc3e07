/** A message to a person. Never log it: it may contain a code. */
export interface OutgoingMessage {
  readonly channel: 'email' | 'sms';
  /** An e-mail address, or a phone number in E.164. */
  readonly to: string;
  /** E-mail only. */
  readonly subject?: string;
  readonly text: string;
  /** E-mail only: the same content as HTML. */
  readonly html?: string;
  /** E-mail only: the sender's address, used if its domain is one that we may send from. */
  readonly from?: string;
  /** E-mail only: the sender's name. */
  readonly fromName?: string;
  /** E-mail only. */
  readonly replyTo?: string;
  /** The one-time password that the message carries, for reports. */
  readonly otpId?: string;
  /** Milliseconds since the epoch; after that, the message is useless and no longer sent. */
  readonly expiresAt?: number;
}

/** The port for messages to people (see `delivery/`). */
export interface DeliveryPort {
  /**
   * Refuses what `enqueue` would refuse now, before anything is decided.
   * @throws {CoordinatorError} as `enqueue`
   */
  check(message: OutgoingMessage): void;
  /**
   * Accepts a message without waiting for anything; undelivered messages are retried, and reported.
   * @throws {CoordinatorError} INVALID_ARGUMENT for an invalid message, RESOURCE_EXHAUSTED, UNAVAILABLE
   */
  enqueue(message: OutgoingMessage): unknown;
}

/** A requested message. */
export interface AskedMessage {
  /** An e-mail address or a phone number. */
  readonly contact: string;
  /** `trusted`: the account of the contact, or a member of the parent; `auth-proxy`: a client of the auth proxy. */
  readonly sender: 'trusted' | 'auth-proxy' | 'untrusted';
  /** Where it is requested. */
  readonly organizationId: string;
}

/** The port for limits on messages to people (see `delivery/contact-limits.ts`). */
export interface ContactLimitPort {
  /**
   * Counts a message to a contact over the whole installation, before it is created.
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED for too many, UNAVAILABLE if it cannot be counted
   */
  count(requested: AskedMessage): Promise<void>;
}
