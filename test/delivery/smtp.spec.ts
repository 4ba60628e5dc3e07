import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { MailFrom, SmtpServer } from '../../src/config/messages.js';
import { DeliveryFailed, type AcceptedMessage } from '../../src/delivery/delivery.js';
import { SmtpCarrier } from '../../src/delivery/smtp.js';
import { otpEmail } from '../../src/delivery/templates.js';
import { certificateFor } from '../oidc/certificate.js';
import { openInbox } from './smtp-inbox.js';

const localhost = certificateFor('localhost');
const message: AcceptedMessage = {
  id: '5f4b5a9e-3d0c-4c5e-9d1b-7a1f0c7f2a11',
  channel: 'email',
  to: 'zoe@example.com',
  subject: 'Your code for Äcme ✓',
  text: 'Your code:\n\n    4xk92mtq7\n',
  html: '<p>Your code: <b>4xk92mtq7</b></p>',
  otpId: 'otp-1',
};
const mailFrom: MailFrom = { name: 'Example', address: 'no-reply@example.com', domains: ['example.org'] };

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  // Clients before their servers.
  for (const close of closing.splice(0).reverse()) await close();
});

async function inbox(options: Parameters<typeof openInbox>[0] = {}) {
  const opened = await openInbox(options);
  closing.push(() => opened.close());
  return opened;
}

function carrier(
  server: SmtpServer,
  options: ConstructorParameters<typeof SmtpCarrier>[2] & { mailFrom?: MailFrom } = {},
) {
  const { mailFrom: sender, ...others } = options;
  const made = new SmtpCarrier(server, sender, others);
  closing.push(() => made.close());
  return (changed: Partial<AcceptedMessage> = {}, signal = new AbortController().signal) =>
    made.carry({ ...message, ...changed }, signal);
}

/** Why an attempt failed. */
async function failure(attempt: Promise<void>): Promise<DeliveryFailed> {
  const error: unknown = await attempt.then(
    () => new Error('the attempt did not fail'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof DeliveryFailed)) throw error;
  return error;
}

/** A server of raw sockets, for what a good server would never do. */
async function rawServer(onConnection: (socket: Socket) => void): Promise<SmtpServer> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    onConnection(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return { host: '127.0.0.1', port, secure: false, starttls: 'optional', user: undefined, password: undefined };
}

test('mail goes to the ASCII form of a domain, from whatever spelling', async () => {
  const { received, server } = await inbox();
  const carry = carrier(server());
  for (const to of ['Zoe@M\u00fcnchen.de', 'Zoe@mu\u0308nchen.de']) await carry({ to });
  for (const { raw } of received) expect(raw).toContain('To: Zoe@xn--mnchen-3ya.de');
  expect(received).toHaveLength(2);
});

describe('a mail', () => {
  it('arrives as text and HTML, with its subject and id, and says that no answer is expected', async () => {
    const { server, received } = await inbox();
    await carrier(server(), { mailFrom })();
    expect(received).toHaveLength(1);
    const { mail, envelope, raw } = received[0]!;
    expect(envelope).toEqual({ from: 'no-reply@example.com', to: ['zoe@example.com'] });
    expect(mail.subject).toBe('Your code for Äcme ✓');
    expect(mail.text).toBe(message.text);
    expect(mail.html).toBe(message.html);
    expect(mail.from?.value).toEqual([{ name: 'Example', address: 'no-reply@example.com' }]);
    expect(mail.to).toMatchObject({ value: [{ name: '', address: 'zoe@example.com' }] });
    expect(mail.replyTo).toBeUndefined();
    expect(mail.messageId).toBe(`<${message.id}@example.com>`);
    expect(mail.headers.get('auto-submitted')).toBe('auto-generated');
    expect(mail.headers.has('x-mailer')).toBe(false);
    expect(mail.headers.get('content-type')).toMatchObject({ value: 'multipart/alternative' });
    // RFC 5322, 2.2: headers are ASCII.
    expect(raw.slice(0, raw.indexOf('\r\n\r\n'))).toMatch(/^[\x20-\x7e\r\n\t]*$/);
  });

  it('survives whole: our own template, with all that it may hold', async () => {
    const { server, received } = await inbox();
    const mail = otpEmail({
      code: '4xk92mtq7',
      appName: 'Äcme & Söhne <b>',
      logoUrl: 'https://acme.example/logo.png',
      magicLinkTemplate: 'https://acme.example/login?code=%s&next=%2Fhome',
      variables: { userName: '李雷 🙂' },
      expiresInMinutes: 5,
    });
    await carrier(server())(mail);
    expect(received[0]!.mail.text).toBe(mail.text);
    expect(received[0]!.mail.html).toBe(mail.html);
    expect(received[0]!.mail.subject).toBe(mail.subject);
    // RFC 5322, 2.1.1: lines of at most 998 characters.
    expect(Math.max(...received[0]!.raw.split('\r\n').map((line) => line.length))).toBeLessThanOrEqual(998);
  });

  it('may be text alone', async () => {
    const { server, received } = await inbox();
    const { html: _html, ...plain } = message;
    const made = new SmtpCarrier(server(), undefined);
    closing.push(() => made.close());
    await made.carry(plain, new AbortController().signal);
    expect(received[0]!.mail.text).toBe(message.text);
    expect(received[0]!.mail.html).toBe(false);
  });

  it('goes over the connection that is already open', async () => {
    const { server, received } = await inbox();
    const send = carrier(server());
    for (const id of ['one', 'two', 'three']) await send({ id });
    expect(received).toHaveLength(3);
    expect(new Set(received.map(({ session }) => session)).size).toBe(1);
  });

  it('uses a few connections for many messages', async () => {
    const { server, received } = await inbox();
    const send = carrier(server());
    const ids = Array.from({ length: 40 }, (_, index) => `message-${index}`);
    await Promise.all(ids.map((id) => send({ id })));
    expect(received.map(({ mail }) => mail.messageId!.slice(1).split('@')[0]).sort()).toEqual(ids.sort());
    expect(new Set(received.map(({ session }) => session)).size).toBeLessThanOrEqual(10);
  });
});

describe('the sender', () => {
  async function sent(changed: Partial<AcceptedMessage>, options: { mailFrom?: MailFrom; user?: string } = {}) {
    const login = options.user === undefined ? {} : { login: { user: options.user, password: 'secret' } };
    const { server, received } = await inbox({ plain: true, ...login });
    await carrier(server(), options)(changed);
    const { mail, envelope } = received[0]!;
    return {
      envelope: envelope.from,
      from: mail.from?.value.map(({ name, address }) => `${name} <${address}>`).join(),
      replyTo: mail.replyTo?.value.map(({ address }) => address).join(),
    };
  }

  it('is named by the caller, where the domain is ours', async () => {
    const from = { from: 'login@Example.org', fromName: 'Zoë, "the" Größe <x@y.z>', replyTo: 'help@elsewhere.example' };
    expect(await sent(from, { mailFrom })).toEqual({
      envelope: 'login@example.org',
      from: 'Zoë, "the" Größe <x@y.z> <login@example.org>',
      replyTo: 'help@elsewhere.example',
    });
    expect(await sent({ from: 'login@example.com' }, { mailFrom })).toEqual({
      envelope: 'login@example.com',
      from: 'Notifications <login@example.com>',
      replyTo: undefined,
    });
  });

  it.each(['ceo@bank.example', 'ceo@notexample.com', 'ceo@example.com.evil.example', 'ceo@sub.example.com'])(
    'is never %s, and then neither the name nor the reply-to of it is used',
    async (from) => {
      expect(await sent({ from, fromName: 'Your bank', replyTo: 'evil@bank.example' }, { mailFrom })).toEqual({
        envelope: 'no-reply@example.com',
        from: 'Example <no-reply@example.com>',
        replyTo: undefined,
      });
    },
  );

  it('may have another name and reply-to on our own address', async () => {
    expect(await sent({ fromName: 'Acme', replyTo: 'help@acme.example' }, { mailFrom })).toEqual({
      envelope: 'no-reply@example.com',
      from: 'Acme <no-reply@example.com>',
      replyTo: 'help@acme.example',
    });
  });

  it('without MAIL_FROM is the user of the server, and any that a caller names', async () => {
    expect(await sent({}, { user: 'mailer@example.net' })).toMatchObject({
      envelope: 'mailer@example.net',
      from: 'Notifications <mailer@example.net>',
    });
    expect(await sent({})).toMatchObject({ envelope: 'no-reply@localhost' });
    expect(await sent({ from: 'login@acme.example', fromName: 'Acme' })).toMatchObject({
      envelope: 'login@acme.example',
      from: 'Acme <login@acme.example>',
    });
  });
});

describe('encryption', () => {
  const login = { user: 'mailer', password: 'p@ss wörd' };

  it('comes before the password: STARTTLS', async () => {
    const { server, received } = await inbox({ certificate: localhost, login });
    await carrier(server(), { ca: localhost.cert })();
    expect(received[0]).toMatchObject({ encrypted: true, user: 'mailer' });
  });

  it('is there from the first byte: smtps', async () => {
    const { server, received } = await inbox({ certificate: localhost, secure: true, login });
    await carrier(server(), { ca: localhost.cert })();
    expect(received[0]).toMatchObject({ encrypted: true, user: 'mailer' });
  });

  it.each([true, false])('ends at a certificate that nobody vouches for (smtps: %s)', async (secure) => {
    const { server, received, named } = await inbox({ certificate: localhost, secure, login });
    const { message: text, retryable } = await failure(carrier(server())());
    expect(text).toBe(`localhost:${server().port} could not be used (DEPTH_ZERO_SELF_SIGNED_CERT)`);
    expect(retryable).toBe(true);
    expect([received, named]).toEqual([[], []]);
  });

  it.each([true, false])('ends at a certificate of another host (smtps: %s)', async (secure) => {
    const other = certificateFor('mail.example.com');
    const { server, named } = await inbox({ certificate: other, secure, login });
    const { message: text } = await failure(carrier(server(), { ca: other.cert })());
    expect(text).toContain('(ERR_TLS_CERT_ALTNAME_INVALID)');
    expect(named).toEqual([]);
    // By its address the host has no name at all.
    await failure(carrier(server({ host: '127.0.0.1' }), { ca: other.cert })());
    expect(named).toEqual([]);
  });

  it('that is required and not offered ends it: neither the password nor the code is said', async () => {
    const heard: Buffer[] = [];
    const server = await rawServer((socket) => {
      socket.write('220 mail.example.com\r\n');
      socket.on('data', (piece) => {
        heard.push(piece);
        socket.write(
          /^EHLO/.test(piece.toString()) ? '250-mail.example.com\r\n250 AUTH PLAIN LOGIN\r\n' : '250 ok\r\n',
        );
      });
    });
    const strict = { ...server, starttls: 'required' as const, ...login };
    const { retryable } = await failure(carrier(strict)());
    expect(retryable).toBe(true);
    const text = Buffer.concat(heard).toString();
    expect(text).toMatch(/^EHLO/);
    expect(text).not.toMatch(/AUTH|MAIL|4xk92mtq7/);
  });

  it('that is optional is used where it is offered, and a bad certificate still ends it', async () => {
    const { server, received } = await inbox({ certificate: localhost });
    await carrier(server({ starttls: 'optional' }), { ca: localhost.cert })();
    expect(received[0]).toMatchObject({ encrypted: true });
    await failure(carrier(server({ starttls: 'optional' }))());
    expect(received).toHaveLength(1);
  });

  it('a wrong password is neither retried nor reported', async () => {
    const { server } = await inbox({ plain: true, login });
    const { message: text, retryable } = await failure(carrier(server({ password: 'hunter2' }))());
    expect(text).toBe(`127.0.0.1:${server().port} answered 535 (5.7.8) to AUTH PLAIN`);
    expect(retryable).toBe(false);
  });
});

describe('a server that', () => {
  const quick = { connectMs: 2_000, greetingMs: 200, silenceMs: 200 };

  it('is down: the message is retried, and sent once it is up', async () => {
    const first = await openInbox();
    await first.close();
    const send = carrier(first.server());
    const { message: text, retryable } = await failure(send());
    expect(text).toBe(`127.0.0.1:${first.port} could not be used (ECONNREFUSED)`);
    expect(retryable).toBe(true);
    const { received } = await inbox({ port: first.port });
    await send();
    expect(received).toHaveLength(1);
  });

  it('cannot be found: the message is retried', async () => {
    const server = { ...(await rawServer(() => undefined)), host: 'nowhere.invalid' };
    const { message: text, retryable } = await failure(carrier(server)());
    expect(text).toMatch(
      new RegExp(`^nowhere\\.invalid:${server.port} could not be used \\((?:ENOTFOUND|EAI_AGAIN)\\)$`),
    );
    expect(retryable).toBe(true);
  });

  it('answers 4xx: again later; 5xx: never. Its words are not repeated', async () => {
    const answers = [
      { code: 451, text: '4.7.1 Greylisted, 4xk92mtq7' },
      { code: 550, text: '5.1.1 <zoe@example.com> unknown, 4xk92mtq7' },
    ];
    const { server, received } = await inbox({ onRecipient: () => answers.shift() });
    const send = carrier(server());
    const where = `127.0.0.1:${server().port}`;
    expect(await failure(send())).toMatchObject({
      message: `${where} answered 451 (4.7.1) to RCPT TO`,
      retryable: true,
    });
    expect(await failure(send())).toMatchObject({
      message: `${where} answered 550 (5.1.1) to RCPT TO`,
      retryable: false,
    });
    await send();
    expect(received).toHaveLength(1);
  });

  it('refuses the message after it was read', async () => {
    const { server } = await inbox({ onMessage: (raw) => ({ code: 554, text: `5.6.0 spam: ${raw.slice(-40)}` }) });
    const { message: text, retryable } = await failure(carrier(server())());
    expect(text).toBe(`127.0.0.1:${server().port} answered 554 (5.6.0) to DATA`);
    expect(retryable).toBe(false);
  });

  it('never greets', async () => {
    const { message: text, retryable } = await failure(carrier(await rawServer(() => undefined), quick)());
    expect(text).toMatch(/^127\.0\.0\.1:\d+ could not be used \(ETIMEDOUT\)$/);
    expect(retryable).toBe(true);
  });

  it('falls silent in the middle', async () => {
    const server = await rawServer((socket) => {
      socket.write('220 mail.example.com\r\n');
      socket.on('data', (piece) => /^EHLO/.test(piece.toString()) && socket.write('250 mail.example.com\r\n'));
    });
    const { message: text, retryable } = await failure(carrier(server, { ...quick, greetingMs: 2_000 })());
    expect(text).toMatch(/^127\.0\.0\.1:\d+ could not be used \(E[A-Z]+\)$/);
    expect(retryable).toBe(true);
  });

  it('hangs up', async () => {
    const server = await rawServer((socket) => socket.end());
    const { message: text, retryable } = await failure(carrier(server, quick)());
    expect(text).toMatch(/^127\.0\.0\.1:\d+ could not be used \(ECONNECTION\)$/);
    expect(retryable).toBe(true);
  });

  it('speaks something else', async () => {
    const server = await rawServer((socket) => socket.end('HTTP/1.1 400 Bad Request 4xk92mtq7\r\n\r\n'));
    const { message: text } = await failure(carrier(server, quick)());
    expect(text).not.toContain('4xk92mtq7');
  });

  it('takes for ever is left when the attempt is over, and others go on', async () => {
    let stuck: (() => void) | undefined;
    const reached = new Promise<void>((resolve) => (stuck = resolve));
    const { server, received } = await inbox({
      onMessage: (raw) => (raw.includes('slow') ? (stuck!(), new Promise(() => undefined)) : undefined),
    });
    const send = carrier(server());
    const over = new AbortController();
    const slow = failure(send({ subject: 'slow' }, over.signal));
    await reached;
    await send({ subject: 'quick' });
    over.abort();
    expect((await slow).retryable).toBe(true);
    expect(received.map(({ mail }) => mail.subject)).toEqual(['quick']);
  });
});
