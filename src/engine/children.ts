import { setTimeout as pause } from 'node:timers/promises';
import { organizationStream } from '../domain/organization/organization.js';
import type { EventStore, RecordedEvent } from '../ledger/event-store.js';
import type { ChildLookUps, ParentsWord } from '../ports/child-look-ups.js';
import { foundChild, recordedChild, type RecordedChild } from '../decide/found-organization.js';

interface Reports {
  /** Its founding is tried again when it is asked for, and at the next start. */
  failed(organizationId: string, error: unknown): void;
  /** A founding that a crash had interrupted is finished. */
  finished(organizationId: string): void;
  /** Sub-organizations of earlier releases whose creation was refused, or broke off: they do not exist. */
  ignored(organizationIds: readonly string[]): void;
}

/** Foundings that a sweep finishes until it lets others pass, for so many milliseconds. */
const rest = { every: 100, ms: 10 };

/** Sees to it that the sub-organizations are there that their parents have recorded, and no others. */
export class Children {
  private readonly owed = new Map<string, RecordedChild>();

  constructor(
    private readonly store: EventStore,
    private readonly lookUps: ChildLookUps,
    private readonly reports: Reports,
  ) {}

  /** Writes the stream of a sub-organization; returns its position. @throws {StoreUnavailable} it is tried again later */
  async found(child: RecordedChild): Promise<bigint> {
    const { subOrganizationId } = child;
    try {
      const position = await foundChild(this.store, child);
      this.owed.delete(subOrganizationId);
      return position;
    } catch (error) {
      this.owed.set(subOrganizationId, child);
      this.reports.failed(subOrganizationId, error);
      throw error;
    }
  }

  /** Founds a sub-organization that has no stream if its parent has recorded it; whether that is so. */
  async finish(organizationId: string): Promise<boolean> {
    const word = this.lookUps.recorded(organizationId);
    const child = this.owed.get(organizationId) ?? (word && (await this.childOf(word)));
    if (child?.subOrganizationId !== organizationId) return false;
    await this.found(child);
    this.reports.finished(organizationId);
    return true;
  }

  /**
   * Whether the parent has recorded a sub-organization that was founded before it was decided on, as earlier releases did.
   * The read model says where, the parent's stream whether.
   */
  async isConfirmed(organizationId: string): Promise<boolean> {
    const word = await this.lookUps.recordedByNow(organizationId);
    const event = word && (await this.eventAt(word));
    if (event?.type !== 'SubOrganizationCreated') return false;
    return (event.data as { readonly subOrganizationId: string }).subOrganizationId === organizationId;
  }

  /** Finishes every founding that was interrupted, and reports what is there that no parent knows. */
  async sweep(signal: AbortSignal): Promise<void> {
    let count = 0;
    for (const organizationId of this.lookUps.unfounded()) {
      if (signal.aborted) return;
      if (++count % rest.every === 0) await pause(rest.ms, undefined, { signal, ref: false });
      // What fails is reported, and is founded when somebody asks for it.
      await this.finish(organizationId).catch(() => undefined);
    }
    const unconfirmed = this.lookUps.unconfirmed();
    if (unconfirmed.length > 0) this.reports.ignored(unconfirmed);
  }

  private async childOf(word: ParentsWord): Promise<RecordedChild | undefined> {
    const event = await this.eventAt(word);
    return event && recordedChild(event, event.revision);
  }

  private async eventAt({ parentId, revision }: ParentsWord): Promise<RecordedEvent | undefined> {
    for await (const event of this.store.read(organizationStream(parentId), revision)) return event;
    return undefined;
  }
}
