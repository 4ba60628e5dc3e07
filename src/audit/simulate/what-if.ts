import type { Registry } from '../../decide/registry.js';
import { CoordinatorError } from '../../domain/errors.js';
import { Steps } from '../../domain/steps.js';
import type { Draft } from '../../read-models/draft-shapes.js';
import type { BranchOptions, BranchSource } from './branch-report.js';
import { branchOff } from './fork-history.js';
import { NoSuchBranch } from './fork-change.js';
import type { RequestedEvents } from '../timeline/requested-events.js';
import { HeldDraft } from './parse-draft.js';
import { responseCapacity, WhatIfReport, type ReportRoom, type WhatIf } from './what-if-report.js';

/** Budget of one question to a coordinator, in the thread that answers: about ten seconds. */
const whatIfSteps = 100_000_000;

export interface WhatIfOptions extends Pick<BranchOptions, 'onProgress' | 'meter' | 'hidesParent'> {
  readonly organizationId: string;
  readonly registry: Registry;
  readonly draft: Draft;
  /** Revision from which the draft holds; from the founding unless told. */
  readonly from?: number;
  /** Decides which votes of waiting activities still count; milliseconds since the epoch. */
  readonly now: number;
  /** What is told at most; without one, all that a report has. */
  readonly room?: ReportRoom;
}

/**
 * What would have become of an organization under a draft: its history is decided again from the founding, request by
 * request, on a state in which the draft holds, and which all that comes out otherwise changes for what follows. Only
 * reads.
 * @throws {BrokenChain} if an event is not the one that was recorded
 * @throws {CoordinatorError} NOT_FOUND if the organization has no events, or none at that revision
 */
export async function whatIf(
  store: BranchSource,
  { draft, from = 0, now, room, ...options }: WhatIfOptions,
): Promise<WhatIf> {
  const facts = new HeldDraft(draft);
  const { registry, meter } = options;
  const report = new WhatIfReport({ registry, now, meter, room });
  const ends = await branchOff(store, { ...options, held: { facts, from } }, report);
  return report.ended(options.organizationId, ends, facts.neverHeld);
}

/**
 * The same within the steps and the room of one question.
 * @throws {CoordinatorError} as `whatIf`; INVALID_ARGUMENT if the draft leads where nothing can be folded any more
 */
export async function boundedWhatIf(events: RequestedEvents, options: WhatIfOptions): Promise<WhatIf> {
  const meter = new Steps(whatIfSteps);
  events.meter = meter;
  try {
    return await whatIf(events, { ...options, meter, room: responseCapacity });
  } catch (error) {
    if (!(error instanceof NoSuchBranch)) throw error;
    throw new CoordinatorError('INVALID_ARGUMENT', `with this draft, ${error.message}`);
  }
}
