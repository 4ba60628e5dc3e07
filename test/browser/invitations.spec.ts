import type { Browser } from 'playwright-core';
import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { textLike } from '../e2e/exchange.js';
import { invitationLinkOf } from '../e2e/invitation-links.js';
import { connect, Visitor } from './visitor.js';

let coordinator: TestCoordinator;
let browser: Browser;
let visitor: Visitor;

beforeAll(async () => {
  // The browser has the wall clock.
  [coordinator, browser] = await Promise.all([startCoordinator({ at: new Date() }), connect()]);
});

afterAll(async () => {
  await browser?.close();
  await coordinator?.close();
});

afterEach(() => visitor.leave());

/** Opens the link of the mail to somebody who is invited so. */
async function follow(receiverUserEmail: string, accessType: string): Promise<void> {
  const invitation = {
    ...{ receiverUserName: 'Bob', receiverUserEmail, receiverUserTags: [], accessType },
    senderUserId: coordinator.root.userId,
  };
  await coordinator.client.submit('ACTIVITY_TYPE_CREATE_INVITATIONS', { invitations: [invitation] });
  const { url } = await invitationLinkOf(coordinator, receiverUserEmail);
  visitor = await Visitor.at(browser, url);
}

const said = () => visitor.page.getByRole('status').filter({ hasText: /\S/ });

async function userOf(address: string): Promise<object | undefined> {
  const { users } = await coordinator.client.query<{ users: { userEmail?: string }[] }>('list_users');
  return users.find(({ userEmail }) => userEmail === address);
}

test('an invited person creates a passkey on our page and becomes a user; the secret leaves the address bar', async () => {
  await follow('bob@example.com', 'ACCESS_TYPE_WEB');
  await visitor.page.getByRole('button', { name: 'Create a passkey' }).click();
  await said().filter({ hasText: 'Welcome' }).waitFor();
  const [device] = await visitor.passkeys();
  expect(await userOf('bob@example.com')).toMatchObject({
    userName: 'Bob',
    apiKeys: [],
    authenticators: [{ credentialId: device!.credentialId, attestationType: textLike(/./) }],
  });
  expect(visitor.page.url()).not.toContain('#');
  expect(await visitor.page.getByRole('button').count()).toBe(0);
});

test('a used link says so, and creates nobody', async () => {
  await follow('eve@example.com', 'ACCESS_TYPE_WEB');
  const url = visitor.page.url();
  await visitor.page.getByRole('button', { name: 'Create a passkey' }).click();
  await said().filter({ hasText: 'Welcome' }).waitFor();
  await visitor.leave();
  visitor = await Visitor.at(browser, url);
  await visitor.page.getByRole('button', { name: 'Create a passkey' }).click();
  await said()
    .filter({ hasText: /It did not work|accepted/ })
    .waitFor();
  expect(await said().textContent()).not.toMatch(/Welcome/);
});
