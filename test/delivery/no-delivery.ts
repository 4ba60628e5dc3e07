import { randomUUID } from 'node:crypto';
import { checkMessage } from '../../src/delivery/check-message.js';
import type { Delivery, Message, Receipt } from '../../src/delivery/delivery.js';

/** Accepts messages and sends none. */
export class NoDelivery implements Delivery {
  check(message: Message): void {
    checkMessage(message);
  }

  enqueue(message: Message): Receipt {
    this.check(message);
    return { id: randomUUID(), status: 'failed', reason: 'nothing is sent' };
  }

  send(message: Message): Promise<Receipt> {
    return Promise.resolve(this.enqueue(message));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
