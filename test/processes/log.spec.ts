import { once } from 'node:events';
import { connect } from 'node:net';
import { readFile } from 'node:fs/promises';
import { exchange } from '../e2e/exchange.js';
import { Installation, main } from '../e2e/installation.js';
import { linesIn } from '../e2e/log-lines.js';
import { until } from '../e2e/until.js';

const patience = 120_000;

let installation: Installation;

beforeEach(async () => {
  installation = await Installation.make();
});

afterEach(() => installation.remove());

const { version } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

test(
  'a start and a stop are one line each, with the version and the settings, and without a secret',
  async () => {
    const secrets = { KEK: 'ab'.repeat(32), PROXY_SECRET: 'hush-'.repeat(8) };
    const server = await installation.start({
      ...secrets,
      LOG_LEVEL: 'info',
      BUILD_COMMIT: '0123456789abcdef',
      SMTP_URL: 'smtp://mailer:hush-password@127.0.0.1:2525?starttls=optional',
      MAIL_FROM: 'Example <no-reply@example.com>',
      SMS_WEBHOOK_URL: 'https://sms.example.com/hush-token',
      RATE_LIMIT_PER_ADDRESS: '17',
    });
    const started = linesIn(server.stderr()).filter(({ msg }) => msg === 'started');
    expect(started).toMatchObject([
      {
        level: 30,
        version,
        commit: '0123456789abcdef',
        node: process.version,
        listening: server.url,
        settings: {
          dataDir: installation.dataDir,
          eventStore: 'sqlite',
          smtp: { host: '127.0.0.1', port: 2525 },
          rateLimits: { perAddress: 17 },
        },
      },
    ]);
    await exchange(`${server.url}/nowhere`);
    server.child.kill('SIGTERM');
    expect(await server.exit).toEqual({ code: 0, signal: null });
    const lines = linesIn(server.stderr());
    expect(lines.map(({ msg }) => msg).slice(-3)).toEqual(['request', 'stopping', 'stopped']);
    expect(lines.at(-2)).toMatchObject({ signal: 'SIGTERM' });
    for (const secret of ['hush', secrets.KEK]) expect(server.stderr()).not.toContain(secret);
  },
  patience,
);

test(
  'nobody waits for whoever reads the log, and what is dropped is counted',
  async () => {
    const server = installation.run(main, { LOG_LEVEL: 'info' });
    await until('it is up', () => server.stdout().includes('npm run tour'));
    const url = /API\s+(http:\/\/\S+)/.exec(server.stdout())![1]!;
    server.child.stderr!.pause();
    // Some 4 MB of lines: more than a pipe and our own buffer take.
    const lines = 12_000;
    const path = `GET /${'x'.repeat(20)} HTTP/1.1\r\nhost: x\r\nx-request-id: ${'r'.repeat(128)}\r\n\r\n`;
    const port = Number(new URL(url).port);
    await Promise.all(Array.from({ length: 10 }, () => pipeline(port, path, lines / 10)));
    expect((await exchange(`${url}/health/live`)).status).toBe(200);
    server.child.stderr!.resume();
    await until('it tells of the dropped lines', () => server.stderr().includes('"dropped":'));
    const [about] = linesIn(server.stderr()).filter(({ msg }) => msg.startsWith('dropped'));
    expect(about).toMatchObject({ level: 40, dropped: expect.any(Number) as number });
    server.child.kill('SIGTERM');
    expect((await server.exit).code).toBe(0);
  },
  patience,
);

/** Sends a request many times over one connection, as many at once as a connection may have under way. */
async function pipeline(port: number, request: string, times: number): Promise<void> {
  const atOnce = 8;
  const socket = connect(port, '127.0.0.1').setEncoding('latin1');
  for (let sent = 0; sent < times; sent += atOnce) {
    socket.write(request.repeat(atOnce));
    let text = '';
    while (text.split('HTTP/1.1 404').length <= atOnce) text += String(await once(socket, 'data'));
  }
  socket.destroy();
}
