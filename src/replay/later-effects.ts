import { organizationStream, type OrganizationEvent } from '../domain/organization/organization.js';
import type { EventReader } from '../ledger/event-store.js';
import { eventOf } from './decide-again.js';

/** What came of activities that waited, in a history that is read to its end once, and only when somebody asks. */
export class LaterEffects {
  /** By activity, the revision of the vote that has done it. */
  private done: Map<string, number> | undefined;

  constructor(
    private readonly store: EventReader,
    private readonly organizationId: string,
  ) {}

  /** What followed from the vote by which an activity was done; undefined when it never was. */
  async of(activityId: string, from: number): Promise<readonly OrganizationEvent[] | undefined> {
    this.done ??= await this.readFrom(from);
    const revision = this.done.get(activityId);
    if (revision === undefined) return undefined;
    const effects: OrganizationEvent[] = [];
    for await (const recorded of this.store.read(organizationStream(this.organizationId), revision + 1)) {
      const event = eventOf(recorded);
      effects.push(event);
      if (event.type === 'ActivityCompleted' || event.type === 'ActivityFailed') return effects;
    }
    return undefined;
  }

  private async readFrom(from: number): Promise<Map<string, number>> {
    const done = new Map<string, number>();
    for await (const recorded of this.store.read(organizationStream(this.organizationId), Math.max(0, from))) {
      if (recorded.type !== 'ActivityApproved') continue;
      const event = eventOf(recorded);
      if (event.type !== 'ActivityApproved' || event.data.decision.outcome !== 'allow') continue;
      done.set(event.data.activityId, recorded.revision);
    }
    return done;
  }
}
