/**
 * Takes the picture for docs/how-to/login-page.md: the page before and after a login, against a server on an empty data
 * folder. Needs a build and Chromium; its path is the argument, or CHROMIUM, or where Debian has it. The second
 * argument is another file for the picture.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { readArguments } from './arguments.mjs';

const asked = readArguments({ values: { chromium: undefined, picture: undefined } });
const folder = await mkdtemp(join(tmpdir(), 'countersign-picture-'));
const env = { ...process.env, DATA_DIR: folder, PORT: '0', LOG_LEVEL: 'silent' };
const children = [];

/** Starts one of our programs, and gives what its output says once it says it. */
async function start(args, pattern) {
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (said += text));
  for (;;) {
    const found = pattern.exec(said);
    if (found) return found[0];
    if (child.exitCode !== null) throw new Error(`${args[0]} ended: ${said}`);
    await setTimeout(50);
  }
}

const executablePath = asked.chromium ?? process.env.CHROMIUM ?? '/usr/bin/chromium';
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
try {
  await start(['dist/main.js'], /Root API key/);
  const url = await start(['examples/login-page/serve.mjs', '0'], /http:\/\/localhost:\d+/);

  const page = await browser.newPage({ viewport: { width: 470, height: 700 }, colorScheme: 'light' });
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('WebAuthn.enable');
  const device = { protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true };
  await devtools.send('WebAuthn.addVirtualAuthenticator', { options: { ...device, isUserVerified: true } });
  await page.goto(url);
  await page.getByLabel('E-mail address').fill('ann@example.com');
  await page.getByLabel('E-mail address').blur();
  const before = await page.screenshot();

  await page.getByRole('button', { name: 'Send me a code' }).click();
  await page.getByLabel('Code', { exact: true }).waitFor();
  let code;
  while (!code) {
    const outbox = await readFile(join(folder, 'outbox.jsonl'), 'utf8').catch(() => '');
    code = /(?:^|\s|\\n)([0-9A-Z]{9})(?=\s|\\n|$)/.exec(outbox)?.[1];
    await setTimeout(50);
  }
  await page.getByLabel('Code', { exact: true }).fill(code);
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByRole('heading', { name: /^Hello/ }).waitFor();
  const after = await page.screenshot();

  // Side by side, so that the how-to has one picture.
  await page.setViewportSize({ width: 940, height: 700 });
  const shown = [before, after].map((png) => `<img src="data:image/png;base64,${png.toString('base64')}">`).join('');
  await page.goto('about:blank');
  await page.setContent(`<body style="margin:0;display:flex">${shown}`);
  const file = asked.picture ?? new URL('../docs/images/login-page.png', import.meta.url).pathname;
  await page.screenshot({ path: file });
  console.log(file);
} finally {
  await browser.close();
  for (const child of children) {
    child.kill();
    await once(child, 'exit');
  }
  await rm(folder, { recursive: true, force: true });
}
