import { getApiKeys, usersModel } from '../../src/read-models/users.js';
import { getOauthProviders } from '../../src/read-models/oauth-providers.js';
import type { Rows } from '../../src/read-models/database.js';
import type { OrganizationRequest, QueryDefinition } from '../../src/read-models/define-query.js';
import { partOf, type TextPage } from '../../src/read-models/pages.js';
import { validate } from '../../src/wire/validate.js';
import { anApiKey, anIdentity, anOrganization, aUser } from '../activities/facts.js';
import { id } from '../activities/given.js';
import { recorded, rowsAlone, rowsOf } from './projected.js';

const organizationId = id(700);

async function ask<Request extends OrganizationRequest, Response extends object>(
  query: QueryDefinition<Request, Response>,
  rows: Rows,
  request: object,
): Promise<readonly Record<string, string>[]> {
  const answer = await query.answer(
    validate(query.request, { organizationId, ...request }),
    rowsAlone(rows, organizationId),
  );
  const [page] = Object.values(answer) as [TextPage];
  return page.texts.map((text) => JSON.parse(text) as Record<string, string>);
}

// Three users, the second of whom has nothing.
const users = [101, 102, 103];
const rows = rowsOf(
  usersModel,
  recorded(organizationId, [
    anOrganization(),
    ...users.map((user) => aUser(id(user))),
    ...[101, 103].flatMap((user, index) =>
      [1, 2, 3].flatMap((number) => {
        const own = index * 3 + number;
        return [anApiKey(id(user), 200 + own), anIdentity(id(user), 300 + own)];
      }),
    ),
  ]),
);

describe.each([
  ['API keys', 200, (request: object) => ask(getApiKeys, rows, request), 'apiKeyId'],
  ['OAuth providers', 300, (request: object) => ask(getOauthProviders, rows, request), 'providerId'],
])('a list of %s of all users', (_what, from, asked, name) => {
  const ids = [1, 2, 3, 4, 5, 6].map((number) => id(from + number));
  const idsOf = async (request: object) => (await asked(request)).map((one) => one[name]);

  test('a list goes on after the last element that was shown', async () => {
    expect(await idsOf({})).toEqual(ids);
    for (let count = 1; count <= 6; count += 1) {
      const rest = { after: ids[count - 1]! };
      expect(await idsOf({ paginationOptions: rest })).toEqual(ids.slice(count));
      expect(await idsOf({ paginationOptions: { ...rest, limit: '2' } })).toEqual(ids.slice(count, count + 2));
    }
  });

  test('a list goes back before the first, and stays between two', async () => {
    for (let count = 0; count < 6; count += 1) {
      const rest = { before: ids[count]! };
      expect(await idsOf({ paginationOptions: rest })).toEqual(ids.slice(0, count));
      expect(await idsOf({ paginationOptions: { ...rest, limit: '2' } })).toEqual(
        ids.slice(Math.max(0, count - 2), count),
      );
    }
    expect(await idsOf({ paginationOptions: { after: ids[1]!, before: ids[4]! } })).toEqual(ids.slice(2, 4));
  });

  test('lists of one user have pages too', async () => {
    const own = { userId: id(103) };
    expect(await idsOf({ ...own, paginationOptions: { after: ids[3]! } })).toEqual(ids.slice(4));
    await expect(idsOf({ ...own, paginationOptions: { after: ids[0]! } })).rejects.toThrow('is not an element');
  });

  test('a list accepts only ids of its elements as cursors', async () => {
    const other = id(from === 200 ? 301 : 201);
    for (const wrong of [other, id(999)]) {
      await expect(idsOf({ paginationOptions: { after: wrong } })).rejects.toThrow(
        `paginationOptions.after: is not an element of this list: \`${wrong}\``,
      );
    }
  });
});

test('a list that is there as a whole has parts too', () => {
  const elements = ['a', 'b', 'c', 'd'].map((name) => ({ name }));
  const part = (options: object) =>
    [...partOf(elements, ({ name }) => name, options).inTurn].map(({ name }) => name).join('');
  expect([part({}), part({ after: 'b' }), part({ limit: '1', after: 'b' }), part({ after: 'd' })]).toEqual([
    'abcd',
    'cd',
    'c',
    '',
  ]);
  // One that goes back begins next to what it is asked from.
  expect([part({ before: 'd' }), part({ before: 'd', limit: '2' }), part({ after: 'a', before: 'd' })]).toEqual([
    'cba',
    'cb',
    'bc',
  ]);
  expect(() => part({ before: 'e' })).toThrow('is not an element');
});
