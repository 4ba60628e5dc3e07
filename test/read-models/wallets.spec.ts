import { CoordinatorError } from '../../src/domain/errors.js';
import type { OrganizationEvent } from '../../src/domain/organization/organization.js';
import type { AccountFacts } from '../../src/domain/organization/wallets.js';
import { validate } from '../../src/wire/validate.js';
import type { Rows } from '../../src/read-models/database.js';
import type { TextPage } from '../../src/read-models/pages.js';
import type { OrganizationRequest, QueryDefinition } from '../../src/read-models/define-query.js';
import {
  getWallet,
  getWalletAccount,
  listWalletAccounts,
  listWallets,
  walletsModel,
} from '../../src/read-models/wallets.js';
import { id } from '../activities/given.js';
import { contents, explained, recorded, rowsAlone, rowsOf, timeOf } from './projected.js';

const organizationId = id(700);
const stranger = id(701);

const wallet = (number: number): OrganizationEvent => ({
  type: 'WalletCreated',
  data: {
    walletId: id(number),
    walletName: `wallet ${number}`,
    vaultId: id(1_000 + number),
    imported: number % 2 === 0,
  },
});
const account = (number: number, more: Partial<AccountFacts> = {}): AccountFacts => ({
  walletAccountId: id(number),
  curve: 'CURVE_SECP256K1',
  pathFormat: 'PATH_FORMAT_BIP32',
  path: `m/44'/60'/0'/0/${number}`,
  addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
  address: `0xAbC${String(number).padStart(37, '0')}`,
  publicKey: '02aa',
  ...more,
});
const accounts = (walletNumber: number, ...numbers: readonly number[]): OrganizationEvent => ({
  type: 'WalletAccountsCreated',
  data: { walletId: id(walletNumber), accounts: numbers.map((number) => account(number)) },
});

/** Asks as the server does: the request is validated, then answered from the rows. */
function ask<Request extends OrganizationRequest, Response extends object>(
  query: QueryDefinition<Request, Response>,
  rows: Rows,
  request: object,
): Response {
  const validated = validate(query.request, { organizationId, ...request });
  return query.answer(validated, rowsAlone(rows, organizationId)) as Response;
}

type Listed = readonly { readonly walletAccountId: string; readonly walletDetails?: object }[];
const listed = (rows: Rows, request: object = {}): Listed => ask(listWalletAccounts, rows, request).accounts;
const idsOf = (rows: Rows, request: object = {}) => listed(rows, request).map((one) => one.walletAccountId);
const refused = (attempt: () => unknown): Pick<CoordinatorError, 'code' | 'message'> => {
  try {
    attempt();
  } catch (error) {
    if (error instanceof CoordinatorError) return { code: error.code, message: error.message };
    throw error;
  }
  throw new Error('was not refused');
};

/** Wallets 1 and 2 take turns: accounts 100 to 106, 107 to 113, …, each seven from one event. */
const turns = Array.from({ length: 6 }, (_, turn) => Array.from({ length: 7 }, (_, index) => 100 + 7 * turn + index));
const history = recorded(organizationId, [
  wallet(1),
  wallet(2),
  ...turns.map((numbers, turn) => accounts(1 + (turn % 2), ...numbers)),
]);
const everyone = turns.flat().map(id);
const ofFirst = turns.filter((_, turn) => turn % 2 === 0).flatMap((numbers) => numbers.map(id));
const foreign = recorded(stranger, [wallet(901), accounts(901, 911)], 500);
const rows = rowsOf(walletsModel, history, foreign);

describe('list_wallet_accounts', () => {
  it('lists ten in the order of their creation, of all wallets or of one', () => {
    expect(idsOf(rows)).toEqual(everyone.slice(0, 10));
    expect(idsOf(rows, { walletId: id(1) })).toEqual(ofFirst.slice(0, 10));
    expect(idsOf(rows, { organizationId: stranger })).toEqual([id(911)]);
  });

  it.each(['1', '7', '10', '42', '43', '100'])('goes through all, forth and back, in pages of %s', (limit) => {
    for (const [filter, expected] of [
      [{}, everyone],
      [{ walletId: id(1) }, ofFirst],
    ] as const) {
      for (const direction of ['after', 'before'] as const) {
        const seen: string[] = [];
        let cursor = direction === 'after' ? expected[0]! : expected.at(-1)!;
        for (;;) {
          const page = idsOf(rows, { ...filter, paginationOptions: { limit, [direction]: cursor } });
          expect(page.length).toBeLessThanOrEqual(Number(limit));
          if (page.length === 0) break;
          if (direction === 'after') seen.push(...page);
          else seen.unshift(...page);
          cursor = direction === 'after' ? page.at(-1)! : page[0]!;
        }
        expect(seen).toEqual(direction === 'after' ? expected.slice(1) : expected.slice(0, -1));
      }
    }
  });

  it('between two ends reads on from the first', () => {
    const paginationOptions = { after: everyone[3]!, before: everyone[9]! };
    expect(idsOf(rows, { paginationOptions })).toEqual(everyone.slice(4, 9));
    expect(idsOf(rows, { paginationOptions: { ...paginationOptions, limit: '2' } })).toEqual(everyone.slice(4, 6));
    const nothing = { after: everyone[9]!, before: everyone[3]! };
    expect(idsOf(rows, { paginationOptions: nothing })).toEqual([]);
    expect(idsOf(rows, { paginationOptions: { after: everyone[3]!, before: everyone[4]! } })).toEqual([]);
  });

  it('keeps its cursors when accounts come and go', () => {
    const more = rowsOf(
      walletsModel,
      history,
      recorded(
        organizationId,
        [
          { type: 'WalletAccountsDeleted', data: { walletId: id(1), walletAccountIds: [everyone[2]!, everyone[11]!] } },
          accounts(2, 300),
        ],
        history.length,
      ),
    );
    const left = everyone.filter((_, index) => index !== 2 && index !== 11);
    expect(idsOf(more, { paginationOptions: { limit: '100' } })).toEqual([...left, id(300)]);
    expect(idsOf(more, { paginationOptions: { after: everyone[10]!, limit: '2' } })).toEqual(everyone.slice(12, 14));
  });

  it('shows the wallet of each when asked', () => {
    const [one] = listed(rows, { includeWalletDetails: true });
    const created = { seconds: String(timeOf(0) / 1000), nanos: '0' };
    const accountCreated = { seconds: String(timeOf(2) / 1000), nanos: '0' };
    expect(one).toEqual({
      ...account(100),
      organizationId,
      walletId: id(1),
      createdAt: accountCreated,
      updatedAt: accountCreated,
      walletDetails: {
        walletId: id(1),
        walletName: 'wallet 1',
        createdAt: created,
        updatedAt: created,
        exported: false,
        imported: false,
      },
    });
    for (const request of [{}, { includeWalletDetails: false }, { includeWalletDetails: null }]) {
      expect(Object.keys(listed(rows, request)[0]!)).not.toContain('walletDetails');
    }
    expect(listed(rows, { includeWalletDetails: true, paginationOptions: { after: everyone[6]! } })[0]).toMatchObject({
      walletDetails: { walletId: id(2), imported: true },
    });
  });

  it.each(['0', '101', '1e1', '-1', '01', ' ', ' 5', 'ten'])('refuses %p as a limit', (limit) =>
    expect(refused(() => idsOf(rows, { paginationOptions: { limit } }))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('paginationOptions.limit') as string,
    }),
  );

  it('takes "" as no limit', () => {
    expect(idsOf(rows, { paginationOptions: { limit: '' } })).toEqual(idsOf(rows));
  });

  it.each([
    ['nothing', id(999), {}],
    ['an account of another organization', id(911), {}],
    ['an account of another wallet', id(107), { walletId: id(1) }],
  ])('refuses a cursor that names %s', (_what, cursor, filter) => {
    for (const name of ['before', 'after']) {
      expect(refused(() => idsOf(rows, { ...filter, paginationOptions: { [name]: cursor } }))).toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringContaining(`paginationOptions.${name}: is not an element of this list`) as string,
      });
    }
  });

  it('refuses a wallet that is not of the organization, and lists nothing of an empty one', () => {
    expect(refused(() => idsOf(rows, { walletId: id(901) }))).toMatchObject({ code: 'NOT_FOUND' });
    const empty = rowsOf(walletsModel, recorded(organizationId, [wallet(1)]));
    expect([idsOf(empty), idsOf(empty, { walletId: id(1) })]).toEqual([[], []]);
  });

  it('finds every page by an index, however many accounts there are', () => {
    const [middle] = everyone.slice(20);
    for (const filter of [{}, { walletId: id(1) }]) {
      const cursor = 'walletId' in filter ? ofFirst[5]! : middle!;
      for (const paginationOptions of [{}, { after: cursor }, { before: cursor }, { after: cursor, before: cursor }]) {
        const { rows: watched, plans } = explained(rows);
        idsOf(watched, { ...filter, includeWalletDetails: true, paginationOptions });
        const index = 'walletId' in filter ? 'wallet_accounts_of_wallet' : 'wallet_accounts_in_order';
        expect(plans()).toContainEqual(expect.stringContaining(index));
        for (const plan of plans()) expect(plan).toMatch(/^SEARCH .*\?/);
      }
    }
  });
});

describe('get_wallet_account', () => {
  const found = (request: object) => ask(getWalletAccount, rows, request).account;

  it.each([
    ['its address', { address: account(101).address }],
    ['its address in another letter case', { address: account(101).address.toLowerCase() }],
    ['its path', { path: account(101).path }],
    ['its path, hardened by h', { path: 'm/44h/60h/0h/0/101' }],
    ['both', { address: account(101).address, path: account(101).path }],
  ])('finds one by %s', (_by, request) =>
    expect(found({ walletId: id(1), ...request })).toMatchObject({ walletAccountId: id(101) }),
  );

  it('hardens what is asked of Ed25519, and of nothing else; of several it answers the oldest', () => {
    const solana = { curve: 'CURVE_ED25519', addressFormat: 'ADDRESS_FORMAT_SOLANA', path: "m/44'/501'" } as const;
    const data = {
      walletId: id(1),
      accounts: [
        account(102, { ...solana, address: 'So1a' }),
        account(103, { path: "m/44'/501" }),
        account(104, { path: "m/44'/501'" }),
      ],
    };
    const other = rowsOf(walletsModel, recorded(organizationId, [wallet(1), { type: 'WalletAccountsCreated', data }]));
    const at = (path: string) => ask(getWalletAccount, other, { walletId: id(1), path }).account;
    expect(at('m/44h/501')).toMatchObject({ walletAccountId: id(102) });
    expect(at("m/44'/501'")).toMatchObject({ walletAccountId: id(102) });
    const secp = ask(getWalletAccount, other, { walletId: id(1), path: "m/44'/501", address: account(103).address });
    expect(secp.account).toMatchObject({ walletAccountId: id(103) });
  });

  it('refuses what is not in that wallet, and a question without address and path', () => {
    const address = account(107).address;
    expect(refused(() => found({ walletId: id(1), address }))).toEqual({
      code: 'NOT_FOUND',
      message: expect.stringContaining(`Could not find wallet account with address: \`${address}\``) as string,
    });
    expect(refused(() => found({ walletId: id(1), path: 'm/1' }))).toMatchObject({ code: 'NOT_FOUND' });
    expect(refused(() => found({ walletId: id(901), address }))).toMatchObject({ code: 'NOT_FOUND' });
    expect(refused(() => found({ walletId: id(1) }))).toEqual({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('send address, path, or both') as string,
    });
  });

  it('looks neither up among all accounts of a wallet', () => {
    const { rows: watched, plans } = explained(rows);
    ask(getWalletAccount, watched, { walletId: id(1), address: account(101).address });
    ask(getWalletAccount, watched, { walletId: id(1), path: account(101).path });
    expect(plans().filter((plan) => plan.includes('wallet_accounts '))).toEqual([
      expect.stringContaining('wallet_accounts_by_address (address=? AND organization_id=? AND wallet_id=?)'),
      expect.stringContaining('wallet_accounts_by_path (organization_id=? AND wallet_id=? AND path=?)'),
    ]);
  });
});

describe('wallets', () => {
  const after = recorded(
    organizationId,
    [
      { type: 'WalletUpdated', data: { walletId: id(1), walletName: 'renamed' } },
      { type: 'WalletExported', data: { walletId: id(2) } },
      { type: 'WalletAccountExported', data: { walletId: id(1), walletAccountId: id(101) } },
      { type: 'WalletDeleted', data: { walletId: id(2), vaultId: id(1_002) } },
      wallet(3),
    ],
    history.length,
  );
  const seconds = (position: number) => ({ seconds: String(timeOf(position) / 1000), nanos: '0' });

  it('are listed in the order of their creation, as what happened left them', async () => {
    const shown = async (count: number) => {
      const asked = rowsOf(walletsModel, history, after.slice(0, count));
      const { wallets } = await (ask(listWallets, asked, {}) as object as Promise<{ wallets: TextPage }>);
      return wallets.texts.map((text) => JSON.parse(text) as { walletName: string });
    };
    expect(await shown(2)).toEqual([
      expect.objectContaining({ walletName: 'renamed', exported: false, updatedAt: seconds(history.length) }),
      expect.objectContaining({ walletName: 'wallet 2', exported: true, imported: true, createdAt: seconds(1) }),
    ]);
    expect((await shown(5)).map(({ walletName }) => walletName)).toEqual(['renamed', 'wallet 3']);
  });

  it('answer one by one, without what lies in their vaults', () => {
    const { wallet: one } = ask(getWallet, rows, { walletId: id(2) });
    expect(one).toEqual({
      walletId: id(2),
      walletName: 'wallet 2',
      createdAt: seconds(1),
      updatedAt: seconds(1),
      exported: false,
      imported: true,
    });
    expect(refused(() => ask(getWallet, rows, { walletId: id(901) }))).toEqual({
      code: 'NOT_FOUND',
      message: expect.stringContaining('see list_wallets') as string,
    });
  });

  it('take their accounts along, and an exported account is changed in place', () => {
    const left = rowsOf(walletsModel, history, after);
    expect(idsOf(left, { paginationOptions: { limit: '100' } })).toEqual(ofFirst);
    const exported = ask(getWalletAccount, left, { walletId: id(1), address: account(101).address }).account;
    expect(exported).toMatchObject({ createdAt: seconds(2), updatedAt: seconds(history.length + 2) });
  });

  it('are the same however the events come, and when they come again', () => {
    const events = [...history, ...after];
    const once = contents(walletsModel, rowsOf(walletsModel, events));
    expect(contents(walletsModel, rowsOf(walletsModel, ...events.map((event) => [event])))).toEqual(once);
    expect(contents(walletsModel, rowsOf(walletsModel, history, events))).toEqual(once);
    expect(once['wallet_accounts']).toHaveLength(ofFirst.length);
  });
});
