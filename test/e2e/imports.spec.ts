import { encryptWalletToBundle } from '@turnkey/crypto';
import { startCoordinator, type TestCoordinator, type TestUser } from '../../src/testing/index.js';
import { Exports, verifiedOf } from '../history/exported.js';
import { exchange } from './exchange.js';

/* What is sealed for an import is of use to nobody but who sealed it, and what is begun comes to an end. */

const mnemonic = 'test test test test test test test test test test test junk';

let coordinator: TestCoordinator;
beforeAll(async () => {
  coordinator = await startCoordinator();
});
afterAll(() => coordinator.close());

async function memberWho(name: string, condition: string, consensus?: string): Promise<TestUser> {
  const member = await coordinator.createUser(name);
  const own = `approvers.any(user, user.id == '${member.userId}')`;
  await coordinator.createPolicy({ policyName: name, condition, consensus: consensus ?? own });
  return member;
}

async function sealedFor({ userId, client }: TestUser, { url, organizationId } = coordinator): Promise<string> {
  const { result } = await client.submit('ACTIVITY_TYPE_INIT_IMPORT_WALLET', { userId });
  const { importBundle } = result['initImportWalletResult'] as { importBundle: string };
  const { body } = await exchange(`${url}/public/v1/discovery/keys`);
  const { signer } = body as { signer: string };
  return encryptWalletToBundle({
    mnemonic,
    importBundle,
    userId,
    organizationId,
    dangerouslyOverrideSignerPublicKey: signer,
  });
}

describe('a sealed mnemonic is shown to nobody before it is imported', () => {
  const begins = "activity.kind == 'INIT_IMPORT_WALLET'";
  const imports = "activity.kind == 'IMPORT_WALLET'";
  let reader: TestUser;
  beforeAll(async () => {
    reader = await coordinator.createUser('Reader');
    await coordinator.createPolicy({ policyName: 'two', condition: imports, consensus: 'approvers.count() >= 2' });
  });

  /** What another member reads of the bundles in a list: the text of each. */
  async function bundlesIn(query: 'list_activities' | 'list_denials', encryptedBundle: string): Promise<string[]> {
    await coordinator.settled();
    const said = JSON.stringify(await reader.client.query(query, {}));
    expect(said).not.toContain(encryptedBundle.slice(20, 80));
    return [...said.matchAll(/encryptedBundle\\*":\\*"([^"\\]*)/g)].map(([, text]) => text!);
  }

  const importing = ({ userId }: TestUser, encryptedBundle: string) =>
    ({ userId, walletName: 'W', encryptedBundle, accounts: [] }) as const;

  test('while its import waits for votes, and once it was rejected', async () => {
    const alice = await memberWho('Alice', begins);
    const encryptedBundle = await sealedFor(alice);
    const asked = await alice.client.submit('ACTIVITY_TYPE_IMPORT_WALLET', importing(alice, encryptedBundle));
    expect(asked.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    // In the intent, and in the body that the vote signed.
    expect(await bundlesIn('list_activities', encryptedBundle)).toEqual(['', '']);
    const { fingerprint } = asked;
    await coordinator.client.submit('ACTIVITY_TYPE_REJECT_ACTIVITY', { fingerprint });
    expect(await bundlesIn('list_activities', encryptedBundle)).toEqual(['', '']);
  });

  test('when a policy denied its import', async () => {
    const carol = await memberWho('Carol', begins);
    const condition = `${imports} && requester.id == '${carol.userId}'`;
    await coordinator.createPolicy({ policyName: 'not Carol', effect: 'EFFECT_DENY', condition });
    const encryptedBundle = await sealedFor(carol);
    const attempt = carol.client.submit('ACTIVITY_TYPE_IMPORT_WALLET', importing(carol, encryptedBundle));
    await expect(attempt).rejects.toMatchObject({ status: 403 });
    expect(await bundlesIn('list_denials', encryptedBundle)).toEqual(['']);
  });
});

test('imports of users who were deleted end with them', async () => {
  const leaver = await memberWho(
    'Leaver',
    "activity.kind == 'INIT_IMPORT_WALLET' || activity.kind == 'INIT_IMPORT_PRIVATE_KEY'",
  );
  const { userId } = leaver;
  await leaver.client.submit('ACTIVITY_TYPE_INIT_IMPORT_WALLET', { userId });
  await leaver.client.submit('ACTIVITY_TYPE_INIT_IMPORT_PRIVATE_KEY', { userId });
  await coordinator.client.submit('ACTIVITY_TYPE_DELETE_USERS', { userIds: [userId] });
  const events = await coordinator.events();
  expect(events.slice(-4).map(({ type }) => type)).toEqual([
    'UserDeleted',
    'ImportClosed',
    'ImportClosed',
    'ActivityCompleted',
  ]);
});

test('a history in which an import waits is exported without the bundle, goes on in a test, and verifies there', async () => {
  const own = await startCoordinator();
  const exports = await Exports.open();
  try {
    const alice = await own.createUser('Alice');
    const isAlice = `approvers.any(user, user.id == '${alice.userId}')`;
    const condition = "activity.kind == 'INIT_IMPORT_WALLET'";
    await own.createPolicy({ policyName: 'begins', condition, consensus: isAlice });
    const consensus = 'approvers.count() >= 2';
    await own.createPolicy({ policyName: 'two', condition: "activity.kind == 'IMPORT_WALLET'", consensus });
    const encryptedBundle = await sealedFor(alice, own);
    const asked = { userId: alice.userId, walletName: 'W', encryptedBundle, accounts: [] };
    const { status } = await alice.client.submit('ACTIVITY_TYPE_IMPORT_WALLET', asked);
    expect(status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    const { file, text } = await exports.of(own, own.organizationId);
    expect(text).not.toContain(encryptedBundle.slice(20, 80));
    const going = await startCoordinator({ history: file });
    expect((await verifiedOf(going)).findings).toEqual([]);
    await going.close();
  } finally {
    await exports.close();
    await own.close();
  }
});
