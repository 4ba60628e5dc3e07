/**
 * Renders the mail with a one-time password and takes the picture for docs/how-to/send-mail-and-sms.md. Needs a build and
 * Chromium; its path is the argument, or CHROMIUM, or where Debian has it. The second argument is another file for the picture.
 */
import { chromium } from 'playwright-core';
import { readArguments } from './arguments.mjs';
import { otpEmail } from '../dist/delivery/templates.js';

const asked = readArguments({ values: { chromium: undefined, picture: undefined } });
const logo = 'https://example.com/logo.png';
const drawn = `<svg xmlns="http://www.w3.org/2000/svg" width="150" height="48"><circle cx="24" cy="24" r="22" fill="#1f4fd8"/>
<path d="M14 25l7 7 13-15" fill="none" stroke="#fff" stroke-width="4.5" stroke-linecap="round" stroke-linejoin="round"/>
<text x="58" y="32" font-family="Helvetica, Arial, sans-serif" font-size="24" font-weight="bold" fill="#1f4fd8">Acme</text></svg>`;

const { subject, html } = otpEmail({
  code: '4xk92mtq7',
  appName: 'Acme',
  logoUrl: logo,
  magicLinkTemplate: 'https://acme.example/login?code=%s',
  variables: { userName: 'Zoë', supportEmail: 'help@acme.example' },
  expiresInMinutes: 5,
});

const executablePath = asked.chromium ?? process.env.CHROMIUM ?? '/usr/bin/chromium';
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
try {
  const file = asked.picture ?? new URL('../docs/images/otp-mail.png', import.meta.url).pathname;
  const page = await browser.newPage({ viewport: { width: 640, height: 200 }, colorScheme: 'light' });
  // The one picture that the mail asks for is drawn here; nothing is fetched.
  await page.route('**', (route) =>
    route.request().url() === logo ? route.fulfill({ contentType: 'image/svg+xml', body: drawn }) : route.abort(),
  );
  await page.setContent(html, { waitUntil: 'load' });
  await page.screenshot({ path: file, fullPage: true });
  console.log(`${subject}: ${file}`);
} finally {
  await browser.close();
}
