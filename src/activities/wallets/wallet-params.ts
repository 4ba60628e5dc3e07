import { CoordinatorError, invalidField } from '../../domain/errors.js';
import { CURVES, MNEMONIC_LENGTHS, type AddressFormat, type Curve } from '../../domain/key-formats.js';
import { accountsOf, type AccountFacts, type Wallet, type WalletAccount } from '../../domain/organization/wallets.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import { AmbiguousText, type PolicyValue } from '../../domain/policy/types.js';
import { ADDRESS_FORMATS, addressOf, checkAddressFormat } from '../../keyring/addresses.js';
import { canonicalPath } from '../../keyring/derivation.js';
import { Label, OneOf, Text } from '../../wire/fields.js';
import type { AccountToDerive, DerivedAccount } from '../../ports/keyring.js';
import type { RecordedActivity } from '../recorded-activity.js';

/** Maximum accounts created by one activity. */
export const maxAccountsAtOnce = 100;

export const addressFormats = Object.keys(ADDRESS_FORMATS) as readonly AddressFormat[];

/** An account as a client requests it (docs/protocol.md, versions). */
export class WalletAccountParams {
  @OneOf(CURVES, { about: 'The curve of its key; must suit the address format.' })
  curve!: Curve;

  @OneOf(['PATH_FORMAT_BIP32'], { about: 'Format of `path`.' })
  pathFormat!: 'PATH_FORMAT_BIP32';

  @Text({ min: 1, max: 160, about: "Derivation path such as `m/44'/60'/0'/0/0`." })
  path!: string;

  @OneOf(addressFormats, { about: 'Address format.' })
  addressFormat!: AddressFormat;

  @Label({ optional: true, about: 'A display name.' })
  name?: string;
}

/** The requested accounts with normalized paths. @throws {CoordinatorError} naming the first that is impossible */
export function accountsToDerive(
  accounts: readonly WalletAccountParams[],
  field = 'parameters.accounts',
): AccountToDerive[] {
  return accounts.map(({ curve, path, addressFormat }, index) => {
    const at = `${field}[${index}]`;
    checkAddressFormat(addressFormat, curve, `${at}.curve`);
    return { curve, path: canonicalPath(curve, path, `${at}.path`), addressFormat };
  });
}

/**
 * Refuses an account that the wallet already has, or that is requested twice: same curve, path and address format.
 * @throws {CoordinatorError} ALREADY_EXISTS
 */
export function checkAccountsNew(
  organization: OrganizationView,
  walletId: string | undefined,
  accounts: readonly AccountToDerive[],
): void {
  const keyOf = ({ curve, path, addressFormat }: AccountToDerive) => `${curve} ${path} ${addressFormat}`;
  const paths = new Set(accounts.map(({ path }) => path));
  const known = new Set<string>();
  for (const account of walletId === undefined ? [] : accountsOf(organization, walletId)) {
    // A wallet may have very many accounts; only those on requested paths get a key.
    if (paths.has(account.path)) known.add(keyOf(account));
  }
  for (const [index, account] of accounts.entries()) {
    if (known.has(keyOf(account))) {
      throw new CoordinatorError(
        'ALREADY_EXISTS',
        `parameters.accounts[${index}]: the wallet already has an account at path \`${account.path}\` on ${account.curve} with ` +
          `${account.addressFormat}: choose another path or format`,
        { category: 'REQUEST_INVALID' },
      );
    }
    known.add(keyOf(account));
  }
}

/** What is recorded of derived accounts, in the requested order. */
export function accountFacts(
  requested: readonly WalletAccountParams[],
  derived: readonly DerivedAccount[],
  newId: () => string,
): AccountFacts[] {
  if (derived.length !== requested.length) {
    throw invalidField('parameters.accounts', `${requested.length} were asked for, and ${derived.length} derived`);
  }
  return derived.map((account, index) => ({
    walletAccountId: newId(),
    ...account,
    pathFormat: 'PATH_FORMAT_BIP32',
    ...(requested[index]!.name === undefined ? {} : { name: requested[index]!.name }),
  }));
}

/** Accounts that were derived and persisted: as requested, with the addresses of the recorded public keys. */
export function recalledAccounts(
  requested: readonly WalletAccountParams[],
  recorded: RecordedActivity,
): readonly DerivedAccount[] {
  const keys = recorded.all('WalletAccountsCreated').flatMap(({ accounts }) => accounts);
  return accountsToDerive(requested.slice(0, keys.length)).map((account, index) => {
    const { publicKey } = keys[index]!;
    return { ...account, address: recordedAddress(account.addressFormat, account.curve, publicKey), publicKey };
  });
}

/** The address of a recorded key. */
export function recordedAddress(format: AddressFormat, curve: Curve, publicKey: string): string {
  return addressOf(format, curve, Buffer.from(publicKey, 'hex'));
}

/** A sealed wallet with its first accounts. */
export function recalledWallet(requested: readonly WalletAccountParams[], recorded: RecordedActivity) {
  return { vaultId: recorded.first('WalletCreated').vaultId, accounts: recalledAccounts(requested, recorded) };
}

/** A wallet as policies see it (docs/protocol.md, policy namespaces). */
export function walletValue({ walletId, walletName, imported, exported }: Wallet): PolicyValue {
  return { id: walletId, label: walletName, imported, exported };
}

/**
 * An account as policies see it. Its key has other addresses too, and whoever makes an account at one of them uses the same
 * key. So for each of them it is in doubt whether a policy means this account, whether or not the wallet has an account at it
 * (docs/adr/0010).
 */
export function walletAccountValue(account: WalletAccount): PolicyValue {
  const address = account.address.toLowerCase();
  let others: ReadonlySet<string> | undefined;
  const mayBe = (text: string): boolean => {
    const other = text.toLowerCase();
    others ??= addressesOfKey(account);
    return other !== address && others.has(other);
  };
  return {
    address: new AmbiguousText(account.address, 'that address is another one of the same key', mayBe),
    ...pathValue(account.path),
  };
}

/** A canonical derivation path as policies see it. */
function pathValue(path: string) {
  const [, ...segments] = path.split('/');
  return {
    path_indexes: segments.map((segment) => BigInt(Number.parseInt(segment, 10))),
    path_hardened: segments.map((segment) => segment.endsWith("'")),
  };
}

const addresses = new WeakMap<WalletAccount, ReadonlySet<string>>();

/** All addresses of an account's key, in lower case; computed once, some take a point multiplication. */
function addressesOfKey(account: WalletAccount): ReadonlySet<string> {
  const known = addresses.get(account);
  if (known) return known;
  const { curve, publicKey } = account;
  const key = Buffer.from(publicKey, 'hex');
  const formats = addressFormats.filter((format) => ADDRESS_FORMATS[format].curves.includes(curve));
  const made = new Set(formats.map((format) => addressOf(format, curve, key).toLowerCase()));
  addresses.set(account, made);
  return made;
}

/** @throws {CoordinatorError} INVALID_ARGUMENT unless BIP-39 has mnemonics of this length */
export function checkMnemonicLength(mnemonicLength: number | undefined, field = 'parameters.mnemonicLength'): void {
  if (mnemonicLength === undefined || MNEMONIC_LENGTHS.includes(mnemonicLength)) return;
  throw invalidField(field, `\`${mnemonicLength}\` is not one of ${MNEMONIC_LENGTHS.join(', ')}`);
}
