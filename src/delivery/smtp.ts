import { connect as connectSocket, type Socket } from 'node:net';
import { createTransport } from 'nodemailer';
import type { MailFrom, SmtpServer } from '../config/messages.js';
import {
  codeOf,
  DeliveryFailed,
  placesOfChannel,
  type AcceptedMessage,
  type Carrier,
  type Message,
} from './delivery.js';

/** Times in milliseconds. */
interface Timeouts {
  readonly connectMs: number;
  /** Until the server's greeting. */
  readonly greetingMs: number;
  /** Without a byte from the server. */
  readonly silenceMs: number;
}

const timeouts: Timeouts = { connectMs: 10_000, greetingMs: 10_000, silenceMs: 20_000 };
/** Parallel connections: one for each place that messages are sent from, or those that have a place would wait here. */
const maxConnections = placesOfChannel;
/** What recipients see when nobody gave a sender's name (init_otp_auth: sendFromEmailSenderName). */
const defaultName = 'Notifications';

/**
 * Sends e-mail to one SMTP server (RFC 5321) over pooled connections. Certificates are always verified; `starttls`
 * `required` (RFC 3207) fails rather than speak in plain text. Messages carry a Message-ID that is the same in each attempt.
 */
export class SmtpCarrier implements Carrier {
  readonly #name: string;
  readonly #sender: (message: Message) => Sender;
  readonly #transport: ReturnType<typeof connect>;

  /** @param options.ca further certificate authorities, PEM */
  constructor(
    server: SmtpServer,
    mailFrom: MailFrom | undefined,
    options: Partial<Timeouts> & { readonly ca?: string } = {},
  ) {
    this.#name = `${server.host}:${server.port}`;
    this.#sender = senders(server, mailFrom);
    this.#transport = connect(server, { ...timeouts, ...options });
  }

  async carry(message: AcceptedMessage, signal: AbortSignal): Promise<void> {
    const { to, subject, text, html } = message;
    const { address, name, replyTo } = this.#sender(message);
    try {
      await this.#transport.sendMail({
        // Objects and not text: nothing in a name or an address is taken apart again.
        from: { name, address },
        to: { name: '', address: to },
        envelope: { from: address, to: [to] },
        messageId: `<${message.id}@${domainOf(address)}>`,
        ...(replyTo === undefined ? {} : { replyTo: { name: '', address: replyTo } }),
        ...(subject === undefined ? {} : { subject }),
        text,
        ...(html === undefined ? {} : { html }),
        // RFC 3834: no answers from vacation programs.
        headers: { 'Auto-Submitted': 'auto-generated' },
        xMailer: false,
        disableFileAccess: true,
        disableUrlAccess: true,
        signal,
      });
    } catch (error) {
      throw failureOf(this.#name, error);
    }
  }

  async close(): Promise<void> {
    this.#transport.close();
  }
}

function connect(server: SmtpServer, { connectMs, greetingMs, silenceMs, ca }: Timeouts & { readonly ca?: string }) {
  const { host, port, secure, starttls, user, password } = server;
  return createTransport({
    pool: true,
    maxConnections,
    host,
    port,
    secure,
    requireTLS: !secure && starttls === 'required',
    tls: { rejectUnauthorized: true, minVersion: 'TLSv1.2', ...(ca === undefined ? {} : { ca }) },
    ...(user === undefined ? {} : { auth: { user, pass: password ?? '' } }),
    getSocket: (_options: unknown, callback: Dialed) => dial(host, port, connectMs, callback),
    connectionTimeout: connectMs,
    greetingTimeout: greetingMs,
    socketTimeout: silenceMs,
    socketCloseTimeout: 1_000,
    // For a connection that the server ended while it was idle; beyond that, attempts are counted by whoever calls.
    maxRequeues: 1,
    logger: false,
  });
}

type Dialed = (error: Error | null, answer?: { readonly connection: Socket }) => void;

/**
 * Finds the host as every other program of the machine does. The library would ask name servers first, and so not find
 * what only `/etc/hosts` or a container's network knows, or wait for servers that do not answer.
 */
function dial(host: string, port: number, timeoutMs: number, callback: Dialed): void {
  const socket = connectSocket({ host, port });
  const late = setTimeout(
    () => socket.destroy(Object.assign(new Error('no connection'), { code: 'ETIMEDOUT' })),
    timeoutMs,
  );
  const failed = (error: Error): void => {
    clearTimeout(late);
    callback(error);
  };
  socket.once('error', failed);
  socket.once('connect', () => {
    clearTimeout(late);
    socket.off('error', failed);
    callback(null, { connection: socket });
  });
}

interface Sender {
  readonly address: string;
  readonly name: string;
  readonly replyTo: string | undefined;
}

/**
 * Who a message comes from. An address of a domain that is not ours to send from is left out, and with it the name and
 * the reply-to that belong to it (client protocol, 4.3.3); without MAIL_FROM the SMTP server decides about addresses.
 */
function senders(server: SmtpServer, mailFrom: MailFrom | undefined): (message: Message) => Sender {
  const address = mailFrom?.address ?? addressFor(server);
  const name = mailFrom?.name ?? defaultName;
  const domains = mailFrom && new Set([domainOf(mailFrom.address), ...mailFrom.domains]);
  return ({ from, fromName, replyTo }) => {
    if (from !== undefined && domains?.has(domainOf(from)) === false) return { address, name, replyTo: undefined };
    return { address: from ?? address, name: fromName || (from === undefined ? name : defaultName), replyTo };
  };
}

/** A sender where none was configured: whoever logs in, else nobody at the server. */
function addressFor({ host, user }: SmtpServer): string {
  if (user !== undefined && /^[^\s@]+@[a-z0-9.-]+$/i.test(user)) return user;
  return `no-reply@${/[a-z]/i.test(host) && !host.includes(':') ? host : 'localhost'}`;
}

const domainOf = (address: string): string => address.slice(address.lastIndexOf('@') + 1).toLowerCase();

/** The server's words are left out: they may repeat the message. Its numbers say enough (RFC 5321, 4.2; RFC 3463). */
function failureOf(server: string, error: unknown): DeliveryFailed {
  const { responseCode, response, command, originalCode } = (typeof error === 'object' ? (error ?? {}) : {}) as {
    readonly responseCode?: unknown;
    readonly response?: unknown;
    readonly command?: unknown;
    readonly originalCode?: unknown;
  };
  if (typeof responseCode === 'number') {
    const detail =
      typeof response === 'string' ? /^\d{3}[ -]([245]\.\d{1,3}\.\d{1,3})\b/.exec(response)?.[1] : undefined;
    const step = typeof command === 'string' && /^[A-Z][A-Z0-9 -]{1,30}$/.test(command) ? ` to ${command}` : '';
    const answer = `${server} answered ${responseCode}${detail === undefined ? '' : ` (${detail})`}${step}`;
    // Only a 5xx is a refusal for good. A 421 or 4xx is about now.
    return new DeliveryFailed(answer, { retryable: responseCode < 500 });
  }
  const code = codeOf(error);
  // These are about the message or the settings, and come before or without a word of the server.
  const hopeless = ['EENVELOPE', 'EMESSAGE', 'EAUTH', 'ENOAUTH', 'ECONFIG'].includes(code);
  // What the system or TLS said, where the library has put its own code over it.
  const told = originalCode === undefined ? code : codeOf({ code: originalCode });
  return new DeliveryFailed(`${server} could not be used (${told})`, { retryable: !hopeless });
}
