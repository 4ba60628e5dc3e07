import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { exchange } from '../e2e/exchange.js';
import { Installation, main, stop, type Run } from '../e2e/installation.js';
import { until } from '../e2e/until.js';

// Real processes, which take a while to start on a busy machine.
const patience = 120_000;

let installation: Installation;
beforeEach(async () => (installation = await Installation.make()));
afterEach(() => installation.remove());

const recorder = fileURLToPath(new URL('record-modules.mjs', import.meta.url));
/** Rooms of a coordinator, but for the errors of the store's port and what verifies stamps, and packages that only it uses. */
const coordinators =
  /\/dist\/(?:activities|decide|delivery|coordinator|keyring(?!\/(?:secp256k1|curve-orders)\.js)|ledger(?!\/(?:event-store|unreadable-organizations)\.js)|lease|oidc|proofs|queries|read-models|audit|vault|webhooks)\/.*|\/node_modules\/(?:libsql|@eventstore|@nestjs\/cqrs|xstate)\/.*/g;

const call = (url: string, configId: string) =>
  exchange(`${url}/v1/wallet_kit_config`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-auth-proxy-config-id': configId },
  });

test(
  'one process is both, and says in root.json where the proxy is and what configuration it has',
  async () => {
    const server = await installation.start();
    const { authProxyUrl, authProxyConfigId, apiUrl, organizationId } = await installation.root();
    expect(authProxyUrl).toBe(apiUrl);
    expect(await call(authProxyUrl!, authProxyConfigId!)).toMatchObject({ status: 200, body: { organizationId } });
    await stop(server);
    // The next start has the same configuration, and another port.
    const again = await installation.start();
    const root = await installation.root();
    expect(root).toMatchObject({ authProxyUrl: again.url, authProxyConfigId });
    expect((await call(again.url, authProxyConfigId!)).status).toBe(200);
    await stop(again);
  },
  patience,
);

test(
  'two processes share a secret that the API has made, and the proxy ends as it should',
  async () => {
    const PROXY_SECRET_FILE = join(installation.dataDir, 'shared', 'secret');
    const MODULES_FILE = join(installation.dataDir, 'modules.txt');
    const publicKey = `02${'6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296'}`;
    const api = await installation.start({
      APP: 'api',
      PROXY_SECRET_FILE,
      AUTH_PROXY_URL: 'https://auth.example.com',
      ROOT_API_PUBLIC_KEY: publicKey,
    });
    const { authProxyConfigId, authProxyUrl, organizationId, apiPrivateKey } = await installation.root();
    expect([authProxyUrl, apiPrivateKey]).toEqual(['https://auth.example.com', undefined]);
    expect((await call(api.url, authProxyConfigId!)).status).toBe(404);

    const proxy: Run = installation.run(main, {
      APP: 'proxy',
      API_URL: api.url,
      PROXY_SECRET_FILE,
      NODE_OPTIONS: `--import ${recorder}`,
      MODULES_FILE,
    });
    const address = (): string | undefined => /Auth proxy\s+(http:\/\/\S+)/.exec(proxy.stdout())?.[1];
    await until('the proxy is up', () => address() !== undefined);
    expect(await call(address()!, authProxyConfigId!)).toMatchObject({ status: 200, body: { organizationId } });
    expect(await exchange(`${address()}/health/ready`)).toMatchObject({ status: 200 });
    await stop(proxy);
    const loaded = await readFile(MODULES_FILE, 'utf8');
    expect(loaded).toContain('/dist/auth-proxy/auth-proxy.controller.js');
    // Neither what decides and records, nor what only that needs.
    expect(loaded.match(coordinators)).toBeNull();
    await stop(api);
  },
  patience,
);

test(
  'a proxy without a secret file does not start, and says what to do',
  async () => {
    const PROXY_SECRET_FILE = join(installation.dataDir, 'nothing');
    const proxy = installation.run(main, { APP: 'proxy', API_URL: 'http://127.0.0.1:9', PROXY_SECRET_FILE });
    expect((await proxy.exit).code).toBe(1);
    expect(proxy.stderr()).toMatch(/^countersign cannot start: PROXY_SECRET_FILE=.*start the API first/);
  },
  patience,
);
