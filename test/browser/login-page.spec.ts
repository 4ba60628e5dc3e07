import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { Installation, type Run } from '../e2e/installation.js';
import { until } from '../e2e/until.js';
import { connect, Visitor } from './visitor.js';

const serve = new URL('../../examples/login-page/serve.mjs', import.meta.url).pathname;

let installation: Installation;
let example: Run;
let browser: Browser;
let pageUrl: string;
let visitor: Visitor;

// `npm start` and `npm run example` with nothing set but where to listen and to write.
beforeAll(async () => {
  [installation, browser] = await Promise.all([Installation.make(), connect()]);
  await installation.start();
  example = installation.run(serve, {}, ['0']);
  const url = () => /http:\/\/localhost:\d+/.exec(example.stdout())?.[0];
  await until('the page is served', () => {
    if (example.stderr()) throw new Error(example.stderr());
    return url() !== undefined;
  });
  pageUrl = url()!;
});

afterAll(async () => {
  await browser?.close();
  await installation?.remove();
});

const button = (name: string) => visitor.page.getByRole('button', { name, exact: true });
const field = (name: string) => visitor.page.getByLabel(name, { exact: true });
const problem = () => visitor.page.getByRole('alert');

let people = 0;
const newContact = () => `visitor-${++people}@example.com`;

/** Codes that were sent to that contact, the last one last. */
async function codesTo(contact: string): Promise<readonly string[]> {
  const lines = (await readFile(join(installation.dataDir, 'outbox.jsonl'), 'utf8').catch(() => '')).split('\n');
  return lines
    .slice(0, -1)
    .map((line) => JSON.parse(line) as { to: string; text: string })
    .filter(({ to }) => to === contact)
    .map(({ text }) => /(?:^|\s)([0-9A-Z]{6,9})(?:\s|$)/.exec(text)?.[1] ?? '');
}

async function askForCode(contact: string): Promise<string> {
  const before = (await codesTo(contact)).length;
  await field('E-mail address').fill(contact);
  await button('Send me a code').click();
  await field('Code').waitFor();
  await until(`a code is sent to ${contact}`, async () => (await codesTo(contact)).length > before);
  return (await codesTo(contact)).at(-1)!;
}

async function enterWithCode(contact: string): Promise<void> {
  await field('Code').fill(await askForCode(contact));
  await button('Continue').click();
}

/** What the page says of who is logged in. */
async function whoIsIn() {
  const { page } = visitor;
  await page.getByRole('heading', { name: /^Hello/ }).waitFor();
  const text = (id: string) => page.locator(`#${id}`).innerText();
  return {
    name: await text('user-name'),
    userId: await text('user-id'),
    organizationId: await text('organization-id'),
    passkeys: (await text('passkey-names')).split(', ').filter((name) => name !== 'none').length,
  };
}

async function logOut(): Promise<void> {
  await button('Log out').click();
  await visitor.page.getByRole('heading', { name: 'Log in or sign up' }).waitFor();
}

describe('in the browser', () => {
  beforeEach(async () => {
    visitor = await Visitor.at(browser, pageUrl);
  });

  afterEach(() => visitor.leave());

  test('people sign up with a code and a passkey, and log in with either', async () => {
    const contact = newContact();
    await enterWithCode(contact);
    const ann = await whoIsIn();
    const { organizationId: parent } = await installation.root();
    expect(ann).toMatchObject({ name: contact, passkeys: 1 });
    expect(ann.organizationId).not.toBe(parent);
    expect(await visitor.passkeys()).toMatchObject([{ rpId: 'localhost' }]);

    await logOut();
    await enterWithCode(contact);
    expect(await whoIsIn()).toEqual(ann);

    await logOut();
    await button('Log in with a passkey').click();
    expect(await whoIsIn()).toEqual(ann);

    // Renamed with a stamp of the passkey; the session's key has no part in it.
    const [before] = await visitor.passkeys();
    await field('New name').fill('Ann');
    await button('Rename me with my passkey').click();
    await visitor.page.getByRole('heading', { name: 'Hello, Ann' }).waitFor();
    expect(await whoIsIn()).toEqual({ ...ann, name: 'Ann' });
    const [after] = await visitor.passkeys();
    expect(after!.signCount).toBe(before!.signCount + 1);

    await visitor.page.reload();
    expect(await whoIsIn()).toEqual({ ...ann, name: 'Ann' });
    await logOut();
    await visitor.page.reload();
    await button('Log in with a passkey').waitFor();
    // A policy of the page or the server that stands in the way would have been told here.
    expect(visitor.complaints).toEqual([]);
  });

  test('people sign up with a passkey alone, and log in with it again', async () => {
    await button('Sign up with a passkey alone').click();
    const ben = await whoIsIn();
    expect(ben.passkeys).toBe(1);
    await logOut();
    await button('Log in with a passkey').click();
    expect(await whoIsIn()).toEqual(ben);
    expect(visitor.complaints).toEqual([]);
  });

  test('people may decline a passkey, and add one later', async () => {
    const contact = newContact();
    const code = await askForCode(contact);
    await field('If I am new, make a passkey too').uncheck();
    await field('Code').fill(code);
    await button('Continue').click();
    const cem = await whoIsIn();
    expect(cem.passkeys).toBe(0);
    expect(await button('Rename me with my passkey').isVisible()).toBe(false);
    await button('Add a passkey').click();
    await until('the passkey is there', async () => (await whoIsIn()).passkeys === 1);
    await logOut();
    await button('Log in with a passkey').click();
    expect(await whoIsIn()).toEqual({ ...cem, passkeys: 1 });
  });

  test('a wrong code is refused with an explanation, and the right one still works', async () => {
    const contact = newContact();
    const code = await askForCode(contact);
    await field('Code').fill(code === '000000000' ? '111111111' : '000000000');
    await button('Continue').click();
    await problem().filter({ hasText: 'The provided OTP code is invalid.' }).waitFor();
    await field('Code').fill(code);
    await button('Continue').click();
    expect(await whoIsIn()).toMatchObject({ name: contact });
  });

  test('declining the passkey at sign-up does not use up the code', async () => {
    const contact = newContact();
    await visitor.agrees(false);
    await enterWithCode(contact);
    await problem().filter({ hasText: 'cancelled by the user' }).waitFor();
    await field('If I am new, make a passkey too').uncheck();
    await button('Continue').click();
    expect(await whoIsIn()).toMatchObject({ name: contact, passkeys: 0 });
  });

  test('an unregistered passkey is refused with an explanation', async () => {
    await button('Log in with a passkey').click();
    await problem()
      .filter({ hasText: /passkey/i })
      .waitFor();
    expect(await visitor.page.getByRole('heading', { name: /^Hello/ }).isVisible()).toBe(false);
  });

  test('a code is printed in the terminal of the page, and only there', async () => {
    const contact = newContact();
    const code = await askForCode(contact);
    await until('the code is printed', () => example.stdout().includes(`To ${contact}:`));
    expect(example.stdout()).toContain(code);
    expect(await visitor.page.content()).not.toContain(code);
  });
});

test.each([
  ['nothing was started yet', undefined, 'start the server first'],
  ['the server is the API alone', { apiUrl: 'http://localhost:1' }, 'names no auth proxy'],
])('when %s, the page says so and exits', async (_case, root, words) => {
  const empty = await Installation.make();
  try {
    if (root) await writeFile(join(empty.dataDir, 'root.json'), JSON.stringify(root));
    const run = empty.run(serve, {}, ['0']);
    expect(await run.exit).toEqual({ code: 1, signal: null });
    expect(run.stderr()).toContain(words);
  } finally {
    await empty.remove();
  }
});

test('the private key of root.json is served nowhere', async () => {
  const { apiPrivateKey } = await installation.root();
  const paths = ['', 'app.js', 'config.json', 'root.json', '..%2f..%2fdata%2froot.json'];
  for (const path of paths) {
    const answer = await fetch(`${pageUrl}/${path}`);
    expect([path, (await answer.text()).includes(apiPrivateKey!)]).toEqual([path, false]);
  }
  const config = (await (await fetch(`${pageUrl}/config.json`)).json()) as object;
  expect(Object.keys(config).sort()).toEqual(['apiBaseUrl', 'authProxyConfigId', 'authProxyUrl', 'organizationId']);
});
