import { readFile } from 'node:fs/promises';
import type { OrganizationEvent } from '../../src/domain/organization/organization.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { claimsModel, dueClaims, keysOfCredentialId, whereItLeads } from '../../src/read-models/claims.js';
import { aPasskey } from '../activities/facts.js';
import { id } from '../activities/given.js';
import { recorded as recordedIn, rowsOf } from './projected.js';

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

/** Founds a sub-organization, which its parent has recorded. */
function founded(organizationId: string, first: number, ...events: readonly OrganizationEvent[]): RecordedEvent[] {
  const founding = { organizationId, name: 'Child', parentOrganizationId: parent, foundedBy: 'auth-proxy' } as const;
  return [
    ...recordedIn(organizationId, [{ type: 'OrganizationCreated', data: founding }, ...events], first),
    ...recordedIn(
      parent,
      [{ type: 'SubOrganizationCreated', data: { subOrganizationId: organizationId, name: 'Child' } }],
      first + 1 + events.length,
    ),
  ];
}

test('of the keys under one credential id, those that were registered first are tried, 32 of them', () => {
  const { credentialId } = aPasskey(id(1), 1).data;
  const events = Array.from({ length: 40 }, (_, index) =>
    founded(id(1_000 + index), 10 * index, {
      type: 'AuthenticatorCreated',
      data: { ...aPasskey(id(2_000 + index), index).data, credentialId, publicKey: `key ${index}` },
    }),
  );
  const keys = keysOfCredentialId(rowsOf(claimsModel, events.flat()), parent, credentialId);
  expect(keys).toEqual(Array.from({ length: 32 }, (_, index) => `key ${index}`));
});

test('a sign-up removes four of those that have lapsed, and none that has not', () => {
  const hour = 3_600;
  const all = [
    ...[0, 1, 2, 3, 4, 5].map((index) => founded(id(1_000 + index), 10 * index)),
    founded(id(1_006), 3 * hour),
    founded(id(1_007), 4 * hour),
  ];
  const left = (...events: readonly RecordedEvent[][]) =>
    rowsOf(claimsModel, events.flat())
      .all('SELECT organization_id FROM claim_organizations ORDER BY 1')
      .map((row) => row['organization_id']);
  expect(left(...all.slice(0, 6))).toHaveLength(6);
  expect(left(...all.slice(0, 7))).toEqual([1_004, 1_005, 1_006].map(id));
  expect(left(...all)).toEqual([1_006, 1_007].map(id));
});
