import { CoordinatorError } from '../../domain/errors.js';
import type { EventMetadata } from '../../ledger/chain.js';
import type { RecordedEvent } from '../../ledger/event-store.js';
import type { Point } from '../../read-models/states.js';

/** Whether an event was recorded by then. Positions and times only increase within a stream. */
export function isBy(point: Point, { revision, position, metadata }: RecordedEvent): boolean {
  switch (point.by) {
    case 'revision':
      return revision <= point.revision;
    case 'position':
      return position <= point.position;
    case 'time':
      return (metadata as EventMetadata).at <= point.time;
    case 'newest':
      return true;
  }
}

/**
 * Reports that the history has no such point, given the last revision up to it; -1 for none.
 * @throws {CoordinatorError} NOT_FOUND
 */
export function checkReached(organizationId: string, point: Point, revision: number): void {
  if (revision >= 0 && (point.by !== 'revision' || revision === point.revision)) return;
  const name = `organization \`${organizationId}\``;
  switch (point.by) {
    case 'revision':
      throw notThere(
        revision < 0
          ? `${name} has no events`
          : `${name} has no event at revision \`${point.revision}\`: the last one is ${revision}`,
      );
    case 'position':
      throw notThere(`${name} has no event up to position \`${point.position}\``);
    case 'time':
      throw notThere(`${name} has no event up to ${new Date(point.time).toISOString()}`);
    case 'newest':
      throw notThere(`${name} has no events`);
  }
}

const notThere = (message: string) => new CoordinatorError('NOT_FOUND', message);
