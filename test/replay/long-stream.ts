import { chainEvent, GENESIS_HASH } from '../../src/ledger/chain.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { organizationStream } from '../../src/domain/organization/organization.js';

/** A history of organization `acme` without activities: so many events behind the first, each of about that size. */
export function* longStream(events: number, size: number): Generator<RecordedEvent> {
  let hash = GENESIS_HASH;
  const stream = organizationStream('acme');
  for (let revision = 0; revision <= events; revision++) {
    const [type, data] =
      revision === 0
        ? (['OrganizationCreated', { organizationId: 'acme', name: 'Acme' }] as const)
        : (['OrganizationRenamed', { name: 'x'.repeat(size) }] as const);
    const id = `event ${revision}`;
    const metadata = { at: revision, schemaVersion: 1, $correlationId: 'none', $causationId: 'none' };
    hash = chainEvent(hash, { stream, revision, id, type, data, metadata });
    yield { stream, revision, position: BigInt(revision), id, type, data, metadata: { ...metadata, hash } };
  }
}
