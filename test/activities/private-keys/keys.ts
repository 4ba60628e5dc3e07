import type { NewPrivateKey } from '../../../src/ports/keyring.js';
import type { AddressFormat } from '../../../src/domain/key-formats.js';
import type { OrganizationEvent } from '../../../src/domain/organization/organization.js';
import { id } from '../given.js';

type Fact<Type extends OrganizationEvent['type']> = Extract<OrganizationEvent, { type: Type }>;

/** A private key that has been sealed; its number names its vault and its addresses. */
export function sealedKey(number: number, ...formats: AddressFormat[]): NewPrivateKey {
  return {
    vaultId: id(10_000 + number),
    publicKey: '02'.padEnd(66, String(number)),
    addresses: formats.map((format) => ({ format, address: `${format} of ${number}` })),
  };
}

/** A private key; its number names its id, its name and its vault. */
export function aPrivateKey(number: number, more: Partial<Fact<'PrivateKeyCreated'>['data']> = {}) {
  return {
    type: 'PrivateKeyCreated',
    data: {
      privateKeyId: id(number),
      privateKeyName: `key ${number}`,
      curve: 'CURVE_SECP256K1',
      ...sealedKey(number),
      imported: false,
      privateKeyTags: [],
      ...more,
    },
  } satisfies Fact<'PrivateKeyCreated'>;
}

export function privateKeys(count: number): Fact<'PrivateKeyCreated'>[] {
  return Array.from({ length: count }, (_, index) => aPrivateKey(2_000 + index));
}

export function aPrivateKeyTag(tagId: string, tagName: string) {
  return { type: 'PrivateKeyTagCreated', data: { tagId, tagName } } satisfies Fact<'PrivateKeyTagCreated'>;
}

/** An import that waits for a user; its number names its id, and its vault with ten thousand more. */
export function anImport(userId: string, number: number, kind: 'wallet' | 'private-key' = 'private-key') {
  return {
    type: 'ImportStarted',
    data: { importId: id(number), userId, kind, vaultId: id(10_000 + number), targetPublicKey: '04' },
  } satisfies Fact<'ImportStarted'>;
}
