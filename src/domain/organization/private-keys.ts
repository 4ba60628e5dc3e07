import { CoordinatorError } from '../errors.js';
import type { AddressFormat, Curve } from '../key-formats.js';
import type { DomainEvent, Evolvers } from './event.js';
import { forgetAddress, noteAddress } from './signing-keys.js';
import type { Limits } from './limits.js';
import type { OrganizationView } from './organization.js';
import { put, remove } from './slices.js';

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

/** An independent key, not derived from a seed. The vault with that id holds the sealed key. */
export interface PrivateKey extends PrivateKeyFacts {
  readonly exported: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** A label for private keys, for use in policies. Each key records its own tags. */
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
    put(organization, 'privateKeys', privateKeyId, { ...data, exported: false, createdAt: at, updatedAt: at });
    for (const { format, address } of addresses) noteAddress(organization, format, address, { privateKeyId });
  },
  PrivateKeyUpdated(organization, { privateKeyId, privateKeyTags }, at) {
    const key = organization.privateKeys.get(privateKeyId);
    if (key) put(organization, 'privateKeys', privateKeyId, { ...key, privateKeyTags, updatedAt: at });
  },
  PrivateKeyExported(organization, { privateKeyId }, at) {
    const key = organization.privateKeys.get(privateKeyId);
    if (key) put(organization, 'privateKeys', privateKeyId, { ...key, exported: true, updatedAt: at });
  },
  PrivateKeyDeleted(organization, { privateKeyId }) {
    const key = organization.privateKeys.get(privateKeyId);
    for (const { format, address } of key?.addresses ?? [])
      forgetAddress(organization, format, address, { privateKeyId });
    remove(organization, 'privateKeys', privateKeyId);
  },
  PrivateKeyTagCreated(organization, data, at) {
    put(organization, 'privateKeyTags', data.tagId, { ...data, createdAt: at, updatedAt: at });
  },
  PrivateKeyTagUpdated(organization, { tagId, tagName }, at) {
    const tag = organization.privateKeyTags.get(tagId);
    if (tag) put(organization, 'privateKeyTags', tagId, { ...tag, tagName, updatedAt: at });
  },
  PrivateKeyTagDeleted(organization, { tagId }) {
    remove(organization, 'privateKeyTags', tagId);
  },
};

/** The private key of that id. @throws {CoordinatorError} NOT_FOUND */
export function existingPrivateKey(organization: OrganizationView, privateKeyId: string): PrivateKey {
  const key = organization.privateKeys.get(privateKeyId);
  if (key) return key;
  throw new CoordinatorError(
    'NOT_FOUND',
    `no private key \`${privateKeyId}\` in organization \`${organization.organizationId}\`: see list_private_keys`,
  );
}

/** The private key tag of that id. @throws {CoordinatorError} NOT_FOUND */
export function existingPrivateKeyTag(organization: OrganizationView, tagId: string): PrivateKeyTag {
  const tag = organization.privateKeyTags.get(tagId);
  if (tag) return tag;
  throw new CoordinatorError(
    'NOT_FOUND',
    `no private key tag \`${tagId}\` in organization \`${organization.organizationId}\`: ` +
      `see list_private_key_tags`,
  );
}

/**
 * Refuses new private keys that exceed the limit, or whose name another key has.
 * @throws {CoordinatorError} RESOURCE_EXHAUSTED, INVALID_ARGUMENT
 */
export function checkNewPrivateKeys(
  organization: OrganizationView,
  names: readonly string[],
  { privateKeys: most }: Limits,
): void {
  const { size } = organization.privateKeys;
  if (size + names.length > most) {
    throw new CoordinatorError(
      'RESOURCE_EXHAUSTED',
      `the organization has ${size} private keys, and with ${names.length} more it would exceed the limit of ` +
        `${most}: delete some with delete_private_keys`,
    );
  }
  const owners = new Map([...organization.privateKeys.values()].map((key) => [key.privateKeyName, key.privateKeyId]));
  const wanted = new Set<string>();
  for (const name of names) {
    const owner = owners.get(name);
    if (owner !== undefined) throw labelTaken('private key', name, `it is the name of private key \`${owner}\``);
    if (wanted.has(name)) throw labelTaken('private key', name, 'it appears twice in this request');
    wanted.add(name);
  }
}

/** Refuses another private key tag beyond the limit. @throws {CoordinatorError} RESOURCE_EXHAUSTED */
export function checkPrivateKeyTagCount(organization: OrganizationView, { privateKeyTags: most }: Limits): void {
  if (organization.privateKeyTags.size < most) return;
  throw new CoordinatorError(
    'RESOURCE_EXHAUSTED',
    `the organization has ${most} private key tags, which is the limit: delete one with delete_private_key_tags`,
  );
}

/** Refuses a name that another tag has; `own` is the tag that may keep it. @throws {CoordinatorError} INVALID_ARGUMENT */
export function checkPrivateKeyTagNameFree(organization: OrganizationView, tagName: string, own?: string): void {
  for (const tag of organization.privateKeyTags.values()) {
    if (tag.tagName === tagName && tag.tagId !== own) {
      throw labelTaken('private key tag', tagName, `it is the name of private key tag \`${tag.tagId}\``);
    }
  }
}

function labelTaken(noun: string, name: string, owner: string): CoordinatorError {
  return new CoordinatorError('INVALID_ARGUMENT', `${noun} label must be unique: \`${name}\` is taken, ${owner}`, {
    category: 'REQUEST_INVALID',
  });
}

/**
 * The events that add a tag to private keys or remove it; none for a key that does not change.
 * @throws {CoordinatorError} NOT_FOUND for a key that does not exist
 */
export function privateKeyTagMoves(
  organization: OrganizationView,
  tagId: string,
  { add, remove }: { readonly add: readonly string[]; readonly remove: readonly string[] },
): PrivateKeyEvent[] {
  const moves: PrivateKeyEvent[] = [];
  const put = (privateKeyId: string, privateKeyTags: readonly string[]) =>
    moves.push({ type: 'PrivateKeyUpdated', data: { privateKeyId, privateKeyTags } });
  for (const privateKeyId of add) {
    const { privateKeyTags } = existingPrivateKey(organization, privateKeyId);
    if (!privateKeyTags.includes(tagId)) put(privateKeyId, [...privateKeyTags, tagId]);
  }
  for (const privateKeyId of remove) {
    const { privateKeyTags } = existingPrivateKey(organization, privateKeyId);
    if (privateKeyTags.includes(tagId)) {
      put(
        privateKeyId,
        privateKeyTags.filter((one) => one !== tagId),
      );
    }
  }
  return moves;
}
