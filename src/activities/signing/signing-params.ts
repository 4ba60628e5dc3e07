import { CoordinatorError } from '../../domain/errors.js';
import type { AddressFormat } from '../../domain/key-formats.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import { signingKeyOf, type SigningKey } from '../../domain/organization/signing-keys.js';
import type { PolicyValue } from '../../domain/policy/types.js';
import type { KeyringPort, RawSignature } from '../../ports/keyring.js';
import { walletAccountValue, walletValue } from '../wallets/wallet-params.js';

/** Allowed values of `signWith`, for the reference. */
export const signWithAbout = 'Address of a wallet account or private key, or id of a private key.';

/** Policies on signing refer to this pair (docs/protocol.md, resources and actions), also for keys of wallets. */
export const signingPolicy = { resource: 'PRIVATE_KEY', action: 'SIGN' } as const;

/** What policies see of the signing key (docs/protocol.md, policy namespaces). */
export function keyResources({ owner }: SigningKey): Readonly<Record<string, PolicyValue>> {
  if (owner.kind === 'wallet-account') {
    return {
      wallet: walletValue(owner.wallet),
      wallet_account: walletAccountValue(owner.account),
    };
  }
  const { privateKeyId, privateKeyName, privateKeyTags, imported, exported } = owner.privateKey;
  return { private_key: { id: privateKeyId, tags: privateKeyTags, imported, exported, label: privateKeyName } };
}

/** Whether a key named by an address of that format signs with BIP-340. */
export function signsWithSchnorr(format: AddressFormat | undefined): boolean {
  return format !== undefined && /^ADDRESS_FORMAT_(?:SPARK_|BITCOIN_.*_P2TR$)/.test(format);
}

/** Something to sign: 32 bytes for ECDSA and BIP-340, a whole message for Ed25519, depending on the format. */
export interface BytesToSign {
  readonly bytes: Uint8Array;
  readonly addressFormat: AddressFormat | undefined;
}

/** Signs everything with one key; the signatures are in the order of `parts`. */
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
 * Refuses signatures by a key that `signWith` no longer names: the decision is not about that key.
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
