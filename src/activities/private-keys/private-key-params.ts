import { invalidField } from '../../domain/errors.js';
import type { AddressFormat, Curve } from '../../domain/key-formats.js';
import type { PrivateKey, PrivateKeyEvent } from '../../domain/organization/private-keys.js';
import type { PolicyValue } from '../../domain/policy/types.js';
import { checkAddressFormat } from '../../keyring/addresses.js';
import { OneOf, Text } from '../../wire/fields.js';
import type { NewPrivateKey } from '../../ports/keyring.js';
import type { RecordedActivity } from '../recorded-activity.js';
import { addressFormats, recordedAddress } from '../wallets/wallet-params.js';

/** An address as results show it. */
export class AddressResult {
  @OneOf(addressFormats, { about: 'Address format.' })
  format!: AddressFormat;

  @Text()
  address!: string;
}

/** @throws {CoordinatorError} INVALID_ARGUMENT for a format that does not fit the curve, or that is listed twice */
export function checkAddressFormats(formats: readonly AddressFormat[], curve: Curve, field: string): void {
  for (const [index, format] of formats.entries()) {
    const at = `${field}[${index}]`;
    checkAddressFormat(format, curve, at);
    if (formats.indexOf(format) < index) throw invalidField(at, `lists \`${format}\` twice`);
  }
}

/** What is recorded of a sealed key. */
export function privateKeyCreated(
  requested: {
    readonly privateKeyId: string;
    readonly privateKeyName: string;
    readonly curve: Curve;
    readonly imported: boolean;
    readonly privateKeyTags: readonly string[];
  },
  { vaultId, publicKey, addresses }: NewPrivateKey,
): PrivateKeyEvent {
  return { type: 'PrivateKeyCreated', data: { ...requested, publicKey, addresses, vaultId } };
}

/** Keys that were sealed, in the requested order. */
export function recalledPrivateKeys(
  requested: readonly { readonly curve: Curve; readonly addressFormats: readonly AddressFormat[] }[],
  recorded: RecordedActivity,
): readonly NewPrivateKey[] {
  const sealed = recorded.all('PrivateKeyCreated');
  return requested.map(({ curve, addressFormats: formats }, index) => {
    const { vaultId, publicKey } = sealed[index]!;
    const addresses = formats.map((format) => ({ format, address: recordedAddress(format, curve, publicKey) }));
    return { vaultId, publicKey, addresses };
  });
}

/** A private key as policies see it (docs/protocol.md, policy namespaces). */
export function privateKeyValue(key: PrivateKey): PolicyValue {
  const { privateKeyId, privateKeyName, privateKeyTags, imported, exported } = key;
  return { id: privateKeyId, label: privateKeyName, tags: privateKeyTags, imported, exported };
}
