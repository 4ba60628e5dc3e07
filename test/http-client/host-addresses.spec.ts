import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { guardedFetch } from '../../src/http-client/guarded-fetch.js';
import { hostAddresses } from '../../src/http-client/host-addresses.js';
import { startWebServer } from '../oidc/web-server.js';
import { startNameServer, type Known } from './name-server.js';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
});

async function nameServer(known: Readonly<Record<string, Known>>) {
  const server = await startNameServer(known);
  closing.push(server.close);
  return server;
}

async function hostsFile(text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hosts-'));
  closing.push(() => rm(folder, { recursive: true }));
  const file = join(folder, 'hosts');
  await writeFile(file, text);
  return file;
}

const codeOf = (looked: Promise<unknown>) =>
  looked.then(
    () => 'found',
    (error: unknown) => (error as NodeJS.ErrnoException).code,
  );

describe('the addresses of a host', () => {
  it('are those of its name servers, IPv4 first', async () => {
    const { server } = await nameServer({
      'both.example': ['2001:db8::7', '192.0.2.1', '192.0.2.2'],
      'six.example': ['2001:db8::8'],
      'none.example': [],
    });
    const resolve = hostAddresses({ servers: [server] });
    expect(await resolve('both.example')).toEqual(['192.0.2.1', '192.0.2.2', '2001:db8::7']);
    expect(await resolve('Both.example.')).toEqual(['192.0.2.1', '192.0.2.2', '2001:db8::7']);
    expect(await resolve('six.example')).toEqual(['2001:db8::8']);
    expect(await codeOf(resolve('none.example'))).toBe('ENODATA');
    expect(await codeOf(resolve('lost.example'))).toBe('ENOTFOUND');
    expect(await codeOf(resolve(`${'x'.repeat(64)}.example`))).toMatch(/^E(?:BADNAME|NOTFOUND)$/);
  });

  it('are those of the hosts file, and then nobody is asked', async () => {
    const { server, asked } = await nameServer({ 'listed.example': ['192.0.2.1'] });
    const file = await hostsFile(
      '# 192.0.2.9 listed.example\n10.0.0.1\tListed.example other # listed\n::1 listed.example\nfe80::1%lo0 localhost\nnot-an-address listed.example\n',
    );
    const resolve = hostAddresses({ servers: [server], hostsFile: file });
    expect(await resolve('listed.example')).toEqual(['10.0.0.1', '::1']);
    expect(await resolve('OTHER.')).toEqual(['10.0.0.1']);
    expect(await resolve('localhost')).toEqual(['127.0.0.1', '::1']);
    expect(await resolve('app.localhost')).toEqual(['127.0.0.1', '::1']);
    expect(asked).toEqual([]);
    const without = hostAddresses({ servers: [server], hostsFile: join(file, 'missing') });
    expect(await without('listed.example')).toEqual(['192.0.2.1']);
  });

  it('wait for no host whose name server never answers, however many are looked up', async () => {
    const slow = Array.from({ length: 100 }, (_, at) => `slow-${at}.example`);
    const { server, asked } = await nameServer({
      ...Object.fromEntries(slow.map((name) => [name, 'never' as const])),
      'good.example': ['192.0.2.1'],
    });
    const resolve = hostAddresses({ servers: [server] });
    const ended: string[] = [];
    const hanging = slow.map((name) => codeOf(resolve(name)).then((code) => ended.push(String(code))));
    expect(await resolve('good.example')).toEqual(['192.0.2.1']);
    expect(ended).toEqual([]);
    await Promise.all(hanging);
    expect(new Set(ended)).toEqual(new Set(['ETIMEOUT']));
    expect(asked.filter((name) => name === 'slow-7.example').length).toBeGreaterThanOrEqual(2);
  });
});

test('a guarded request looks hosts up in this way', async () => {
  const server = await startWebServer((_request, response) => response.end('there'));
  closing.push(server.close);
  const { body } = await guardedFetch({ allowPrivateNetwork: true })(
    `http://any.localhost:${new URL(server.url).port}`,
  );
  expect(Buffer.from(body).toString()).toBe('there');
});
