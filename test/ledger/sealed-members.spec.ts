import { activities } from '../../src/activities/index.js';
import { rootBeginning } from '../../src/decide/found-organization.js';
import { buildRegistry } from '../../src/decide/registry.js';
import { organizationStream } from '../../src/domain/organization/organization.js';
import { OrganizationLoader } from '../../src/ledger/load-organization.js';
import { emptyTail, seal } from '../../src/ledger/seal.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { verifyHistory } from '../../src/audit/verify/verify.js';

const ids = ['11111111-0000-4000-8000-000000000000', '22222222-0000-4000-8000-000000000000'] as const;
const [sealedOne, plainOne] = ids;
const sealed = { sealed: 'bm9uY2U=', key: 'key-of-a-person' };
const nothing = (): void => undefined;
const noMetrics = {
  decided: nothing,
  spent: nothing,
  appended: nothing,
  appendFailed: nothing,
  conflict: nothing,
  folded: nothing,
};
const problem = '`userEmail` of an event `UserCreated` is sealed under key `key-of-a-person`, which is not available';

/** Two organizations; the e-mail address of one's user is sealed. */
async function aStore(): Promise<InMemoryEventStore> {
  const store = new InMemoryEventStore();
  for (const organizationId of ids) {
    const stream = organizationStream(organizationId);
    const founding = {
      organizationId,
      organizationName: 'An organization',
      userId: organizationId.replace('0000-4', '0001-4'),
      userName: 'Ann',
      apiPublicKey: '02'.padEnd(66, organizationId[0]),
      curve: 'API_KEY_CURVE_P256' as const,
      at: 1,
    };
    const facts = rootBeginning(founding).map(({ type, data }) => ({
      type,
      data: type === 'UserCreated' && organizationId === sealedOne ? { ...data, userEmail: sealed } : data,
      metadata: { at: 1, $correlationId: organizationId, $causationId: organizationId },
    }));
    await store.append(stream, seal(stream, emptyTail, facts).events, 'no-stream');
  }
  return store;
}

test('a sealed value without its key refuses its organization, and no other', async () => {
  const store = await aStore();
  const loader = new OrganizationLoader(store, noMetrics);
  await expect(loader.load(sealedOne)).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    message: expect.stringContaining(`\`${sealedOne}\` is not available`) as unknown,
    cause: { message: expect.stringContaining(problem) as unknown },
  });
  expect((await loader.load(plainOne)).organization.users.size).toBe(1);
});

test('`verify` reports the append with it, accepts its links, and judges the others', async () => {
  const { findings, events } = await verifyHistory(await aStore(), { registry: buildRegistry(activities) });
  expect(events).toBe(8);
  expect(findings).toMatchObject([
    { stream: organizationStream(sealedOne), revision: 0, problem: expect.stringContaining(problem) as unknown },
  ]);
});
