import type { Config } from '../config/config.js';
import type { Channel, Delivery, DeliveryReport } from './delivery.js';
import { Outbox } from './outbox.js';
import { RetryingDelivery } from './retrying.js';
import { SmsWebhookCarrier, TwilioCarrier } from './sms-webhook.js';
import { SmtpCarrier } from './smtp.js';

/** The delivery of a process, and the destination of its messages. */
interface OpenDelivery {
  readonly delivery: Delivery & {
    /** Messages that were accepted and are not finished. */
    readonly open?: number;
    close(): Promise<void>;
  };
  /** For the operator, without secrets; `undefined` if nothing is configured and messages are written to the outbox. */
  readonly destinations: Readonly<Record<Channel, string | undefined>>;
  /** The file of unsent messages. */
  readonly outboxFile: string;
}

/** Chooses the carriers named in the settings, and the outbox for everything else. Nothing is connected yet. */
export function openDelivery(
  { dataDir, smtp, mailFrom, sms }: Pick<Config, 'dataDir' | 'smtp' | 'mailFrom' | 'sms'>,
  report: (report: DeliveryReport) => void,
  now: () => number = Date.now,
): OpenDelivery {
  const outbox = new Outbox(dataDir, now);
  const email = smtp ? new SmtpCarrier(smtp, mailFrom) : outbox;
  const carriers = {
    email,
    sms: !sms ? outbox : sms.kind === 'twilio' ? new TwilioCarrier(sms) : new SmsWebhookCarrier(sms),
  };
  return {
    delivery: new RetryingDelivery(carriers, report, { now }),
    destinations: {
      email: smtp && `${smtp.host}:${smtp.port}`,
      sms: sms && (sms.kind === 'twilio' ? sms.host : new URL(sms.url).host),
    },
    outboxFile: outbox.file,
  };
}
