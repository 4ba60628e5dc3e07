import type { OrganizationEvent } from '../../src/domain/organization/organization.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { claimsModel, dueClaims, keysOfCredentialId, whereItLeads } from '../../src/read-models/claims.js';
import { aPasskey } from '../activities/facts.js';
import { id } from '../activities/given.js';
import { goldenLines, goldenStream } from '../golden/streams.js';
import { recorded as recordedIn, rowsOf } from './projected.js';

const family = goldenStream('family.v1');
const parent = family[0]!.stream.replace('organization-', '');
const ofChild = goldenLines('family-child.v1');
const child = goldenStream('family-child.v1')[0]!.stream.replace('organization-', '');
const twin = child.replace(/.{2}$/, (end) => (end === 'aa' ? 'bb' : 'aa'));

/** Events at ten times their positions, which leaves places between them. */
const eventsOf = (lines: readonly string[], from: number): readonly RecordedEvent[] =>
  lines
    .map((line) => JSON.parse(line) as RecordedEvent)
    .map((event) => ({ ...event, position: BigInt(from) + 10n * BigInt(event.position) }));

test.each([
  ['the child', 0, 10_000, child],
  ['its twin', 10_000, 0, twin],
])('a key is proved in the order of the requests: first by %s', (_, ...given) => {
  const [childFrom, twinFrom, first] = given;
  // Until the child is deleted.
  const lines = ofChild.slice(
    0,
    ofChild.findIndex((line) => line.includes('"type":"OrganizationDeleted"')),
  );
  const renamed = lines.map((line) => line.replaceAll(child, twin));
  const founded = family.find(
    ({ type, data }) =>
      type === 'SubOrganizationCreated' && (data as { subOrganizationId: string }).subOrganizationId === child,
  )!;
  const position = 10n * founded.position;
  const data = { subOrganizationId: twin, name: 'Twin', founding: [] };
  const rows = rowsOf(
    claimsModel,
    [
      { ...founded, position },
      { ...founded, position: position + 1n, data },
      ...eventsOf(lines, childFrom),
      ...eventsOf(renamed, twinFrom),
    ].toSorted((one, other) => Number(one.position - other.position)),
  );
  const now = Date.UTC(2026, 5, 1);
  // They are given their places in that order.
  const keys = dueClaims(rows, 100).filter(({ kind }) => kind === 'PUBLIC_KEY');
  const [{ value: publicKey }] = keys as [(typeof keys)[number]];
  const due = keys.filter(({ value }) => value === publicKey);
  expect(due.map(({ organizationId }) => organizationId)).toEqual(first === child ? [child, twin] : [twin, child]);
  expect(whereItLeads(rows, parent, { kind: 'PUBLIC_KEY', value: publicKey }, now)).toEqual({
    rule: 'proof',
    organizationIds: [first],
  });
});

/** Founds a sub-organization, which its parent has recorded. */
function founded(organizationId: string, first: number, ...events: readonly OrganizationEvent[]): RecordedEvent[] {
  const founding = { organizationId, name: 'Child', parentOrganizationId: parent, createdBy: 'auth-proxy' } as const;
  return [
    ...recordedIn(
      parent,
      [
        {
          type: 'SubOrganizationCreated',
          data: { subOrganizationId: organizationId, name: 'Child', initialEvents: [] },
        },
      ],
      first,
    ),
    ...recordedIn(organizationId, [{ type: 'OrganizationCreated', data: founding }, ...events], first + 1),
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
