import { organizationStream, type OrganizationEvent } from '../../domain/organization/organization.js';
import type { EventReader } from '../../ledger/event-store.js';
import { eventOf } from '../verify/deciding-events.js';

/** Outcomes of waiting activities, from reading a history to its end once, on demand. */
export class LaterEffects {
  /** By activity, the revision of the vote that completed it. */
  private done: Map<string, number> | undefined;

  constructor(
    private readonly store: Pick<EventReader, 'read'>,
    private readonly organizationId: string,
  ) {}

  /** The effects of the vote that completed an activity; undefined if none did. */
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
