import type { OrganizationEvent } from '../../src/domain/organization/organization.js';
import { vaultsEndedBy, vaultsNamedBy } from '../../src/domain/organization/vaults.js';
import { chainEvent, GENESIS_HASH, type EventMetadata } from '../../src/ledger/chain.js';
import type { EventStore, NewEvent, RecordedEvent } from '../../src/ledger/event-store.js';
import { goldenNamesOf, goldenStream } from '../golden/streams.js';

export type Event = NewEvent & { readonly data: Record<string, unknown>; readonly metadata: EventMetadata };
/** Streams by name, each with its events in order. */
export type History = Map<string, Event[]>;

export const anId = () => crypto.randomUUID() as string;

/** Events by their streams, in order. */
export function byStream(recorded: readonly RecordedEvent[]): History {
  const history: History = new Map();
  for (const { stream, id, type, data, metadata } of recorded as readonly (RecordedEvent & Event)[]) {
    const events = history.get(stream) ?? [];
    events.push({ id, type, data, metadata });
    history.set(stream, events);
  }
  return history;
}

/** Recorded streams of organizations; read anew for each forger. */
export function golden(): History {
  const streams = [...byStream(goldenNamesOf('v1').flatMap(goldenStream))];
  // A parent is there before its sub-organizations.
  const isChild = ([, events]: (typeof streams)[number]) => Number('parentOrganizationId' in events[0]!.data);
  return new Map(streams.sort((one, other) => isChild(one) - isChild(other)));
}

/** A stream for each vault that is named and not ended: exports, and so these files, have none. */
export function vaultsLeftBy(organizations: History): History {
  const all = [...organizations.values()].flat() as unknown as OrganizationEvent[];
  const ended = new Set(all.flatMap(vaultsEndedBy));
  const left = [...new Set(all.flatMap(vaultsNamedBy))].filter((vaultId) => !ended.has(vaultId));
  return new Map(left.map((vaultId) => [`vault-${vaultId}`, sealAgain(`vault-${vaultId}`, [aSecret()])]));
}

export const withVaults = (organizations: History): History =>
  new Map([...vaultsLeftBy(organizations), ...organizations]);

/** As far as anybody sees it who has no key-encryption key. */
export function aSecret(): Event {
  const metadata = { at: 1, schemaVersion: 1, $correlationId: anId(), $causationId: anId(), hash: '' };
  return { id: anId(), type: 'SecretSealed', data: { name: 'a secret' }, metadata };
}

export async function fill(store: EventStore, history: History): Promise<void> {
  for (const [stream, events] of history) {
    const plain = events.map(({ id, type, data, metadata }) => ({ id, type, data, metadata }));
    await store.append(stream, plain, 'no-stream');
  }
}

/** A forger who can write to the store makes the chain fit again: it is no secret. */
export function sealAgain(stream: string, events: readonly Event[]): Event[] {
  let link = GENESIS_HASH;
  return events.map(({ id, type, data, metadata: { hash: _hash, unchained, ...metadata } }, revision) => {
    link = chainEvent(link, { stream, revision, id, type, data, metadata });
    return { id, type, data, metadata: { ...metadata, hash: link, ...(unchained ? { unchained } : {}) } };
  });
}

/** The types of events that a decision starts with. */
export const isDeciding = ({ type }: Pick<Event, 'type'>) =>
  ['ActivitySubmitted', 'ActivityApproved', 'ActivityRejected'].includes(type);
