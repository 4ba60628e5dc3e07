import { CoordinatorError } from '../../domain/errors.js';
import type { AddressFormat } from '../../domain/key-formats.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import { signingKeyOf, type SigningKey } from '../../domain/organization/signing-keys.js';
import type { PolicyValue } from '../../domain/policy/types.js';
import type { KeyringPort, RawSignature } from '../../ports/keyring.js';
import { walletAccountValue, walletValue } from '../wallets/wallet-params.js';

/** What `signWith` may be, for the reference. */
export const signWithAbout = 'Address of a wallet account or private key, or id of a private key.';

/** Policies of signing speak of this pair (client protocol 9.6), for keys of wallets too. */
export const signingPolicy = { resource: 'PRIVATE_KEY', action: 'SIGN' } as const;

/** What policies read of the key that is to sign (client protocol 9.3). */
export function keyResources(
  { owner }: SigningKey,
  organization: OrganizationView,
): Readonly<Record<string, PolicyValue>> {
  if (owner.kind === 'wallet-account') {
    return { wallet: walletValue(owner.wallet), wallet_account: walletAccountValue(owner.account, organization) };
  }
  const { privateKeyId, privateKeyName, privateKeyTags, imported, exported } = owner.privateKey;
  return { private_key: { id: privateKeyId, tags: privateKeyTags, imported, exported, label: privateKeyName } };
}

/** Whether a key signs with BIP-340 when it is named by an address of that format. */
export function signsWithSchnorr(format: AddressFormat | undefined): boolean {
  return format !== undefined && /^ADDRESS_FORMAT_(?:SPARK_|BITCOIN_.*_P2TR$)/.test(format);
}

/** Something to sign: 32 bytes for ECDSA and BIP-340, a whole message for Ed25519. The format says which of them. */
export interface BytesToSign {
  readonly bytes: Uint8Array;
  readonly addressFormat: AddressFormat | undefined;
}

/** Signs everything with one key; signatures are in the order of `parts`. */
export async function signAll(
  keyring: Pick<KeyringPort, 'sign'>,
  organizationId: string,
  { vaultId, secret, curve }: SigningKey,
  parts: readonly BytesToSign[],
): Promise<readonly RawSignature[]> {
  const signatures = new Map<BytesToSign, RawSignature>();
  for (const addressFormat of new Set(parts.map((part) => part.addressFormat))) {
    const alike = parts.filter((part) => part.addressFormat === addressFormat);
    const payloads = alike.map(({ bytes }) => bytes);
    const signed = await keyring.sign({ organizationId, vaultId, secret, curve, addressFormat }, payloads);
    alike.forEach((part, at) => signatures.set(part, signed[at]!));
  }
  return parts.map((part) => signatures.get(part)!);
}

/**
 * Refuses what was signed with a key that is no longer the one that `signWith` names: it was not this one that the
 * decision is about.
 * @throws {CoordinatorError} NOT_FOUND, ABORTED
 */
export function checkStillSignsWith(organization: OrganizationView, signWith: string, signedBy: SigningKey): void {
  const now = signingKeyOf(organization, signWith);
  const isSame = (['vaultId', 'secret', 'publicKey', 'addressFormat'] as const).every(
    (member) => now[member] === signedBy[member],
  );
  if (isSame) return;
  throw new CoordinatorError('ABORTED', `\`${signWith}\` now refers to a different key: send the same request again`);
}
