import type { OrganizationEvent } from '../domain/organization/organization.js';
import type { ApiKeyCurve } from '../domain/key-formats.js';
import { authProxyEnabled } from '../domain/organization/auth-proxy.js';
import { apiKeyCredentialType } from '../domain/organization/credentials.js';
import { organizationStream } from '../domain/organization/organization.js';
import { canonicalJson, GENESIS_HASH, linkTexts, type EventMetadata } from '../event-store/chain.js';
import { WrongRevision, type EventStore, type NewEvent } from '../event-store/event-store.js';
import { derivedId } from './ids.js';

/** What an organization begins with: one root user with one API key, who alone is the root quorum. */
export interface Founding {
  readonly organizationId: string;
  readonly organizationName: string;
  readonly userId: string;
  readonly userName: string;
  readonly apiPublicKey: string;
  readonly curve: ApiKeyCurve;
  /** Recorded time, milliseconds since the epoch. */
  readonly at: number;
}

/** What the auth proxy that an organization is founded with is known by. */
export function authProxyIds(organizationId: string) {
  const [configId, userId, policyId, apiKeyId] = ['config', 'user', 'policy', 'api-key'].map((part) =>
    derivedId(organizationId, `auth-proxy-${part}`),
  ) as [string, string, string, string];
  return { configId, userId, policyId, apiKeyId };
}

/**
 * Writes the first events of an organization. Their ids follow from the founding, so that doing it again, after a crash or
 * by another instance, changes nothing.
 */
export async function foundOrganization(
  store: EventStore,
  founding: Founding,
  authProxyKey?: { readonly vaultId: string; readonly publicKey: string },
): Promise<void> {
  const { organizationId, organizationName, userId, userName, apiPublicKey, curve, at } = founding;
  const events: readonly OrganizationEvent[] = [
    { type: 'OrganizationCreated', data: { organizationId, name: organizationName } },
    { type: 'UserCreated', data: { userId, userName, userTags: [] } },
    {
      type: 'ApiKeyCreated',
      data: {
        userId,
        apiKeyId: derivedId(organizationId, 'root-api-key'),
        apiKeyName: 'Root API key',
        publicKey: apiPublicKey,
        curve,
        credentialType: apiKeyCredentialType[curve],
      },
    },
    { type: 'RootQuorumUpdated', data: { threshold: 1, userIds: [userId] } },
    ...(authProxyKey ? authProxyEnabled({ ...authProxyIds(organizationId), ...authProxyKey }) : []),
  ];
  await recordFounding(store, organizationId, events, at);
}

/**
 * Writes the first events of an organization. One that has been founded stays as it is: whatever it was founded with is
 * returned, so that who founds again learns what stands.
 */
export async function recordFounding(
  store: EventStore,
  organizationId: string,
  events: readonly OrganizationEvent[],
  at: number,
): Promise<readonly OrganizationEvent[]> {
  const stream = organizationStream(organizationId);
  let hash = GENESIS_HASH;
  const sealed = events.map(({ type, data }, revision): NewEvent => {
    const metadata = { at, schemaVersion: 1, $correlationId: organizationId, $causationId: organizationId };
    const texts = [canonicalJson(data), canonicalJson(metadata)] as const;
    // From all that is said: a store takes equal ids for a repeated append, and would confirm a founding with a new seed
    // where it holds the one of an earlier attempt.
    const id = derivedId(stream, hash, type, ...texts);
    hash = linkTexts(hash, { stream, revision, id, type }, ...texts);
    return { id, type, data, metadata: { ...metadata, hash } };
  });
  try {
    await store.append(stream, sealed, 'no-stream');
    return events;
  } catch (error) {
    if (!(error instanceof WrongRevision)) throw error;
  }
  const standing = await readFounding(store, organizationId);
  return standing?.events ?? [];
}

/** What an organization was founded with, and when (milliseconds since the epoch); undefined if it was not. */
export async function readFounding(
  store: EventStore,
  organizationId: string,
): Promise<{ readonly events: readonly OrganizationEvent[]; readonly at: number } | undefined> {
  const events: OrganizationEvent[] = [];
  let at = 0;
  for await (const { type, data, metadata } of store.read(organizationStream(organizationId))) {
    // The founding is what was written before any activity.
    if (type.startsWith('Activity')) break;
    ({ at } = metadata as EventMetadata);
    events.push({ type, data } as OrganizationEvent);
  }
  return events.length > 0 ? { events, at } : undefined;
}
