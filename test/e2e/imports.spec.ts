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
  const bundleIn = (text: string): string | undefined => /encryptedBundle\\*":\\*"([^"\\]*)/.exec(text)?.[1];
  let reader: TestUser;
  beforeAll(async () => {
    reader = await coordinator.createUser('Reader');
  });

  test('while its import waits for votes, or once it was rejected', async () => {
    const condition = "activity.resource == 'WALLET' && activity.action == 'IMPORT'";
    const alice = await memberWho('Alice', condition);
    const encryptedBundle = await sealedFor(alice);
    await coordinator.createPolicy({
      policyName: 'two import',
      condition: "activity.type == 'ACTIVITY_TYPE_IMPORT_WALLET'",
      consensus: 'approvers.count() >= 2',
    });
    await coordinator.createPolicy({
      policyName: 'not alone',
      effect: 'EFFECT_DENY',
      condition: "activity.type == 'ACTIVITY_TYPE_IMPORT_WALLET'",
      consensus: 'approvers.count() < 2',
    });
    const asked = { userId: alice.userId, walletName: 'W', encryptedBundle, accounts: [] };
    const attempt = await alice.client.submit('ACTIVITY_TYPE_IMPORT_WALLET', asked).catch((error: unknown) => error);
    await coordinator.settled();
    const said = JSON.stringify([
      await reader.client.query('list_activities', {}),
      await reader.client.query('list_denials', {}),
    ]);
    expect(JSON.stringify(attempt)).not.toContain('COMPLETED');
    expect(said).toContain('encryptedBundle');
    expect(bundleIn(said)).toBe('');
    expect(said).not.toContain(encryptedBundle.slice(20, 80));
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
    'ImportEnded',
    'ImportEnded',
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
