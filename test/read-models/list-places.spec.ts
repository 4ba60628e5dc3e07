import type { OrganizationEvent } from '../../src/domain/organization/organization.js';
import type { AccountFacts } from '../../src/domain/organization/wallets.js';
import { contractInterfacesModel, listSmartContractInterfaces } from '../../src/read-models/contract-interfaces.js';
import type { OrganizationRequest, QueryDefinition } from '../../src/read-models/define-query.js';
import { getOauthProviders } from '../../src/read-models/oauth-providers.js';
import type { TextPage } from '../../src/read-models/pages.js';
import { listPolicies, policiesModel } from '../../src/read-models/policies.js';
import type { ReadModel } from '../../src/read-models/read-model.js';
import { listSuborgs, subOrganizationsModel } from '../../src/read-models/sub-organizations.js';
import { getApiKeys, listUsers, usersModel } from '../../src/read-models/users.js';
import { listWalletAccounts, walletsModel } from '../../src/read-models/wallets.js';
import { validate } from '../../src/wire/validate.js';
import { anApiKey, anIdentity, anOrganization, aPolicy, aUser } from '../activities/facts.js';
import { id } from '../activities/given.js';
import { recorded, rowsAlone, rowsOf } from './projected.js';

const organizationId = id(700);
const owner = id(1);
const numbers = [11, 12, 13, 14, 15, 16];
const count = numbers.length;

interface Listed<Request extends OrganizationRequest> {
  readonly model: ReadModel;
  readonly query: QueryDefinition<Request, object>;
  readonly name: string;
  readonly before?: readonly OrganizationEvent[];
  readonly create: (number: number) => readonly OrganizationEvent[];
  readonly remove: (number: number) => OrganizationEvent;
  readonly request?: object;
}

/** What a page has, in its order; `name` is the member with the id. */
async function page<Request extends OrganizationRequest>(
  { model, query, name, before = [], create, request }: Listed<Request>,
  removals: readonly (OrganizationEvent | readonly [string, OrganizationEvent])[],
  paginationOptions: object,
): Promise<readonly unknown[]> {
  const made = recorded(organizationId, [anOrganization(), ...before, ...numbers.flatMap(create)]);
  const deleted = removals.flatMap((removal, index) => {
    const [of, event] = Array.isArray(removal)
      ? (removal as readonly [string, OrganizationEvent])
      : ([organizationId, removal as OrganizationEvent] as const);
    return recorded(of, [event], made.length + index).map((one) => ({ ...one, revision: made.length + index }));
  });
  const rows = rowsOf(model, made, deleted);
  const asked = validate(query.request, { organizationId, ...request, paginationOptions });
  const answer = await query.answer(asked, rowsAlone(rows, organizationId));
  const [list] = Object.values(answer) as [TextPage | readonly (string | Record<string, unknown>)[]];
  const elements = 'texts' in list ? list.texts.map((text) => JSON.parse(text) as Record<string, unknown>) : list;
  return elements.map((element) => (typeof element === 'string' ? element : element[name]));
}

const account = (number: number): AccountFacts => ({
  walletAccountId: id(number),
  curve: 'CURVE_SECP256K1',
  pathFormat: 'PATH_FORMAT_BIP32',
  path: `m/44'/60'/0'/0/${number}`,
  addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
  address: `0x${String(number).padStart(40, '0')}`,
  publicKey: '02aa',
});

const listOf = <Request extends OrganizationRequest>(listed: Listed<Request>) => listed as unknown as Listed<never>;

const lists: Readonly<Record<string, Listed<never>>> = {
  policies: listOf({
    model: policiesModel,
    query: listPolicies,
    name: 'policyId',
    create: (number) => [aPolicy(id(number), `policy ${number}`)],
    remove: (number) => ({ type: 'PolicyDeleted', data: { policyId: id(number) } }),
  }),
  users: listOf({
    model: usersModel,
    query: listUsers,
    name: 'userId',
    create: (number) => [aUser(id(number))],
    remove: (number) => ({ type: 'UserDeleted', data: { userId: id(number) } }),
  }),
  'API keys of all users': listOf({
    model: usersModel,
    query: getApiKeys,
    name: 'apiKeyId',
    before: [aUser(owner), aUser(id(2))],
    create: (number) => [anApiKey(number < 14 ? owner : id(2), number)],
    remove: (number) => ({
      type: 'ApiKeyDeleted',
      data: { userId: number < 14 ? owner : id(2), apiKeyId: id(number) },
    }),
  }),
  'identities of one user': listOf({
    model: usersModel,
    query: getOauthProviders,
    name: 'providerId',
    request: { userId: owner },
    before: [aUser(owner)],
    create: (number) => [anIdentity(owner, number)],
    remove: (number) => ({ type: 'OauthProviderDeleted', data: { userId: owner, providerId: id(number) } }),
  }),
  'accounts of a wallet': listOf({
    model: walletsModel,
    query: listWalletAccounts,
    name: 'walletAccountId',
    request: { walletId: id(1) },
    before: [
      { type: 'WalletCreated', data: { walletId: id(1), walletName: 'w', vaultId: id(2), imported: false } },
      { type: 'WalletAccountsCreated', data: { walletId: id(1), accounts: numbers.map(account) } },
    ],
    create: () => [],
    remove: (number) => ({
      type: 'WalletAccountsDeleted',
      data: { walletId: id(1), walletAccountIds: [id(number)] },
    }),
  }),
  'contract interfaces': listOf({
    model: contractInterfacesModel,
    query: listSmartContractInterfaces,
    name: 'smartContractInterfaceId',
    create: (number) => [
      {
        type: 'SmartContractInterfaceCreated',
        data: {
          smartContractInterfaceId: id(number),
          smartContractAddress: `0x${number}`,
          smartContractInterface: '[]',
          type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
          label: '',
          notes: '',
        },
      },
    ],
    remove: (number) => ({
      type: 'SmartContractInterfaceDeleted',
      data: { smartContractInterfaceId: id(number) },
    }),
  }),
};

describe.each(Object.entries(lists))('a page of %s', (_list, listed) => {
  const ids = numbers.map((number) => id(number));
  const removed = (...indexes: readonly number[]) => indexes.map((index) => listed.remove(numbers[index]!));

  test('continues after, and before, an element that was deleted', async () => {
    for (let index = 0; index < count; index += 1) {
      const cursor = ids[index]!;
      expect(await page(listed, removed(index), { after: cursor })).toEqual(ids.slice(index + 1));
      expect(await page(listed, removed(index), { before: cursor })).toEqual(ids.slice(0, index));
    }
  });

  test('continues where its neighbours were deleted too, and between two of them', async () => {
    const all = removed(1, 2, 4);
    expect(await page(listed, all, { after: ids[1]! })).toEqual([ids[3], ids[5]]);
    expect(await page(listed, all, { before: ids[2]! })).toEqual([ids[0]]);
    expect(await page(listed, all, { after: ids[1]!, before: ids[4]! })).toEqual([ids[3]]);
    expect(await page(listed, all, { after: ids[4]!, before: ids[1]! })).toEqual([]);
    expect(await page(listed, all, { after: ids[1]!, limit: '1' })).toEqual([ids[3]]);
  });

  test('refuses an id that never was in the list', async () => {
    await expect(page(listed, removed(1), { after: id(99) })).rejects.toThrow(
      `paginationOptions.after: is not an element of this list: \`${id(99)}\``,
    );
  });
});

test('API keys of all users continue after one of a deleted user', async () => {
  const listed = lists['API keys of all users']!;
  const gone = { type: 'UserDeleted', data: { userId: owner } } as const;
  expect(await page(listed, [gone], { after: id(12) })).toEqual([id(14), id(15), id(16)]);
  expect(await page(listed, [gone], { before: id(12) })).toEqual([]);
  expect(await page(listed, [gone], { before: id(15) })).toEqual([id(14)]);
});

test('accounts continue after one whose wallet was deleted', async () => {
  const other = {
    type: 'WalletAccountsCreated',
    data: { walletId: id(3), accounts: [account(20)] },
  } as const;
  const { request: _request, ...listed } = lists['accounts of a wallet']!;
  const events = [other, { type: 'WalletDeleted', data: { walletId: id(1), vaultId: id(2) } } as const];
  expect(await page(listed, events, { after: id(16) })).toEqual([id(20)]);
});

test('sub-organizations continue after one that was deleted', async () => {
  const listed = listOf({
    model: subOrganizationsModel,
    query: listSuborgs,
    name: '',
    create: (number) => [
      { type: 'SubOrganizationCreated', data: { subOrganizationId: id(number), name: 'Child', initialEvents: [] } },
    ],
    remove: (number) => ({
      type: 'OrganizationDeleted',
      data: { organizationId: id(number), vaultIds: [] },
    }),
  });
  const removals = [12, 13].map((number) => [id(number), listed.remove(number)] as const);
  // Newest first.
  expect(await page(listed, removals, { after: id(13) })).toEqual([id(11)]);
  expect(await page(listed, removals, { before: id(12) })).toEqual([id(16), id(15), id(14)]);
});
