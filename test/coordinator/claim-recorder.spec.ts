import { claimStream } from '../../src/domain/organization/claims.js';
import { ClaimRecorder } from '../../src/coordinator/claim-recorder.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { claimsModel, dueClaims } from '../../src/read-models/claims.js';
import { ReadModelDatabase } from '../../src/read-models/database.js';
import { Projector } from '../../src/read-models/projector.js';
import { ManualClock } from '../../src/testing/deterministic.js';
import { until } from '../e2e/until.js';
import { goldenLines, goldenStream } from '../golden/streams.js';
import { storeOf } from '../audit/store-of.js';

const family = goldenStream('family.v1');
const ofChild = goldenLines('family-child.v1');
const { stream } = goldenStream('family-child.v1')[0]!;
const child = stream.replace('organization-', '');
const isFounding = ({ data }: RecordedEvent) => (data as { subOrganizationId?: string }).subOrganizationId === child;
const parsed = (lines: readonly string[]) => lines.map((line) => JSON.parse(line) as RecordedEvent);
/** Until the child is deleted. */
const lines = ofChild.slice(
  0,
  parsed(ofChild).findIndex(({ type }) => type === 'OrganizationDeleted'),
);

test('proofs that wait for their place in the order are recorded 256 at a time', async () => {
  const founded = family.find(isFounding)!;
  const twins = Array.from({ length: 100 }, (_, at) => child.replace(/.{4}$/, String(1_000 + at)));
  const history = twins.flatMap((twin) => [
    { ...founded, data: { subOrganizationId: twin, name: twin, founding: [] } },
    ...parsed(lines.map((line) => line.replaceAll(child, twin))),
  ]);
  const all = [...family, ...history].map((event, at) => ({ ...event, position: BigInt(at) }));
  const rows = new ReadModelDatabase(':memory:');
  const projector = new Projector(rows, [claimsModel], { identity: 'test', head: BigInt(all.length) });
  const project = (events: readonly RecordedEvent[]) => {
    for (const { failure } of projector.project(events)) if (failure !== undefined) throw new Error(failure);
  };
  project(all);
  const due = dueClaims(rows, 1_000_000);
  expect(due.length).toBeGreaterThan(256);

  const store = await storeOf([]);
  const together: number[] = [];
  const { append } = store;
  const failures: unknown[] = [];
  const [parentId] = due.map((one) => one.parentId);
  let shown = -1;
  store.append = async (stream, events, expected) => {
    together.push(events.length);
    return append.call(store, stream, events, expected);
  };
  const runner = {
    async current() {
      const events: RecordedEvent[] = [];
      for await (const event of store.read(claimStream(parentId!), shown + 1)) events.push(event);
      shown += events.length;
      project(events.map(({ position, ...event }) => ({ ...event, position: position + BigInt(all.length) })));
    },
  };
  const recorder = new ClaimRecorder(store, new ManualClock(Date.UTC(2026, 5, 1)), rows, runner, {
    warn: ({ err }: { err: unknown }) => failures.push(err),
  });
  recorder.look();
  await until('all have their place, or none gets one', () => failures.length > 0 || dueClaims(rows, 1).length === 0);
  await recorder.close();
  expect(failures).toEqual([]);
  expect(Math.max(...together)).toBe(256);
  expect(together.reduce((sum, one) => sum + one)).toBe(due.length);
});
