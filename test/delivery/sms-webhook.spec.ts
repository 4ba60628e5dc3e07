import { once } from 'node:events';
import { createServer as createHttp, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import { createServer as createHttps } from 'node:https';
import type { AddressInfo } from 'node:net';
import { DeliveryFailed, type AcceptedMessage, type Carrier } from '../../src/delivery/delivery.js';
import { SmsWebhookCarrier, TwilioCarrier } from '../../src/delivery/sms-webhook.js';
import { certificateFor } from '../oidc/certificate.js';

interface Request {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

const message: AcceptedMessage = {
  id: '5f4b5a9e-3d0c-4c5e-9d1b-7a1f0c7f2a11',
  channel: 'sms',
  to: '+13214567890',
  text: '123456 is your code for Äcme & Co + 1',
  otpId: 'otp-1',
};
const localhost = certificateFor('localhost');
const accountSid = `AC${'0123456789abcdef'.repeat(2)}`;

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

/** A real server that answers each request as told, and keeps it. */
async function gateway(answer: (response: ServerResponse) => void, certificate?: typeof localhost) {
  const requests: Request[] = [];
  const listener: Parameters<typeof createHttp>[1] = (request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const { method, url, headers } = request;
      requests.push({ method, url, headers, body: Buffer.concat(pieces).toString() });
      answer(response);
    });
  };
  const server = certificate ? createHttps(certificate, listener) : createHttp(listener);
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { requests, port: (server.address() as AddressInfo).port };
}

const status =
  (code: number, body = '', headers: Record<string, string> = {}) =>
  (response: ServerResponse): void =>
    void response.writeHead(code, headers).end(body);

const carry = (carrier: Carrier, signal = new AbortController().signal): Promise<void> =>
  carrier.carry(message, signal);

async function failure(attempt: Promise<void>): Promise<DeliveryFailed> {
  const error: unknown = await attempt.then(
    () => new Error('the attempt did not fail'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof DeliveryFailed)) throw error;
  return error;
}

const twilio = (port: number, sender = '+15005550006', ca: string | undefined = localhost.cert): Carrier =>
  new TwilioCarrier(
    { kind: 'twilio', host: `localhost:${port}`, accountSid, authToken: 'to:ken/', sender },
    ca === undefined ? {} : { ca },
  );

describe('a webhook', () => {
  it('gets the message as JSON, with a key that is the same in each attempt', async () => {
    const { requests, port } = await gateway(status(202, 'queued'));
    const carrier = new SmsWebhookCarrier({ kind: 'webhook', url: `http://127.0.0.1:${port}/send?key=s3cret` });
    await carry(carrier);
    await carry(carrier);
    expect(requests).toHaveLength(2);
    for (const { method, url, headers, body } of requests) {
      expect([method, url]).toEqual(['POST', '/send?key=s3cret']);
      expect(headers).toMatchObject({ 'content-type': 'application/json', 'idempotency-key': message.id });
      expect(headers.authorization).toBeUndefined();
      expect(JSON.parse(body)).toEqual({ id: message.id, to: message.to, text: message.text, otpId: 'otp-1' });
    }
  });

  it('gets the credentials of its URL as basic authentication', async () => {
    const { requests, port } = await gateway(status(200));
    await carry(new SmsWebhookCarrier({ kind: 'webhook', url: `http://us%3Aer:p%40ss@127.0.0.1:${port}/` }));
    expect(requests[0]!.headers.authorization).toBe(`Basic ${Buffer.from('us:er:p@ss').toString('base64')}`);
  });

  it.each([
    [429, true],
    [500, true],
    [502, true],
    [503, true],
    [400, false],
    [401, false],
    [403, false],
    [404, false],
    [422, false],
    [301, false],
    [307, false],
  ])('that answers %d is tried again: %s. Its words, its path and the code are not told', async (code, retryable) => {
    const { requests, port } = await gateway(status(code, message.text, { Location: 'http://127.0.0.1:1/elsewhere' }));
    const reason = await failure(
      carry(new SmsWebhookCarrier({ kind: 'webhook', url: `http://127.0.0.1:${port}/s3cret?key=s3cret` })),
    );
    expect(reason).toMatchObject({ message: `127.0.0.1:${port} answered ${code}`, retryable });
    expect(requests).toHaveLength(1);
  });

  it('says when it wants the next attempt', async () => {
    const waits = ['7', '99999999', 'Wed, 21 Oct 2015 07:28:00 GMT', '86400'];
    const { port } = await gateway((response) => status(429, '', { 'Retry-After': waits.shift()! })(response));
    const carrier = new SmsWebhookCarrier({ kind: 'webhook', url: `http://127.0.0.1:${port}/` });
    const asked: (number | undefined)[] = [];
    while (waits.length > 0) asked.push((await failure(carry(carrier))).retryAfterMs);
    expect(asked).toEqual([7_000, undefined, undefined, 3_600_000]);
  });

  it('that is down, hangs up or sends for ever', async () => {
    const { port } = await gateway((response) => void response.socket?.destroy());
    const reason = await failure(carry(new SmsWebhookCarrier({ kind: 'webhook', url: `http://127.0.0.1:${port}/` })));
    expect(reason).toMatchObject({ message: `127.0.0.1:${port} could not be used (UND_ERR_SOCKET)`, retryable: true });

    const endless = await gateway((response) => {
      response.writeHead(503);
      const more = (): void => void (response.writable && response.write('x'.repeat(16_384), more));
      more();
    });
    const url = `http://127.0.0.1:${endless.port}/`;
    expect(await failure(carry(new SmsWebhookCarrier({ kind: 'webhook', url })))).toMatchObject({
      message: `127.0.0.1:${endless.port} answered 503`,
    });

    const [server] = servers.splice(0, 1);
    await new Promise((resolve) => server!.close(resolve));
    const down = await failure(carry(new SmsWebhookCarrier({ kind: 'webhook', url: `http://127.0.0.1:${port}/` })));
    expect(down).toMatchObject({ message: `127.0.0.1:${port} could not be used (ECONNREFUSED)`, retryable: true });
  });

  it('that does not answer is left when the attempt is over', async () => {
    const over = new AbortController();
    const { port } = await gateway(() => over.abort());
    const carrier = new SmsWebhookCarrier({ kind: 'webhook', url: `http://127.0.0.1:${port}/` });
    expect(await failure(carry(carrier, over.signal))).toMatchObject({ retryable: true });
  });

  it('must have a certificate that somebody vouches for', async () => {
    const { requests, port } = await gateway(status(200), localhost);
    const url = `https://localhost:${port}/`;
    expect(await failure(carry(new SmsWebhookCarrier({ kind: 'webhook', url })))).toMatchObject({
      message: `localhost:${port} could not be used (DEPTH_ZERO_SELF_SIGNED_CERT)`,
    });
    expect(requests).toEqual([]);
    await carry(new SmsWebhookCarrier({ kind: 'webhook', url }, { ca: localhost.cert }));
    expect(requests).toHaveLength(1);
  });
});

describe('what speaks like Twilio', () => {
  it('has sent the message if it says so, however much it adds', async () => {
    const { requests, port } = await gateway(status(201, 'x'.repeat(100 * 1024)), localhost);
    await carry(twilio(port));
    expect(requests).toHaveLength(1);
  });

  it('may be tried again if it fails with more than is read', async () => {
    const { port } = await gateway(status(503, 'x'.repeat(100 * 1024)), localhost);
    expect(await failure(carry(twilio(port)))).toMatchObject({ retryable: true });
  });

  const created = status(201, JSON.stringify({ sid: `SM${'0'.repeat(32)}`, status: 'queued' }));

  it('gets a form, at the path of the account, with basic authentication', async () => {
    const { requests, port } = await gateway(created, localhost);
    await carry(twilio(port));
    const [{ method, url, headers, body } = {} as Request] = requests;
    expect([method, url]).toEqual(['POST', `/2010-04-01/Accounts/${accountSid}/Messages.json`]);
    expect(headers).toMatchObject({
      authorization: `Basic ${Buffer.from(`${accountSid}:to:ken/`).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
    });
    expect(Object.fromEntries(new URLSearchParams(body))).toEqual({
      To: message.to,
      From: '+15005550006',
      Body: message.text,
    });
    expect(body).toContain('To=%2B13214567890');
  });

  it('may choose the number by itself', async () => {
    const { requests, port } = await gateway(created, localhost);
    const service = `MG${'a'.repeat(32)}`;
    await carry(twilio(port, service));
    expect(Object.fromEntries(new URLSearchParams(requests[0]!.body))).toEqual({
      To: message.to,
      MessagingServiceSid: service,
      Body: message.text,
    });
  });

  it('tells the number of its error, and only that', async () => {
    const answers = [
      status(
        400,
        JSON.stringify({ code: 21211, message: `invalid: ${message.text}`, more_info: 'https://…', status: 400 }),
      ),
      status(400, JSON.stringify({ code: 123456, message: message.text })),
      status(429, JSON.stringify({ code: 20429 })),
      status(503, 'upstream'),
    ];
    const { port } = await gateway((response) => answers.shift()!(response), localhost);
    const reasons: unknown[] = [];
    while (answers.length > 0) reasons.push(await failure(carry(twilio(port))));
    expect(reasons).toMatchObject([
      { message: `localhost:${port} answered 400 (error 21211)`, retryable: false },
      { message: `localhost:${port} answered 400`, retryable: false },
      { message: `localhost:${port} answered 429 (error 20429)`, retryable: true },
      { message: `localhost:${port} answered 503`, retryable: true },
    ]);
  });
});
