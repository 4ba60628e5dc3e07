import type { ActivityEnvelope } from '../../src/wire/envelope.js';
import { startCoordinator, type StampingClient, type TestCoordinator } from '../../src/testing/index.js';

const bound = 4 * 1024 * 1024;

let coordinator: TestCoordinator;

beforeAll(async () => {
  const settings = { RATE_LIMIT_PER_ADDRESS: '100000', RATE_LIMIT_PER_ORGANIZATION: '100000' };
  coordinator = await startCoordinator({ seed: 'pages in bytes', settings });
});
afterAll(() => coordinator.close());

/** The bytes of an answer, and what it says. */
async function asked<Answer>(path: string, request: object): Promise<{ bytes: number; answer: Answer }> {
  const client: StampingClient = coordinator.client;
  const answer = await client.query<Answer>(path, request);
  return { bytes: Buffer.byteLength(JSON.stringify(answer)), answer };
}

describe('large activities', () => {
  let ids: string[];

  beforeAll(async () => {
    ids = [];
    for (let index = 0; index < 9; index++) {
      coordinator.clock.advance(1);
      const { id } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE', {
        smartContractAddress: `0x${String(index).padStart(40, '0')}`,
        // A line break takes two bytes of an answer.
        smartContractInterface: JSON.stringify([{ type: 'function', name: 'f', inputs: [] }]).padEnd(399_000, '\n'),
        type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
        label: `large ${index}`,
      });
      ids.unshift(id);
    }
  });

  test('a page ends at 4 MiB and says so; what stands after its last element is the rest', async () => {
    const filterByType = ['ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE'];
    const seen: string[] = [];
    let pages = 0;
    for (;;) {
      const after = seen.at(-1);
      const { bytes, answer } = await asked<{ activities: ActivityEnvelope[]; hasMore?: true }>('list_activities', {
        filterByType,
        paginationOptions: { limit: '100', ...(after ? { after } : {}) },
      });
      expect(bytes).toBeLessThanOrEqual(bound);
      seen.push(...answer.activities.map(({ id }) => id));
      pages += 1;
      if (!answer.hasMore) break;
    }
    expect(seen).toEqual(ids);
    expect(pages).toBeGreaterThan(1);
  });

  test('backwards, the page has what stands next to the element that it is asked from', async () => {
    const { answer } = await asked<{ activities: ActivityEnvelope[]; hasMore?: true }>('list_activities', {
      filterByType: ['ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE'],
      paginationOptions: { limit: '100', before: ids.at(-1)! },
    });
    const shown = answer.activities.map(({ id }) => id);
    expect(shown.length).toBeLessThan(ids.length - 1);
    expect(shown).toEqual(ids.slice(-1 - shown.length, -1));
    expect(answer.hasMore).toBe(true);
  });
});

describe('lists without pages', () => {
  test('list_smart_contract_interfaces ends at 4 MiB too, and goes on after its last element', async () => {
    type Listed = { smartContractInterfaces: { smartContractInterfaceId: string; label: string }[]; hasMore?: true };
    const first = await asked<Listed>('list_smart_contract_interfaces', {});
    expect(first.bytes).toBeLessThanOrEqual(bound);
    expect(first.answer.hasMore).toBe(true);
    const after = first.answer.smartContractInterfaces.at(-1)!.smartContractInterfaceId;
    const rest = await asked<Listed>('list_smart_contract_interfaces', { paginationOptions: { after } });
    expect(rest.answer.hasMore).toBeUndefined();
    const labels = [...first.answer.smartContractInterfaces, ...rest.answer.smartContractInterfaces].map(
      ({ label }) => label,
    );
    expect(labels).toEqual(Array.from({ length: 9 }, (_, index) => `large ${index}`));
    const back = await asked<Listed>('list_smart_contract_interfaces', {
      paginationOptions: { before: after, limit: '2' },
    });
    expect(back.answer.smartContractInterfaces).toEqual(first.answer.smartContractInterfaces.slice(-3, -1));
  });

  test('every list takes a limit and cursors, and refuses one that names nothing in it', async () => {
    const users = [];
    for (let index = 0; index < 4; index++) users.push((await coordinator.createUser(`user ${index}`)).userId);
    const listed = async (paginationOptions?: object) =>
      (await asked<{ users: { userId: string }[] }>('list_users', { paginationOptions })).answer.users.map(
        ({ userId }) => userId,
      );
    const all = await listed();
    expect(all.slice(-4)).toEqual(users);
    expect(await listed({ limit: '2' })).toEqual(all.slice(0, 2));
    expect(await listed({ after: all[0], limit: '1' })).toEqual(all.slice(1, 2));
    expect(await listed({ before: all[3] })).toEqual(all.slice(0, 3));
    expect(await listed({ after: all[0], before: all[3] })).toEqual(all.slice(1, 3));
    await expect(listed({ after: coordinator.organizationId })).rejects.toThrow('is not an element of this list');
    await expect(listed({ limit: '101' })).rejects.toThrow('paginationOptions.limit');
  });
});

test('more large answers than there are slots for are all given, and others are answered beside them', async () => {
  // A family has eight. Whoever waits for ten seconds is refused, so not more than a slow machine gives in that time.
  const lists = Array.from({ length: 12 }, () =>
    asked<{ smartContractInterfaces: object[] }>('list_smart_contract_interfaces', {}),
  );
  const beside = await asked<{ userId: string }>('whoami', {});
  expect(beside.answer.userId).toBe(coordinator.root.userId);
  for (const { bytes } of await Promise.all(lists)) expect(bytes).toBeGreaterThan(bound / 2);
});
