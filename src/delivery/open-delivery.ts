import type { Config } from '../config/config.js';
import type { Channel, Delivery, DeliveryReport } from './delivery.js';
import { NoDelivery } from './no-delivery.js';
import { Outbox } from './outbox.js';
import { RetryingDelivery } from './retrying.js';
import { SmsWebhookCarrier, TwilioCarrier } from './sms-webhook.js';
import { SmtpCarrier } from './smtp.js';

/** The delivery of a process, and the destination of its messages. */
interface OpenDelivery {
  readonly delivery: Delivery & { close(): Promise<void> };
  /** For the operator, without secrets; `undefined` if nothing is configured and messages are written to the outbox. */
  readonly destinations: Readonly<Record<Channel, string | undefined>>;
  /** The file of unsent messages. */
  readonly outboxFile: string;
}

/** Chooses the carriers named in the settings, and the outbox for everything else. Nothing is connected yet. */
export function openDelivery(
  {
    dataDir,
    smtp,
    mailFrom,
    sms,
    restored = false,
  }: Pick<Config, 'dataDir' | 'smtp' | 'mailFrom' | 'sms'> & Partial<Pick<Config, 'restored'>>,
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
    delivery: deliveryBy(carriers, { restored, report, now }),
    destinations: {
      email: smtp && `${smtp.host}:${smtp.port}`,
      sms: sms && (sms.kind === 'twilio' ? sms.host : new URL(sms.url).host),
    },
    outboxFile: outbox.file,
  };
}

/** Delivery by carriers, which a copy for inspection does not use. */
export function deliveryBy(
  carriers: ConstructorParameters<typeof RetryingDelivery>[0],
  {
    restored,
    report,
    now,
  }: {
    readonly restored: boolean;
    readonly report: (report: DeliveryReport) => void;
    readonly now: () => number;
  },
): OpenDelivery['delivery'] {
  return restored ? new NoDelivery(report) : new RetryingDelivery(carriers, report, { now });
}
