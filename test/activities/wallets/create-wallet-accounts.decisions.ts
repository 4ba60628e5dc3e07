import { HDNodeWallet } from 'ethers';
import { createWalletAccounts } from '../../../src/activities/wallets/create-wallet-accounts.js';
import { given, id } from '../given.js';
import {
  anAccount,
  aWallet,
  ethereum,
  history,
  ports,
  prepared,
  sealedWallet,
  secretOf,
  solana,
  theAccounts,
  wrongAccounts,
} from './wallet-facts.js';

const { vaultId, account, events: wallet } = await sealedWallet(301);
const second = { ...ethereum, path: "m/44'/60'/0'/0/1", name: 'second' };
const asked = { walletId: id(301), accounts: [second] };

describe('create wallet accounts', () => {
  it('records accounts of the same seed, and keeps their keys for signing', async () => {
    const made = await prepared(createWalletAccounts, asked, [...history, ...wallet]);
    const phrase = await secretOf(vaultId, 'mnemonic');
    const { address } = HDNodeWallet.fromPhrase(phrase, undefined, second.path);
    given(...history, ...wallet)
      .when(createWalletAccounts, asked, { prepared: made })
      .then(
        [
          {
            type: 'WalletAccountsCreated',
            data: {
              walletId: id(301),
              accounts: [{ ...made.derived[0]!, ...second, walletAccountId: id(1), address }],
            },
          },
        ],
        { addresses: [address] },
      );
    expect(await ports.vault.names(vaultId)).toContain(`key CURVE_SECP256K1 ${second.path}`);
  });

  it('with persist false answers the addresses, and neither records nor keeps anything', async () => {
    const before = await ports.vault.names(vaultId);
    const intent = { ...asked, accounts: [{ ...ethereum, path: "m/44'/60'/0'/0/7" }, ethereum], persist: false };
    const made = await prepared(createWalletAccounts, intent, [...history, ...wallet]);
    given(...history, ...wallet)
      .when(createWalletAccounts, intent, { prepared: made })
      .then([], { addresses: made.derived.map(({ address }) => address) });
    expect(new Set(made.derived.map(({ address }) => address)).size).toBe(2);
    expect(await ports.vault.names(vaultId)).toEqual(before);
  });

  it('refuses a wallet that is not there, when asked and when it has gone meanwhile', async () => {
    given(...history)
      .when(createWalletAccounts, asked)
      .thenRefused('NOT_FOUND', new RegExp(`no wallet \`${id(301)}\``));
    const made = await prepared(createWalletAccounts, asked, [...history, ...wallet]);
    given(...history, ...wallet, { type: 'WalletDeleted', data: { walletId: id(301), vaultId } })
      .when(createWalletAccounts, asked, { prepared: made })
      .thenRefused('NOT_FOUND', /no wallet/);
  });

  it('refuses an account that the wallet has, and not one that another wallet has', async () => {
    given(...history, ...wallet)
      .when(createWalletAccounts, { ...asked, accounts: [solana, ethereum] })
      .thenRefused(
        'ALREADY_EXISTS',
        /parameters\.accounts\[1\]: the wallet already has an account at path `m\/44'\/60'/,
      );
    const events = [...history, ...wallet, aWallet(401), theAccounts(401, anAccount(402, second))];
    const made = await prepared(createWalletAccounts, asked, events);
    given(...events)
      .when(createWalletAccounts, asked, { prepared: made })
      .then(
        [
          {
            type: 'WalletAccountsCreated',
            data: { walletId: id(301), accounts: [{ ...made.derived[0]!, ...second, walletAccountId: id(1) }] },
          },
        ],
        { addresses: [made.derived[0]!.address] },
      );
  });

  it('takes an account again that was deleted', async () => {
    const events = [
      ...history,
      ...wallet,
      { type: 'WalletAccountsDeleted', data: { walletId: id(301), walletAccountIds: [id(302)] } } as const,
    ];
    const intent = { ...asked, accounts: [ethereum] };
    const made = await prepared(createWalletAccounts, intent, events);
    expect(made.derived[0]!.address).toBe(account.address);
  });

  it.each(wrongAccounts)('refuses %s, kept or not', (_what, account, message) => {
    for (const persist of [true, false]) {
      given(...history, ...wallet)
        .when(createWalletAccounts, { ...asked, accounts: [second, account], persist })
        .thenRefused('INVALID_ARGUMENT', message);
    }
  });

  it('refuses an empty list', () =>
    given(...history, ...wallet)
      .when(createWalletAccounts, { ...asked, accounts: [] })
      .thenRefused('INVALID_ARGUMENT', /parameters\.accounts: must have 1 to 100 elements, has 0/));
});
