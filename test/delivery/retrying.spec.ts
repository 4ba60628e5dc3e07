import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { DeliveryReport, Message, Receipt } from '../../src/delivery/delivery.js';
import { RetryingDelivery, type Patience } from '../../src/delivery/retrying.js';
import { SmsWebhookCarrier } from '../../src/delivery/sms-webhook.js';
import { SmtpCarrier } from '../../src/delivery/smtp.js';
import { CoordinatorError } from '../../src/domain/errors.js';
import { organizationPath, strangersPath } from '../../src/fairness/fair-queue.js';
import { openInbox } from './smtp-inbox.js';
import { until } from '../e2e/until.js';

const sms: Message = { channel: 'sms', to: '+13214567890', text: '123456 is your code', otpId: 'otp-1' };
const email: Message = {
  channel: 'email',
  to: 'zoe@example.com',
  subject: 'Your code',
  text: '4xk92mtq7',
  otpId: 'otp-2',
};

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

interface Request {
  readonly key: string | undefined;
  readonly text: string;
  readonly at: number;
}
type Answer = (response: ServerResponse) => void;

const status =
  (code: number, headers: Record<string, string> = {}): Answer =>
  (response) =>
    void response.writeHead(code, headers).end();
const never: Answer = () => undefined;

/** A gateway that gives these answers in turn, and the last one from then on. */
async function gateway(...answers: Answer[]) {
  const requests: Request[] = [];
  let atOnce = 0;
  const seen = { most: 0 };
  const server: Server = createServer((request, response) => {
    seen.most = Math.max(seen.most, (atOnce += 1));
    response.on('close', () => (atOnce -= 1));
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const { text } = JSON.parse(Buffer.concat(pieces).toString()) as { text: string };
      const key = request.headers['idempotency-key'];
      requests.push({ key: typeof key === 'string' ? key : undefined, text, at: performance.now() });
      (answers.length > 1 ? answers.shift()! : answers[0]!)(response);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { requests, seen, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/sms` };
}

/** Quick where the test waits for it, and slow where it must not happen. */
const quick: Partial<Patience> = { firstDelayMs: 5, maxDelayMs: 20, firstAnswerMs: 20_000, drainMs: 10_000 };

async function delivery(
  carriers: { url?: string; smtp?: SmtpCarrier },
  options: ConstructorParameters<typeof RetryingDelivery>[2] = {},
) {
  const reports: DeliveryReport[] = [];
  // A port that nobody listens on, for the channel that the test does not use.
  const webhook = new SmsWebhookCarrier({ kind: 'webhook', url: carriers.url ?? 'http://127.0.0.1:9/' });
  const made = new RetryingDelivery(
    { sms: webhook, email: carriers.smtp ?? webhook },
    (report) => void reports.push(report),
    { ...quick, ...options },
  );
  closing.push(() => made.close());
  const until = async (isThere: (all: readonly DeliveryReport[]) => boolean): Promise<void> => {
    const end = Date.now() + 20_000;
    while (!isThere(reports)) {
      if (Date.now() > end) throw new Error(`not reported in time: ${JSON.stringify(reports)}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  const ended = (count = 1) => until((all) => all.filter(({ outcome }) => outcome !== 'retrying').length >= count);
  return { made, reports, until, ended };
}

const outcomes = (reports: readonly DeliveryReport[]) => reports.map(({ outcome }) => outcome);
const where = (url: string) => new URL(url).host;

function refusal(run: () => unknown): CoordinatorError {
  try {
    run();
  } catch (error) {
    if (error instanceof CoordinatorError) return error;
    throw error;
  }
  throw new Error('it was not refused');
}

describe('a message', () => {
  it('that is sent is reported once, without its text or recipient', async () => {
    const { url, requests } = await gateway(status(200));
    const { made, reports } = await delivery({ url });
    const receipt = await made.send(sms);
    expect(receipt).toEqual({ id: requests[0]!.key, status: 'sent' });
    expect(reports).toEqual([{ id: receipt.id, channel: 'sms', otpId: 'otp-1', outcome: 'sent', attempts: 1 }]);
    expect(made.open).toBe(0);
  });

  it('is retried in the background, under the same key, until it is sent', async () => {
    const { url, requests } = await gateway(status(503), status(429), status(200));
    const { made, reports, ended } = await delivery({ url });
    const { id, status: first } = await made.send(sms);
    expect(first).toBe('queued');
    await ended();
    const about = { id, channel: 'sms', otpId: 'otp-1' };
    expect(reports).toEqual([
      { ...about, outcome: 'retrying', attempts: 1, reason: `${where(url)} answered 503` },
      { ...about, outcome: 'retrying', attempts: 2, reason: `${where(url)} answered 429` },
      { ...about, outcome: 'sent', attempts: 3 },
    ]);
    expect(requests.map(({ key, text }) => ({ key, text }))).toEqual(Array(3).fill({ key: id, text: sms.text }));
    expect(made.open).toBe(0);
  });

  it('that a mail server puts off arrives once, under one Message-ID', async () => {
    const answers = [{ code: 451, text: '4.7.1 greylisted, come back with 4xk92mtq7' }];
    const ids: (string | undefined)[] = [];
    const inbox = await openInbox({
      onMessage: (raw) => {
        ids.push(/^Message-ID: (.+)\r$/m.exec(raw)?.[1]);
        return answers.shift();
      },
    });
    closing.push(() => inbox.close());
    const { made, reports, ended } = await delivery({ smtp: new SmtpCarrier(inbox.server(), undefined) });
    expect((await made.send(email)).status).toBe('queued');
    await ended();
    expect(outcomes(reports)).toEqual(['retrying', 'sent']);
    expect(reports[0]!.reason).toBe(`127.0.0.1:${inbox.port} answered 451 (4.7.1) to DATA`);
    expect(inbox.received).toHaveLength(1);
    expect(ids).toHaveLength(2);
    expect(new Set(ids).size).toBe(1);
    expect(JSON.stringify(reports)).not.toMatch(/4xk92mtq7|zoe@/);
  });

  it('that is refused permanently is not retried', async () => {
    const { url, requests } = await gateway(status(400));
    const { made, reports } = await delivery({ url });
    const receipt = await made.send(sms);
    const reason = `${where(url)} answered 400`;
    expect(receipt).toEqual({ id: receipt.id, status: 'failed', reason });
    expect(reports).toMatchObject([{ outcome: 'failed', attempts: 1, reason }]);
    expect(requests).toHaveLength(1);
  });

  it('is given up after the maximum number of attempts', async () => {
    const { url, requests } = await gateway(status(500));
    const { made, reports, ended } = await delivery({ url }, { attempts: 3 });
    await made.send(sms);
    await ended();
    expect(outcomes(reports)).toEqual(['retrying', 'retrying', 'failed']);
    expect(reports[2]!.reason).toBe(`${where(url)} answered 500; given up after 3 attempts`);
    expect(requests).toHaveLength(3);
    expect(made.open).toBe(0);
  });

  it('whose attempt gets no answer is retried', async () => {
    const { url, requests } = await gateway(never, status(200));
    const { made, reports, ended } = await delivery({ url }, { attemptMs: 300 });
    expect((await made.send(sms)).status).toBe('queued');
    await ended();
    expect(reports[0]).toMatchObject({ outcome: 'retrying', reason: 'no answer within 300 ms' });
    expect(reports.at(-1)).toMatchObject({ outcome: 'sent' });
    expect(requests.length).toBeGreaterThanOrEqual(2);
  });

  it('does not keep its sender waiting for a slow server', async () => {
    const slow: ServerResponse[] = [];
    const { url } = await gateway((response) => void slow.push(response));
    const { made, reports, ended } = await delivery({ url }, { firstAnswerMs: 50 });
    expect((await made.send(sms)).status).toBe('queued');
    expect(reports).toEqual([]);
    await until('the server is asked', () => slow.length > 0);
    slow[0]!.writeHead(200).end();
    await ended();
    expect(reports).toMatchObject([{ outcome: 'sent', attempts: 1 }]);
  });

  it('is only accepted where nobody waits, and told later', async () => {
    const { url, requests } = await gateway(status(200));
    const { made, reports, ended } = await delivery({ url });
    const { id, status: state } = made.enqueue(sms);
    expect(state).toBe('queued');
    expect(requests).toEqual([]);
    await ended();
    expect(reports).toMatchObject([{ id, outcome: 'sent' }]);
  });

  it('waits as long as the server asks', async () => {
    const { url, requests } = await gateway(status(429, { 'Retry-After': '1' }), status(200));
    const { made, ended } = await delivery({ url }, { maxDelayMs: 5_000 });
    await made.send(sms);
    await ended();
    // Timers may be early by a millisecond or two.
    expect(requests[1]!.at - requests[0]!.at).toBeGreaterThan(950);
  });

  it('waits no longer than it may, whatever the server asks', async () => {
    const { url } = await gateway(status(429, { 'Retry-After': '3600' }), status(200));
    const { made, reports, ended } = await delivery({ url });
    await made.send(sms);
    await ended();
    expect(outcomes(reports)).toEqual(['retrying', 'sent']);
  });

  it('that has expired is not sent', async () => {
    const { url, requests } = await gateway(status(503));
    const now = 1_000_000;
    const { made, reports, ended } = await delivery(
      { url },
      { now: () => now, firstDelayMs: 60_000, maxDelayMs: 60_000 },
    );
    const late = await made.send({ ...sms, expiresAt: now });
    expect(late).toMatchObject({ status: 'failed', reason: 'it expired before it could be delivered' });
    expect(requests).toEqual([]);
    // Nor does it wait for an attempt that would come too late.
    const soon = await made.send({ ...sms, expiresAt: now + 20_000 });
    expect(soon).toMatchObject({
      status: 'failed',
      reason: `${where(url)} answered 503; it would expire before the next attempt`,
    });
    await ended(2);
    expect(reports).toMatchObject([
      { outcome: 'failed', attempts: 0 },
      { outcome: 'failed', attempts: 1 },
    ]);
  });
});

describe('many messages', () => {
  it('are sent a few at a time, and each of them once', async () => {
    const { url, requests, seen } = await gateway(
      (response) => void setTimeout(() => response.writeHead(200).end(), 5),
    );
    const { made, reports } = await delivery({ url }, { concurrency: 4 });
    const texts = Array.from({ length: 60 }, (_, index) => `message ${index}`);
    const receipts = await Promise.all(texts.map((text) => made.send({ ...sms, text })));
    expect(receipts.every(({ status: state }) => state === 'sent')).toBe(true);
    expect(requests.map(({ text }) => text).sort()).toEqual(texts.sort());
    expect(seen.most).toBeLessThanOrEqual(4);
    expect(reports).toHaveLength(60);
    expect(made.open).toBe(0);
  });

  it('all go through a gateway that refuses most of them at first', async () => {
    let count = 0;
    const { url, requests } = await gateway((response) => status((count += 1) % 3 === 0 ? 200 : 503)(response));
    const { made, reports, ended } = await delivery({ url }, { concurrency: 5, attempts: 100 });
    const texts = Array.from({ length: 40 }, (_, index) => `message ${index}`);
    const receipts = texts.map((text) => made.enqueue({ ...sms, text }));
    await ended(40);
    const sent = reports.filter(({ outcome }) => outcome === 'sent').map(({ id }) => id);
    expect(sent.sort()).toEqual(receipts.map(({ id }) => id).sort());
    expect(new Set(requests.map(({ text }) => text)).size).toBe(40);
  });

  it('of several owners take turns', async () => {
    const held: ServerResponse[] = [];
    const { url, requests } = await gateway((response) => void held.push(response));
    const { made, ended } = await delivery({ url }, { concurrency: 1 });
    for (let number = 0; number < 20; number++) {
      made.enqueue({ ...sms, text: 'much' }, organizationPath('child', 'parent'));
    }
    const others = ['sibling', 'child of another', 'the parent itself'];
    made.enqueue({ ...sms, text: others[0]! }, organizationPath('sibling', 'parent'));
    made.enqueue({ ...sms, text: others[1]! }, organizationPath('niece', 'other'));
    made.enqueue({ ...sms, text: others[2]! }, organizationPath('parent'));
    for (let count = 1; count <= 23; count++) {
      await until(`${count} are on their way`, () => held.length >= count);
      held[count - 1]!.writeHead(200).end();
    }
    await ended(23);
    const places = others.map((text) => requests.findIndex((request) => request.text === text));
    for (const place of places) expect(place).toBeLessThan(8);
  });

  it('of strangers leave half of the room to others, and of one stranger more than that', async () => {
    const { url } = await gateway(() => undefined);
    const { made } = await delivery({ url }, { maxOpen: 16, drainMs: 10 });
    const child = (number: number) => organizationPath(`child ${number}`, 'parent');
    const caller = (network: string) => strangersPath('parent', network);
    made.enqueue(sms, child(1));
    made.enqueue(sms, child(1));
    const ofOne = /^2 messages of one sub-organization, or one caller of an auth proxy, are waiting for delivery/;
    expect(refusal(() => made.enqueue(sms, child(1))).message).toMatch(ofOne);
    for (let count = 0; count < 2; count++) made.enqueue(sms, caller('192.0.2.1'));
    expect(refusal(() => made.enqueue(sms, caller('192.0.2.1'))).message).toMatch(ofOne);
    for (const number of [2, 2, 3, 3]) made.enqueue(sms, child(number));
    const ofFamily = /^8 messages of the sub-organizations and the auth proxy of one parent are waiting/;
    expect(refusal(() => made.check(sms, child(5))).message).toMatch(ofFamily);
    expect(refusal(() => made.check(sms, caller('192.0.2.2'))).message).toMatch(ofFamily);
    for (let count = 0; count < 8; count++) made.enqueue(sms, organizationPath('parent'));
    expect(refusal(() => made.enqueue(sms))).toMatchObject({ code: 'RESOURCE_EXHAUSTED' });
  });

  it('of strangers take half of the places at most: what they send to slow targets holds up nobody else', async () => {
    const { url, requests } = await gateway((response) => {
      if (requests.at(-1)!.text !== 'slow') response.writeHead(200).end();
    });
    const { made, reports } = await delivery({ url }, { concurrency: 4, drainMs: 10 });
    for (let number = 0; number < 4; number++) {
      made.enqueue({ ...sms, text: 'slow' }, organizationPath(`child ${number}`, 'parent'));
      made.enqueue({ ...sms, text: 'slow' }, strangersPath('parent', `192.0.2.${number}`));
    }
    for (let number = 0; number < 4; number++) made.enqueue({ ...sms, text: 'quick' }, organizationPath('parent'));
    const slow = () => requests.filter(({ text }) => text === 'slow');
    const quickEnded = () => reports.filter(({ outcome }) => outcome !== 'retrying').length;
    await until('others are served, or strangers have more than half', () => quickEnded() === 4 || slow().length > 2);
    expect(slow()).toHaveLength(2);
    expect(requests.filter(({ text }) => text === 'quick')).toHaveLength(4);
  });

  it('of strangers to slow mailboxes leave connections to the mail server to others', async () => {
    const letGo: (() => void)[] = [];
    const inbox = await openInbox({
      onMessage: (raw) =>
        raw.includes('slow') ? new Promise((resolve) => letGo.push(() => resolve(undefined))) : undefined,
    });
    closing.push(() => inbox.close());
    const smtp = new SmtpCarrier(inbox.server(), undefined);
    const { made } = await delivery({ smtp }, { drainMs: 10 });
    for (let number = 0; number < 20; number++) {
      made.enqueue({ ...email, text: 'slow' }, organizationPath(`child ${number}`, 'parent'));
    }
    await until('strangers have their half', () => letGo.length === 5);
    expect((await made.send(email, organizationPath('parent'))).status).toBe('sent');
    expect(letGo).toHaveLength(5);
    for (const go of letGo) go();
  });

  it('beyond the bound are refused, and taken again once there is room', async () => {
    const held: ServerResponse[] = [];
    const { url } = await gateway((response) => void held.push(response));
    const { made, ended } = await delivery({ url }, { maxOpen: 2 });
    made.enqueue(sms);
    made.enqueue(sms);
    expect(refusal(() => made.enqueue(sms))).toMatchObject({
      code: 'RESOURCE_EXHAUSTED',
      message: '2 messages are waiting for delivery: try again later, and see the log for the reason',
    });
    await expect(made.send(sms)).rejects.toMatchObject({ code: 'RESOURCE_EXHAUSTED' });
    expect(refusal(() => made.check(sms))).toMatchObject({ code: 'RESOURCE_EXHAUSTED' });
    await until('two are on their way', () => held.length >= 2);
    for (const response of held) response.writeHead(200).end();
    await ended(2);
    made.check(sms);
    expect(made.enqueue(sms)).toMatchObject({ status: 'queued' });
    await until('a third is on its way', () => held.length >= 3);
    held[2]!.writeHead(200).end();
  });

  it('in one channel do not hold up the other', async () => {
    const { url } = await gateway(never);
    const inbox = await openInbox();
    closing.push(() => inbox.close());
    const smtp = new SmtpCarrier(inbox.server(), undefined);
    const { made } = await delivery({ url, smtp }, { concurrency: 2, drainMs: 0 });
    for (let count = 0; count < 10; count += 1) made.enqueue(sms);
    expect((await made.send(email)).status).toBe('sent');
  });
});

describe('at the end of the process', () => {
  it('what waits for its next attempt gets it at once', async () => {
    const { url, requests } = await gateway(status(503), status(503), status(200));
    const { made, reports } = await delivery({ url }, { firstDelayMs: 600_000, maxDelayMs: 600_000 });
    await Promise.all([made.send(sms), made.send(sms)]);
    expect(outcomes(reports)).toEqual(['retrying', 'retrying']);
    await made.close();
    expect(outcomes(reports)).toEqual(['retrying', 'retrying', 'sent', 'sent']);
    expect(requests).toHaveLength(4);
  });

  it('what fails again is reported as abandoned, not lost', async () => {
    const { url, requests } = await gateway(status(503));
    const { made, reports } = await delivery({ url }, { firstDelayMs: 600_000, maxDelayMs: 600_000 });
    await made.send(sms);
    await made.close();
    expect(reports.at(-1)).toEqual({
      id: reports[0]!.id,
      channel: 'sms',
      otpId: 'otp-1',
      outcome: 'abandoned',
      attempts: 2,
      reason: `${where(url)} answered 503`,
    });
    expect(requests).toHaveLength(2);
  });

  it('what does not end in time is left: running, and in line behind it', async () => {
    const { url, requests } = await gateway(never);
    const { made, reports } = await delivery({ url }, { concurrency: 1, drainMs: 100, attemptMs: 600_000 });
    const running = made.send(sms);
    const inLine = made.send({ ...sms, otpId: 'otp-2' });
    await until('one is on its way', () => requests.length > 0);
    await made.close();
    const why = { otp1: 'the process stopped during its delivery', otp2: 'the process stopped before its delivery' };
    expect(reports).toHaveLength(2);
    expect(reports).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ otpId: 'otp-1', outcome: 'abandoned', attempts: 1, reason: why.otp1 }),
        expect.objectContaining({ otpId: 'otp-2', outcome: 'abandoned', attempts: 0, reason: why.otp2 }),
      ]),
    );
    // Whoever waits for an answer gets one.
    expect(await Promise.all([running, inLine])).toMatchObject([
      { status: 'failed', reason: why.otp1 },
      { status: 'failed', reason: why.otp2 },
    ] satisfies Partial<Receipt>[]);
    expect(requests).toHaveLength(1);
    expect(made.open).toBe(0);
  });

  it('nothing new is accepted', async () => {
    const { url, requests } = await gateway(status(200));
    const { made } = await delivery({ url });
    await Promise.all([made.close(), made.close()]);
    await expect(made.send(sms)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    expect(refusal(() => made.enqueue(sms)).code).toBe('UNAVAILABLE');
    expect(requests).toEqual([]);
  });
});

describe('what is refused before anything is sent', () => {
  const line = 'must be one line of at most 255 characters, without control characters';
  it.each<[string, Message, Partial<Message>, string]>([
    ['a second header in the subject', email, { subject: 'Code\r\nBcc: x@example.com' }, line],
    ['a line feed in the subject', email, { subject: 'Code\nX: y' }, line],
    ['a NUL in the subject', email, { subject: 'Code\0' }, line],
    ['a line separator in the subject', email, { subject: 'Code\u2028X: y' }, line],
    ['half a character in the subject', email, { subject: 'Code \ud83d' }, line],
    ['a long subject', email, { subject: 'x'.repeat(256) }, line],
    ['a second header in the name', email, { fromName: 'Acme\r\nBcc: x@example.com' }, line],
    ['a name that turns around what follows', email, { fromName: 'Acme\u202emoc.elpmaxe' }, line],
    ['a second recipient', email, { to: 'a@example.com, b@example.com' }, 'must be an e-mail address'],
    ['a recipient with a header', email, { to: 'a@example.com\r\nBcc: b@example.com' }, 'must be an e-mail address'],
    [
      'a recipient with a command',
      email,
      { to: 'a@example.com>\r\nRCPT TO:<b@example.com' },
      'must be an e-mail address',
    ],
    ['a recipient with a parameter', email, { to: 'a@example.com> NOTIFY=NEVER' }, 'must be an e-mail address'],
    ['a group', email, { to: 'x:a@example.com;' }, 'must be an e-mail address'],
    ['a name before the address', email, { to: 'A <a@example.com>' }, 'must be an e-mail address'],
    ['no address', email, { to: '' }, 'must be an e-mail address'],
    ['an endless address', email, { to: `a@${'b.'.repeat(150)}com` }, 'must be an e-mail address'],
    ['a sender with a header', email, { from: 'a@example.com\nBcc: b@example.com' }, 'must be an e-mail address'],
    ['a reply-to with a header', email, { replyTo: 'a@example.com\r\nX: y' }, 'must be an e-mail address'],
    ['a phone number with a header', sms, { to: '+13214567890\r\nX: y' }, 'must be a phone number in E.164 format'],
    ['a national phone number', sms, { to: '03214567890' }, 'must be a phone number in E.164 format'],
    ['an address as phone number', sms, { to: 'zoe@example.com' }, 'must be a phone number in E.164 format'],
    ['no text', sms, { text: '' }, 'must not be empty'],
    ['a text without end', email, { text: 'x'.repeat(65_537) }, 'must have at most 65536 characters, has 65537'],
    ['HTML without end', email, { html: 'x'.repeat(262_145) }, 'must have at most 262144 characters, has 262145'],
    ['a text message without end', sms, { text: 'x'.repeat(1_601) }, 'must have at most 1600 characters, has 1601'],
  ])('%s', async (_what, message, changed, rule) => {
    const inbox = await openInbox();
    closing.push(() => inbox.close());
    const { url, requests } = await gateway(status(200));
    const { made, reports } = await delivery({ url, smtp: new SmtpCarrier(inbox.server(), undefined) });
    const [field] = Object.keys(changed);
    await expect(made.send({ ...message, ...changed })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: `invalid request: ${field}: ${rule}`,
    });
    await made.close();
    expect([requests, inbox.named, reports]).toEqual([[], [], []]);
  });

  it('names every field at once, and shows no text', () => {
    const { message } = refusal(() =>
      new RetryingDelivery({} as never, () => undefined).enqueue({ ...sms, to: '', text: '' }),
    );
    expect(message).toBe('invalid request: to: must be a phone number in E.164 format; text: must not be empty');
  });
});

it('a listener that throws changes nothing for the message', async () => {
  const { url, requests } = await gateway(status(503), status(200));
  const webhook = new SmsWebhookCarrier({ kind: 'webhook', url });
  const made = new RetryingDelivery(
    { sms: webhook, email: webhook },
    () => {
      throw new TypeError('123456');
    },
    quick,
  );
  closing.push(() => made.close());
  expect((await made.send(sms)).status).toBe('queued');
  await until('nothing is on its way', () => made.open === 0);
  expect(requests).toHaveLength(2);
});
