import { exportWalletAccount } from '../../../src/activities/wallets/export-wallet-account.js';
import { HDNodeWallet } from 'ethers';
import type { OrganizationEvent } from '../../../src/domain/organization/organization.js';
import { openMessage, type SealedMessage } from '../../../src/keyring/hpke.js';
import { publicKeyOf } from '../../../src/keyring/curves.js';
import { given, id } from '../given.js';
import {
  anAccount,
  aWallet,
  ethereum,
  history,
  prepared,
  sealedWallet,
  secretOf,
  theAccounts,
} from './wallet-facts.js';

const { vaultId, account, events: wallet } = await sealedWallet(301);
const { address } = account;
const target = Buffer.alloc(32, 5);
const targetPublicKey = publicKeyOf('CURVE_P256', target).toString('hex');
const asked = { address, targetPublicKey };
const exported = (wallet: number, one: number) =>
  ({ type: 'WalletAccountExported', data: { walletId: id(wallet), walletAccountId: id(one) } }) as const;

const privateKey: OrganizationEvent = {
  type: 'PrivateKeyCreated',
  data: {
    privateKeyId: id(201),
    privateKeyName: 'key',
    curve: 'CURVE_SECP256K1',
    publicKey: account.publicKey,
    addresses: [{ format: 'ADDRESS_FORMAT_ETHEREUM', address }],
    vaultId: id(202),
    imported: true,
    privateKeyTags: [],
  },
};

describe('export wallet account', () => {
  it.each([address, address.toLowerCase()])('seals the private key of %s to the target key', async (named) => {
    const intent = { ...asked, address: named };
    const made = await prepared(exportWalletAccount, intent, [...history, ...wallet]);
    given(...history, ...wallet)
      .when(exportWalletAccount, intent, { prepared: made })
      .then([exported(301, 302)], { address, exportBundle: made.exportBundle });
    const { data } = JSON.parse(made.exportBundle) as { data: string };
    const key = await openMessage(target, JSON.parse(Buffer.from(data, 'hex').toString()) as SealedMessage);
    const { privateKey } = HDNodeWallet.fromPhrase(await secretOf(vaultId, 'mnemonic'), undefined, ethereum.path);
    expect(`0x${key.toString('hex')}`).toBe(privateKey);
  });

  it('means a wallet account, and the oldest, when others have the address too', async () => {
    const events = [...history, privateKey, ...wallet, aWallet(401), theAccounts(401, anAccount(402, { address }))];
    const made = await prepared(exportWalletAccount, asked, events);
    given(...events)
      .when(exportWalletAccount, asked, { prepared: made })
      .then([exported(301, 302)], { address, exportBundle: made.exportBundle });
  });

  it('does not record an export of one account that was prepared for another', async () => {
    const events = [...history, ...wallet, aWallet(401), theAccounts(401, anAccount(402, { address }))];
    const made = await prepared(exportWalletAccount, asked, events);
    given(...events, { type: 'WalletDeleted', data: { walletId: id(301), vaultId } })
      .when(exportWalletAccount, asked, { prepared: made })
      .thenRefused('ABORTED', new RegExp(`\`${address}\` now refers to a different account`));
  });

  it.each([
    ['nothing has', history],
    ['a private key has', [...history, privateKey]],
    ['was deleted', [...history, ...wallet, { type: 'WalletDeleted', data: { walletId: id(301), vaultId } } as const]],
  ])('refuses an address that %s', (_what, events) =>
    given(...events)
      .when(exportWalletAccount, asked)
      .thenRefused('NOT_FOUND', new RegExp(`^Could not find wallet account with address: \`${address}\``)),
  );

  it('refuses a target key that is none', () =>
    given(...history, ...wallet)
      .when(exportWalletAccount, { address, targetPublicKey: `02${'ff'.repeat(32)}` })
      .thenRefused('INVALID_ARGUMENT', /targetPublicKey: .* is not a point on CURVE_P256/));
});
