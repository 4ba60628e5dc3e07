import { CoordinatorError, invalidField } from '../domain/errors.js';
import { CURVES, type Curve } from '../domain/key-formats.js';
import { presentMembers } from '../domain/organization/event.js';
import { timestamp } from '../domain/organization/timestamp.js';
import type { Wallet, WalletAccount } from '../domain/organization/wallets.js';
import { DecimalString, Flag, ListOf, Nested, OneOf, Text, Uuid } from '../wire/fields.js';
import type { Rows } from './database.js';
import { defineQuery, type ListPage, ListRequest, OrganizationRequest, PagedResponse } from './define-query.js';
import { OwnedDocuments } from './owned-documents.js';
import { ListCursors } from './list-cursors.js';
import { noElement, type Elements } from './pages.js';
import { eachEvent, type ReadModel } from './read-model.js';
import { TimestampShape } from '../wire/shapes.js';

const wallets = new OwnedDocuments<Wallet>('wallets', 'wallet_id');
const accountPlaces = new ListCursors({
  table: 'wallet_accounts',
  id: 'wallet_account_id',
  columns: ['wallet_id', 'position', 'place'],
});

/** Wallets and their accounts. Accounts are listed by the position of their event and their place in it. */
export const walletsModel: ReadModel = {
  name: 'wallets',
  version: 2,
  tables: [...wallets.tables, ...accountPlaces.tables],
  schema: `${wallets.schema}
    CREATE TABLE wallet_accounts (
      organization_id TEXT NOT NULL, wallet_account_id TEXT NOT NULL, wallet_id TEXT NOT NULL,
      position INTEGER NOT NULL, place INTEGER NOT NULL,
      address TEXT NOT NULL, path TEXT NOT NULL, curve TEXT NOT NULL, doc TEXT NOT NULL,
      PRIMARY KEY (wallet_account_id, organization_id)
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX wallet_accounts_in_order ON wallet_accounts (organization_id, position, place);
    CREATE INDEX wallet_accounts_of_wallet ON wallet_accounts (organization_id, wallet_id, position, place);
    CREATE INDEX wallet_accounts_by_address ON wallet_accounts (address, organization_id, wallet_id);
    CREATE INDEX wallet_accounts_by_path ON wallet_accounts (organization_id, wallet_id, path);
    ${accountPlaces.schema}`,

  project: eachEvent((rows, { organizationId, position, at, event }) => {
    switch (event.type) {
      case 'WalletCreated':
        return wallets.put(rows, organizationId, event.data.walletId, position, {
          ...event.data,
          exported: false,
          createdAt: at,
          updatedAt: at,
        });
      case 'WalletUpdated':
        return wallets.change(rows, organizationId, event.data.walletId, {
          ...presentMembers(event.data),
          updatedAt: at,
        });
      case 'WalletExported':
        return wallets.change(rows, organizationId, event.data.walletId, { exported: true, updatedAt: at });
      case 'WalletDeleted':
        rows.run(
          'DELETE FROM wallet_accounts WHERE organization_id = ? AND wallet_id = ?',
          organizationId,
          event.data.walletId,
        );
        return wallets.delete(rows, organizationId, event.data.walletId);
      case 'WalletAccountsCreated': {
        const { walletId, accounts } = event.data;
        for (const [place, facts] of accounts.entries()) {
          const account = { ...facts, walletId, exported: false, createdAt: at, updatedAt: at };
          putAccount(rows, organizationId, account, position, place);
        }
        return;
      }
      case 'WalletAccountExported':
        return exportAccount(rows, organizationId, event.data.walletAccountId, at);
      case 'WalletAccountsDeleted':
        for (const walletAccountId of event.data.walletAccountIds) {
          rows.run(
            'DELETE FROM wallet_accounts WHERE organization_id = ? AND wallet_account_id = ?',
            organizationId,
            walletAccountId,
          );
        }
    }
  }),
};

function putAccount(
  rows: Rows,
  organizationId: string,
  account: WalletAccount,
  position: bigint,
  place: number | bigint,
): void {
  const { walletAccountId, walletId, address, path, curve } = account;
  rows.run(
    'INSERT OR REPLACE INTO wallet_accounts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
    organizationId,
    walletAccountId,
    walletId,
    position,
    place,
    addressKey(address),
    path,
    curve,
    JSON.stringify(account),
  );
}

function exportAccount(rows: Rows, organizationId: string, walletAccountId: string, at: number): void {
  const row = rows.get(
    'SELECT position, place, doc FROM wallet_accounts WHERE organization_id = ? AND wallet_account_id = ?',
    organizationId,
    walletAccountId,
  );
  if (!row) return;
  const account = { ...readAccount(row['doc']), exported: true, updatedAt: at };
  putAccount(rows, organizationId, account, BigInt(row['position']!), BigInt(row['place']!));
}

const readAccount = (doc: unknown): WalletAccount => JSON.parse(String(doc)) as WalletAccount;

/** Hexadecimal addresses are case-insensitive. */
const addressKey = (address: string): string => (/^(?:0x)?[0-9a-f]+$/i.test(address) ? address.toLowerCase() : address);

const dates = ({ createdAt, updatedAt }: { readonly createdAt: number; readonly updatedAt: number }) => ({
  createdAt: timestamp(createdAt),
  updatedAt: timestamp(updatedAt),
});

function walletResource(wallet: Wallet): WalletShape {
  const { walletId, walletName, exported, imported } = wallet;
  return { walletId, walletName, ...dates(wallet), exported, imported };
}

function accountResource(organizationId: string, account: WalletAccount): WalletAccountShape {
  const { walletAccountId, walletId, curve, pathFormat, path, addressFormat, address, publicKey, name } = account;
  return {
    walletAccountId,
    organizationId,
    walletId,
    curve,
    pathFormat,
    path,
    addressFormat,
    address,
    ...dates(account),
    publicKey,
    ...(name === undefined ? {} : { name }),
  };
}

/** @throws {CoordinatorError} NOT_FOUND */
function walletOf(rows: Rows, organizationId: string, walletId: string): Wallet {
  const wallet = wallets.get(rows, organizationId, walletId);
  if (wallet) return wallet;
  throw new CoordinatorError(
    'NOT_FOUND',
    `no wallet \`${walletId}\` in organization \`${organizationId}\`: see list_wallets`,
  );
}

export class WalletShape {
  @Uuid()
  walletId!: string;

  @Text()
  walletName!: string;

  @Nested(() => TimestampShape)
  createdAt!: TimestampShape;

  @Nested(() => TimestampShape)
  updatedAt!: TimestampShape;

  @Flag({ about: 'True once its mnemonic has been exported.' })
  exported!: boolean;

  @Flag({ about: 'True if its mnemonic was imported.' })
  imported!: boolean;
}

class WalletAccountShape {
  @Uuid()
  walletAccountId!: string;

  @Uuid()
  organizationId!: string;

  @Uuid()
  walletId!: string;

  @OneOf(CURVES)
  curve!: Curve;

  @OneOf(['PATH_FORMAT_BIP32'])
  pathFormat!: 'PATH_FORMAT_BIP32';

  @Text({ about: "In canonical form: ' marks hardened segments; on Ed25519 all are hardened." })
  path!: string;

  @Text({ about: 'One of the ADDRESS_FORMAT values of create_wallet_accounts.' })
  addressFormat!: string;

  @Text()
  address!: string;

  @Nested(() => TimestampShape)
  createdAt!: TimestampShape;

  @Nested(() => TimestampShape)
  updatedAt!: TimestampShape;

  @Text({ optional: true, about: 'Compressed point, or the 32 bytes of an Ed25519 key, hex.' })
  publicKey?: string;

  @Nested(() => WalletShape, { optional: true, about: 'Its wallet, if requested.' })
  walletDetails?: WalletShape;

  @Text({ optional: true })
  name?: string;
}

/** All wallets of an organization as responses show them, in order of creation. */
export function walletsOf(
  rows: Rows,
  organizationId: string,
  options?: ListPage,
): Elements<WalletShape, Iterable<WalletShape>> {
  return wallets.list(rows, organizationId, options, walletResource);
}

class WalletRequest extends OrganizationRequest {
  @Uuid()
  walletId!: string;
}

class GetWalletResponse {
  @Nested(() => WalletShape)
  wallet!: WalletShape;
}

export const getWallet = defineQuery({
  path: 'get_wallet',
  summary: 'One wallet.',
  request: WalletRequest,
  response: GetWalletResponse,
  answer: ({ organizationId, walletId }, { rows }) => ({
    wallet: walletResource(walletOf(rows, organizationId, walletId)),
  }),
});

class ListWalletsResponse extends PagedResponse {
  @ListOf(() => WalletShape)
  wallets!: readonly WalletShape[];
}

export const listWallets = defineQuery({
  path: 'list_wallets',
  summary: 'All wallets of an organization, oldest first.',
  request: ListRequest,
  response: ListWalletsResponse,
  answer: async ({ organizationId, paginationOptions }, { rows, page }) => ({
    wallets: await page(walletsOf(rows, organizationId, paginationOptions)),
  }),
});

class GetWalletAccountRequest extends WalletRequest {
  @Text({ optional: true, max: 200, about: 'Its address; hexadecimal addresses in any letter case.' })
  address?: string;

  @Text({ optional: true, max: 160, about: 'Its path. If several accounts share it, the oldest is returned.' })
  path?: string;
}

class GetWalletAccountResponse {
  @Nested(() => WalletAccountShape)
  account!: WalletAccountShape;
}

export const getWalletAccount = defineQuery({
  path: 'get_wallet_account',
  summary: 'One account of a wallet, by its address, its path, or both.',
  request: GetWalletAccountRequest,
  response: GetWalletAccountResponse,
  answer({ organizationId, walletId, address, path }, { rows }) {
    if (address === undefined && path === undefined) {
      throw invalidField('address', 'is required without path: send address, path, or both');
    }
    walletOf(rows, organizationId, walletId);
    const where = ['organization_id = ?', 'wallet_id = ?'];
    const values = [organizationId, walletId];
    if (address !== undefined) {
      where.push('address = ?');
      values.push(addressKey(address));
    }
    if (path !== undefined) {
      const spelled = path.replaceAll('h', "'");
      // For Ed25519 every segment is hardened, whether requested so or not, and is recorded that way.
      const hardened = spelled.replace(/(\d)(?=\/|$)/g, "$1'");
      where.push("path IN (?, ?) AND path = iif(curve = 'CURVE_ED25519', ?, ?)");
      values.push(spelled, hardened, hardened, spelled);
    }
    // The plus makes SQLite look up these few instead of walking all accounts of the wallet in order.
    const row = rows.get(
      `SELECT doc FROM wallet_accounts WHERE ${where.join(' AND ')} ORDER BY +position, +place LIMIT 1`,
      ...values,
    );
    if (row) return { account: accountResource(organizationId, readAccount(row['doc'])) };
    const requested = [
      ...(address === undefined ? [] : [`address: \`${address}\``]),
      ...(path === undefined ? [] : [`path: \`${path}\``]),
    ];
    throw new CoordinatorError(
      'NOT_FOUND',
      `Could not find wallet account with ${requested.join(' and ')} in wallet \`${walletId}\`: see ` +
        'list_wallet_accounts',
    );
  },
});

/** The requested part of the list (specification, section 4.4). */
class WalletAccountsPage {
  @DecimalString({ min: 1, max: 100, optional: true, about: 'Page size, from "1" to "100"; default "10".' })
  limit?: string;

  @Uuid({ optional: true, about: 'Only accounts before this one in the list, even if it has been deleted since.' })
  before?: string;

  @Uuid({ optional: true, about: 'Only accounts after this one in the list, even if it has been deleted since.' })
  after?: string;
}

class ListWalletAccountsRequest extends OrganizationRequest {
  @Uuid({ optional: true, about: 'Only accounts of this wallet.' })
  walletId?: string;

  @Flag({ optional: true, about: 'True to include the wallet of each account as walletDetails.' })
  includeWalletDetails?: boolean;

  @Nested(() => WalletAccountsPage, { optional: true })
  paginationOptions?: WalletAccountsPage;
}

class ListWalletAccountsResponse {
  @ListOf(() => WalletAccountShape)
  accounts!: readonly WalletAccountShape[];
}

export const listWalletAccounts = defineQuery({
  path: 'list_wallet_accounts',
  summary: 'Accounts of an organization or of one wallet, oldest first, in pages.',
  request: ListWalletAccountsRequest,
  response: ListWalletAccountsResponse,
  answer({ organizationId, walletId, includeWalletDetails = false, paginationOptions = {} }, { rows }) {
    if (walletId !== undefined) walletOf(rows, organizationId, walletId);
    const accounts = accountsPage(rows, organizationId, walletId, paginationOptions);
    const details = new Map<string, WalletShape>();
    if (includeWalletDetails) {
      for (const id of new Set(accounts.map((account) => account.walletId))) {
        details.set(id, walletResource(walletOf(rows, organizationId, id)));
      }
    }
    return {
      accounts: accounts.map((account) => {
        const walletDetails = details.get(account.walletId);
        return { ...accountResource(organizationId, account), ...(walletDetails ? { walletDetails } : {}) };
      }),
    };
  },
});

/**
 * One page, oldest account first. A page requested only by what it precedes ends right before that account, so it is
 * read from there.
 * @throws {CoordinatorError} INVALID_ARGUMENT if a cursor names nothing in the list
 */
function accountsPage(
  rows: Rows,
  organizationId: string,
  walletId: string | undefined,
  { limit = '10', before, after }: WalletAccountsPage,
): WalletAccount[] {
  const where = ['organization_id = ?'];
  const values: (string | bigint)[] = [organizationId];
  if (walletId !== undefined) {
    where.push('wallet_id = ?');
    values.push(walletId);
  }
  const cursor = (name: 'before' | 'after', id: string | undefined, comparison: '<' | '>') => {
    if (id === undefined) return;
    const row = accountPlaces.of(rows, organizationId, id);
    if (!row || (walletId !== undefined && row['wallet_id'] !== walletId)) {
      throw noElement(name, id);
    }
    where.push(`(position, place) ${comparison} (?, ?)`);
    values.push(BigInt(row['position']!), BigInt(row['place']!));
  };
  cursor('after', after, '>');
  cursor('before', before, '<');
  const isBackward = before !== undefined && after === undefined;
  const order = isBackward ? 'DESC' : 'ASC';
  const page = rows.all(
    `SELECT doc FROM wallet_accounts WHERE ${where.join(' AND ')}
     ORDER BY position ${order}, place ${order} LIMIT ?`,
    ...values,
    Number(limit),
  );
  const accounts = page.map(({ doc }) => readAccount(doc));
  return isBackward ? accounts.reverse() : accounts;
}
