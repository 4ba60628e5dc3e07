import { OutOfSteps, type Steps } from '../../domain/steps.js';
import type { RecordedEvent } from '../../ledger/event-store.js';
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
