import { createHash, generateKeyPairSync } from 'node:crypto';
import { ApiError } from '../../client/stamping-client.js';
import type { Cast } from './people.js';
import type { Stage } from './stage.js';

/** A wallet, a signature that two treasurers must approve, and an export that only its receiver can open. */
export async function keys(stage: Stage, apiUrl: string, cast: Cast, run: string): Promise<void> {
  const { title, say, note, dim, green, yellow } = stage;
  const { client, alice, bob, aliceId, bobId } = cast;
  title('A wallet with accounts on three chains');
  const account = (curve: string, path: string, addressFormat: string) => ({
    curve: `CURVE_${curve}`,
    pathFormat: 'PATH_FORMAT_BIP32',
    path,
    addressFormat: `ADDRESS_FORMAT_${addressFormat}`,
  });
  const accounts = [
    account('SECP256K1', "m/44'/60'/0'/0/0", 'ETHEREUM'),
    account('SECP256K1', "m/84'/0'/0'/0/0", 'BITCOIN_MAINNET_P2WPKH'),
    account('ED25519', "m/44'/501'/0'/0'", 'SOLANA'),
  ];
  note('its seed is made and sealed in the vault; no event, log or answer ever holds it');
  const created = await client.submit('ACTIVITY_TYPE_CREATE_WALLET', { walletName: `Treasury ${run}`, accounts });
  const { walletId, addresses } = created.result['createWalletResult'] as { walletId: string; addresses: string[] };
  accounts.forEach(({ addressFormat, path }, index) => {
    const name = addressFormat.replace('ADDRESS_FORMAT_', '').toLowerCase();
    say(`   ${name.padEnd(24)} ${green(addresses[index]!)}  ${dim(path)}`);
  });

  title('A policy: signing with this wallet needs two treasurers, Alice and Bob');
  const tagged = await client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', {
    userTagName: `Treasurers ${run}`,
    userIds: [aliceId, bobId],
  });
  const { userTagId } = tagged.result['createUserTagResult'] as { userTagId: string };
  const condition = `activity.action == 'SIGN' && wallet.id == '${walletId}'`;
  const consensus = `approvers.filter(user, user.tags.contains('${userTagId}')).count() >= 2`;
  note(`condition  ${condition}`);
  note(`consensus  ${consensus}`);
  await client.submit('ACTIVITY_TYPE_CREATE_POLICY_V3', {
    policyName: `Two treasurers sign ${run}`,
    effect: 'EFFECT_ALLOW',
    condition,
    consensus,
    notes: 'from the tour',
  });
  say(`   ${green('ACTIVITY_STATUS_COMPLETED')}`);

  title('Alice wants a message signed; Bob agrees');
  const message = `Countersign tour ${run}`;
  const digest = createHash('sha256').update(message).digest();
  const requested = await alice.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', {
    signWith: addresses[0],
    payload: digest.toString('hex'),
    encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
    hashFunction: 'HASH_FUNCTION_NO_OP',
  });
  say(`   ${yellow(requested.status)}  nothing is signed yet`);
  const signed = await bob.approve(requested.fingerprint);
  const { r, s, v } = signed.result['signRawPayloadResult'] as { r: string; s: string; v: string };
  say(`   ${green(signed.status)}  r ${r.slice(0, 16)}… s ${s.slice(0, 16)}… v ${v}`);
  const ethers = await optional(stage, () => import('ethers'));
  if (ethers) {
    const recovered = ethers.recoverAddress(digest, { r: `0x${r}`, s: `0x${s}`, yParity: v === '00' ? 0 : 1 });
    if (recovered !== addresses[0]) throw new Error(`the signature belongs to ${recovered}, not to ${addresses[0]}`);
    say(`   ${green('ethers recovers')} ${recovered} ${dim('from it: that is the account')}`);
  }

  title('The wallet is exported, for the holder of one key only');
  const receiver = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { d, x, y } = receiver.privateKey.export({ format: 'jwk' });
  const hex = (part: string | undefined) => Buffer.from(part!, 'base64url').toString('hex');
  const exported = await client.submit('ACTIVITY_TYPE_EXPORT_WALLET', {
    walletId,
    targetPublicKey: `04${hex(x)}${hex(y)}`,
  });
  const { exportBundle } = exported.result['exportWalletResult'] as { exportBundle: string };
  say(`   a bundle of ${exportBundle.length} characters, sealed with HPKE (RFC 9180) and signed by this server`);
  const crypto = await optional(stage, () => import('@turnkey/crypto'));
  if (crypto) {
    const discovery = (await (await fetch(`${apiUrl}/public/v1/discovery/keys`)).json()) as { signer: string };
    const mnemonic = await crypto.decryptExportBundle({
      exportBundle,
      embeddedKey: hex(d),
      organizationId: client.organizationId,
      returnMnemonic: true,
      dangerouslyOverrideSignerPublicKey: discovery.signer,
    });
    say(`   ${green('the published client opens it:')} ${mnemonic.split(' ').length} words`);
    if (ethers && ethers.HDNodeWallet.fromPhrase(mnemonic).address !== addresses[0]) {
      throw new Error('the exported words derive another account');
    }
    note('ethers derives the same Ethereum account from them');
  }

  title('Bob alone may not export it');
  try {
    await bob.submit('ACTIVITY_TYPE_EXPORT_WALLET', { walletId, targetPublicKey: `04${hex(x)}${hex(y)}` });
    throw new Error('the attempt was not denied');
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 403) throw error;
    say(`   ${yellow(`HTTP ${error.status}`)} for his own export: no policy speaks of it`);
  }
}

/** Libraries that verify independently are development dependencies; without them the story is shorter. */
async function optional<Library>({ note }: Stage, load: () => Promise<Library>): Promise<Library | undefined> {
  try {
    return await load();
  } catch {
    note('(not verified from outside here: npm ci without --omit=dev installs what is needed)');
    return undefined;
  }
}
