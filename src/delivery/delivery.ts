import type { QueuePath } from '../fairness/fair-queue.js';
import type { OutgoingMessage } from '../ports/delivery.js';

/** Maximum messages in flight through one channel. */
export const placesOfChannel = 10;

/** How a message reaches a person. */
export type Channel = OutgoingMessage['channel'];

/** A message to one person. Its texts contain codes and credentials: only the recipient may see them. */
export type Message = OutgoingMessage;

/** An accepted message: the id is the same for all attempts, so that a duplicate can be recognized. */
export interface AcceptedMessage extends Message {
  readonly id: string;
}

/** The progress of a message. Every open message ends in a report. */
export type Receipt =
  | { readonly id: string; readonly status: 'sent' }
  | { readonly id: string; readonly status: 'queued' }
  | { readonly id: string; readonly status: 'failed'; readonly reason: string };

export const DELIVERY = Symbol('Delivery');

/**
 * The port through which activities send. Senders take turns, and strangers of one parent have half of the slots
 * together; a message without a sender is the installation's.
 */
export interface Delivery {
  /**
   * Tries once, and retries in the background if that fails. Never rejects because a carrier failed.
   * @throws {CoordinatorError} INVALID_ARGUMENT, RESOURCE_EXHAUSTED (too many wait) or UNAVAILABLE (stopping)
   */
  send(message: Message, from?: QueuePath): Promise<Receipt>;
  /**
   * Refuses what `enqueue` would refuse now, without accepting anything.
   * @throws {CoordinatorError} as `send`
   */
  check(message: Message, from?: QueuePath): void;
  /**
   * Accepts without waiting for anything, for callers whose response must take the same time whether they send or not.
   * @throws {CoordinatorError} as `send`
   */
  enqueue(message: Message, from?: QueuePath): Receipt;
}

/** The same port, for one sender. */
export function deliveryFor(delivery: Delivery, from: QueuePath): Delivery {
  return {
    send: (message) => delivery.send(message, from),
    check: (message) => delivery.check(message, from),
    enqueue: (message) => delivery.enqueue(message, from),
  };
}

/** One step in the life of a message, for logs and metrics: no recipient, no text, no words of a server. */
export interface DeliveryReport {
  readonly id: string;
  readonly channel: Channel;
  readonly otpId?: string;
  /** `failed`: given up permanently; `abandoned`: still waiting when the process stopped. */
  readonly outcome: 'sent' | 'retrying' | 'failed' | 'abandoned';
  readonly attempts: number;
  readonly reason?: string;
}

/** One carrier: an SMTP server, an SMS gateway, a file. Makes a single attempt. */
export interface Carrier {
  /** @throws {DeliveryFailed} if the message was not accepted, or it is unknown whether it was */
  carry(message: AcceptedMessage, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/**
 * A failed attempt. The message is safe to log: it is written here, and contains only names and numbers from the
 * server, because a server's text may repeat what was sent to it.
 */
export class DeliveryFailed extends Error {
  /** Whether another attempt makes sense. */
  readonly retryable: boolean;
  /** Milliseconds that the server asks us to wait. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, options: { readonly retryable: boolean; readonly retryAfterMs?: number | undefined }) {
    super(message);
    this.name = 'DeliveryFailed';
    this.retryable = options.retryable;
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** The code of an error of Node.js or a library, such as ECONNREFUSED: safe to log, unlike its message. */
export function codeOf(error: unknown): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && /^[A-Z0-9_]{2,40}$/.test(code) ? code : 'unknown error';
}
