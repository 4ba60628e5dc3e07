import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { copyToFolder } from './copied-store.js';
import { TypingUser } from './typed.js';

let coordinator: TestCoordinator;
let user: TypingUser;

beforeAll(async () => {
  coordinator = await startCoordinator({ seed: 'verify', at: new Date() });
  const { status } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_WALLET', {
    walletName: 'treasury',
    accounts: [],
  });
  expect(status).toBe('ACTIVITY_STATUS_COMPLETED');
});

afterAll(() => coordinator.close());

beforeEach(async () => {
  user = await TypingUser.sitDown();
});

afterEach(() => user.leaves());

test('a store without its vaults has lost its keys, however well its decisions verify', async () => {
  await copyToFolder(user.path('data'), coordinator);
  const { code, out, error } = await user.types(['verify', '--data-dir', 'data']);
  expect({ code, error }).toEqual({ code: 1, error: '' });
  expect(out).toMatch(/^3 findings \(/);
  for (const holds of [
    /\n {2}organization-\S+ @ \d+: the stream `vault-[0-9a-f-]+` is missing: this vault of organization `[0-9a-f-]+` holds the seed of wallet `[0-9a-f-]+`; restore a backup of the store that has it\n/,
    /\n {2}organization-\S+ @ \d+: .* holds the key of its auth proxy; restore/,
    /\n {2}installation-boots @ \d+: the stream `vault-installation` is missing: /,
  ]) {
    expect(out).toMatch(holds);
  }
});
