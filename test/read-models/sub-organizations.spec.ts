import type { OrganizationEvent } from '../../src/domain/organization/organization.js';
import { ReadModelDatabase, type Rows } from '../../src/read-models/database.js';
import {
  listSuborgs,
  listVerifiedSuborgs,
  recordedByParent,
  subOrganizationsModel,
  unfoundedIn,
} from '../../src/read-models/sub-organizations.js';
import { id } from '../activities/given.js';
import { aUser } from '../activities/facts.js';

const parent = id(700);
const other = id(701);

/** The model with what has been recorded, in order. */
function projected(...recorded: readonly (readonly [organizationId: string, ...events: OrganizationEvent[]])[]) {
  const database = new ReadModelDatabase(':memory:');
  database.define(subOrganizationsModel.schema);
  let position = 0n;
  const record = (organizationId: string, ...events: OrganizationEvent[]) =>
    subOrganizationsModel.project(
      database,
      events.map((event) => ({
        organizationId,
        position: (position += 1n),
        revision: 0,
        at: 0,
        id: String(position),
        event,
      })),
    );
  for (const [organizationId, ...events] of recorded) record(organizationId, ...events);
  return { database, record };
}

const founding = (organizationId: string, ...events: OrganizationEvent[]) =>
  [
    organizationId,
    { type: 'OrganizationCreated', data: { organizationId, name: 'Child', parentOrganizationId: parent } },
    ...events,
  ] as const;

const recordedAs = (...subOrganizationIds: readonly string[]) =>
  [
    parent,
    ...subOrganizationIds.map((subOrganizationId): OrganizationEvent => ({
      type: 'SubOrganizationCreated',
      data: { subOrganizationId, name: 'Child', initialEvents: [] },
    })),
  ] as const;

const notAsked = () => {
  throw new Error('this query does not ask for that');
};

async function ask(
  rows: Rows,
  query: typeof listSuborgs | typeof listVerifiedSuborgs,
  request: object = {},
): Promise<readonly string[]> {
  const context = {
    rows,
    now: 0,
    callerOrganizationId: parent,
    callerUserId: id(1),
    limits: notAsked,
    verifyOidc: notAsked,
    history: notAsked,
    told: notAsked,
    states: notAsked,
    approvers: notAsked,
    lint: notAsked,
    whatIf: notAsked,
    reasons: notAsked,
    proofs: notAsked,
    dryRun: notAsked,
    page: notAsked,
    envelopes: notAsked,
    explained: notAsked,
    turn: () => undefined,
    saysNow: notAsked,
  };
  const answer = await query.answer({ organizationId: parent, ...request }, context);
  return answer.organizationIds;
}

const byEmail = (filterValue: string) => ({ filterType: 'EMAIL', filterValue });
const proved = {
  type: 'UserContactVerified',
  data: { userId: id(1), contact: 'email', issuerOrganizationId: id(700) },
} as const;
const ann = aUser(id(1), { userEmail: 'Ann@Example.com' });
const verified = (rows: Rows, contact: string) => ask(rows, listVerifiedSuborgs, byEmail(contact));

test('one that its parent has not recorded is shown by no question', async () => {
  const { database, record } = projected(founding(id(50), ann, proved));
  const questions = () =>
    Promise.all([
      ask(database, listSuborgs),
      ask(database, listSuborgs, byEmail('ann@example.com')),
      verified(database, 'ann@example.com'),
    ]);
  expect(await questions()).toEqual([[], [], []]);
  const after = ask(database, listSuborgs, { paginationOptions: { after: id(50) } });
  await expect(after).rejects.toThrow('is not an element of this list');
  expect(recordedByParent(database, id(50))).toBeUndefined();
  // Nor does another organization get it by recording the same id later.
  record(...recordedAs(id(51)));
  record(other, {
    type: 'SubOrganizationCreated',
    data: { subOrganizationId: id(51), name: 'Child', initialEvents: [] },
  });
  record(...founding(id(51), ann, proved));
  expect(await questions()).toEqual([[id(51)], [id(51)], [id(51)]]);
  expect(recordedByParent(database, id(51))).toEqual({ parentId: parent, revision: 0 });
});

test('one whose stream follows the word of its parent is shown with all that it has', async () => {
  const { database, record } = projected(recordedAs(id(50)));
  expect(unfoundedIn(database)).toEqual([id(50)]);
  const [organizationId, ...events] = founding(id(50), ann, proved);
  record(organizationId, ...events);
  expect(unfoundedIn(database)).toEqual([]);
  expect(recordedByParent(database, id(50))).toEqual({ parentId: parent, revision: 0 });
  expect(await ask(database, listSuborgs)).toEqual([id(50)]);
  expect(await verified(database, 'ann@example.com')).toEqual([id(50)]);
});

test('the order is that in which the parent recorded them', async () => {
  const { database } = projected(recordedAs(id(51), id(50)), founding(id(50)), founding(id(51)));
  expect(await ask(database, listSuborgs)).toEqual([id(50), id(51)]);
});

test('a proof stays as long as the contact stays what it was, letter for letter, as in the domain', async () => {
  const { database, record } = projected(recordedAs(id(50)), founding(id(50), ann, proved));
  const update = (userEmail: string) => record(id(50), { type: 'UserUpdated', data: { userId: id(1), userEmail } });
  update('Ann@Example.com');
  expect(await verified(database, 'ann@example.com')).toEqual([id(50)]);
  update('ann@example.com');
  expect(await verified(database, 'ann@example.com')).toEqual([]);
  record(id(50), proved);
  expect(await verified(database, 'ANN@example.com')).toEqual([id(50)]);
  update('');
  expect(await verified(database, 'ann@example.com')).toEqual([]);
  // A proof of nothing proves nothing.
  record(id(50), proved);
  expect(
    await verified(database, '')
      .then(() => 'answered')
      .catch((error: Error) => error.message),
  ).toContain('is required');
});

test('of two users with one address, the one who has proved it counts, until that one is gone', async () => {
  const bob = aUser(id(2), { userEmail: 'ann@example.com' });
  const { database, record } = projected(recordedAs(id(50)), founding(id(50), ann, proved, bob));
  expect(await verified(database, 'ann@example.com')).toEqual([id(50)]);
  record(id(50), { type: 'UserDeleted', data: { userId: id(1) } });
  expect(await verified(database, 'ann@example.com')).toEqual([]);
  expect(await ask(database, listSuborgs, byEmail('ann@example.com'))).toEqual([id(50)]);
});

test('an organization without a parent is none, and its users are not found', async () => {
  const root: OrganizationEvent = { type: 'OrganizationCreated', data: { organizationId: parent, name: 'Root' } };
  const { database } = projected([parent, root, ann, proved]);
  expect(database.all('SELECT * FROM sub_organization_lookups')).toEqual([]);
  expect(await verified(database, 'ann@example.com')).toEqual([]);
});

test.each([
  ['all', listSuborgs, {}],
  ['a page of all', listSuborgs, { paginationOptions: { after: id(50), limit: '100' } }],
  ['the ones with a value', listSuborgs, byEmail('ann@example.com')],
  ['a page of those', listSuborgs, { ...byEmail('ann@example.com'), paginationOptions: { before: id(50) } }],
  ['the ones with a proved contact', listVerifiedSuborgs, byEmail('ann@example.com')],
] as const)('%s: by index alone, without sorting, however many there are', async (_what, query, request) => {
  const { database } = projected(recordedAs(id(50)), founding(id(50), ann, proved));
  const asked: [sql: string, values: unknown[]][] = [];
  const watching: Rows = {
    run: (sql, ...values) => database.run(sql, ...values),
    get: (sql, ...values) => database.get(sql, ...values),
    all: (sql, ...values) => {
      asked.push([sql, values]);
      return database
        .all(`EXPLAIN QUERY PLAN ${sql}`, ...values)
        .map((row) => ({ organization_id: String(row['detail']), created: 0 }));
    },
    lost: (complaint) => database.lost(complaint),
  };
  const plan = await ask(watching, query, request);
  expect(asked).toHaveLength(1);
  expect(plan).toHaveLength(1);
  expect(plan[0]).toMatch(/^SEARCH sub_organization\w* USING (?:COVERING )?INDEX sub_organization\w+ \(parent_id=\?/);
});
