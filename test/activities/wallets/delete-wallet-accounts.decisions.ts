import { deleteWalletAccounts } from '../../../src/activities/wallets/delete-wallet-accounts.js';
import { type CoordinatorError } from '../../../src/domain/errors.js';
import { emptyOrganization, evolve } from '../../../src/domain/organization/organization.js';
import { given, id, usualLimits } from '../given.js';
import { anAccount, aWallet, history, theAccounts } from './wallet-facts.js';

/** Wallet 301 was exported, of 302 only account 321. */
const wallets = [
  ...history,
  aWallet(301),
  theAccounts(301, anAccount(311), anAccount(312)),
  { type: 'WalletExported', data: { walletId: id(301) } } as const,
  aWallet(302),
  theAccounts(302, anAccount(321), anAccount(322)),
  { type: 'WalletAccountExported', data: { walletId: id(302), walletAccountId: id(321) } } as const,
];
const deleted = (wallet: number, ...accounts: readonly number[]) =>
  ({ type: 'WalletAccountsDeleted', data: { walletId: id(wallet), walletAccountIds: accounts.map(id) } }) as const;

describe('delete wallet accounts', () => {
  it.each([undefined, false, true])(
    'deletes those that were exported, by themselves or with their wallet, deleteWithoutExport %s',
    (deleteWithoutExport) => {
      const walletAccountIds = [id(312), id(321), id(311)];
      given(...wallets)
        .when(deleteWalletAccounts, { walletAccountIds, deleteWithoutExport })
        .then([deleted(301, 312, 311), deleted(302, 321)], { walletAccountIds });
    },
  );

  it('deletes others when told to', () =>
    given(...wallets)
      .when(deleteWalletAccounts, { walletAccountIds: [id(322)], deleteWithoutExport: true })
      .then([deleted(302, 322)], { walletAccountIds: [id(322)] }));

  it('deletes none when one was not exported, with the code that clients know', () => {
    const organization = emptyOrganization();
    for (const event of wallets) evolve(organization, event, 0);
    const intent = { walletAccountIds: [id(311), id(321), id(322)], deleteWithoutExport: false };
    given(...wallets)
      .when(deleteWalletAccounts, intent)
      .thenRefused('INVALID_ARGUMENT', new RegExp(`^wallet account has not been exported: \`${id(322)}\``));
    const context = {
      organization,
      activityId: '',
      submitterId: '',
      credentialId: '',
      now: 0,
      newId: () => '',
      ...usualLimits,
    };
    const decide = () =>
      deleteWalletAccounts.decide(
        intent,
        { ...context, policyEnvironment: { namespaces: new Map(), functions: [] } },
        undefined,
      );
    let refusal: unknown;
    try {
      decide();
    } catch (error) {
      refusal = error;
    }
    expect((refusal as CoordinatorError).details).toEqual([
      {
        '@type': 'type.googleapis.com/errors.v1.TurnkeyErrorDetail',
        turnkeyErrorCode: 'WALLET_ACCOUNT_NOT_EXPORTED',
      },
    ]);
  });

  it('refuses one that is not of the organization', () =>
    given(...wallets)
      .when(deleteWalletAccounts, { walletAccountIds: [id(311), id(999)], deleteWithoutExport: true })
      .thenRefused(
        'INVALID_ARGUMENT',
        new RegExp(`walletAccountIds\\[1\\]: wallet account not part of your organization: \`${id(999)}\``),
      ));

  it.each([
    ['an empty list', [], /walletAccountIds: must have 1 to 100 elements, has 0/],
    ['the same account twice', [id(311), id(311)], /walletAccountIds: must not list an id twice/],
    ['what is no id', ['x'], /walletAccountIds: must be a list of UUIDs/],
  ])('refuses %s', (_what, walletAccountIds, message) =>
    given(...wallets)
      .when(deleteWalletAccounts, { walletAccountIds, deleteWithoutExport: true })
      .thenRefused('INVALID_ARGUMENT', message),
  );
});
