import type { SmsGateway } from '../config/messages.js';
import type { AcceptedMessage, Carrier } from './delivery.js';
import { OutboundHttp } from '../http-client/outbound-http.js';
import { post } from './http-post.js';

type Webhook = Extract<SmsGateway, { kind: 'webhook' }>;
type Twilio = Extract<SmsGateway, { kind: 'twilio' }>;

/**
 * Posts `{ id, to, text, otpId? }` as JSON to a URL of the operator. The header `Idempotency-Key` is the message's id,
 * the same for each attempt. Credentials in the URL become basic authentication (RFC 7617).
 */
export class SmsWebhookCarrier implements Carrier {
  readonly #url: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #http: OutboundHttp;

  /** @param options.ca certificate authorities in place of the system's, PEM */
  constructor({ url }: Webhook, options: { readonly ca?: string } = {}) {
    this.#url = new URL(url);
    const { username, password } = this.#url;
    this.#url.username = '';
    this.#url.password = '';
    this.#headers = username === '' ? {} : basic(decodeURIComponent(username), decodeURIComponent(password));
    this.#http = operatorsHttp(options.ca);
  }

  async carry({ id, to, text, otpId }: AcceptedMessage, signal: AbortSignal): Promise<void> {
    const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': id, ...this.#headers };
    await post(this.#http, this.#url, { headers, body: JSON.stringify({ id, to, text, otpId }), signal });
  }

  close(): Promise<void> {
    return this.#http.close();
  }
}

/** Sends like Twilio and compatible services: `POST /2010-04-01/Accounts/{sid}/Messages.json`, form-encoded. */
export class TwilioCarrier implements Carrier {
  readonly #url: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #sender: Readonly<Record<string, string>>;
  readonly #http: OutboundHttp;

  /** @param options.ca certificate authorities in place of the system's, PEM */
  constructor({ host, accountSid, authToken, sender }: Twilio, options: { readonly ca?: string } = {}) {
    this.#url = new URL(`https://${host}/2010-04-01/Accounts/${accountSid}/Messages.json`);
    this.#headers = { ...basic(accountSid, authToken), 'Content-Type': 'application/x-www-form-urlencoded' };
    // A messaging service chooses the number itself.
    this.#sender = /^MG[0-9a-f]{32}$/i.test(sender) ? { MessagingServiceSid: sender } : { From: sender };
    this.#http = operatorsHttp(options.ca);
  }

  async carry({ to, text }: AcceptedMessage, signal: AbortSignal): Promise<void> {
    const form = new URLSearchParams({ To: to, ...this.#sender, Body: text });
    const request = { headers: this.#headers, body: form.toString(), signal };
    await post(this.#http, this.#url, { ...request, detailOf: twilioError });
  }

  close(): Promise<void> {
    return this.#http.close();
  }
}

/** The gateway's host is the operator's choice, and may be inside; its responses are foreign all the same. */
const operatorsHttp = (ca: string | undefined): OutboundHttp =>
  new OutboundHttp({ allowPrivateNetwork: true, ...(ca === undefined ? {} : { trustedCertificates: ca }) });

const basic = (user: string, password: string): Record<string, string> => ({
  Authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
});

/** The error number in Twilio's dictionary: five digits, so it is never a code of ours. */
function twilioError(answer: string): string | undefined {
  const code = /"code":\s*([1-9]\d{4})\b(?!\d)/.exec(answer)?.[1];
  return code === undefined ? undefined : `error ${code}`;
}
