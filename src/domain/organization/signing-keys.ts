import { CoordinatorError } from '../errors.js';
import type { AddressFormat, Curve } from '../key-formats.js';
import type { Organization, OrganizationView } from './organization.js';
import type { PrivateKey } from './private-keys.js';
import type { Wallet, WalletAccount } from './wallets.js';
import { put, remove } from './slices.js';

/** The owner of an address. */
export type AddressOwner = { readonly walletAccountId: string } | { readonly privateKeyId: string };

/** A key that can sign, and where its secret is sealed. */
export interface SigningKey {
  readonly curve: Curve;
  /** The format of the address that named it; absent if its id did. */
  readonly addressFormat: AddressFormat | undefined;
  /** The address that named it, or the private key's id. */
  readonly signWith: string;
  /** Lower-case hex; see `AccountFacts`. */
  readonly publicKey: string;
  readonly vaultId: string;
  /** Name of the secret in that vault. */
  readonly secret: string;
  readonly owner:
    | { readonly kind: 'wallet-account'; readonly wallet: Wallet; readonly account: WalletAccount }
    | { readonly kind: 'private-key'; readonly privateKey: PrivateKey };
}

/** The name of an account's key in a wallet's vault, so that signing need not derive it. */
export function accountSecret(curve: Curve, path: string): string {
  return `key ${curve} ${path}`;
}

/** The name of a private key in its vault. */
export const privateKeySecret = 'key';

/** Formats that are case-insensitive. */
const caseless = /^ADDRESS_FORMAT_(?:UNCOMPRESSED|COMPRESSED|ETHEREUM|SUI|APTOS)$/;

const caselessText = /^(?:0x)?[0-9a-f]+$/i;

const addressKey = (format: AddressFormat, address: string): string =>
  caseless.test(format) ? address.toLowerCase() : address;

/** Registers an address; if it has several owners, it names the first. */
export function noteAddress(
  organization: Organization,
  format: AddressFormat,
  address: string,
  owner: AddressOwner,
): void {
  const key = addressKey(format, address);
  const owners = organization.addresses.get(key) ?? [];
  put(organization, 'addresses', key, [...owners, { ...owner, format }]);
}

/** Undoes `noteAddress`. */
export function forgetAddress(
  organization: Organization,
  format: AddressFormat,
  address: string,
  owner: AddressOwner,
): void {
  const key = addressKey(format, address);
  const id = ownerId(owner);
  const left = (organization.addresses.get(key) ?? []).filter((one) => ownerId(one) !== id);
  if (left.length > 0) put(organization, 'addresses', key, left);
  else remove(organization, 'addresses', key);
}

const ownerId = (owner: AddressOwner): string =>
  'walletAccountId' in owner ? owner.walletAccountId : owner.privateKeyId;

/**
 * The key behind `signWith`: an address of a wallet account or of a private key (hexadecimal ones in any letter case),
 * or the id of a private key.
 * @throws {CoordinatorError} NOT_FOUND in the words that clients know (docs/protocol.md, messages that clients match)
 */
export function signingKeyOf(organization: OrganizationView, signWith: string): SigningKey {
  const byId = organization.privateKeys.get(signWith.toLowerCase());
  if (byId) return ofPrivateKey(byId, signWith, undefined);
  const [owner] =
    organization.addresses.get(signWith) ??
    (caselessText.test(signWith) ? organization.addresses.get(signWith.toLowerCase()) : undefined) ??
    [];
  if (!owner) {
    throw new CoordinatorError(
      'NOT_FOUND',
      `Could not find any resource to sign with. Addresses are case sensitive. (Hexadecimal ones are found in any letter case.) No wallet account or private key of ` +
        `organization \`${organization.organizationId}\` is named \`${signWith}\`: see list_wallet_accounts and ` +
        `list_private_keys`,
    );
  }
  if ('privateKeyId' in owner) {
    return ofPrivateKey(organization.privateKeys.get(owner.privateKeyId)!, signWith, owner.format);
  }
  const account = organization.walletAccounts.get(owner.walletAccountId)!;
  const wallet = organization.wallets.get(account.walletId)!;
  return {
    curve: account.curve,
    addressFormat: account.addressFormat,
    signWith: account.address,
    publicKey: account.publicKey,
    vaultId: wallet.vaultId,
    secret: accountSecret(account.curve, account.path),
    owner: { kind: 'wallet-account', wallet, account },
  };
}

function ofPrivateKey(privateKey: PrivateKey, signWith: string, addressFormat: AddressFormat | undefined): SigningKey {
  return {
    curve: privateKey.curve,
    addressFormat,
    signWith,
    publicKey: privateKey.publicKey,
    vaultId: privateKey.vaultId,
    secret: privateKeySecret,
    owner: { kind: 'private-key', privateKey },
  };
}
