import { setTimeout as pause } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { organizationStream } from '../domain/organization/organization.js';
import { EVENT_STORE, type EventStore, type RecordedEvent } from '../ledger/event-store.js';
import { LOGGER, type Log } from '../logging/logger.js';
import { CHILD_INDEX, type ChildIndex, type ParentRecord } from '../ports/child-index.js';
import { foundChild, recordedChild, type RecordedChild } from '../decide/found-organization.js';

/** Foundings that a sweep completes before it pauses, and the pause in milliseconds. */
const rest = { every: 100, ms: 10 };

/** Ensures that exactly those sub-organizations exist that their parents have recorded. */
@Injectable()
export class Children {
  private readonly owed = new Map<string, RecordedChild>();
  /** Position of the last founding that `finish` completed: no caller of a query can name it. */
  finishedUpTo = -1n;

  constructor(
    @Inject(EVENT_STORE) private readonly store: EventStore,
    @Inject(CHILD_INDEX) private readonly lookUps: ChildIndex,
    @Inject(LOGGER) private readonly logger: Pick<Log, 'warn' | 'error'>,
  ) {}

  /** Writes the stream of a sub-organization; returns its position. @throws {StoreUnavailable} to be retried later */
  async found(child: RecordedChild): Promise<bigint> {
    const { subOrganizationId } = child;
    try {
      const position = await foundChild(this.store, child);
      this.owed.delete(subOrganizationId);
      return position;
    } catch (err) {
      // Retried when someone asks for the sub-organization, and at the next start.
      this.owed.set(subOrganizationId, child);
      this.logger.error({ organizationId: subOrganizationId, err }, 'a sub-organization could not be founded yet');
      throw err;
    }
  }

  /** Founds a sub-organization without a stream if its parent has recorded it; returns whether the parent has. */
  async finish(organizationId: string): Promise<boolean> {
    const word = this.lookUps.recorded(organizationId);
    const child = this.owed.get(organizationId) ?? (word && (await this.childOf(word)));
    if (child?.subOrganizationId !== organizationId) return false;
    const position = await this.found(child);
    if (position > this.finishedUpTo) this.finishedUpTo = position;
    this.logger.warn({ organizationId }, 'a sub-organization was left behind unfounded, and is founded now');
    return true;
  }

  /** Completes every interrupted founding. */
  async sweep(signal: AbortSignal): Promise<void> {
    let count = 0;
    for (const organizationId of this.lookUps.unfounded()) {
      if (signal.aborted) return;
      if (++count % rest.every === 0) await pause(rest.ms, undefined, { signal, ref: false });
      // Failures are reported; the sub-organization is founded when someone asks for it.
      await this.finish(organizationId).catch(() => undefined);
    }
  }

  private async childOf(word: ParentRecord): Promise<RecordedChild | undefined> {
    const event = await this.eventAt(word);
    return event && recordedChild(event, event.revision);
  }

  private async eventAt({ parentId, revision }: ParentRecord): Promise<RecordedEvent | undefined> {
    for await (const event of this.store.read(organizationStream(parentId), revision)) return event;
    return undefined;
  }
}
