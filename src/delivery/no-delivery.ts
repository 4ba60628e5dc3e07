import { randomUUID } from 'node:crypto';
import { checkMessage } from './check-message.js';
import type { Delivery, DeliveryReport, Message, Receipt } from './delivery.js';

/**
 * Accepts messages and sends none, reporting each: for a copy of an installation that is started for inspection
 * (RESTORED).
 */
export class NoDelivery implements Delivery {
  constructor(private readonly report: (report: DeliveryReport) => void = () => undefined) {}

  check(message: Message): void {
    checkMessage(message);
  }

  enqueue(message: Message): Receipt {
    this.check(message);
    const id = randomUUID();
    const { channel, otpId } = message;
    const reason = 'RESTORED is true: this copy sends nothing';
    this.report({ id, channel, ...(otpId === undefined ? {} : { otpId }), outcome: 'failed', attempts: 0, reason });
    return { id, status: 'failed', reason };
  }

  send(message: Message): Promise<Receipt> {
    return Promise.resolve(this.enqueue(message));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
