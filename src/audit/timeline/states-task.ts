import { fold, nothingLoaded, type LoadedOrganization } from '../../ledger/loaded-organization.js';
import { CoordinatorError, invalidField } from '../../domain/errors.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import { Steps } from '../../domain/steps.js';
import type { EventMetadata } from '../../ledger/chain.js';
import type { RecordedEvent } from '../../ledger/event-store.js';
import { mostBytesOfPages, type TextPage } from '../../read-models/pages.js';
import type {
  Point,
  ReachedShape,
  StateAnswer,
  StateChangeShape,
  StateElementShape,
  StateQuestion,
} from '../../read-models/states.js';
import { compareStates } from './compare-states.js';
import { payFolding } from './fold-cost.js';
import { keptState } from './fold-to.js';
import type { Confirmed } from './nearest-state.js';
import { checkReached, isBy } from './point-reached.js';
import { allThings, organizationTold } from './state-things.js';

/** Budget of one query, in the thread that answers it: some seconds. */
export const stateSteps = 30_000_000;

/** An element of a page before it has its number; costly descriptions are built on demand. */
type ToNumber<Element> = {
  readonly [Member in Exclude<keyof Element, 'number'>]: Element[Member] | (() => Element[Member]);
};

/** A query about the states of one organization, fed with its events. */
export class StateTask {
  private readonly points: readonly Point[];
  private readonly reached: ReachedShape[] = [];
  private readonly loaded: LoadedOrganization;
  private readonly steps: Steps;
  private earlier: OrganizationView | undefined;
  private last: RecordedEvent | undefined;
  private folded = 0;

  /**
   * @param begun the state to go on from, by the first point; the first event unless told
   * @param steps that folding may take
   */
  constructor(
    private readonly organizationId: string,
    private readonly question: StateQuestion,
    private readonly now: number,
    begun?: Confirmed,
    steps = stateSteps,
  ) {
    this.steps = new Steps(steps);
    this.loaded = begun?.loaded ?? nothingLoaded();
    this.last = begun?.event;
    this.points = question.asks === 'state' ? [question.at] : [question.from, question.to];
  }

  /**
   * Takes the next events of the stream.
   * @returns whether it needs more
   * @throws {BrokenChain} if an event is not the one that was recorded
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED if there are too many; otherwise as `answer`
   */
  take(events: readonly RecordedEvent[]): boolean {
    for (const event of events) {
      while (this.isWanted && !isBy(this.points[this.reached.length]!, event)) this.reach();
      if (!this.isWanted) return false;
      this.count(event);
      fold(this.loaded, event);
      this.last = event;
      this.folded++;
    }
    return this.isWanted;
  }

  /**
   * The stream ends here, or is no longer needed.
   * @throws {CoordinatorError} NOT_FOUND for a point that the history does not have; INVALID_ARGUMENT
   */
  answer(): StateAnswer {
    while (this.isWanted) this.reach();
    const { organization } = this.loaded;
    const { question, reached, now } = this;
    const { after } = question;
    const elements =
      question.asks === 'state' ? pageOf(after, this.things(question.lists)) : pageOf(after, this.changes());
    return {
      reached,
      organization: question.asks === 'state' ? organizationTold(organization, now) : undefined,
      elements,
    };
  }

  /** Behind the last event taken; it goes on changing. */
  get state(): LoadedOrganization {
    return this.loaded;
  }

  private get isWanted(): boolean {
    return this.reached.length < this.points.length;
  }

  /** The next point is after the last event taken. */
  private reach(): void {
    const point = this.points[this.reached.length]!;
    if (this.last && !isBy(point, this.last)) {
      throw invalidField('to', 'is earlier than `from`: name the earlier state first');
    }
    checkReached(this.organizationId, point, this.loaded.revision);
    const { id, revision, metadata } = this.last!;
    const { at, hash } = metadata as EventMetadata;
    this.reached.push({ revision: String(revision), eventId: id, recordedAt: new Date(at).toISOString(), hash });
    if (this.isWanted) this.earlier = keptState(this.loaded.organization);
  }

  private count(event: RecordedEvent): void {
    if (payFolding(this.steps, event)) return;
    throw new CoordinatorError(
      'RESOURCE_EXHAUSTED',
      `organization \`${this.organizationId}\` has more events up to there than one question may fold ` +
        `(${this.folded} were): ask about an earlier point, or run \`countersign replay\` on the store`,
    );
  }

  private *things(lists: readonly string[]): Generator<ToNumber<StateElementShape>> {
    for (const thing of allThings(this.loaded.organization)) {
      if (lists.length > 0 && !lists.includes(thing.list)) continue;
      const { list, id } = thing;
      yield { list, id, value: () => thing.told(this.now) };
    }
  }

  private *changes(): Generator<ToNumber<StateChangeShape>> {
    yield* compareStates(this.earlier!, this.loaded.organization, this.now);
  }
}

/** Elements after a number, up to the size limit of a response, but at least one. Later ones are not built. */
function pageOf<Element extends StateElementShape | StateChangeShape>(
  after: number,
  elements: Iterable<ToNumber<Element>>,
): TextPage<Element> {
  const texts: string[] = [];
  let [number, bytes] = [0, 0];
  for (const element of elements) {
    if (++number <= after) continue;
    const told = Object.entries<unknown>(element).map(
      ([name, value]) => [name, isToTell(value) ? value() : value] as const,
    );
    const text = JSON.stringify({ number: String(number), ...Object.fromEntries(told) });
    bytes += Buffer.byteLength(text) + 1;
    if (texts.length > 0 && bytes > mostBytesOfPages) return { texts, hasMore: true };
    texts.push(text);
  }
  return { texts, hasMore: false };
}

const isToTell = (value: unknown): value is () => unknown => typeof value === 'function';
