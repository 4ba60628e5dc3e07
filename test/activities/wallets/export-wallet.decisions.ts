import { exportWallet } from '../../../src/activities/wallets/export-wallet.js';
import { openMessage, type SealedMessage } from '../../../src/keyring/hpke.js';
import { publicKeyOf, uncompressPublicKey } from '../../../src/keyring/curves.js';
import { given, id } from '../given.js';
import { history, organizationId, prepared, sealedWallet, secretOf } from './wallet-facts.js';

const { vaultId, events: wallet } = await sealedWallet(301);
const target = Buffer.alloc(32, 5);
const compressed = publicKeyOf('CURVE_P256', target);
const targetPublicKey = uncompressPublicKey('CURVE_P256', compressed).toString('hex');
const asked = { walletId: id(301), targetPublicKey };

async function opened(exportBundle: string): Promise<string> {
  const { data } = JSON.parse(exportBundle) as { data: string };
  const sealed = JSON.parse(Buffer.from(data, 'hex').toString()) as SealedMessage & { organizationId: string };
  expect(sealed.organizationId).toBe(organizationId);
  return (await openMessage(target, sealed)).toString();
}

describe('export wallet', () => {
  it.each([
    ['uncompressed', targetPublicKey],
    ['compressed', compressed.toString('hex')],
    ['in upper case', targetPublicKey.toUpperCase()],
  ])('seals the mnemonic to the target key, %s', async (_how, key) => {
    const intent = { ...asked, targetPublicKey: key };
    const exportBundle = await prepared(exportWallet, intent, [...history, ...wallet]);
    given(...history, ...wallet)
      .when(exportWallet, intent, { prepared: exportBundle })
      .then([{ type: 'WalletExported', data: { walletId: id(301) } }], { walletId: id(301), exportBundle });
    expect(await opened(exportBundle)).toBe(await secretOf(vaultId, 'mnemonic'));
  });

  it('writes it in the language that is asked for', async () => {
    const intent = { ...asked, language: 'MNEMONIC_LANGUAGE_SPANISH' };
    const words = await opened(await prepared(exportWallet, intent, [...history, ...wallet]));
    expect(words.split(' ')).toHaveLength(12);
    expect(words).not.toBe(await secretOf(vaultId, 'mnemonic'));
  });

  it('refuses a wallet that is not there, when asked and when it has gone meanwhile', () => {
    given(...history)
      .when(exportWallet, asked)
      .thenRefused('NOT_FOUND', new RegExp(`no wallet \`${id(301)}\``));
    given(...history, ...wallet, { type: 'WalletDeleted', data: { walletId: id(301), vaultId } })
      .when(exportWallet, asked, { prepared: 'a bundle' })
      .thenRefused('NOT_FOUND', /no wallet/);
  });

  it.each([
    ['no point', `04${'11'.repeat(64)}`, /targetPublicKey: .* is not a point on CURVE_P256/],
    ['no hex', 'xyz', /targetPublicKey: must be bytes in hexadecimal/],
    ['too short', '02aa', /targetPublicKey: .* is not a SEC1 point/],
    ['too long', '04'.repeat(66), /targetPublicKey: must be at most 130/],
  ])('refuses a target key that is %s', (_what, key, message) =>
    given(...history, ...wallet)
      .when(exportWallet, { ...asked, targetPublicKey: key })
      .thenRefused('INVALID_ARGUMENT', message),
  );

  it('refuses a language that BIP-39 has no words in', () =>
    given(...history, ...wallet)
      .when(exportWallet, { ...asked, language: 'MNEMONIC_LANGUAGE_KLINGON' })
      .thenRefused('INVALID_ARGUMENT', /language: must be one of MNEMONIC_LANGUAGE_ENGLISH/));

  it('shows policies one spelling of the target key, and of a bad one what was sent', () => {
    const { from } = exportWallet.params!['target_public_key']!;
    for (const key of [targetPublicKey, targetPublicKey.toUpperCase(), compressed.toString('hex')]) {
      expect(from({ ...asked, targetPublicKey: key })).toBe(targetPublicKey);
    }
    expect(from({ ...asked, targetPublicKey: '02aa' })).toBe('02aa');
  });
});
