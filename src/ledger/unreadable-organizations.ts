import { CoordinatorError } from '../domain/errors.js';
import { organizationOf } from '../domain/organization/organization.js';
import { UnreadableEvent } from './event-store.js';

/** Where the first event of an organization is that cannot be read, and why. */
export interface UnreadablePlace {
  /** Empty if the event does not say it. */
  readonly organizationId: string;
  readonly stream: string;
  readonly revision: number;
  readonly position: bigint | undefined;
  readonly reason: string;
}

/**
 * Organizations that have an event which cannot be read. They are refused until a restart, because a decision or an answer would
 * rest on a part of their history; the others are not affected.
 */
export class UnreadableOrganizations {
  private readonly refusals = new Map<string, CoordinatorError>();

  /** @param noted called once for each organization */
  constructor(private readonly noted: (place: UnreadablePlace) => void = () => undefined) {}

  /** Refuses the organization from now on. */
  note(place: UnreadablePlace): CoordinatorError {
    const key = place.organizationId || place.stream;
    let refusal = this.refusals.get(key);
    if (!refusal) {
      refusal = refusalOf(place);
      this.refusals.set(key, refusal);
      this.noted(place);
    }
    return refusal;
  }

  /** The refusal for an `UnreadableEvent`. Any other error is returned unchanged. */
  refusal(error: unknown): unknown {
    if (!(error instanceof UnreadableEvent)) return error;
    const { stream, revision, position, message: reason } = error;
    return this.note({ organizationId: organizationOf(stream) ?? '', stream, revision, position, reason });
  }

  /** @throws {CoordinatorError} UNAVAILABLE if it is refused */
  check(organizationId: string): void {
    const refusal = this.refusals.get(organizationId);
    if (refusal) throw refusal;
  }
}

/** Without Retry-After: only an operator can repair the store. */
function refusalOf({ organizationId, stream, revision, position, reason }: UnreadablePlace): CoordinatorError {
  const whose = organizationId ? `organization \`${organizationId}\` is not available: ` : '';
  const place = `revision ${revision} of stream \`${stream}\`${position === undefined ? '' : ` (position ${position})`}`;
  return new CoordinatorError(
    'UNAVAILABLE',
    `${whose}the event at ${place} cannot be read; the operator must run \`countersign verify\`, then restore a backup or start the ` +
      'release that wrote the event',
    { cause: new UnreadableEvent(stream, revision, reason) },
  );
}
