import type { AcceptedMessage, Carrier } from '../delivery/delivery.js';

/** Keeps what would be sent, for a test to read. */
export class KeptMessages implements Carrier {
  readonly messages: AcceptedMessage[] = [];

  carry(message: AcceptedMessage): Promise<void> {
    this.messages.push(message);
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
