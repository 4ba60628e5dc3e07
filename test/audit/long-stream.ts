import { chainEvent, GENESIS_HASH } from '../../src/ledger/chain.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { organizationStream } from '../../src/domain/organization/organization.js';

/** The chained stream of an organization: its founding, then such events, one each second. */
export function* streamOf(
  organizationId: string,
  following: Iterable<{ type: string; data: object }>,
): Generator<RecordedEvent> {
  let hash = GENESIS_HASH;
  let revision = 0;
  const stream = organizationStream(organizationId);
  const whole = function* () {
    yield { type: 'OrganizationCreated', data: { organizationId, name: 'Acme' } };
    yield* following;
  };
  for (const { type, data } of whole()) {
    const id = `event ${revision}`;
    const metadata = { at: revision * 1_000, schemaVersion: 1, $correlationId: id, $causationId: id };
    hash = chainEvent(hash, { stream, revision, id, type, data, metadata });
    yield { stream, revision, position: BigInt(revision), id, type, data, metadata: { ...metadata, hash } };
    revision++;
  }
}

/** So many new names of an organization. */
export function* renamed(count: number, name: string) {
  for (let index = 0; index < count; index++) yield { type: 'OrganizationRenamed', data: { name } };
}

/** A history of organization `acme` without activities: so many events behind the first, each of about that size. */
export function* longStream(events: number, size: number): Generator<RecordedEvent> {
  yield* streamOf('acme', renamed(events, 'x'.repeat(size)));
}
