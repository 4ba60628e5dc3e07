import { CoordinatorError } from '../errors.js';
import type { AddressFormat, Curve } from '../key-formats.js';
import { presentMembers, type DomainEvent, type Evolvers } from './event.js';
import { forgetAddress, noteAddress } from './signing-keys.js';
import type { Limits } from './limits.js';
import type { Organization, OrganizationView } from './organization.js';
import { put, remove } from './slices.js';

/** A seed from which accounts are derived. The vault with that id holds the sealed seed. */
export interface Wallet {
  readonly walletId: string;
  readonly walletName: string;
  readonly vaultId: string;
  readonly exported: boolean;
  readonly imported: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** How an account is derived, and the result. `path` is normalized, `publicKey` hex. */
export interface AccountFacts {
  readonly walletAccountId: string;
  readonly curve: Curve;
  readonly pathFormat: 'PATH_FORMAT_BIP32';
  readonly path: string;
  readonly addressFormat: AddressFormat;
  readonly address: string;
  /** Compressed SEC1 point, or the 32 bytes of an Ed25519 key, lower-case hex. */
  readonly publicKey: string;
  readonly name?: string;
}

export interface WalletAccount extends AccountFacts {
  readonly walletId: string;
  readonly exported: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export type WalletEvent =
  | DomainEvent<'WalletCreated', { walletId: string; walletName: string; vaultId: string; imported: boolean }>
  | DomainEvent<'WalletAccountsCreated', { walletId: string; accounts: readonly AccountFacts[] }>
  | DomainEvent<'WalletUpdated', { walletId: string; walletName?: string }>
  | DomainEvent<'WalletExported', { walletId: string }>
  | DomainEvent<'WalletAccountExported', { walletId: string; walletAccountId: string }>
  | DomainEvent<'WalletAccountsDeleted', { walletId: string; walletAccountIds: readonly string[] }>
  | DomainEvent<'WalletDeleted', { walletId: string; vaultId: string }>;

export const evolveWallets: Evolvers<WalletEvent> = {
  WalletCreated(organization, data, at) {
    put(organization, 'wallets', data.walletId, { ...data, exported: false, createdAt: at, updatedAt: at });
  },
  WalletAccountsCreated(organization, { walletId, accounts }, at) {
    for (const facts of accounts) {
      const { walletAccountId, addressFormat, address } = facts;
      const account = { ...facts, walletId, exported: false, createdAt: at, updatedAt: at };
      put(organization, 'walletAccounts', walletAccountId, account);
      noteAddress(organization, addressFormat, address, { walletAccountId });
    }
  },
  WalletUpdated(organization, { walletId, ...changes }, at) {
    const wallet = organization.wallets.get(walletId);
    if (wallet) put(organization, 'wallets', walletId, { ...wallet, ...presentMembers(changes), updatedAt: at });
  },
  WalletExported(organization, { walletId }, at) {
    const wallet = organization.wallets.get(walletId);
    if (wallet) put(organization, 'wallets', walletId, { ...wallet, exported: true, updatedAt: at });
  },
  WalletAccountExported(organization, { walletAccountId }, at) {
    const account = organization.walletAccounts.get(walletAccountId);
    if (account) put(organization, 'walletAccounts', walletAccountId, { ...account, exported: true, updatedAt: at });
  },
  WalletAccountsDeleted(organization, { walletAccountIds }) {
    for (const walletAccountId of walletAccountIds) {
      const account = organization.walletAccounts.get(walletAccountId);
      if (account) removeAccount(organization, account);
    }
  },
  WalletDeleted(organization, { walletId }) {
    for (const account of accountsOf(organization, walletId)) removeAccount(organization, account);
    remove(organization, 'wallets', walletId);
  },
};

function removeAccount(organization: Organization, account: WalletAccount): void {
  const { walletAccountId, addressFormat, address } = account;
  remove(organization, 'walletAccounts', walletAccountId);
  forgetAddress(organization, addressFormat, address, { walletAccountId });
}

/** The accounts of a wallet, oldest first. */
export function accountsOf(organization: OrganizationView, walletId: string): WalletAccount[] {
  return [...organization.walletAccounts.values()].filter((account) => account.walletId === walletId);
}

/** The wallet of that id. @throws {CoordinatorError} NOT_FOUND */
export function existingWallet(organization: OrganizationView, walletId: string): Wallet {
  const wallet = organization.wallets.get(walletId);
  if (wallet) return wallet;
  throw new CoordinatorError(
    'NOT_FOUND',
    `no wallet \`${walletId}\` in organization \`${organization.organizationId}\`: see list_wallets`,
  );
}

/** Refuses a name that another wallet has; `own` is the wallet that may keep it. @throws {CoordinatorError} INVALID_ARGUMENT */
export function checkWalletNameFree(organization: OrganizationView, walletName: string, own?: string): void {
  for (const wallet of organization.wallets.values()) {
    if (wallet.walletName === walletName && wallet.walletId !== own) {
      throw new CoordinatorError(
        'INVALID_ARGUMENT',
        `wallet label must be unique: \`${walletName}\` is taken, it is the name of wallet \`${wallet.walletId}\``,
        { category: 'REQUEST_INVALID' },
      );
    }
  }
}

/** Refuses another wallet beyond the limit. @throws {CoordinatorError} RESOURCE_EXHAUSTED */
export function checkWalletCount(organization: OrganizationView, { wallets: most }: Limits): void {
  if (organization.wallets.size < most) return;
  throw new CoordinatorError(
    'RESOURCE_EXHAUSTED',
    `the organization has ${most} wallets, which is the limit: delete one with delete_wallets`,
  );
}
