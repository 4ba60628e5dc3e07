import { deleteWallets } from '../../../src/activities/wallets/delete-wallets.js';
import { given, id } from '../given.js';
import { anAccount, aWallet, history, theAccounts } from './wallet-facts.js';

const exported = { type: 'WalletExported', data: { walletId: id(301) } } as const;
const wallets = [...history, aWallet(301), exported, aWallet(302), theAccounts(302, anAccount(1302))];
const deleted = (number: number) =>
  ({ type: 'WalletDeleted', data: { walletId: id(number), vaultId: id(1_000 + number) } }) as const;

describe('delete wallets', () => {
  it.each([undefined, false, true])('deletes one that was exported, deleteWithoutExport %s', (deleteWithoutExport) =>
    given(...wallets)
      .when(deleteWallets, { walletIds: [id(301)], deleteWithoutExport })
      .then([deleted(301)], { walletIds: [id(301)] }),
  );

  it('deletes others when told to, in the order given', () =>
    given(...wallets)
      .when(deleteWallets, { walletIds: [id(302), id(301)], deleteWithoutExport: true })
      .then([deleted(302), deleted(301)], { walletIds: [id(302), id(301)] }));

  it.each([undefined, false])('deletes none when one was not exported, deleteWithoutExport %s', (deleteWithoutExport) =>
    given(...wallets)
      .when(deleteWallets, { walletIds: [id(301), id(302)], deleteWithoutExport })
      .thenRefused('INVALID_ARGUMENT', new RegExp(`^wallet has not been exported: \`${id(302)}\`.*export_wallet`)),
  );

  it('does not take the export of its accounts for that of the wallet', () =>
    given(...wallets, {
      type: 'WalletAccountExported',
      data: { walletId: id(302), walletAccountId: id(1302) },
    })
      .when(deleteWallets, { walletIds: [id(302)] })
      .thenRefused('INVALID_ARGUMENT', /wallet has not been exported/));

  it('refuses one that is not there', () =>
    given(...wallets)
      .when(deleteWallets, { walletIds: [id(301), id(303)], deleteWithoutExport: true })
      .thenRefused('NOT_FOUND', new RegExp(`no wallet \`${id(303)}\``)));

  it.each([
    ['an empty list', [], /walletIds: must have 1 to 100 elements, has 0/],
    ['the same wallet twice', [id(301), id(301)], /walletIds: must not list an id twice/],
  ])('refuses %s', (_what, walletIds, message) =>
    given(...wallets)
      .when(deleteWallets, { walletIds, deleteWithoutExport: true })
      .thenRefused('INVALID_ARGUMENT', message),
  );
});
