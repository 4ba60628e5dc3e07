import fc from 'fast-check';
import { evolve, emptyOrganization, type OrganizationEvent } from '../../src/domain/organization/organization.js';
import type { User } from '../../src/domain/organization/users.js';
import { userAt } from '../../src/read-models/user-versions.js';
import { usersModel } from '../../src/read-models/users.js';
import { anApiKey, anOrganization, aPasskey, aUser } from '../activities/facts.js';
import { id } from '../activities/given.js';
import { recorded, rowsOf, timeOf } from './projected.js';

const organizationId = id(700);
const users = [id(101), id(102)] as const;

const user = fc.constantFrom(...users);
const contact = fc.constantFrom('email' as const, 'phone-number' as const);
/** An empty string clears a member. */
const cleared = fc.constant('');
const change: fc.Arbitrary<OrganizationEvent> = fc.oneof(
  fc.record({
    type: fc.constant('UserUpdated' as const),
    data: fc.record(
      {
        userId: user,
        userName: fc.string({ minLength: 1, maxLength: 8 }),
        userEmail: fc.oneof(cleared, fc.constant('ann@example.com'), fc.constant('bob@example.com')),
        userPhoneNumber: fc.oneof(cleared, fc.constant('+4915112345678')),
        userTags: fc.uniqueArray(fc.constantFrom(id(501), id(502))),
      },
      { requiredKeys: ['userId'] },
    ),
  }),
  fc
    .record({ userId: user, contact })
    .map((data) => ({ type: 'UserContactVerified' as const, data: { ...data, issuerOrganizationId: id(700) } })),
  fc.record({ userId: user, contact }).map((data) => ({ type: 'UserContactReleased' as const, data })),
  fc.tuple(user, fc.integer({ min: 1, max: 4 })).map(([userId, number]) => aPasskey(userId, 600 + number)),
);
/** Many small changes of one user, so that versions are parts, and parts of more than one whole version. */
const renames = fc
  .tuple(user, fc.integer({ min: 6, max: 12 }))
  .map(([userId, count]) =>
    Array.from({ length: count }, (_, at) => ({ type: 'UserUpdated' as const, data: { userId, userName: `N${at}` } })),
  );

/** Events of one organization: two users, the first with keys enough for a rename to be small beside it. */
const histories = fc
  .array(
    fc.oneof(
      change.map((one) => [one]),
      renames,
    ),
    { minLength: 1, maxLength: 12 },
  )
  .map((changes): OrganizationEvent[] => [
    anOrganization(),
    ...users.map((userId) => aUser(userId, { userEmail: 'ann@example.com' })),
    ...[1, 2, 3].map((number) => anApiKey(users[0], 200 + number)),
    ...changes.flat(),
    { type: 'UserDeleted', data: { userId: users[0] } },
  ]);

/** Members that have a value, as JSON has them. */
const asJson = (one: User | undefined): unknown => (one === undefined ? undefined : JSON.parse(JSON.stringify(one)));

test('a user at any position is the user that folding the events until there gives, however they came in batches', () => {
  fc.assert(
    fc.property(histories, fc.integer({ min: 1, max: 20 }), (facts, batchSize) => {
      const events = recorded(organizationId, facts);
      const batches = Array.from({ length: Math.ceil(events.length / batchSize) }, (_, at) =>
        events.slice(at * batchSize, (at + 1) * batchSize),
      );
      const rows = rowsOf(usersModel, ...batches);
      const organization = emptyOrganization();
      for (const [position, fact] of facts.entries()) {
        evolve(organization, fact, timeOf(position));
        for (const userId of users) {
          const expected = asJson(organization.users.get(userId));
          expect(asJson(userAt(rows, organizationId, userId, String(position)))).toEqual(expected);
        }
      }
      rows.close();
    }),
    { numRuns: 60 },
  );
});

test('a version that changed little has what it changed, at most eight between whole ones', () => {
  const rename = (at: number) => ({ type: 'UserUpdated' as const, data: { userId: users[0], userName: `Name ${at}` } });
  const names = Array.from({ length: 20 }, (_, at) => rename(at));
  const facts = [anOrganization(), aUser(users[0]), anApiKey(users[0], 201), anApiKey(users[0], 202), ...names];
  const rows = rowsOf(usersModel, recorded(organizationId, facts));
  const versions = rows.all('SELECT position, whole, doc FROM user_versions ORDER BY position');
  const [, , second, ...renamed] = versions.map(({ position, whole, doc }) => ({
    isWhole: position === whole,
    members: Object.keys(JSON.parse(String(doc)) as object),
  }));
  expect(second?.isWhole).toBe(true);
  expect(renamed.map(({ isWhole }) => isWhole)).toEqual(names.map((_, at) => at % 9 === 8));
  expect(renamed[0]?.members.toSorted()).toEqual(['updatedAt', 'userName']);
  expect(renamed[8]?.members).toContain('apiKeys');
});

test('a change that is long beside the user is a whole version', () => {
  const facts = [anOrganization(), aUser(users[0]), anApiKey(users[0], 201)];
  const rows = rowsOf(usersModel, recorded(organizationId, facts));
  const versions = rows.all('SELECT position, whole FROM user_versions ORDER BY position');
  expect(versions.map(({ position, whole }) => position === whole)).toEqual([true, true]);
});
