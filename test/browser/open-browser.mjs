import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';

/** One browser for the whole run; the suites connect to it and have contexts of their own. */
export default async function openBrowser() {
  const executablePath = process.env.CHROMIUM || '/usr/bin/chromium';
  if (!existsSync(executablePath)) {
    throw new Error(`no browser at ${executablePath}: apt-get install chromium, or set CHROMIUM to the path of one`);
  }
  const quiet = ['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'];
  const server = await chromium.launchServer({
    executablePath,
    args: [...quiet, '--disable-component-update', '--disable-sync'],
  });
  globalThis.browserServer = server;
  process.env.BROWSER_ENDPOINT = server.wsEndpoint();
}
