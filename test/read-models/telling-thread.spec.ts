import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { organizationStream } from '../../src/domain/organization/organization.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { ReadModelDatabase } from '../../src/read-models/database.js';
import { readModels } from '../../src/read-models/index.js';
import { Projector } from '../../src/read-models/projector.js';
import { TellingThread } from '../../src/read-models/telling-thread.js';
import { stateOf } from '../e2e/until.js';

const rows = new ReadModelDatabase(':memory:');
new Projector(rows, readModels, { identity: 'telling', head: -1n });
afterAll(() => rows.close());

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
  const thread = new TellingThread(
    {
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
    rows,
  );
  const asked = (count: number, id: (index: number) => string) =>
    Array.from({ length: count }, (_, index) => thread.told('slow', question(id(index))));
  const slow = asked(4, (index) => `slow-${index}`);
  // The places are those of who asks: about each of them, the parent may.
  const byParent = Array.from({ length: 4 }, () => ({ ...question('slow-0'), readerOrganizationId: 'slow' }));
  slow.push(...byParent.map((one) => thread.told('slow', one)));
  // Whoever has most makes room, and is refused itself; each of the others has a place.
  expect(await stateOf(thread.told('slow', question('slow')))).toBe('RESOURCE_EXHAUSTED');
  expect(await stateOf(thread.told('slow', question('slow-0')))).toBe('RESOURCE_EXHAUSTED');
  expect((await thread.told('other', question('other'))).texts).toHaveLength(1);
  goOn();
  expect((await Promise.all(slow)).map(({ texts }) => texts.length)).toEqual(Array.from({ length: 8 }, () => 1));
  expect(most).toBe(1);
  expect((await thread.told('slow', question('slow-9'))).texts).toHaveLength(1);
  await thread.close();
});

test('a page ends at 4 MiB, and reads no further', async () => {
  let read = 0;
  const thread = new TellingThread(
    {
      async *read(stream) {
        for (let revision = 0; ; revision++) {
          read++;
          yield await Promise.resolve(event(stream, revision, 'x'.repeat(1_000_000)));
        }
      },
    },
    rows,
  );
  const page = await thread.told('a', question('a', 100));
  expect([page.texts.length, page.hasMore]).toEqual([4, true]);
  expect(read).toBe(5);
  await thread.close();
});

test('a thread that dies or does not answer is a 503, and the next page is told', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'telling-'));
  try {
    const store = {
      async *read(stream: string) {
        yield await Promise.resolve(event(stream, 0));
      },
    };
    for (const [name, script] of Object.entries({
      dying: `import { parentPort } from 'node:worker_threads'; parentPort.on('message', () => process.exit(1));`,
      silent: `import { parentPort } from 'node:worker_threads'; parentPort.on('message', () => undefined);`,
    })) {
      const file = join(folder, `${name}.mjs`);
      await writeFile(file, script);
      const thread = new TellingThread(store, rows, { file: pathToFileURL(file), longestMs: 500 });
      expect(await stateOf(thread.told('a', question('a')), 20_000)).toBe('UNAVAILABLE');
      const good = `import { parentPort } from 'node:worker_threads'; parentPort.on('message', () => parentPort.postMessage({ texts: ['{}'], hasMore: false }));`;
      await writeFile(file, good);
      expect(await thread.told('a', question('a'))).toEqual({ texts: ['{}'], hasMore: false });
      await thread.close();
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});
