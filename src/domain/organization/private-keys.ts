import { CoordinatorError } from '../errors.js';
import type { AddressFormat, Curve } from '../key-formats.js';
import type { DomainEvent, Evolvers } from './event.js';
import { forgetAddress, noteAddress } from './signing-keys.js';
import type { OrganizationView } from './organization.js';

export interface KeyAddress {
  readonly format: AddressFormat;
  readonly address: string;
}

interface PrivateKeyFacts {
  readonly privateKeyId: string;
  readonly privateKeyName: string;
  readonly curve: Curve;
  /** Compressed SEC1 point, or the 32 bytes of an Ed25519 key, lower-case hex. */
  readonly publicKey: string;
  readonly addresses: readonly KeyAddress[];
  readonly vaultId: string;
  readonly imported: boolean;
  readonly privateKeyTags: readonly string[];
}

/** A key of its own, derived from nothing. The key itself is sealed in the vault of that id. */
export interface PrivateKey extends PrivateKeyFacts {
  readonly exported: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** A label for private keys, to be named in policies. Which keys carry it is a fact of each key. */
export interface PrivateKeyTag {
  readonly tagId: string;
  readonly tagName: string;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export type PrivateKeyEvent =
  | DomainEvent<'PrivateKeyCreated', PrivateKeyFacts>
  | DomainEvent<'PrivateKeyUpdated', { privateKeyId: string; privateKeyTags: readonly string[] }>
  | DomainEvent<'PrivateKeyExported', { privateKeyId: string }>
  | DomainEvent<'PrivateKeyDeleted', { privateKeyId: string; vaultId: string }>
  | DomainEvent<'PrivateKeyTagCreated', { tagId: string; tagName: string }>
  | DomainEvent<'PrivateKeyTagUpdated', { tagId: string; tagName: string }>
  | DomainEvent<'PrivateKeyTagDeleted', { tagId: string }>;

export const evolvePrivateKeys: Evolvers<PrivateKeyEvent> = {
  PrivateKeyCreated(organization, data, at) {
    const { privateKeyId, addresses } = data;
    organization.privateKeys.set(privateKeyId, { ...data, exported: false, createdAt: at, updatedAt: at });
    for (const { format, address } of addresses) noteAddress(organization, format, address, { privateKeyId });
  },
  PrivateKeyUpdated(organization, { privateKeyId, privateKeyTags }, at) {
    const key = organization.privateKeys.get(privateKeyId);
    if (key) organization.privateKeys.set(privateKeyId, { ...key, privateKeyTags, updatedAt: at });
  },
  PrivateKeyExported(organization, { privateKeyId }, at) {
    const key = organization.privateKeys.get(privateKeyId);
    if (key) organization.privateKeys.set(privateKeyId, { ...key, exported: true, updatedAt: at });
  },
  PrivateKeyDeleted(organization, { privateKeyId }) {
    const key = organization.privateKeys.get(privateKeyId);
    for (const { format, address } of key?.addresses ?? [])
      forgetAddress(organization, format, address, { privateKeyId });
    organization.privateKeys.delete(privateKeyId);
  },
  PrivateKeyTagCreated(organization, data, at) {
    organization.privateKeyTags.set(data.tagId, { ...data, createdAt: at, updatedAt: at });
  },
  PrivateKeyTagUpdated(organization, { tagId, tagName }, at) {
    const tag = organization.privateKeyTags.get(tagId);
    if (tag) organization.privateKeyTags.set(tagId, { ...tag, tagName, updatedAt: at });
  },
  PrivateKeyTagDeleted(organization, { tagId }) {
    organization.privateKeyTags.delete(tagId);
  },
};

/** Private keys that an organization may have (client protocol, section 11). */
export const maxPrivateKeys = 1_000;

/** The private key of that id. @throws {CoordinatorError} NOT_FOUND */
export function existingPrivateKey(organization: OrganizationView, privateKeyId: string): PrivateKey {
  const key = organization.privateKeys.get(privateKeyId);
  if (key) return key;
  throw new CoordinatorError(
    'NOT_FOUND',
    `no private key \`${privateKeyId}\` in organization \`${organization.organizationId}\`: list_private_keys names them all`,
  );
}
