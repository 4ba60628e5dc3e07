/** A message on its way to a person. Never logged: it may hold a code. */
export interface OutgoingMessage {
  readonly channel: 'email' | 'sms';
  /** An e-mail address, or a phone number in E.164. */
  readonly to: string;
  /** E-mail only. */
  readonly subject?: string;
  readonly text: string;
  /** E-mail only: the same content as HTML. */
  readonly html?: string;
  /** E-mail only: the sender's address, used where its domain is one that may be sent from. */
  readonly from?: string;
  /** E-mail only: the sender's name. */
  readonly fromName?: string;
  /** E-mail only. */
  readonly replyTo?: string;
  /** The one-time password that the message carries, for reports. */
  readonly otpId?: string;
  /** Milliseconds since the epoch; from then on the message is of no use and is not sent any more. */
  readonly expiresAt?: number;
}

/** The port to people (see `delivery/`). */
export interface DeliveryPort {
  /**
   * Refuses what `enqueue` would refuse now, before anything is decided.
   * @throws {CoordinatorError} as `enqueue`
   */
  check(message: OutgoingMessage): void;
  /**
   * Accepts a message without waiting for anything; what cannot be delivered is tried again, and reported.
   * @throws {CoordinatorError} INVALID_ARGUMENT for a message that cannot be one, RESOURCE_EXHAUSTED, UNAVAILABLE
   */
  enqueue(message: OutgoingMessage): unknown;
}

/** A message that somebody asks for. */
export interface AskedMessage {
  /** An e-mail address or a phone number. */
  readonly contact: string;
  /** `known`: the account of the contact, or a member of the parent; `proxy`: somebody through the auth proxy. */
  readonly sender: 'known' | 'proxy' | 'stranger';
  /** Where it is asked for. */
  readonly organizationId: string;
}

/** The port to what limits messages to people (see `delivery/contact-limits.ts`). */
export interface ContactLimitPort {
  /**
   * Counts a message to a contact over the whole installation, before it is made.
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED for too many, UNAVAILABLE when it cannot be counted
   */
  count(asked: AskedMessage): Promise<void>;
}
