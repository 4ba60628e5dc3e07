import { once } from 'node:events';
import type { RequestListener, ServerResponse } from 'node:http';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions, type TLSSocket } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { guardedFetch, guardedTarget } from '../../src/http-client/guarded-fetch.js';
import {
  type GuardedFetch,
  GuardedFetchError,
  type GuardedRequest,
  type GuardedResponse,
  type GuardRule,
} from '../../src/http-client/guarded-request.js';
import { OutboundHttp } from '../../src/http-client/outbound-http.js';
import { isReachable } from '../../src/http-client/reachable-address.js';
import { certificateFor } from '../oidc/certificate.js';
import { startWebServer, type WebServer } from '../oidc/web-server.js';

const text = ({ body }: GuardedResponse): string => Buffer.from(body).toString('utf8');

/** What a request fails with. */
async function failureOf(answer: Promise<GuardedResponse>): Promise<GuardedFetchError> {
  try {
    const { status } = await answer;
    throw new Error(`answered with ${status}`);
  } catch (error) {
    if (error instanceof GuardedFetchError) return error;
    throw error;
  }
}

const ruleOf = async (answer: Promise<GuardedResponse>): Promise<GuardRule> => (await failureOf(answer)).rule;

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
});

async function serve(listener: RequestListener, certificate?: ReturnType<typeof certificateFor>): Promise<WebServer> {
  const server = await startWebServer(listener, certificate);
  closing.push(server.close);
  return server;
}

/** A server below HTTP: each connection is handled by hand. */
async function serveSockets(listener: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}));
    listener(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((closed) => server.close(closed));
  });
  return (server.address() as AddressInfo).port;
}

const forDevelopment = ' (for development, the setting ALLOW_PRIVATE_NETWORK=true allows http and private addresses)';

const threads: OutboundHttp[] = [];
afterAll(() => Promise.all(threads.map((thread) => thread.close())));

/** In the thread of the coordinator's client, or here where a test resolves hosts itself; with time for a busy machine. */
function fetchWith(options: Parameters<typeof guardedFetch>[0]): GuardedFetch {
  const { resolve, ...more } = options;
  const thread = resolve ? undefined : new OutboundHttp(more);
  if (thread) threads.push(thread);
  const fetch = thread?.fetch ?? guardedFetch(options);
  return (url, request) => fetch(url, { timeoutMs: 25_000, ...request });
}

const inside = fetchWith({ allowPrivateNetwork: true });
const outside = fetchWith({ allowPrivateNetwork: false });

/** Resolves as told, once for each list of addresses. */
function answering(...answers: readonly (readonly string[])[]) {
  const asked: string[] = [];
  const resolve = async (host: string): Promise<readonly string[]> => answers[asked.push(host) - 1] ?? [];
  return { asked, resolve };
}

describe('addresses', () => {
  const everywhere = [
    '8.8.8.8',
    '1.1.1.1',
    '2606:4700::1111',
    '2a00:1450:4001::200e',
    '::ffff:8.8.8.8',
    '64:ff9b::808:808',
  ];
  const internal = [
    ...['127.0.0.1', '127.255.255.254', '10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', '100.64.0.1'],
    ...['::1', 'fc00::1', 'fdff::1', '::ffff:127.0.0.1', '::ffff:10.0.0.1', '64:ff9b::7f00:1', '64:ff9b::c0a8:101'],
  ];
  const nowhere = [
    ...['0.0.0.0', '0.1.2.3', '224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255', '192.0.0.192'],
    ...['192.0.2.1', '198.18.0.1', '198.51.100.1', '203.0.113.1', '192.88.99.1', '192.31.196.1', '192.52.193.1'],
    ...['::', '::2', '::7f00:1', '::ffff:0:127.0.0.1', 'fe80::1', 'fec0::1', 'ff02::1', '100::1', '5f00::1', '4000::1'],
    ...['2001::1', '2001:2::1', '2001:10::1', '2001:20::1', '2001:db8::1', '64:ff9b:1::808:808', '3fff::1'],
    ...['2002:7f00:1::', '2002:a00:1::', '2002:808:808::', '::ffff:169.254.169.254', '64:ff9b::a9fe:a9fe'],
    ...['', 'localhost', '127.0.0.1, 8.8.8.8', '8.8.8.8/8', '[::1]'],
  ];
  const metadata = [
    ...['169.254.169.254', '169.254.170.2', '100.100.100.200', '168.63.129.16', '::ffff:168.63.129.16'],
    ...['fd00:ec2::254', 'fd20:ce::254', 'fd00:c1::a9fe:a9fe', 'fd00:42::42', 'fd00:0ec2:0::0254'],
  ];

  test.each(everywhere)('%s is public', (address) => {
    expect([isReachable(address, false), isReachable(address, true)]).toEqual([true, true]);
  });

  test.each(internal)('%s is for private networks', (address) => {
    expect([isReachable(address, false), isReachable(address, true)]).toEqual([false, true]);
  });

  test.each([...nowhere, ...metadata])('%s is never called', (address) => {
    expect([isReachable(address, false), isReachable(address, true)]).toEqual([false, false]);
  });
});

describe('what a URL may be', () => {
  test.each([
    ['url', 'issuer.example/path'],
    ['url', '//issuer.example'],
    ['url', ''],
    ['url', 'https://'],
    ['url', 'https://256.256.256.256'],
    ['url', `https://issuer.example/${'a'.repeat(2_048)}`],
    ['scheme', 'http://issuer.example'],
    ['scheme', 'ftp://issuer.example'],
    ['scheme', 'file:///etc/passwd'],
    ['scheme', 'data:application/json,{}'],
    ['scheme', 'gopher://127.0.0.1:6379/_FLUSHALL'],
    ['userinfo', 'https://user@issuer.example'],
    ['userinfo', 'https://:password@issuer.example'],
    ['userinfo', 'https://accounts.google.com@127.0.0.1'],
  ])('%s: %s is refused before any look-up', async (rule, url) => {
    const { asked, resolve } = answering(['127.0.0.1']);
    expect(await ruleOf(fetchWith({ allowPrivateNetwork: false, resolve })(url))).toBe(rule);
    expect(asked).toEqual([]);
  });

  test('private networks take http, and still no other scheme', async () => {
    const server = await serve((_request, response) => response.end('hello'));
    expect(text(await inside(server.url))).toBe('hello');
    expect(await ruleOf(inside('ftp://127.0.0.1'))).toBe('scheme');
    expect(await ruleOf(inside(server.url.replace('//', '//me@')))).toBe('userinfo');
  });
});

describe('a server inside', () => {
  const spellings = [
    ...['127.0.0.1', '2130706433', '0x7f000001', '0177.0.0.1', '017700000001', '127.1', '0x7f.1', '127.0.0.1.'],
    ...['１２７.０.０.１', '127。0。0。1', '%31%32%37.0.0.1', '[::1]', '[0:0:0:0:0:0:0:1]', '[::ffff:127.0.0.1]'],
    ...['[::ffff:7f00:1]', '[64:ff9b::127.0.0.1]', '[2002:7f00:1::]', 'localhost', 'LOCALHOST', '0.0.0.0', '0', '[::]'],
  ];

  test.each(spellings)('is not reached as %s', async (host) => {
    const server = await serve((_request, response) => response.end('secret'));
    const isName = host.toLowerCase() === 'localhost';
    expect(await ruleOf(outside(`https://${host}:${server.port}/`))).toBe(isName ? 'resolution' : 'address');
    expect(server.connections()).toBe(0);
  });

  test.each([
    ['its address', ['127.0.0.1']],
    ['its address among public ones', ['8.8.8.8', '127.0.0.1', '2606:4700::1111']],
    ['its mapped address', ['::ffff:127.0.0.1']],
    ['the metadata service', ['169.254.169.254']],
    ['something that is no address', ['8.8.8.8', 'localhost']],
  ])('is not reached by a name that resolves to %s', async (_what, addresses) => {
    const server = await serve((_request, response) => response.end('secret'));
    const fetch = fetchWith({ allowPrivateNetwork: false, resolve: answering(addresses).resolve });
    expect(await ruleOf(fetch(`https://issuer.example:${server.port}`))).toBe('resolution');
    expect(server.connections()).toBe(0);
  });

  test('is not reached by a name that was public when asked first', async () => {
    const server = await serve((_request, response) => response.end('secret'));
    // Public by its range, and routed nowhere since 2006 (RFC 3701).
    const { asked, resolve } = answering(['3ffe::1'], ['127.0.0.1']);
    const fetch = fetchWith({ allowPrivateNetwork: false, resolve });
    const url = `https://rebinding.example:${server.port}`;
    expect(['connection', 'time']).toContain(await ruleOf(fetch(url, { timeoutMs: 500 })));
    expect(asked).toEqual(['rebinding.example']);
    expect(await ruleOf(fetch(url))).toBe('resolution');
    expect(server.connections()).toBe(0);
  });

  test('is not reached by what it says of its metadata where private networks are allowed', async () => {
    expect(await ruleOf(inside('http://169.254.169.254/latest/meta-data/'))).toBe('address');
    expect(await ruleOf(inside('http://[fd00:ec2::254]/latest/meta-data/'))).toBe('address');
  });

  test('a refusal names the host, and neither path nor query nor address', async () => {
    const fetch = fetchWith({ allowPrivateNetwork: false, resolve: answering(['10.1.2.3']).resolve });
    const { message } = await failureOf(fetch('https://intern.example/hook/abc?token=def'));
    expect(message).toBe(
      'host `intern.example` does not resolve to an address that this server calls: use a public one' + forDevelopment,
    );
  });

  test('a name that is known only inside cannot be told from one that does not exist', async () => {
    const lost = Object.assign(new Error('getaddrinfo'), { code: 'ENOTFOUND' });
    const told = await Promise.all(
      [() => Promise.resolve(['10.1.2.3']), () => Promise.reject(lost), () => Promise.resolve([])].map(
        async (resolve) => {
          const { rule, message, mayPass } = await failureOf(
            fetchWith({ allowPrivateNetwork: false, resolve })('https://vault.corp.internal/'),
          );
          return { rule, message, mayPass };
        },
      ),
    );
    expect(new Set(told.map((one) => JSON.stringify(one))).size).toBe(1);
    expect(told[0]).toMatchObject({ rule: 'resolution', mayPass: true });
  });

  test('a refusal says which setting would have allowed it, where one would', async () => {
    const outside = fetchWith({ allowPrivateNetwork: false, resolve: answering().resolve });
    const message = async (fetch: GuardedFetch, url: string) => (await failureOf(fetch(url))).message;
    expect(await message(outside, 'http://hooks.example/')).toBe(
      `\`http:\` is not allowed: use https${forDevelopment}`,
    );
    expect(await message(outside, 'ftp://hooks.example/')).toBe('`ftp:` is not allowed: use https');
    const metadata = 'http://169.254.169.254/latest/meta-data/';
    expect(await message(inside, metadata)).toBe(
      'host `169.254.169.254` resolves to an address that this server does not call: use a public one',
    );
    // Whether a host is private or worse is not for the caller to know.
    expect(await message(outside, 'https://169.254.169.254/')).toContain(forDevelopment);
  });
});

describe('the connection', () => {
  test('goes to the address that was checked, asked for once, with the name of the host', async () => {
    const seen: (string | undefined)[] = [];
    const server = await serve((request, response) => {
      seen.push(request.headers.host);
      response.end('hello');
    });
    const { asked, resolve } = answering(['127.0.0.1']);
    const fetch = fetchWith({ allowPrivateNetwork: true, resolve });
    expect(text(await fetch(`http://issuer.example:${server.port}/`))).toBe('hello');
    expect(asked).toEqual(['issuer.example']);
    expect(seen).toEqual([`issuer.example:${server.port}`]);
  });

  test('tries every address that was checked', async () => {
    const server = await serve((_request, response) => response.end('hello'));
    // Nothing listens on the second address of loopback.
    const fetch = fetchWith({ allowPrivateNetwork: true, resolve: answering(['127.0.0.2', '127.0.0.1']).resolve });
    expect(text(await fetch(`http://issuer.example:${server.port}/`))).toBe('hello');
  });

  test('goes to the first 32 addresses of a host, and to no others', async () => {
    const { url } = await serve((_request, response) => response.end());
    // Nobody listens there.
    const closed = Array.from({ length: 40 }, (_, index) => `127.1.0.${index + 1}`);
    const to = (at: number) =>
      fetchWith({ allowPrivateNetwork: true, resolve: async () => closed.with(at, '127.0.0.1') })(
        url.replace('127.0.0.1', 'many.example'),
      );
    expect((await to(31)).status).toBe(200);
    expect(await ruleOf(to(32))).toBe('connection');
  });

  test('is TLS for the name of the host, and its certificate is checked against it', async () => {
    const certificate = certificateFor('issuer.example');
    const seen: unknown[] = [];
    const server = await serve((request, response) => {
      seen.push((request.socket as TLSSocket).servername, request.headers.host);
      response.end('hello');
    }, certificate);
    const resolve = async (): Promise<string[]> => ['127.0.0.1'];
    const trusting = fetchWith({ allowPrivateNetwork: true, resolve, trustedCertificates: certificate.cert });
    expect(text(await trusting(`https://issuer.example:${server.port}/`))).toBe('hello');
    expect(seen).toEqual(['issuer.example', `issuer.example:${server.port}`]);

    const otherName = await failureOf(trusting(`https://other.example:${server.port}/`));
    expect(otherName).toMatchObject({ rule: 'connection', message: expect.stringContaining('ALTNAME') as string });
    const distrusting = fetchWith({ allowPrivateNetwork: true, resolve });
    expect(await ruleOf(distrusting(`https://issuer.example:${server.port}/`))).toBe('connection');
    expect(server.requests).toHaveLength(1);
  });

  test('is no TLS whose cost the peer chooses: none over a finite field, and one handshake', async () => {
    const certificate = certificateFor('issuer.example', 'rsa');
    const resolve = async (): Promise<string[]> => ['127.0.0.1'];
    const fetch = fetchWith({ allowPrivateNetwork: true, resolve, trustedCertificates: certificate.cert });
    const served = async (
      options: TlsOptions,
      listener: (socket: TLSSocket) => void = (socket) =>
        socket.end('HTTP/1.1 204 No Content\r\n\r\n', () => socket.destroy()),
    ) => {
      const server = createTlsServer({ ...certificate, ...options }, listener).on('tlsClientError', () => undefined);
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      closing.push(() => new Promise((closed) => server.close(closed)));
      return `https://issuer.example:${(server.address() as AddressInfo).port}/`;
    };
    const finite = { maxVersion: 'TLSv1.2', ciphers: 'DHE-RSA-AES128-GCM-SHA256', dhparam: 'auto' } as const;
    expect((await fetch(await served({ ...finite, ciphers: 'ECDHE-RSA-AES128-GCM-SHA256' }))).status).toBe(204);
    for (const options of [finite, { minVersion: 'TLSv1.3', ecdhCurve: 'ffdhe2048' } as const]) {
      expect(await ruleOf(fetch(await served(options)))).toBe('connection');
    }
    let answer: unknown;
    const asking = await served({ maxVersion: 'TLSv1.2' }, (socket) => {
      const answered = (error: unknown): void => {
        answer ??= error ?? 'another handshake';
        socket.destroy();
      };
      socket.on('error', answered).once('data', () => socket.renegotiate({}, answered));
    });
    expect(await ruleOf(fetch(asking))).toBe('connection');
    expect(answer).toMatchObject({ code: 'ERR_SSL_NO_RENEGOTIATION' });
  });

  test('that cannot be made is told with the name of the failure', async () => {
    const server = await startWebServer(() => {});
    await server.close();
    const failure = await failureOf(inside(server.url));
    expect(failure).toMatchObject({ rule: 'connection', mayPass: true });
    expect(failure.message).toBe('host `127.0.0.1` cannot be reached (ECONNREFUSED)');
  });

  test('needs an address', async () => {
    const none = fetchWith({ allowPrivateNetwork: true, resolve: async () => [] });
    expect(await failureOf(none('https://issuer.example'))).toMatchObject({ rule: 'resolution', mayPass: true });
    const failing = fetchWith({
      allowPrivateNetwork: true,
      resolve: () => Promise.reject(Object.assign(new Error('getaddrinfo'), { code: 'ENOTFOUND' })),
    });
    expect((await failureOf(failing('https://issuer.example'))).message).toBe(
      'host `issuer.example` cannot be resolved (ENOTFOUND)',
    );
  });
});

describe('a request', () => {
  test('carries method, headers and body, and its own host, length and encoding', async () => {
    const seen: unknown[] = [];
    const server = await serve((request, response) => {
      const { host, accept, 'content-length': length, 'accept-encoding': encoding } = request.headers;
      request.setEncoding('utf8').on('data', (body) => seen.push(request.method, host, accept, length, encoding, body));
      request.on('end', () => response.writeHead(201, { 'x-answer': 'yes' }).end('{}'));
    });
    const request: GuardedRequest = {
      method: 'POST',
      headers: { Accept: 'application/json', Host: 'other.example', 'Content-Length': '1', 'Accept-Encoding': 'gzip' },
      body: 'déjà vu',
    };
    const answer = await inside(`${server.url}/hook`, request);
    expect(seen).toEqual(['POST', `127.0.0.1:${server.port}`, 'application/json', '9', 'identity', 'déjà vu']);
    expect(answer).toMatchObject({ status: 201, headers: { 'x-answer': 'yes' } });
    expect(server.requests).toEqual(['POST /hook']);
  });

  test.each([200, 204, 400, 404, 500, 503])('answered with %d is an answer', async (status) => {
    const server = await serve((_request, response) => response.writeHead(status).end());
    expect(await inside(server.url)).toMatchObject({ status, body: new Uint8Array(0) });
  });

  test.each([300, 301, 302, 303, 304, 307, 308])('answered with %d is not followed', async (status) => {
    const server = await serve((_request, response) =>
      response.writeHead(status, { location: '/secret' }).end('moved'),
    );
    const failure = await failureOf(inside(`${server.url}/start`));
    expect(failure).toMatchObject({ rule: 'redirect', mayPass: false });
    expect(failure.message).not.toContain('secret');
    expect(server.requests).toEqual(['GET /start']);
  });
});

describe('a body', () => {
  const maxBytes = 10_000;

  test('may have just as many bytes as are taken, told or not', async () => {
    const body = Buffer.alloc(maxBytes, 'x');
    const server = await serve((request, response) => {
      if (request.url === '/told') response.setHeader('content-length', body.length);
      for (let at = 0; at < body.length; at += 1_000) response.write(body.subarray(at, at + 1_000));
      response.end();
    });
    for (const path of ['/told', '/untold']) {
      expect((await inside(server.url + path, { maxBytes })).body).toEqual(new Uint8Array(body));
      expect(await ruleOf(inside(server.url + path, { maxBytes: maxBytes - 1 }))).toBe('size');
    }
  });

  test('that says it is too large is not waited for', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': String(maxBytes + 1) }).flushHeaders();
    });
    expect(await ruleOf(inside(server.url, { maxBytes }))).toBe('size');
  });

  test('that does not end is cut off, and so is its connection', async () => {
    let closed: Promise<unknown> | undefined;
    const server = await serve((_request, response) => {
      closed = once(response, 'close');
      pour(response);
    });
    expect(await ruleOf(inside(server.url))).toBe('size');
    await closed;
  });

  test('after headers that do not end is not read either', async () => {
    const port = await serveSockets((socket) => {
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\n');
        for (let line = 0; line < 40; line++) socket.write(`x-${line}: ${'x'.repeat(1_000)}\r\n`);
      });
    });
    expect(await ruleOf(inside(`http://127.0.0.1:${port}`))).toBe('size');
  });

  test('that is compressed is refused: its size says nothing', async () => {
    const bomb = gzipSync(Buffer.alloc(10_000_000));
    const asked: unknown[] = [];
    const server = await serve((request, response) => {
      asked.push(request.headers['accept-encoding']);
      if (request.url === '/told') response.setHeader('content-encoding', 'gzip');
      response.end(bomb);
    });
    expect(await failureOf(inside(`${server.url}/told`))).toMatchObject({ rule: 'encoding', mayPass: false });
    // Untold it is bytes like any others, and stays as small as it is.
    expect((await inside(`${server.url}/untold`)).body).toEqual(new Uint8Array(bomb));
    expect(asked).toEqual(['identity', 'identity']);
  });

  test('that breaks off is no body', async () => {
    const port = await serveSockets((socket) => {
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"half":'));
    });
    const failure = await failureOf(inside(`http://127.0.0.1:${port}`));
    expect(failure).toMatchObject({ rule: 'connection', mayPass: true });
    expect(failure.message).not.toContain('half');
  });

  test('of something else than HTTP is not quoted', async () => {
    const port = await serveSockets((socket) => socket.end('SSH-2.0-OpenSSH_9.7 secret banner\r\n'));
    const { rule, message } = await failureOf(inside(`http://127.0.0.1:${port}`));
    expect(rule).toBe('connection');
    expect(message).not.toMatch(/SSH|secret/);
  });

  test('is not made of another protocol', async () => {
    const port = await serveSockets((socket) => {
      socket.once('data', () =>
        socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n'),
      );
    });
    expect(await ruleOf(inside(`http://127.0.0.1:${port}`))).toBe('connection');
  });
});

describe('time', () => {
  const timeoutMs = 300;

  test('ends with a look-up that does not answer', async () => {
    const fetch = fetchWith({ allowPrivateNetwork: true, resolve: () => new Promise(() => {}) });
    const failure = await failureOf(fetch('http://slow.example', { timeoutMs }));
    expect(failure).toMatchObject({ rule: 'time', mayPass: true });
    expect(failure.message).toBe('host `slow.example` did not answer within 300 ms');
  });

  test('ends after five seconds if nobody says otherwise', async () => {
    const fetch = guardedFetch({ allowPrivateNetwork: true, resolve: () => new Promise(() => {}) });
    const failure = await failureOf(fetch('http://slow.example'));
    expect(failure.message).toBe('host `slow.example` did not answer within 5000 ms');
  });

  test('ends with a server that says nothing, plain or TLS', async () => {
    const port = await serveSockets(() => {});
    expect(await ruleOf(inside(`http://127.0.0.1:${port}`, { timeoutMs }))).toBe('time');
    expect(await ruleOf(inside(`https://127.0.0.1:${port}`, { timeoutMs }))).toBe('time');
  });

  test('ends with a body that comes byte by byte, however alive it is', async () => {
    const server = await serve((_request, response) => {
      const drip = setInterval(() => response.write('x'), 20);
      response.on('close', () => clearInterval(drip));
    });
    expect(await ruleOf(inside(server.url, { timeoutMs }))).toBe('time');
  });

  test('ends with interim responses that nothing follows', async () => {
    const port = await serveSockets((socket) => {
      socket.once('data', () => socket.write('HTTP/1.1 102 Processing\r\n\r\n'));
    });
    expect(await ruleOf(inside(`http://127.0.0.1:${port}`, { timeoutMs }))).toBe('time');
  });
});

describe('interim responses', () => {
  const interim = 'HTTP/1.1 103 Early Hints\r\n\r\n';

  test('are passed over, eight at most', async () => {
    const port = await serveSockets((socket) => {
      socket.once('data', () => socket.write(`${interim.repeat(8)}HTTP/1.1 204 No Content\r\n\r\n`));
    });
    expect((await inside(`http://127.0.0.1:${port}`)).status).toBe(204);
  });

  test('without end are cut off, and so is their connection, whether it is new or was kept', async () => {
    const asked: number[] = [];
    const closed: Promise<unknown>[] = [];
    const port = await serveSockets((socket) => {
      // However it is closed: what it had not read yet resets it.
      closed.push(new Promise((resolve) => socket.on('close', resolve)));
      socket.on('data', () => {
        asked.push(closed.length);
        if (asked.length === 2) return void socket.write('HTTP/1.1 204 No Content\r\n\r\n');
        const flood = setInterval(() => socket.write(interim.repeat(20)), 1);
        socket.on('close', () => clearInterval(flood));
      });
    });
    const url = `http://127.0.0.1:${port}`;
    const request = { method: 'POST', body: '{}', keepFor: 'me', statusOnly: true } as const;
    const tooMany = {
      rule: 'size',
      message: 'host `127.0.0.1` sent more than 8 interim responses (1xx) before its response',
    };
    expect(await failureOf(inside(url, request))).toMatchObject(tooMany);
    expect((await inside(url, request)).status).toBe(204);
    expect(await failureOf(inside(url, request))).toMatchObject(tooMany);
    await Promise.all(closed);
    // The second connection was kept for the third request, which is not sent once more.
    expect(asked).toEqual([1, 2, 2]);
  });
});

describe('where only the status counts', () => {
  const statusOf = async (listener: RequestListener, more: GuardedRequest = {}) => {
    const { url } = await serve(listener);
    return (await inside(url, { statusOnly: true, ...more })).status;
  };

  test('a redirect is an answer, and is not followed', async () => {
    const asked: (string | undefined)[] = [];
    const status = await statusOf((request, response) => {
      asked.push(request.url);
      response.writeHead(307, { location: '/elsewhere' }).end();
    });
    expect([status, asked]).toEqual([307, ['/']]);
  });

  test('a body without end, a compressed one, and one that breaks off do not matter', async () => {
    expect(await statusOf((_request, response) => pour(response.writeHead(200)))).toBe(200);
    expect(
      await statusOf((_request, response) => response.writeHead(202, { 'content-encoding': 'gzip' }).end('x')),
    ).toBe(202);
    expect(
      await statusOf((_request, response) => {
        response.writeHead(500, { 'content-length': '10' }).write('x');
        setImmediate(() => response.destroy());
      }),
    ).toBe(500);
    expect(await statusOf((_request, response) => response.writeHead(201).write('x'), { timeoutMs: 300 })).toBe(201);
  });
});

test('a request that is called off ends at once, whether it has begun or not', async () => {
  const stop = new AbortController();
  const { url } = await serve(() => stop.abort());
  const calledOff = { rule: 'connection', message: 'the request to host `127.0.0.1` was cancelled' };
  expect(await failureOf(inside(url, { signal: stop.signal }))).toMatchObject(calledOff);
  expect(await failureOf(inside(url, { signal: stop.signal }))).toMatchObject(calledOff);
});

test('a target is looked at without being called', async () => {
  let calls = 0;
  const { url } = await serve((_request, response) => response.end(String(++calls)));
  const { asked, resolve } = answering(['93.184.215.14'], ['10.0.0.1']);
  await guardedTarget({ allowPrivateNetwork: true })(url);
  await expect(guardedTarget({ allowPrivateNetwork: false })(url)).rejects.toMatchObject({ rule: 'scheme' });
  const outsideOnly = guardedTarget({ allowPrivateNetwork: false, resolve });
  await outsideOnly('https://hooks.example/path');
  await expect(outsideOnly('https://hooks.example/path')).rejects.toMatchObject({ rule: 'resolution' });
  expect([asked, calls]).toEqual([['hooks.example', 'hooks.example'], 0]);
});

function pour(response: ServerResponse): void {
  while (!response.destroyed && response.write(Buffer.alloc(16_384))) continue;
  if (!response.destroyed) response.once('drain', () => pour(response));
}
