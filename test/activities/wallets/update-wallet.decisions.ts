import { updateWallet } from '../../../src/activities/wallets/update-wallet.js';
import { given, id } from '../given.js';
import { aWallet, history } from './wallet-facts.js';

const wallets = [...history, aWallet(301), aWallet(302, { walletName: 'Taken' })];

describe('update wallet', () => {
  it.each(['Treasury', 'wallet 301'])('calls it %s', (walletName) =>
    given(...wallets)
      .when(updateWallet, { walletId: id(301), walletName })
      .then([{ type: 'WalletUpdated', data: { walletId: id(301), walletName } }], { walletId: id(301) }),
  );

  it('refuses a name that another wallet has', () =>
    given(...wallets)
      .when(updateWallet, { walletId: id(301), walletName: 'Taken' })
      .thenRefused('INVALID_ARGUMENT', new RegExp(`label must be unique: \`Taken\`.*\`${id(302)}\``)));

  it('refuses a wallet that is not there', () =>
    given(...wallets)
      .when(updateWallet, { walletId: id(303), walletName: 'Treasury' })
      .thenRefused('NOT_FOUND', new RegExp(`no wallet \`${id(303)}\`.*list_wallets`)));

  it('changes nothing when no name is sent', () =>
    given(...wallets)
      .when(updateWallet, { walletId: id(301) })
      .then([], { walletId: id(301) }));
});
