import type { EventReader } from '../ledger/event-store.js';
import type { ProofAnswer, ProofQuestion } from '../read-models/explanations.js';
import { HistoryThread, type HistoryThreadOptions } from '../replay/history-thread.js';

/** Proofs for one family of organizations, in progress or waiting. */
const mostOfFamily = 8;

/** Proves decisions in a thread of its own, because a history has to be folded for it, and flips have to be tried. */
export class ExplanationThread extends HistoryThread<ProofQuestion, ProofAnswer> {
  constructor(
    store: Pick<EventReader, 'read'>,
    { longestMs, file = new URL('./explanation-worker.js', import.meta.url) }: HistoryThreadOptions = {},
  ) {
    const noun = { one: 'the explanation', many: 'proofs of decisions' };
    super(store, { name: 'explanations', file, longestMs, mostOfFamily, noun });
  }
}
