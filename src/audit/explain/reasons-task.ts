import { Steps } from '../../domain/steps.js';
import type { EventMetadata } from '../../ledger/chain.js';
import type { RecordedEvent } from '../../ledger/event-store.js';
import { fold, nothingLoaded, type LoadedOrganization } from '../../ledger/loaded-organization.js';
import type { Registry } from '../../decide/registry.js';
import type { ReasonsAnswer, ReasonsQuestion } from '../../read-models/reasons.js';
import { decidingTypes, eventOf, type Deciding } from '../verify/deciding-events.js';
import { reasonsOf } from './decision-reasons.js';
import type { FromHistory } from '../timeline/query-history.js';
import { payFolding } from '../timeline/fold-cost.js';

/** Budget of one explanation for someone whom the activity concerns, in the thread that makes it: some seconds. */
export const reasonsSteps = 30_000_000;
/** The same for anyone else in the organization: the last of some 20,000 events. */
export const stepsForOthers = 3_000_000;

/** Explains the past decisions on one activity, fed with the events of its organization, and first of the parent. */
export class ReasonsTask implements FromHistory<ReasonsAnswer> {
  private readonly loaded: LoadedOrganization = nothingLoaded();
  private readonly parent: LoadedOrganization = nothingLoaded();
  private readonly steps: Steps;
  private readonly told: ReasonsAnswer['told'][number][] = [];
  private notExplained: string | undefined;

  constructor(
    private readonly question: ReasonsQuestion,
    private readonly registry: Registry,
  ) {
    this.steps = new Steps(question.isConcerned ? reasonsSteps : stepsForOthers);
  }

  takeParent(events: readonly RecordedEvent[]): boolean {
    return events.every((event) => this.fold(this.parent, event));
  }

  take(events: readonly RecordedEvent[]): boolean {
    for (const event of events) {
      if (!this.isWanted) return false;
      this.explain(event);
      if (!this.isWanted || !this.fold(this.loaded, event)) return false;
    }
    return this.isWanted;
  }

  answer(): ReasonsAnswer {
    const { told, notExplained } = this;
    return { told, ...(notExplained === undefined ? {} : { notExplained }) };
  }

  private get isWanted(): boolean {
    return this.notExplained === undefined && this.told.length < this.question.decisions;
  }

  private fold(loaded: LoadedOrganization, event: RecordedEvent): boolean {
    if (this.notExplained !== undefined) return false;
    if (!payFolding(this.steps, event)) {
      this.notExplained = tooLong;
      return false;
    }
    fold(loaded, event);
    return true;
  }

  private explain(recorded: RecordedEvent): void {
    if (!decidingTypes.has(recorded.type)) return;
    const event = eventOf(recorded) as Deciding;
    const { registry, question, loaded, parent } = this;
    if (event.type === 'ActivityRejected' || event.data.activityId !== question.activityId) return;
    const { vote, decision } = event.data;
    const { voteId } = vote;
    const { authority } = decision;
    // A parent whose policies are not for the reader, or whose stream was not imported with the history.
    if (authority && parent.revision !== authority.revision) {
      this.told.push({ voteId, outcomes: decision.evaluations });
      return;
    }
    const { organization, revision } = loaded;
    const { at } = recorded.metadata as EventMetadata;
    const decided = { registry, event, organization, revision, at, ...(authority ? { authority: parent } : {}) };
    const outcomes = reasonsOf(decided, this.steps);
    if (outcomes) this.told.push({ voteId, outcomes });
    else this.notExplained = tooLong;
  }
}

const tooLong =
  'too much has happened before: run `countersign replay` on the store, or ask as somebody who voted or is in the root quorum';
