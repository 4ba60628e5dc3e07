import type { Browser } from 'playwright-core';
import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { connect, Visitor } from './visitor.js';

let coordinator: TestCoordinator;
let browser: Browser;

beforeAll(async () => {
  [coordinator, browser] = await Promise.all([startCoordinator(), connect()]);
});

afterAll(async () => {
  await browser?.close();
  await coordinator?.close();
});

/** A visitor of a page of the docs, and the origins of everything that the page requests. */
async function open(path: string): Promise<{ visitor: Visitor; origins: Set<string> }> {
  const visitor = await Visitor.at(browser, 'about:blank');
  const origins = new Set<string>();
  visitor.page.on('request', (request) => origins.add(new URL(request.url()).origin));
  await visitor.page.goto(`${coordinator.url}${path}`);
  return { visitor, origins };
}

test('a page shows a guide with highlighted code, in the colours of the chosen appearance', async () => {
  const { visitor, origins } = await open('/docs/how-to/send-a-request');
  const { page } = visitor;
  expect(await page.locator('main h1').textContent()).toContain('Send a request');
  // The rest works only once the scripts of the page have run.
  const appearance = page.getByRole('switch', { name: /Switch to (?:dark|light) theme/ });
  await appearance.waitFor();
  const colours = () =>
    page.evaluate(() => ({
      page: getComputedStyle(document.body).backgroundColor,
      code: Array.from(document.querySelectorAll('.language-js code span'), (word) => getComputedStyle(word).color),
    }));
  const light = await colours();
  expect(new Set(light.code).size).toBeGreaterThan(3);
  await appearance.click();
  await page.locator('html.dark').waitFor({ state: 'attached' });
  const dark = await colours();
  expect(new Set(dark.code).size).toBeGreaterThan(3);
  expect(dark.page).not.toBe(light.page);
  expect(dark.code).not.toEqual(light.code);
  // The choice is kept.
  await page.reload();
  expect(await page.locator('html').getAttribute('class')).toBe('dark');
  expect(visitor.complaints).toEqual([]);
  expect([...origins]).toEqual([coordinator.url]);
});

test('the search finds a guide, which opens; the HTTP API is a click away', async () => {
  const { visitor, origins } = await open('/docs');
  const { page } = visitor;
  await page.getByRole('button', { name: 'Search' }).click();
  await page.getByRole('searchbox').fill('webhook signature');
  await page.locator('.VPLocalSearchBox a[href*="/docs/how-to/webhooks"]').first().click();
  await page.waitForURL(/\/docs\/how-to\/webhooks/);
  await page.locator('main h1', { hasText: 'Webhooks' }).waitFor();
  await page.getByRole('link', { name: 'HTTP API (Swagger UI)' }).click();
  await page.waitForURL(/\/docs\/api$/);
  // A document of this size takes seconds to show, and half a minute on a machine with other work to do.
  await page.locator('#swagger-ui .info').waitFor({ timeout: 75_000 });
  expect(visitor.complaints).toEqual([]);
  expect([...origins]).toEqual([coordinator.url]);
});
