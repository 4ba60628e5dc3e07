import { organizationStream } from '../../domain/organization/organization.js';
import { OutOfSteps, type Steps } from '../../domain/steps.js';
import type { EventReader, RecordedEvent } from '../../ledger/event-store.js';
import { storedEvent } from '../../ledger/stored-event.js';

/** Counts what folding an event takes, its link in the chain included; whether there were enough steps for it. */
export function payFolding(steps: Steps, event: RecordedEvent): boolean {
  const { data, metadata } = storedEvent(event);
  const length = data.length + metadata.length;
  try {
    steps.take('byteRead', length);
    steps.take('sha256Block', Math.ceil(length / 64) + 1);
    return true;
  } catch (error) {
    if (error instanceof OutOfSteps) return false;
    throw error;
  }
}

/** Takes the events of an organization up to a revision; false if there are too few steps for them. */
export async function foldWithin(
  steps: Steps,
  store: Pick<EventReader, 'read'>,
  { organizationId, revision }: { readonly organizationId: string; readonly revision: number },
  take: (event: RecordedEvent) => void,
): Promise<boolean> {
  for await (const event of store.read(organizationStream(organizationId))) {
    if (event.revision > revision) break;
    if (!payFolding(steps, event)) return false;
    take(event);
    if (event.revision === revision) break;
  }
  return true;
}
