import { parentPort } from 'node:worker_threads';
import { activities } from '../activities/index.js';
import { buildRegistry, type Registry } from '../decide/registry.js';
import type { RecordedEvent } from '../ledger/event-store.js';
import { unpackEvents } from '../read-models/packed-events.js';
import type { FromHistoryWorker, ToHistoryWorker } from './history-thread.js';

/**
 * Finds the answer to one question, fed with the parent's events up to the revision that the question names, and then with
 * those of the organization. Both say whether they need more.
 */
export interface FromHistory<Answer> {
  /** @throws {BrokenChain} if an event is not the one that was recorded */
  takeParent(events: readonly RecordedEvent[]): boolean;
  /** @throws {BrokenChain} as `takeParent` */
  take(events: readonly RecordedEvent[]): boolean;
  /** The stream ends here, or is no longer needed. */
  answer(): Answer;
}

/** Has this thread answer the questions of a `HistoryThread`, one after the other. */
export function answerFromHistory<Question, Answer>(
  begin: (question: Question, registry: Registry) => FromHistory<Answer>,
): void {
  const port = parentPort;
  const registry = buildRegistry(activities);
  let telling: FromHistory<Answer> | undefined;
  const goOn = (isWanted: boolean) => ({ kind: isWanted ? ('go-on' as const) : ('enough' as const) });

  function heard(message: ToHistoryWorker<Question>): FromHistoryWorker<Answer> {
    try {
      switch (message.kind) {
        case 'question':
          telling = begin(message.question, registry);
          return { kind: 'go-on' };
        case 'parent':
          return goOn(telling!.takeParent(unpackEvents(message.events)));
        case 'events':
          return goOn(telling!.take(unpackEvents(message.events)));
        case 'end': {
          const answer = telling!.answer();
          telling = undefined;
          return { kind: 'answer', answer };
        }
      }
    } catch (error) {
      telling = undefined;
      return { kind: 'failed', reason: error instanceof Error ? error.message : String(error) };
    }
  }

  port?.on('message', (message: ToHistoryWorker<Question>) => port.postMessage(heard(message)));
}
