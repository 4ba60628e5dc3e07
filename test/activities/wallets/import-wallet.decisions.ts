import { importWallet } from '../../../src/activities/wallets/import-wallet.js';
import type { OrganizationEvent } from '../../../src/domain/organization/organization.js';
import { given, id } from '../given.js';
import {
  ann,
  aWallet,
  bob,
  ethereum,
  history,
  knownAddress,
  knownMnemonic,
  organizationId,
  ports,
  prepared,
  sealedTo,
  secretOf,
  wrongAccounts,
} from './wallet-facts.js';

/** Begins an import in the real vault; its number names its id. */
async function begun(number: number, userId = ann, kind: 'wallet' | 'private-key' = 'wallet') {
  const { vaultId, targetPublicKey } = await ports.keyring.startImport({ organizationId, userId });
  const data = { importId: id(number), userId, kind, vaultId, targetPublicKey };
  return { vaultId, targetPublicKey, event: { type: 'ImportStarted', data } satisfies OrganizationEvent };
}

const pending = await begun(601);
const waiting = [...history, pending.event];
const another = await begun(602, bob);
const ofKey = await begun(603, ann, 'private-key');
const encryptedBundle = await sealedTo(pending.targetPublicKey, knownMnemonic);
const asked = { userId: ann, walletName: 'Old', encryptedBundle, accounts: [ethereum] };
const anyPrepared = { importId: id(601), vaultId: id(50), accounts: [] };

describe('import wallet', () => {
  it('records the known accounts of a known mnemonic, and ends the import', async () => {
    const made = await prepared(importWallet, asked, waiting);
    given(...waiting)
      .when(importWallet, asked, { prepared: made })
      .then(
        [
          { type: 'ImportClosed', data: { importId: id(601), vaultId: pending.vaultId } },
          {
            type: 'WalletCreated',
            data: { walletId: id(1), walletName: 'Old', vaultId: made.vaultId, imported: true },
          },
          {
            type: 'WalletAccountsCreated',
            data: {
              walletId: id(1),
              accounts: [
                {
                  walletAccountId: id(2),
                  ...ethereum,
                  address: knownAddress,
                  publicKey: made.accounts[0]!.publicKey,
                },
              ],
            },
          },
        ],
        { walletId: id(1), addresses: [knownAddress] },
      );
    expect(await secretOf(made.vaultId, 'mnemonic')).toBe(knownMnemonic);
  });

  it('needs no accounts', async () => {
    const intent = { ...asked, accounts: [] };
    const made = await prepared(importWallet, intent, waiting);
    given(...waiting)
      .when(importWallet, intent, { prepared: made })
      .then(
        [
          { type: 'ImportClosed', data: { importId: id(601), vaultId: pending.vaultId } },
          {
            type: 'WalletCreated',
            data: { walletId: id(1), walletName: 'Old', vaultId: made.vaultId, imported: true },
          },
        ],
        { walletId: id(1), addresses: [] },
      );
  });

  it.each([
    ['was never begun', history],
    [
      'was used',
      [...waiting, { type: 'ImportClosed', data: { importId: id(601), vaultId: pending.vaultId } } as const],
    ],
    ['is another user’s', [...history, another.event]],
    ['is of a private key', [...history, ofKey.event]],
  ])('refuses an import that %s', (_what, events) =>
    given(...events)
      .when(importWallet, asked, { prepared: anyPrepared })
      .thenRefused(
        'FAILED_PRECONDITION',
        new RegExp(`no wallet import is pending for user \`${ann}\`.* start with init_import_wallet`),
      ),
  );

  it('refuses what was prepared for an import that another has replaced', async () => {
    const next = await begun(604);
    given(...waiting, { type: 'ImportClosed', data: { importId: id(601), vaultId: pending.vaultId } }, next.event)
      .when(importWallet, asked, { prepared: anyPrepared })
      .thenRefused('ABORTED', new RegExp(`a newer import has been started for user \`${ann}\``));
  });

  it('refuses a bundle for another target key, and what is no mnemonic, without repeating it', async () => {
    const toAnother = await sealedTo(another.targetPublicKey, knownMnemonic);
    const noMnemonic = await sealedTo(pending.targetPublicKey, knownMnemonic.replace('junk', 'tset'));
    const refused = async (bundle: string, message: RegExp) => {
      const attempt = prepared(importWallet, { ...asked, encryptedBundle: bundle }, waiting);
      await expect(attempt).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringMatching(message) as string,
      });
    };
    await refused(toAnother, /encryptedBundle: it could not be decrypted/);
    await refused(noMnemonic, /encryptedBundle: invalid mnemonic: word 12(?!.*tset)/);
    await refused('{}', /encryptedBundle: it is not JSON with the strings/);
  });

  it('refuses a name that another wallet has, wallet 101, and a user who is gone', () => {
    given(...waiting, aWallet(301, { walletName: 'Old' }))
      .when(importWallet, asked)
      .thenRefused('INVALID_ARGUMENT', /wallet label must be unique: `Old`/);
    const wallets = Array.from({ length: 100 }, (_, index) => aWallet(301 + index));
    given(...waiting, ...wallets)
      .when(importWallet, asked)
      .thenRefused('RESOURCE_EXHAUSTED', /100 wallets/);
    given(...waiting, { type: 'UserDeleted', data: { userId: ann } })
      .when(importWallet, asked)
      .thenRefused('NOT_FOUND', new RegExp(`no user \`${ann}\``));
  });

  it.each(wrongAccounts)('refuses %s', (_what, account, message) =>
    given(...waiting)
      .when(importWallet, { ...asked, accounts: [ethereum, account] })
      .thenRefused('INVALID_ARGUMENT', message),
  );

  it('refuses an account that is asked for twice', () =>
    given(...waiting)
      .when(importWallet, { ...asked, accounts: [ethereum, ethereum] })
      .thenRefused('ALREADY_EXISTS', /accounts\[1\]/));
});
