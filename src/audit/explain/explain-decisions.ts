import { organizationStream } from '../../domain/organization/organization.js';
import { Steps } from '../../domain/steps.js';
import type { EventMetadata } from '../../ledger/chain.js';
import type { EventReader } from '../../ledger/event-store.js';
import { fold, nothingLoaded, type LoadedOrganization } from '../../ledger/loaded-organization.js';
import type { Registry } from '../../decide/registry.js';
import type { ReasonsAnswer, ReasonsQuestion } from '../../read-models/reasons.js';
import { decidingTypes, eventOf, type Deciding } from '../verify/deciding-events.js';
import { foldWithin, payFolding } from '../timeline/fold-cost.js';
import { reasonsOf, type DecidedOn } from './decision-reasons.js';

/** Budget of one explanation for someone whom the activity concerns, in the thread that makes it: some seconds. */
export const reasonsSteps = 30_000_000;
/** The same for anyone else in the organization: the last of some 20,000 events. */
export const stepsForOthers = 3_000_000;

/**
 * Explains the past decisions on one activity from the history of its organization, and of the parent whose policies decided.
 * @throws {BrokenChain} if an event is not the one that was recorded
 */
export async function explainDecisions(
  question: ReasonsQuestion,
  registry: Registry,
  store: Pick<EventReader, 'read'>,
): Promise<ReasonsAnswer> {
  const { organizationId, activityId, decisions, authority, isConcerned } = question;
  const steps = new Steps(isConcerned ? reasonsSteps : stepsForOthers);
  const told: ReasonsAnswer['told'][number][] = [];
  const parent = nothingLoaded();
  if (authority && !(await foldWithin(steps, store, authority, (event) => fold(parent, event)))) {
    return { told, notExplained: tooLong };
  }
  const loaded = nothingLoaded();
  for await (const recorded of store.read(organizationStream(organizationId))) {
    if (told.length >= decisions) break;
    const event = decidingTypes.has(recorded.type) ? (eventOf(recorded) as Deciding) : undefined;
    if (event && event.type !== 'ActivityRejected' && event.data.activityId === activityId) {
      const { at } = recorded.metadata as EventMetadata;
      const outcomes = outcomesIn({ registry, event, ...statesOf(loaded), at }, parent, steps);
      if (!outcomes) return { told, notExplained: tooLong };
      told.push({ voteId: event.data.vote.voteId, outcomes });
      if (told.length >= decisions) break;
    }
    if (!payFolding(steps, recorded)) return { told, notExplained: tooLong };
    fold(loaded, recorded);
  }
  return { told };
}

const statesOf = ({ organization, revision }: LoadedOrganization) => ({ organization, revision });

function outcomesIn(decided: DecidedOn, parent: LoadedOrganization, steps: Steps) {
  const { authority, evaluations } = decided.event.data.decision;
  if (!authority) return reasonsOf(decided, steps);
  // A parent whose policies are not for the reader, or whose stream was not imported with the history.
  if (parent.revision !== authority.revision) return evaluations;
  return reasonsOf({ ...decided, authority: parent }, steps);
}

const tooLong =
  'too much has happened before: run `countersign replay` on the store, or ask as somebody who voted or is in the root quorum';
