import type { MessagePort } from 'node:worker_threads';
import { activities } from '../../activities/index.js';
import { buildRegistry, type Registry } from '../../decide/registry.js';
import { organizationStream } from '../../domain/organization/organization.js';
import type { RecordedEvent } from '../../ledger/event-store.js';
import { eventsOverPort, takeEvents } from './events-over-port.js';

/** A question whose answer is found in the history of an organization, and where a thread gets the events. */
export interface HistoryQuery<Question> {
  readonly question: Question;
  readonly port: MessagePort;
}

interface HistoryQuestion {
  readonly organizationId: string;
  /** The parent whose events come first, and up to which revision. */
  readonly authority?: { readonly organizationId: string; readonly revision: number };
}

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

const registry = buildRegistry(activities);

/** Answers a question of `QueryTasks`, in a thread. */
export async function queryHistory<Question extends HistoryQuestion, Answer>(
  { question, port }: HistoryQuery<Question>,
  begin: (question: Question, registry: Registry) => FromHistory<Answer>,
): Promise<Answer> {
  const ask = eventsOverPort(port);
  const finding = begin(question, registry);
  const { organizationId, authority } = question;
  if (authority) {
    const parent = { stream: organizationStream(authority.organizationId), from: 0, upTo: authority.revision };
    await takeEvents(ask, parent, (events) => finding.takeParent(events));
  }
  await takeEvents(ask, { stream: organizationStream(organizationId), from: 0 }, (events) => finding.take(events));
  return finding.answer();
}
