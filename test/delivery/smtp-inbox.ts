import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { simpleParser, type ParsedMail } from 'mailparser';
import { SMTPServer } from 'smtp-server';
import type { SmtpServer } from '../../src/config/messages.js';

/** A mail as the server took it. */
interface Received {
  readonly mail: ParsedMail;
  readonly raw: string;
  readonly envelope: { readonly from: string; readonly to: readonly string[] };
  readonly session: string;
  readonly encrypted: boolean;
  readonly user: string | undefined;
}

interface InboxOptions {
  readonly certificate?: { readonly key: string; readonly cert: string };
  /** TLS from the first byte. */
  readonly secure?: boolean;
  /** Offers no encryption. */
  readonly plain?: boolean;
  readonly login?: { readonly user: string; readonly password: string };
  readonly port?: number;
  /** Decides about each recipient, in order: a refusal, or nothing. */
  readonly onRecipient?: (address: string) => Refusal | undefined;
  /** Decides about each message after it was read; may never return. */
  readonly onMessage?: (raw: string) => Refusal | undefined | Promise<Refusal | undefined>;
}

interface Refusal {
  readonly code: number;
  readonly text: string;
}

/** A real SMTP server on a free port of the loopback, which keeps what it takes. */
interface Inbox {
  readonly received: readonly Received[];
  /** Recipients that were named, accepted or not. */
  readonly named: readonly string[];
  readonly port: number;
  /** The setting that leads here. */
  server(changed?: Partial<SmtpServer>): SmtpServer;
  close(): Promise<void>;
}

const errorOf = (refusal: Refusal | undefined): Error | null =>
  refusal ? Object.assign(new Error(refusal.text), { responseCode: refusal.code }) : null;

export async function openInbox(options: InboxOptions = {}): Promise<Inbox> {
  const { certificate, secure = false, plain = false, login, onRecipient, onMessage } = options;
  const received: Received[] = [];
  const named: string[] = [];
  const disabledCommands = [...(plain || !certificate ? ['STARTTLS'] : []), ...(login ? [] : ['AUTH'])];
  const smtp = new SMTPServer({
    ...certificate,
    secure,
    disabledCommands,
    authOptional: login === undefined,
    // With `plain` a password may travel as it is, to see that ours does not.
    allowInsecureAuth: plain,
    logger: false,
    closeTimeout: 100,
    onAuth(auth, _session, done) {
      if (auth.username === login?.user && auth.password === login?.password) done(null, { user: auth.username });
      else done(errorOf({ code: 535, text: `5.7.8 wrong password ${auth.password}` }));
    },
    onRcptTo(address, _session, done) {
      named.push(address.address);
      done(errorOf(onRecipient?.(address.address)));
    },
    onData(stream, session, done) {
      const pieces: Buffer[] = [];
      stream.on('data', (piece: Buffer) => pieces.push(piece));
      stream.on('end', () => {
        const raw = Buffer.concat(pieces).toString('utf8');
        const take = async (): Promise<void> => {
          const refusal = await onMessage?.(raw);
          if (refusal) return done(errorOf(refusal));
          const { mailFrom, rcptTo } = session.envelope;
          received.push({
            mail: await simpleParser(raw),
            raw,
            envelope: { from: mailFrom ? mailFrom.address : '', to: rcptTo.map(({ address }) => address) },
            session: session.id,
            encrypted: session.secure,
            user: typeof session.user === 'string' ? session.user : undefined,
          });
          done();
        };
        take().catch(done);
      });
    },
  });
  // Clients that hang up are part of the tests.
  smtp.on('error', () => undefined);
  const listener = smtp.listen(options.port ?? 0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;
  return {
    received,
    named,
    port,
    server: (changed = {}) => ({
      host: certificate ? 'localhost' : '127.0.0.1',
      port,
      secure,
      starttls: certificate && !secure ? 'required' : 'optional',
      user: login?.user,
      password: login?.password,
      ...changed,
    }),
    close: () => new Promise((resolve) => smtp.close(() => resolve())),
  };
}
