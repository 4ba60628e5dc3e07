import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { StampingClient } from '../../src/client/stamping-client.js';
import { exchange, textLike } from '../e2e/exchange.js';
import { Installation, stop, type Run } from '../e2e/installation.js';
import { until } from '../e2e/until.js';
import { certificateFor } from '../oidc/certificate.js';

/*
 * Whatever a host sends that somebody else has chosen, it does not keep the main thread (docs/adr/0025). The coordinator and the
 * hosts are processes of their own; each hostile host is measured beside an honest one in the same run, in processor time of the
 * coordinator's main thread.
 */

/** How many times as much of the main thread a hostile host may take: on the thread itself, it would be more than ten times. */
const mostOfHonest = 3;

const manyTickets = 20_000;
let installation: Installation;
let server: Run & { readonly url: string };
let client: StampingClient;
let hosts: ChildProcess;
let [plain, fewTickets, tooManyTickets] = ['', '', ''];

beforeAll(async () => {
  installation = await Installation.make();
  const { key, cert } = certificateFor('localhost');
  const [keyFile, certFile] = [join(installation.dataDir, 'host.key'), join(installation.dataDir, 'host.pem')];
  await Promise.all([writeFile(keyFile, key), writeFile(certFile, cert)]);
  const script = new URL('foreign-host.py', import.meta.url).pathname;
  hosts = spawn('python3', [script, certFile, keyFile, '2', String(manyTickets)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const [ports] = (await once(hosts.stdout!, 'data')) as [Buffer];
  [plain, fewTickets, tooManyTickets] = (JSON.parse(String(ports)) as number[]).map(
    (port, at) => `${at === 0 ? 'http' : 'https'}://localhost:${port}`,
  ) as [string, string, string];
  server = await installation.start({
    ALLOW_PRIVATE_NETWORK: 'true',
    NODE_EXTRA_CA_CERTS: certFile,
    PROXY_RATE_LIMIT_PER_ADDRESS: '0',
    PROXY_RATE_LIMIT_PER_CONFIGURATION: '0',
  });
  client = await installation.client(server.url);
  await client.submit('ACTIVITY_TYPE_UPDATE_AUTH_PROXY_CONFIG', { allowedAuthMethods: ['oauth'] });
}, 60_000);

afterAll(async () => {
  hosts?.kill();
  if (server) await stop(server, /ALLOW_PRIVATE_NETWORK/);
  await installation?.remove();
});

/** Milliseconds that the coordinator's main thread runs during something. */
async function mainThreadMs(work: () => Promise<unknown>): Promise<number> {
  const { pid } = server.child;
  const now = async () => Number((await readFile(`/proc/${pid}/task/${pid}/schedstat`, 'latin1')).split(' ')[0]) / 1e6;
  const before = await now();
  await work();
  return (await now()) - before;
}

/** The same work with an honest and a hostile host, by turns, after both have been warmed up. */
async function compared(what: string, work: (kind: 'honest' | 'hostile') => () => Promise<unknown>) {
  const spent = { honest: 0, hostile: 0 };
  for (const kind of ['honest', 'hostile'] as const) await work(kind)();
  for (const kind of ['honest', 'hostile', 'hostile', 'honest'] as const) spent[kind] += await mainThreadMs(work(kind));
  const [honest, hostile] = [Math.round(spent.honest), Math.round(spent.hostile)];
  process.stdout.write(`${what}: ${hostile} ms of the main thread, beside an honest one ${honest} ms\n`);
  return spent.hostile / spent.honest;
}

let named = 0;

/** Logs in with tokens that name issuers nobody has heard of; without a key they are refused. */
async function logIn(count: number, host: string, kind: string): Promise<readonly string[]> {
  const { authProxyConfigId } = await installation.root();
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const seconds = Math.floor(Date.now() / 1_000);
  const { publicKey } = client.key;
  const refusals: string[] = [];
  for (let login = 0; login < count; login++) {
    const claims = { iss: `${host}/${kind}/${(named += 1)}`, aud: 'a', sub: 's', iat: seconds, exp: seconds + 600 };
    const oidcToken = `${part({ alg: 'ES256', kid: 'k' })}.${part(claims)}.${Buffer.alloc(64, 1).toString('base64url')}`;
    const { status, body } = await exchange(`${server.url}/v1/oauth_login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-auth-proxy-config-id': authProxyConfigId! },
      body: JSON.stringify({ oidcToken, publicKey }),
    });
    expect(status).toBe(400);
    refusals.push((body as { message: string }).message);
  }
  return refusals;
}

test('an issuer that answers in chunks of one byte', async () => {
  const ratio = await compared(
    'an issuer in chunks of one byte',
    (kind) => () => logIn(10, plain, kind === 'honest' ? 'whole' : 'pieces'),
  );
  expect(ratio).toBeLessThan(mostOfHonest);
});

test('an issuer that sends thousands of TLS session tickets', async () => {
  const [few] = await logIn(1, fewTickets, 'whole');
  const [tooMany] = await logIn(1, tooManyTickets, 'whole');
  expect([few, tooMany]).toEqual([textLike('no key'), textLike('sent more than 3 TLS session tickets')]);
  const ratio = await compared(
    'an issuer with many tickets',
    (kind) => () => logIn(5, kind === 'honest' ? fewTickets : tooManyTickets, 'whole'),
  );
  expect(ratio).toBeLessThan(mostOfHonest);
});

test('webhook endpoints that answer with 64 KiB in chunks of one byte, of which the status counts', async () => {
  const [endpoints, submits] = [4, 10];
  const { userId } = await installation.root();
  const delivered = async () => Number((await exchange(`${plain}/deliveries`)).text);
  let renamed = 0;
  const work = (kind: 'honest' | 'hostile') => async () => {
    const made = [];
    for (let at = 0; at < endpoints; at++) {
      const filtersJson = JSON.stringify({ types: ['ACTIVITY_TYPE_UPDATE_USER_NAME'] });
      const { endpointId } = await client.perform<{ endpointId: string }>('ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT', {
        url: `${plain}/hook/${kind === 'honest' ? 'whole' : 'pieces'}`,
        name: `${kind} ${at}`,
        subscriptions: [{ eventType: 'ACTIVITY_UPDATES', filtersJson }],
      });
      made.push(endpointId);
    }
    const before = await delivered();
    for (let at = 0; at < submits; at++) {
      await client.submit('ACTIVITY_TYPE_UPDATE_USER_NAME', { userId, userName: `name ${(renamed += 1)}` });
    }
    await until('all are delivered', async () => (await delivered()) === before + endpoints * submits);
    for (const endpointId of made) await client.submit('ACTIVITY_TYPE_DELETE_WEBHOOK_ENDPOINT', { endpointId });
  };
  expect(await compared('webhook endpoints in chunks of one byte', work)).toBeLessThan(mostOfHonest);
});
