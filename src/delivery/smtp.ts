import { mailAddress } from '../domain/contact-key.js';
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
  /** Until the connection counts as dead without a byte from the server. */
  readonly silenceMs: number;
}

const timeouts: Timeouts = { connectMs: 10_000, greetingMs: 10_000, silenceMs: 20_000 };
/** Parallel connections: one for each slot that messages are sent from, or messages with a slot would wait here. */
const maxConnections = placesOfChannel;
/** What recipients see without a sender's name (init_otp_auth: sendFromEmailSenderName). */
const defaultName = 'Notifications';

/**
 * Sends e-mail to one SMTP server (RFC 5321) over pooled connections. Certificates are always verified; `starttls`
 * `required` (RFC 3207) fails rather than fall back to plaintext. Messages carry a Message-ID that is the same for each
 * attempt.
 */
export class SmtpCarrier implements Carrier {
  readonly #name: string;
  readonly #sender: (message: Message) => Sender;
  readonly #transport: ReturnType<typeof connect>;

  /** @param options.ca additional certificate authorities, PEM */
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
    const mailbox = mailAddress(to);
    try {
      await this.#transport.sendMail({
        // Objects instead of text: nothing in a name or an address is parsed again.
        from: { name, address },
        to: { name: '', address: mailbox },
        envelope: { from: address, to: [mailbox] },
        messageId: `<${message.id}@${domainOf(address)}>`,
        ...(replyTo === undefined ? {} : { replyTo: { name: '', address: replyTo } }),
        ...(subject === undefined ? {} : { subject }),
        text,
        ...(html === undefined ? {} : { html }),
        // RFC 3834: no replies from vacation programs.
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
    // For a connection that the server closed while it was idle; further attempts are the caller's.
    maxRequeues: 1,
    logger: false,
  });
}

type Dialed = (error: Error | null, answer?: { readonly connection: Socket }) => void;

/**
 * Resolves the host like every other program on the machine. The library would ask name servers first, and so miss what
 * only `/etc/hosts` or a container's network knows, or wait for servers that do not respond.
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
 * The sender of a message. An address in a domain that we may not send from is omitted, together with its name and
 * reply-to (docs/protocol.md, one-time codes); without MAIL_FROM, the SMTP server decides about addresses.
 */
function senders(server: SmtpServer, mailFrom: MailFrom | undefined): (message: Message) => Sender {
  const address = mailFrom?.address ?? addressFor(server);
  const name = mailFrom?.name ?? defaultName;
  const domains = mailFrom && new Set([domainOf(mailFrom.address), ...mailFrom.domains]);
  const ascii = (text: string | undefined) => (text === undefined ? undefined : mailAddress(text));
  return ({ fromName, ...message }) => {
    const [from, replyTo] = [ascii(message.from), ascii(message.replyTo)];
    if (from !== undefined && domains?.has(domainOf(from)) === false) return { address, name, replyTo: undefined };
    return { address: from ?? address, name: fromName || (from === undefined ? name : defaultName), replyTo };
  };
}

/** The sender if none is configured: the SMTP user, else nobody at the server. */
function addressFor({ host, user }: SmtpServer): string {
  if (user !== undefined && /^[^\s@]+@[a-z0-9.-]+$/i.test(user)) return user;
  return `no-reply@${/[a-z]/i.test(host) && !host.includes(':') ? host : 'localhost'}`;
}

const domainOf = (address: string): string => address.slice(address.lastIndexOf('@') + 1).toLowerCase();

/** Without the server's text, which may repeat the message. Its numbers are enough (RFC 5321, 4.2; RFC 3463). */
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
    // Only a 5xx is permanent. A 421 or 4xx is temporary.
    return new DeliveryFailed(answer, { retryable: responseCode < 500 });
  }
  const code = codeOf(error);
  // These concern the message or the settings, and occur before the server responds, or without a response.
  const hopeless = ['EENVELOPE', 'EMESSAGE', 'EAUTH', 'ENOAUTH', 'ECONFIG'].includes(code);
  // The original system or TLS error, which the library hides behind its own code.
  const told = originalCode === undefined ? code : codeOf({ code: originalCode });
  return new DeliveryFailed(`${server} could not be used (${told})`, { retryable: !hopeless });
}
