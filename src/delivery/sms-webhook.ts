import type { SmsGateway } from '../config/messages.js';
import type { AcceptedMessage, Carrier } from './delivery.js';
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
  readonly #ca: string | undefined;

  /** @param options.ca additional certificate authorities, PEM */
  constructor({ url }: Webhook, options: { readonly ca?: string } = {}) {
    this.#url = new URL(url);
    const { username, password } = this.#url;
    this.#url.username = '';
    this.#url.password = '';
    this.#headers = username === '' ? {} : basic(decodeURIComponent(username), decodeURIComponent(password));
    this.#ca = options.ca;
  }

  async carry({ id, to, text, otpId }: AcceptedMessage, signal: AbortSignal): Promise<void> {
    const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': id, ...this.#headers };
    await post(this.#url, headers, JSON.stringify({ id, to, text, otpId }), { signal, ca: this.#ca });
  }

  async close(): Promise<void> {
    // Every message has its own connection, which closes with it.
  }
}

/** Sends like Twilio and compatible services: `POST /2010-04-01/Accounts/{sid}/Messages.json`, form-encoded. */
export class TwilioCarrier implements Carrier {
  readonly #url: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #sender: Readonly<Record<string, string>>;
  readonly #ca: string | undefined;

  /** @param options.ca additional certificate authorities, PEM */
  constructor({ host, accountSid, authToken, sender }: Twilio, options: { readonly ca?: string } = {}) {
    this.#url = new URL(`https://${host}/2010-04-01/Accounts/${accountSid}/Messages.json`);
    this.#headers = { ...basic(accountSid, authToken), 'Content-Type': 'application/x-www-form-urlencoded' };
    // A messaging service chooses the number itself.
    this.#sender = /^MG[0-9a-f]{32}$/i.test(sender) ? { MessagingServiceSid: sender } : { From: sender };
    this.#ca = options.ca;
  }

  async carry({ to, text }: AcceptedMessage, signal: AbortSignal): Promise<void> {
    const form = new URLSearchParams({ To: to, ...this.#sender, Body: text });
    await post(this.#url, this.#headers, form.toString(), { signal, ca: this.#ca, detailOf: twilioError });
  }

  async close(): Promise<void> {
    // Every message has its own connection, which closes with it.
  }
}

const basic = (user: string, password: string): Record<string, string> => ({
  Authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
});

/** The error number in Twilio's dictionary: five digits, so it is never a code of ours. */
function twilioError(answer: string): string | undefined {
  const code = /"code":\s*([1-9]\d{4})\b(?!\d)/.exec(answer)?.[1];
  return code === undefined ? undefined : `error ${code}`;
}
