import type { DomainEvent } from '../domain/organization/event.js';
import type { OrganizationEvent } from '../domain/organization/organization.js';
import type { ApiKeyCurve } from '../domain/key-formats.js';
import { authProxyEnabled } from '../domain/organization/auth-proxy.js';
import { apiKeyCredentialType } from '../domain/organization/credentials.js';
import { organizationStream } from '../domain/organization/organization.js';
import type { EventMetadata } from '../ledger/chain.js';
import { isBegun, WrongRevision, type EventStore, type NewEvent, type RecordedEvent } from '../ledger/event-store.js';
import { derivedId } from '../ledger/ids.js';
import { emptyTail, seal, type Fact } from '../ledger/seal.js';

/** The initial contents of an organization: one root user with one API key, who alone is the root quorum. */
export interface Founding {
  readonly organizationId: string;
  readonly organizationName: string;
  readonly userId: string;
  readonly userName: string;
  readonly apiPublicKey: string;
  readonly curve: ApiKeyCurve;
  /** Recorded time, milliseconds since the epoch. */
  readonly at: number;
  /** Set for a history from another installation, imported into a test harness (docs/adr/0029). */
  readonly imported?: { readonly redacted: boolean };
}

/** In the stream of an installation: the root organization that it begins with. */
export type InstallationEvent = DomainEvent<'CoordinatorInstalled', Founding>;

/** Ids of the auth proxy that an organization is founded with. */
export function authProxyIds(organizationId: string) {
  const [configId, userId, policyId, apiKeyId] = ['config', 'user', 'policy', 'api-key'].map((part) =>
    derivedId(organizationId, `auth-proxy-${part}`),
  ) as [string, string, string, string];
  return { configId, userId, policyId, apiKeyId };
}

/**
 * The first events of an organization. Their ids derive from the founding, so repeating it, after a crash or on another
 * instance, changes nothing.
 */
export async function foundOrganization(
  store: EventStore,
  founding: Founding,
  authProxyKey?: { readonly vaultId: string; readonly publicKey: string },
): Promise<void> {
  const { organizationId, at } = founding;
  const events = [
    ...rootBeginning(founding),
    ...(authProxyKey ? authProxyEnabled({ ...authProxyIds(organizationId), ...authProxyKey }) : []),
  ];
  await recordFounding(store, organizationId, events, at);
}

/** What a founding says: the first events of an organization, before its auth proxy. */
export function rootBeginning({
  organizationId,
  organizationName,
  userId,
  userName,
  apiPublicKey,
  curve,
}: Founding): readonly OrganizationEvent[] {
  return [
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
  ];
}

/** A sub-organization as recorded by its parent. */
export interface RecordedChild {
  readonly subOrganizationId: string;
  /** The initial events of its stream. */
  readonly founding: readonly OrganizationEvent[];
  /** The parent's event: its position, id, activity, and recorded time in milliseconds since the epoch. */
  readonly parentRevision: number;
  readonly eventId: string;
  readonly activityId: string;
  readonly at: number;
}

/** The sub-organization founded by an event of a parent's stream; undefined for any other event. */
export function recordedChild(
  { id, type, data, metadata }: Pick<RecordedEvent, 'id' | 'type' | 'data' | 'metadata'>,
  parentRevision: number,
): RecordedChild | undefined {
  if (type !== 'SubOrganizationCreated') return undefined;
  const { subOrganizationId, initialEvents: founding } = data as SubOrganizationCreated;
  const { at, $correlationId: activityId } = metadata as EventMetadata;
  return { subOrganizationId, founding, parentRevision, eventId: id, activityId, at };
}

type SubOrganizationCreated = Extract<OrganizationEvent, { type: 'SubOrganizationCreated' }>['data'];

/**
 * Writes the stream of a sub-organization from its parent's event. Everything derives from that event, so repeating it,
 * after a crash or on another coordinator, changes nothing. Returns the position of the stream.
 * @throws {StoreUnavailable} if it cannot be written yet
 */
export async function foundChild(store: EventStore, child: RecordedChild): Promise<bigint> {
  const stream = organizationStream(child.subOrganizationId);
  const { position } = await store.append(stream, beginningOf(child), 'no-stream');
  return position;
}

/** The initial events of a sub-organization's stream. */
export function beginningOf({
  subOrganizationId,
  founding,
  parentRevision,
  eventId,
  activityId,
  at,
}: RecordedChild): readonly NewEvent[] {
  const events = founding.map((event): OrganizationEvent =>
    event.type === 'OrganizationCreated' ? { ...event, data: { ...event.data, parentRevision } } : event,
  );
  return sealedFounding(subOrganizationId, events, { at, $correlationId: activityId, $causationId: eventId });
}

/** Writes the first events of an organization; an existing one stays as it is. */
async function recordFounding(
  store: EventStore,
  organizationId: string,
  events: readonly OrganizationEvent[],
  at: number,
): Promise<void> {
  const cause = { at, $correlationId: organizationId, $causationId: organizationId };
  const sealed = sealedFounding(organizationId, events, cause);
  try {
    await store.append(organizationStream(organizationId), sealed, 'no-stream');
  } catch (error) {
    if (!(error instanceof WrongRevision)) throw error;
  }
}

function sealedFounding(
  organizationId: string,
  events: readonly OrganizationEvent[],
  metadata: Fact['metadata'],
): readonly NewEvent[] {
  const facts = events.map(({ type, data }) => ({ type, data, metadata }));
  return seal(organizationStream(organizationId), emptyTail, facts).events;
}

/** Whether an organization has a stream. @throws {StoreUnavailable} */
export function isFounded(store: EventStore, organizationId: string): Promise<boolean> {
  return isBegun(store, organizationStream(organizationId));
}
