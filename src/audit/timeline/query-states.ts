import type { MessagePort } from 'node:worker_threads';
import { organizationStream } from '../../domain/organization/organization.js';
import type { RecordedEvent } from '../../ledger/event-store.js';
import type { StateAnswer, StateQuestion } from '../../read-models/states.js';
import { eventsOverPort, takeEvents } from './events-over-port.js';
import { CachedStates, type StateBounds } from './cached-states.js';
import { nearestState, type Confirmed } from './nearest-state.js';
import { StateTask } from './states-task.js';

export interface StatesQuery {
  readonly organizationId: string;
  readonly question: StateQuestion;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Steps that folding may take; usual unless given. */
  readonly steps?: number;
  /** Where states are kept between questions, and how many events lie between two. */
  readonly kept?: {
    readonly folder: string;
    readonly bounds?: StateBounds;
    readonly family: string;
    readonly every: number;
  };
  readonly port: MessagePort;
}

/**
 * Answers a question about past states, in a thread: goes on from the nearest state that is kept.
 * @throws {BrokenChain} if an event is not the one that was recorded
 * @throws {CoordinatorError} as `StateTask`
 */
export async function queryStates(asked: StatesQuery): Promise<StateAnswer> {
  const { organizationId, question, now, steps, kept, port } = asked;
  const ask = eventsOverPort(port);
  const stream = organizationStream(organizationId);
  const states = kept && new CachedStates(kept.folder, kept.bounds);
  const begun = states && (await nearestKept(states, kept.family));
  const telling = new StateTask(organizationId, question, now, begun, steps);
  const isKept = ({ revision }: RecordedEvent) => kept !== undefined && revision > 0 && revision % kept.every === 0;
  await takeEvents(ask, { stream, from: begun ? begun.loaded.revision + 1 : 0 }, async (events) => {
    for (let from = 0; from < events.length;) {
      const upTo = events.findIndex((event, index) => index >= from && isKept(event)) + 1 || events.length;
      if (!telling.take(events.slice(from, upTo))) return false;
      if (isKept(events[upTo - 1]!)) await states!.keep(kept!.family, telling.state);
      from = upTo;
    }
    return true;
  });
  return telling.answer();

  async function nearestKept(kept: CachedStates, family: string): Promise<Confirmed | undefined> {
    const point = question.asks === 'state' ? question.at : question.from;
    return nearestState(await kept.revisions(family, organizationId), point, {
      read: (revision) => kept.read(family, organizationId, revision),
      discard: (revision) => kept.discard(family, organizationId, revision),
      eventAt: async (revision) => (await ask({ stream, from: revision, most: 1 })).events[0],
    });
  }
}
