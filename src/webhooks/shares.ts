import { strangersOf, type QueuePath } from '../fairness/fair-queue.js';

/**
 * Deliveries in flight: in total; to endpoints of one parent's strangers; to a parent's own; to those of one stranger; to all
 * endpoints that are slow, failing or new; and of those, to a parent's own, to those of one parent's strangers, and to
 * those of one of these. Any endpoint may turn slow with all of its deliveries in flight.
 */
const most = {
  all: 128,
  ofStrangers: 64,
  ofParent: 32,
  ofOne: 8,
  unproven: 32,
  unprovenOfParent: 16,
  unprovenOfStrangers: 24,
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

/** Where an endpoint waits: unproven endpoints have separate turns within their organization. */
export function lanePath(lane: {
  readonly path: QueuePath;
  readonly isProven: boolean;
  readonly endpointId: string;
}): QueuePath {
  return [...lane.path, lane.isProven ? 'proven' : 'unproven', lane.endpointId];
}

/** Which of the waiting ones, by prefixes of their `lanePath`, may have their turn given what is in flight. */
export function openTo(lanes: readonly LaneUse[]): (path: QueuePath) => boolean {
  const count = (isCounted: (lane: LaneUse) => boolean) =>
    lanes.reduce((sum, lane) => sum + (isCounted(lane) ? lane.busy : 0), 0);
  const all = count(() => true);
  const unproven = count(({ isProven }) => !isProven);
  return (path) => {
    if (all >= most.all) return false;
    const isUnproven = path.at(-1) === 'unproven';
    if (isUnproven && unproven >= most.unproven) return false;
    const family = strangersOf(path);
    const isOfStrangers = (lane: LaneUse) => strangersOf(lane.path) === family;
    if (family !== undefined && path.length === 3) return count(isOfStrangers) < most.ofStrangers;
    if (path.length === (family === undefined ? 3 : 4)) {
      const organization = path.join(' ');
      const ofOrganization = count((lane) => lane.path.join(' ') === organization);
      return ofOrganization < (family === undefined ? most.ofParent : most.ofOne);
    }
    if (!isUnproven) return true;
    const unprovenOf = (isCounted: (lane: LaneUse) => boolean) => count((lane) => !lane.isProven && isCounted(lane));
    const owner = path.slice(0, -1).join(' ');
    const ofOne = unprovenOf((lane) => lane.path.join(' ') === owner);
    if (family === undefined) return ofOne < most.unprovenOfParent;
    return ofOne < most.unprovenOfOne && unprovenOf(isOfStrangers) < most.unprovenOfStrangers;
  };
}
