import type { AcceptedMessage, Carrier } from '../delivery/delivery.js';

/** Keeps messages instead of sending them, for tests to read. */
export class CapturedMessages implements Carrier {
  readonly messages: AcceptedMessage[] = [];

  constructor(private readonly isFailing: (channel: AcceptedMessage['channel']) => boolean = () => false) {}

  carry(message: AcceptedMessage): Promise<void> {
    if (this.isFailing(message.channel)) return Promise.reject(new Error('messages are not accepted'));
    this.messages.push(message);
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
