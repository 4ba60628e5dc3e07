import type { MessagePort } from 'node:worker_threads';
import { CoordinatorError, invalidField } from '../../domain/errors.js';
import { organizationStream, type OrganizationView } from '../../domain/organization/organization.js';
import { Steps } from '../../domain/steps.js';
import type { EventMetadata } from '../../ledger/chain.js';
import { fold, nothingLoaded } from '../../ledger/loaded-organization.js';
import { mostBytesOfPages, type TextPage } from '../../read-models/pages.js';
import type {
  ReachedShape,
  StateAnswer,
  StateChangeShape,
  StateElementShape,
  StateQuestion,
} from '../../read-models/states.js';
import { CachedStates, type StateBounds } from './cached-states.js';
import { compareStates } from './compare-states.js';
import { eventsOverPort } from './events-over-port.js';
import { payFolding } from './fold-cost.js';
import { keptState } from './fold-to.js';
import { nearestState, type Confirmed } from './nearest-state.js';
import { checkReached, isBy } from './point-reached.js';
import { RequestedEvents } from './requested-events.js';
import { allThings, organizationTold } from './state-things.js';

/** Budget of one query, in the thread that answers it: some seconds. */
export const stateSteps = 30_000_000;

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

/** An element of a page before it has its number; costly descriptions are built on demand. */
type ToNumber<Element> = {
  readonly [Member in Exclude<keyof Element, 'number'>]: Element[Member] | (() => Element[Member]);
};

/**
 * Answers a question about past states, in a thread: goes on from the nearest state that is kept.
 * @throws {BrokenChain} if an event is not the one that was recorded
 * @throws {CoordinatorError} NOT_FOUND for a point that the history does not have; RESOURCE_EXHAUSTED if there are too many events;
 *   INVALID_ARGUMENT
 */
export async function queryStates(requested: StatesQuery): Promise<StateAnswer> {
  const { organizationId, question, now, kept, port } = requested;
  const ask = eventsOverPort(port);
  const store = new RequestedEvents(ask);
  const stream = organizationStream(organizationId);
  const points = question.asks === 'state' ? [question.at] : [question.from, question.to];
  const states = kept && new CachedStates(kept.folder, kept.bounds);
  const started = states && (await nearestCached(states, kept.family));
  const loaded = started?.loaded ?? nothingLoaded();
  const steps = new Steps(requested.steps ?? stateSteps);
  const reached: ReachedShape[] = [];
  let earlier: OrganizationView | undefined;
  let last = started?.event;
  let folded = 0;
  for await (const event of store.read(stream, loaded.revision + 1)) {
    while (reached.length < points.length && !isBy(points[reached.length]!, event)) reach();
    if (reached.length === points.length) break;
    if (!payFolding(steps, event)) throw tooManyEvents(organizationId, folded);
    fold(loaded, event);
    last = event;
    folded++;
    if (kept && event.revision > 0 && event.revision % kept.every === 0) await states!.keep(kept.family, loaded);
  }
  while (reached.length < points.length) reach();
  const { organization } = loaded;
  return question.asks === 'state'
    ? {
        reached,
        organization: organizationTold(organization, now),
        elements: pageOf(question.after, thingsOf(organization, question.lists, now)),
      }
    : {
        reached,
        organization: undefined,
        elements: pageOf(question.after, compareStates(earlier!, organization, now)),
      };

  /** The next point is after the last event taken. */
  function reach(): void {
    const point = points[reached.length]!;
    if (last && !isBy(point, last)) {
      throw invalidField('to', 'is earlier than `from`: name the earlier state first');
    }
    checkReached(organizationId, point, loaded.revision);
    const { id, revision, metadata } = last!;
    const { at, hash } = metadata as EventMetadata;
    reached.push({ revision: String(revision), eventId: id, recordedAt: new Date(at).toISOString(), hash });
    if (reached.length < points.length) earlier = keptState(loaded.organization);
  }

  async function nearestCached(cached: CachedStates, family: string): Promise<Confirmed | undefined> {
    return nearestState(await cached.revisions(family, organizationId), points[0]!, {
      read: (revision) => cached.read(family, organizationId, revision),
      discard: (revision) => cached.discard(family, organizationId, revision),
      eventAt: async (revision) => (await ask({ stream, from: revision, most: 1 })).events[0],
    });
  }
}

function tooManyEvents(organizationId: string, folded: number): CoordinatorError {
  return new CoordinatorError(
    'RESOURCE_EXHAUSTED',
    `organization \`${organizationId}\` has more events up to there than one question may fold ` +
      `(${folded} were): ask about an earlier point, or run \`countersign replay\` on the store`,
  );
}

function* thingsOf(
  organization: OrganizationView,
  lists: readonly string[],
  now: number,
): Generator<ToNumber<StateElementShape>> {
  for (const thing of allThings(organization)) {
    if (lists.length > 0 && !lists.includes(thing.list)) continue;
    const { list, id } = thing;
    yield { list, id, value: () => thing.told(now) };
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
