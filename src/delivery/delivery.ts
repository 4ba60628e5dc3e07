import type { QueuePath } from '../fairness/fair-queue.js';
import type { OutgoingMessage } from '../ports/delivery.js';

/** Messages that are on their way through one channel at a time. */
export const placesOfChannel = 10;

/** How a message reaches a person. */
export type Channel = OutgoingMessage['channel'];

/** A message to one person. Its texts hold codes and credentials: they go to their recipient and nowhere else. */
export type Message = OutgoingMessage;

/** A message that was accepted: the id stays the same over all attempts, so that a second copy can be recognized. */
export interface AcceptedMessage extends Message {
  readonly id: string;
}

/** What became of a message so far. Whatever is still open ends in a report. */
export type Receipt =
  | { readonly id: string; readonly status: 'sent' }
  | { readonly id: string; readonly status: 'queued' }
  | { readonly id: string; readonly status: 'failed'; readonly reason: string };

export const DELIVERY = Symbol('Delivery');

/**
 * The port that activities send through. Messages take the turns of whoever sends them, and strangers of one parent have half of
 * the places together; what nobody is said to send is the installation's.
 */
export interface Delivery {
  /**
   * Tries once, and again in the background when that fails. Never rejects because a carrier failed.
   * @throws {CoordinatorError} INVALID_ARGUMENT, RESOURCE_EXHAUSTED (too many wait) or UNAVAILABLE (stopping)
   */
  send(message: Message, from?: QueuePath): Promise<Receipt>;
  /**
   * Refuses what `enqueue` would refuse now, and accepts nothing.
   * @throws {CoordinatorError} as `send`
   */
  check(message: Message, from?: QueuePath): void;
  /**
   * Accepts without waiting for anything, for callers whose answer must take the same time whether they send or not.
   * @throws {CoordinatorError} as `send`
   */
  enqueue(message: Message, from?: QueuePath): Receipt;
}

/** The same way to people, for one sender. */
export function deliveryFor(delivery: Delivery, from: QueuePath): Delivery {
  return {
    send: (message) => delivery.send(message, from),
    check: (message) => delivery.check(message, from),
    enqueue: (message) => delivery.enqueue(message, from),
  };
}

/** One step in the life of a message, for logs and metrics: no recipient, no text, no answer of a server in words. */
export interface DeliveryReport {
  readonly id: string;
  readonly channel: Channel;
  readonly otpId?: string;
  /** `failed`: given up for good; `abandoned`: still waiting when the process stopped. */
  readonly outcome: 'sent' | 'retrying' | 'failed' | 'abandoned';
  readonly attempts: number;
  readonly reason?: string;
}

/** One way out: an SMTP server, an SMS gateway, a file. Makes a single attempt. */
export interface Carrier {
  /**
   * @throws {DeliveryFailed} when the message was not taken, or it is not known whether it was
   */
  carry(message: AcceptedMessage, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/**
 * An attempt that failed. The message is fit for logs: written here, with names and numbers of the server only, because
 * what a server says may repeat what was sent to it.
 */
export class DeliveryFailed extends Error {
  /** Whether another attempt makes sense. */
  readonly retryable: boolean;
  /** Milliseconds that the server asks to wait. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, options: { readonly retryable: boolean; readonly retryAfterMs?: number | undefined }) {
    super(message);
    this.name = 'DeliveryFailed';
    this.retryable = options.retryable;
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** The code of an error of Node.js or a library, such as ECONNREFUSED: fit for logs, unlike its message. */
export function codeOf(error: unknown): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && /^[A-Z0-9_]{2,40}$/.test(code) ? code : 'unknown error';
}
