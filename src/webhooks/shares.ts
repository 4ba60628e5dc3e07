import { strangersOf, type QueuePath } from '../fairness/fair-queue.js';

/** Deliveries in flight. Any endpoint may turn slow with all that it has. */
const most = {
  all: 128,
  /** To endpoints of one parent's strangers. */
  ofStrangers: 64,
  /** Beside the first of each organization, which finds a place whatever the others have. */
  beyondFirst: 96,
  beyondFirstOfStrangers: 32,
  /** To a parent's own. */
  ofParent: 32,
  /** To those of one stranger. */
  ofOne: 8,
  /** To endpoints that are slow, failing or new. */
  unproven: 32,
  unprovenOfStrangers: 24,
  unprovenOfParent: 16,
  unprovenOfOne: 4,
};
/** Deliveries in flight to one endpoint whose latest response was a success, and was fast. */
const mostPerEndpoint = 8;
/** Outcomes of one endpoint that may wait to be recorded, and for the rows to show them. */
const mostSettled = 256;

/** Deliveries on their way at a time. */
export const mostDeliveries = most.all;

/** Deliveries in flight to one endpoint. */
interface LaneUse {
  /** Of its organization. */
  readonly path: QueuePath;
  readonly isProven: boolean;
  readonly busy: number;
}

/**
 * How many deliveries may be in flight to one endpoint: a slow one occupies one place, and one whose outcomes are not
 * recorded as fast as they come has to wait.
 */
export function roomOfEndpoint({
  isProven,
  settled,
}: {
  readonly isProven: boolean;
  readonly settled: number;
}): number {
  if (settled >= mostSettled) return 0;
  return isProven ? mostPerEndpoint : 1;
}

/**
 * Where an endpoint waits. Unproven ones have separate turns; they are apart before anything else is, so that a used-up share
 * of theirs closes all that wait for it in one test, however many organizations those are of.
 */
export function lanePath(lane: {
  readonly path: QueuePath;
  readonly isProven: boolean;
  readonly endpointId: string;
}): QueuePath {
  return [lane.isProven ? 'proven' : 'unproven', ...lane.path, lane.endpointId];
}

/** Which of the waiting ones, by prefixes of their `lanePath`, may have their turn given what is in flight. */
export function openTo(lanes: readonly LaneUse[]): (path: QueuePath) => boolean {
  const organizations = usesOf(lanes);
  const all = inFlight([...organizations.values()]);
  const strangersUse = new Map<string, ReturnType<typeof inFlight>>();
  const ofStrangers = (parent: string) => {
    const known = strangersUse.get(parent);
    if (known) return known;
    const use = inFlight([...organizations.values()].filter((one) => one.parent === parent));
    strangersUse.set(parent, use);
    return use;
  };
  return ([kind, ...path]) => {
    const isUnproven = kind === 'unproven';
    if (all.busy >= most.all) return false;
    if (isUnproven && all.unproven >= most.unproven) return false;
    const parent = strangersOf(path);
    const strangers = parent === undefined ? undefined : ofStrangers(parent);
    if (strangers && path.length === 3) {
      if (isUnproven && strangers.unproven >= most.unprovenOfStrangers) return false;
      return strangers.busy < most.ofStrangers;
    }
    const use = organizations.get(path.join(' '));
    if (!use) return true;
    if (isUnproven && use.unproven >= (strangers ? most.unprovenOfOne : most.unprovenOfParent)) return false;
    if (all.beyondFirst >= most.beyondFirst) return false;
    if (!strangers) return use.busy < most.ofParent;
    return use.busy < most.ofOne && strangers.beyondFirst < most.beyondFirstOfStrangers;
  };
}

/** What an organization has in flight. */
interface OrganizationUse {
  /** Whose stranger it is. */
  readonly parent: string | undefined;
  busy: number;
  unproven: number;
}

function usesOf(lanes: readonly LaneUse[]): ReadonlyMap<string, OrganizationUse> {
  const organizations = new Map<string, OrganizationUse>();
  for (const { path, isProven, busy } of lanes) {
    const name = path.join(' ');
    const use = organizations.get(name) ?? { parent: strangersOf(path), busy: 0, unproven: 0 };
    organizations.set(name, use);
    use.busy += busy;
    if (!isProven) use.unproven += busy;
  }
  return organizations;
}

/** What several organizations have in flight. What one has beyond its share of the unproven takes nothing of the others'. */
function inFlight(uses: readonly OrganizationUse[]) {
  const busy = uses.reduce((sum, use) => sum + use.busy, 0);
  const unproven = new Map<string | undefined, number>();
  for (const use of uses) {
    const share = use.parent === undefined ? most.unprovenOfParent : most.unprovenOfOne;
    unproven.set(use.parent, (unproven.get(use.parent) ?? 0) + Math.min(use.unproven, share));
  }
  const shares = Array.from(unproven, ([parent, count]) =>
    parent === undefined ? count : Math.min(count, most.unprovenOfStrangers),
  );
  return {
    busy,
    beyondFirst: busy - uses.length,
    unproven: shares.reduce((sum, count) => sum + count, 0),
  };
}
