import { organizationStream } from '../../src/domain/organization/organization.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { queryTasks } from '../coordinator/query-tasks.js';
import { stateOf } from '../e2e/until.js';

function event(stream: string, revision: number, text = ''): RecordedEvent {
  const metadata = { at: 0, schemaVersion: 1, $correlationId: 'none', $causationId: 'none', hash: '' };
  const data = { name: text };
  return {
    stream,
    revision,
    position: BigInt(revision),
    id: `id ${revision}`,
    type: 'OrganizationRenamed',
    data,
    metadata,
  };
}

const question = (organizationId: string, limit = 1) => ({
  organizationId,
  readerOrganizationId: organizationId,
  from: 0,
  limit,
  now: 0,
});

test('one page of a family at a time, others beside it, and no more than a few wait', async () => {
  const reading = new Map<string, number>();
  let most = 0;
  let goOn = (): void => undefined;
  const held = new Promise<void>((resolve) => (goOn = resolve));
  const tasks = queryTasks({
    store: {
      async *read(stream) {
        const family = stream.startsWith(organizationStream('slow')) ? 'slow' : 'other';
        reading.set(family, (reading.get(family) ?? 0) + 1);
        most = Math.max(most, reading.get(family)!);
        try {
          if (family === 'slow') await held;
          yield event(stream, 0);
        } finally {
          reading.set(family, reading.get(family)! - 1);
        }
      },
    },
  });
  const asked = (count: number, id: (index: number) => string) =>
    Array.from({ length: count }, (_, index) => tasks.page('slow', question(id(index))));
  const slow = asked(4, (index) => `slow-${index}`);
  // The places are those of who asks: about each of them, the parent may.
  const byParent = Array.from({ length: 4 }, () => ({ ...question('slow-0'), readerOrganizationId: 'slow' }));
  slow.push(...byParent.map((one) => tasks.page('slow', one)));
  // Whoever has most makes room, and is refused itself; each of the others has a place.
  expect(await stateOf(tasks.page('slow', question('slow')))).toBe('RESOURCE_EXHAUSTED');
  expect(await stateOf(tasks.page('slow', question('slow-0')))).toBe('RESOURCE_EXHAUSTED');
  expect((await tasks.page('other', question('other'))).texts).toHaveLength(1);
  goOn();
  expect((await Promise.all(slow)).map(({ texts }) => texts.length)).toEqual(Array.from({ length: 8 }, () => 1));
  expect(most).toBe(1);
  expect((await tasks.page('slow', question('slow-9'))).texts).toHaveLength(1);
  await tasks.close();
});

test('a page ends at 4 MiB, and reads no further', async () => {
  let read = 0;
  const tasks = queryTasks({
    store: {
      async *read(stream) {
        for (let revision = 0; ; revision++) {
          read++;
          yield await Promise.resolve(event(stream, revision, 'x'.repeat(1_000_000)));
        }
      },
    },
  });
  const page = await tasks.page('a', question('a', 100));
  expect([page.texts.length, page.hasMore]).toEqual([4, true]);
  expect(read).toBe(5);
  await tasks.close();
});
