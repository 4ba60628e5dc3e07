import { readFile } from 'node:fs/promises';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { claimsModel, dueClaims, whereItLeads } from '../../src/read-models/claims.js';
import { rowsOf } from './projected.js';

const parent = '019ca945-0a00-7e2f-b248-3423fa365d04';
const child = 'acfbdea9-01af-8f83-8d74-bbcf4b250a04';
const twin = 'acfbdea9-01af-8f83-8d74-bbcf4b250a05';
const publicKey = '02d04015b8c760f84fdfed7f2ff74c9d2306d726f7f3d3028d10c3e67fb36322cd';
/** The child is deleted from there on. */
const end = 119;

/** A stream from before there were claims: no founding says by whom, and no parent has a stream of proofs. */
async function recorded(name: string): Promise<readonly string[]> {
  const lines = await readFile(new URL(`../golden/${name}.v1.jsonl`, import.meta.url), 'utf8');
  return lines.split('\n').filter(Boolean);
}

const eventsOf = (lines: readonly string[], from: number): readonly RecordedEvent[] =>
  lines
    .map((line) => JSON.parse(line) as RecordedEvent)
    .filter(({ position }) => Number(position) < end)
    .map((event) => ({ ...event, position: BigInt(from) + BigInt(event.position) }));

test.each([
  ['the child', 0, 1_000, child],
  ['its twin', 1_000, 0, twin],
])('in a store from before claims a key is proved in the order of its requests: first by %s', async (_, ...given) => {
  const [childFrom, twinFrom, first] = given;
  const lines = await recorded('family-child');
  const renamed = lines.map((line) => line.replaceAll(child, twin));
  const family = eventsOf(await recorded('family'), 0);
  const founded = family.find(
    ({ type, data }) =>
      type === 'SubOrganizationCreated' && (data as { subOrganizationId: string }).subOrganizationId === child,
  )!;
  const twinFounded = { ...founded, position: 999n, data: { subOrganizationId: twin, name: 'Twin' } };
  const rows = rowsOf(
    claimsModel,
    [...family, twinFounded, ...eventsOf(lines, childFrom), ...eventsOf(renamed, twinFrom)].toSorted((one, other) =>
      Number(one.position - other.position),
    ),
  );
  const now = Date.UTC(2026, 5, 1);
  expect(whereItLeads(rows, parent, { kind: 'PUBLIC_KEY', value: publicKey }, now)).toEqual({
    by: 'proof',
    organizationIds: [first],
  });
  // They are given their places in that order.
  const due = dueClaims(rows, 100).filter(({ value }) => value === publicKey);
  expect(due.map(({ organizationId }) => organizationId)).toEqual(first === child ? [child, twin] : [twin, child]);
});
