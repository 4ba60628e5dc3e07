import { HDNodeWallet } from 'ethers';
import { createWallet } from '../../../src/activities/wallets/create-wallet.js';
import { given, id } from '../given.js';
import { aWallet, ethereum, history, ports, prepared, secretOf, solana, wrongAccounts } from './wallet-facts.js';

const asked = { walletName: 'Treasury', accounts: [ethereum, { ...solana, name: 'savings' }] };

describe('create wallet', () => {
  it('records the wallet and its accounts as the keyring has derived them', async () => {
    const made = await prepared(createWallet, asked, history);
    const [one, two] = made.accounts;
    given(...history)
      .when(createWallet, asked, { prepared: made })
      .then(
        [
          {
            type: 'WalletCreated',
            data: { walletId: id(1), walletName: 'Treasury', vaultId: made.vaultId, imported: false },
          },
          {
            type: 'WalletAccountsCreated',
            data: {
              walletId: id(1),
              accounts: [
                { walletAccountId: id(2), pathFormat: 'PATH_FORMAT_BIP32', ...one! },
                { walletAccountId: id(3), pathFormat: 'PATH_FORMAT_BIP32', ...two!, name: 'savings' },
              ],
            },
          },
        ],
        { walletId: id(1), addresses: [one!.address, two!.address] },
      );
    const phrase = await secretOf(made.vaultId, 'mnemonic');
    expect(HDNodeWallet.fromPhrase(phrase, undefined, ethereum.path).address).toBe(one!.address);
    expect(await ports.vault.names(made.vaultId)).toHaveLength(4);
  });

  it('records no accounts when none are asked for', () =>
    given(...history)
      .when(createWallet, { walletName: 'Empty', accounts: [] }, { prepared: { vaultId: id(9), accounts: [] } })
      .then(
        [
          {
            type: 'WalletCreated',
            data: { walletId: id(1), walletName: 'Empty', vaultId: id(9), imported: false },
          },
        ],
        { walletId: id(1), addresses: [] },
      ));

  it.each([12, 15, 18, 21, 24])('makes a mnemonic of %d words', async (mnemonicLength) => {
    const { vaultId } = await prepared(createWallet, { ...asked, mnemonicLength }, history);
    expect((await secretOf(vaultId, 'mnemonic')).split(' ')).toHaveLength(mnemonicLength);
  });

  it.each([
    [13, /mnemonicLength: `13` is not one of 12, 15, 18, 21, 24/],
    [27, /mnemonicLength: must be a whole number from 12 to 24/],
  ])('refuses a mnemonic of %d words', (mnemonicLength, message) =>
    given(...history)
      .when(createWallet, { ...asked, mnemonicLength })
      .thenRefused('INVALID_ARGUMENT', message),
  );

  it.each(wrongAccounts)('refuses %s', (_what, account, message) =>
    given(...history)
      .when(createWallet, { ...asked, accounts: [ethereum, account] })
      .thenRefused('INVALID_ARGUMENT', message),
  );

  it.each([
    ['twice', [ethereum, ethereum]],
    ['in two spellings', [ethereum, { ...ethereum, path: 'm/44h/60h/0h/0/0' }]],
    ['on Ed25519, hardened and not', [solana, { ...solana, path: "m/44'/501'/0/0" }]],
  ])('refuses an account that is asked for %s', (_how, accounts) =>
    given(...history)
      .when(createWallet, { ...asked, accounts })
      .thenRefused('ALREADY_EXISTS', /parameters\.accounts\[1\]: the wallet already has an account at path `m\/44'/),
  );

  it('takes one path in two address formats', async () => {
    const accounts = [ethereum, { ...ethereum, addressFormat: 'ADDRESS_FORMAT_TRON' }];
    const made = await prepared(createWallet, { ...asked, accounts }, history);
    expect(made.accounts[0]!.publicKey).toBe(made.accounts[1]!.publicKey);
    expect(await ports.vault.names(made.vaultId)).toHaveLength(3);
  });

  it('refuses a name that another wallet has', () =>
    given(...history, aWallet(301, { walletName: 'Treasury' }))
      .when(createWallet, asked)
      .thenRefused('INVALID_ARGUMENT', new RegExp(`label must be unique: \`Treasury\`.*\`${id(301)}\``)));

  it('refuses wallet 101, and account 101 of one request', () => {
    const wallets = Array.from({ length: 100 }, (_, index) => aWallet(301 + index));
    given(...history, ...wallets)
      .when(createWallet, asked)
      .thenRefused('RESOURCE_EXHAUSTED', /100 wallets/);
    const accounts = Array.from({ length: 101 }, (_, index) => ({ ...ethereum, path: `m/${index}` }));
    given(...history)
      .when(createWallet, { ...asked, accounts })
      .thenRefused('INVALID_ARGUMENT', /parameters\.accounts: must have 0 to 100 elements, has 101/);
  });
});
