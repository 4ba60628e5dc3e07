import type { RecordedEvent } from '../ledger/event-store.js';
import type { StateQuestion } from '../read-models/states.js';
import type { KeptStates } from './kept-states.js';
import { NearestState } from './nearest-state.js';
import type { FromStateWorker } from './state-thread.js';
import { StateTelling } from './tell-states.js';

interface Asked {
  readonly organizationId: string;
  readonly question: StateQuestion;
  readonly now: number;
  /** That folding may take; usual unless told. */
  readonly steps?: number;
}

/** Where states are kept, and how many events lie between two. */
interface Keeping {
  readonly states: KeptStates;
  readonly family: string;
  readonly every: number;
}

/** One question about states, from the search for a state to go on from to the answer. */
export class StateConversation {
  private search: NearestState | undefined;
  private telling: StateTelling | undefined;

  constructor(
    private readonly asked: Asked,
    private readonly keeping: Keeping | undefined,
  ) {}

  async begin(): Promise<FromStateWorker> {
    const { asked, keeping } = this;
    const { question, organizationId } = asked;
    if (keeping) {
      const { states, family } = keeping;
      this.search = new NearestState(
        await states.revisions(family, organizationId),
        question.asks === 'state' ? question.at : question.from,
        {
          read: (revision) => states.read(family, organizationId, revision),
          discard: (revision) => states.discard(family, organizationId, revision),
        },
      );
    }
    return this.goOn();
  }

  /**
   * The events that were asked for, or the next of them.
   * @throws {BrokenChain} if an event is not the one that was recorded
   * @throws {CoordinatorError} as `StateTelling`
   */
  async take(events: readonly RecordedEvent[]): Promise<FromStateWorker> {
    if (!this.telling) {
      await this.search!.show(events[0]);
      return this.goOn();
    }
    for (let from = 0; from < events.length;) {
      const upTo = events.findIndex((event, index) => index >= from && this.isKept(event)) + 1 || events.length;
      if (!this.telling.take(events.slice(from, upTo))) return { kind: 'answer', answer: this.telling.answer() };
      if (this.isKept(events[upTo - 1]!)) await this.keeping!.states.keep(this.keeping!.family, this.telling.state);
      from = upTo;
    }
    return { kind: 'go-on' };
  }

  /** Whether the state behind an event is kept. */
  private isKept({ revision }: RecordedEvent): boolean {
    return this.keeping !== undefined && revision > 0 && revision % this.keeping.every === 0;
  }

  /**
   * The stream ends here.
   * @throws {CoordinatorError} as `StateTelling`
   */
  async end(): Promise<FromStateWorker> {
    if (this.telling) return { kind: 'answer', answer: this.telling.answer() };
    await this.search!.show(undefined);
    return this.goOn();
  }

  private async goOn(): Promise<FromStateWorker> {
    const probed = await this.search?.next();
    if (probed !== undefined) return { kind: 'read', from: probed, most: 1 };
    const begun = this.search?.found;
    const { organizationId, question, now, steps } = this.asked;
    this.telling = new StateTelling(organizationId, question, now, begun, steps);
    return { kind: 'read', from: begun ? begun.loaded.revision + 1 : 0, most: Infinity };
  }
}
