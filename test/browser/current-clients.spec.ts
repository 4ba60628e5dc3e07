import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Browser } from 'playwright-core';
import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { anyText, textLike } from '../e2e/exchange.js';
import { codeOf } from '../e2e/one-time-codes.js';
import { until } from '../e2e/until.js';
import { connect, Visitor } from './visitor.js';

const guide = new URL('../../docs/how-to/current-clients.md', import.meta.url);
const packages = new URL('../../node_modules', import.meta.url).pathname;
const types: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' };

let coordinator: TestCoordinator;
let browser: Browser;
let blocks: readonly string[];
let visitor: Visitor | undefined;
const folders: string[] = [];
const servers: Server[] = [];

beforeAll(async () => {
  const page = await readFile(guide, 'utf8');
  blocks = [...page.matchAll(/^ *```(?:jsx?|html)\n([^]*?)^ *```/gm)].map(([, block]) => block!);
  // The browser has the wall clock.
  [coordinator, browser] = await Promise.all([startCoordinator({ at: new Date() }), connect()]);
});

afterEach(async () => {
  await visitor?.leave();
  for (const server of servers.splice(0)) server.close();
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

afterAll(async () => {
  await browser?.close();
  await coordinator?.close();
});

/** The code of the guide that contains these words. */
function blockWith(words: string): string {
  const found = blocks.filter((block) => block.includes(words));
  if (found.length !== 1) throw new Error(`${found.length} blocks of the guide contain \`${words}\``);
  return found[0]!;
}

async function settings(): Promise<string> {
  const { apiUrl: apiBaseUrl, authProxyUrl, authProxyConfigId, organizationId } = coordinator.root;
  const keys = (await (await fetch(`${coordinator.url}/public/v1/discovery/keys`)).json()) as Record<string, string>;
  const config = { apiBaseUrl, authProxyUrl, authProxyConfigId, organizationId };
  return `export const config = ${JSON.stringify(config)};
export const verificationTokenKey = ${JSON.stringify(keys['verificationToken'])};`;
}

/** Bundles a project as the guide says, and opens its page in the browser. */
async function open(files: Readonly<Record<string, string>>): Promise<Visitor> {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-page-'));
  folders.push(folder);
  await symlink(packages, join(folder, 'node_modules'));
  await mkdir(join(folder, 'public'));
  const common = { 'settings.js': await settings(), 'public/index.html': blockWith('<!doctype html>') };
  for (const [name, text] of Object.entries({ ...common, ...files })) await writeFile(join(folder, name), text);
  await promisify(execFile)(process.execPath, ['build.mjs'], { cwd: folder });

  const server = createServer(({ url }, response) => {
    const name = url === '/' ? 'index.html' : url!.slice(1);
    readFile(join(folder, 'public', name)).then(
      (contents) => response.setHeader('content-type', types[extname(name)] ?? 'text/plain').end(contents),
      () => response.writeHead(404).end(),
    );
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  const opened = await Visitor.at(browser, 'about:blank');
  // The dialog of the kit loads the flags of countries from a public server. Tests stay on this machine.
  const body = '<svg xmlns="http://www.w3.org/2000/svg"/>';
  await opened.page.route(
    ({ hostname }) => !['localhost', '127.0.0.1'].includes(hostname),
    (route) => route.fulfill({ contentType: 'image/svg+xml', body }),
  );
  await opened.page.goto(`http://localhost:${(server.address() as AddressInfo).port}`);
  return opened;
}

/** The code that was sent to that address, as its reader finds it. */
async function codeTo(address: string): Promise<string> {
  const sent = () => coordinator.messages().find(({ to }) => to === address);
  await until(`a code is sent to ${address}`, () => sent() !== undefined);
  return codeOf(coordinator, sent()!.otpId!);
}

test('the React kit logs in on a default installation and creates a wallet', async () => {
  visitor = await open({
    'build.mjs': blockWith('await build('),
    'turnkey-crypto.js': blockWith('export * from'),
    'page.jsx': blockWith('TurnkeyProvider'),
  });
  const { page } = visitor;
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByPlaceholder('Enter your email').fill('ann@example.com');
  await page.keyboard.press('Enter');

  const boxes = page.locator('input[maxlength="1"]');
  await boxes.first().waitFor();
  const code = await codeTo('ann@example.com');
  expect(await boxes.count()).toBe(code.length);
  await boxes.first().focus();
  await page.keyboard.type(code);

  await page.getByRole('heading', { name: 'Hello, ann@example.com' }).waitFor();
  await page.getByRole('button', { name: 'Create a wallet' }).click();
  await page
    .locator('p')
    .filter({ hasText: /^0x[0-9a-fA-F]{40}$/ })
    .waitFor();
  // The kit waits for the token of a captcha even where none is configured.
  expect(visitor.complaints).toEqual([textLike(/^CAPTCHA token timed out/)]);
});

test('`@turnkey/core` 2.x signs up and logs in with a code and the key of the server', async () => {
  visitor = await open({
    'build.mjs': blockWith('await build(').replace(/^.*alias:.*\n/m, ''),
    'public/page.css': '',
    'complete-otp.js': blockWith('export async function completeOtp'),
    // The kit exports the client of the `@turnkey/core` that it depends on.
    'page.jsx': `import { TurnkeyClient } from '@turnkey/react-wallet-kit';
      import { completeOtp } from './complete-otp.js';
      import { config, verificationTokenKey } from './settings.js';

      const client = new TurnkeyClient(config);
      await client.init();
      const request = { otpType: 'OTP_TYPE_EMAIL', contact: 'ben@example.com' };
      globalThis.calls = {
        initOtp: () => client.initOtp(request),
        async completeOtp(otp) {
          await completeOtp(client, verificationTokenKey, { ...otp, ...request });
          const { userEmail } = await client.fetchUser();
          const { organizationId } = await client.getSession();
          return { userEmail, organizationId };
        },
      };`,
  });
  const { page } = visitor;
  await page.waitForFunction('globalThis.calls !== undefined');
  const logIn = async () => {
    const otp = await page.evaluate<{ otpId: string }>('calls.initOtp()');
    const otpCode = await codeOf(coordinator, otp.otpId);
    return page.evaluate<object>(`calls.completeOtp(${JSON.stringify({ ...otp, otpCode })})`);
  };
  const ben = await logIn();
  expect(ben).toEqual({ userEmail: 'ben@example.com', organizationId: anyText });
  expect(ben).not.toMatchObject({ organizationId: coordinator.organizationId });
  expect(await logIn()).toEqual(ben);
  expect(visitor.complaints).toEqual([]);
});
