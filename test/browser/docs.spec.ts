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

test('the search of the docs finds a page, which opens; the HTTP API is a click away', async () => {
  const visitor = await Visitor.at(browser, `${coordinator.url}/docs`);
  const { page } = visitor;
  await page.getByRole('searchbox', { name: 'Search the docs' }).fill('webhook signature');
  await page.locator('#found a').first().click();
  await page.waitForURL(/\/docs\/.+/);
  expect((await page.locator('main').textContent())!.toLowerCase()).toContain('webhook');
  await page.getByRole('link', { name: 'The HTTP API (Swagger UI)' }).click();
  await page.waitForURL(/\/docs\/api$/);
  // A document of this size takes seconds to show, and half a minute on a machine with other work to do.
  await page.locator('#swagger-ui .info').waitFor({ timeout: 75_000 });
  expect(visitor.complaints).toEqual([]);
});
