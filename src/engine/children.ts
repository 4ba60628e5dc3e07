import { setTimeout as pause } from 'node:timers/promises';
import { organizationStream } from '../domain/organization/organization.js';
import type { EventStore, RecordedEvent } from '../ledger/event-store.js';
import type { ChildLookUps, ParentsWord } from '../ports/child-look-ups.js';
import { foundChild, recordedChild, type RecordedChild } from '../decide/found-organization.js';

interface Reports {
  /** Founding failed; it is retried when someone asks for the sub-organization, and at the next start. */
  failed(organizationId: string, error: unknown): void;
  /** A founding that a crash had interrupted was completed. */
  finished(organizationId: string): void;
  /** Sub-organizations of earlier releases whose creation was refused or interrupted: they do not exist. */
  ignored(organizationIds: readonly string[]): void;
}

/** Foundings that a sweep completes before it pauses, and the pause in milliseconds. */
const rest = { every: 100, ms: 10 };

/** Ensures that exactly those sub-organizations exist that their parents have recorded. */
export class Children {
  private readonly owed = new Map<string, RecordedChild>();

  constructor(
    private readonly store: EventStore,
    private readonly lookUps: ChildLookUps,
    private readonly reports: Reports,
  ) {}

  /** Writes the stream of a sub-organization; returns its position. @throws {StoreUnavailable} to be retried later */
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

  /** Founds a sub-organization without a stream if its parent has recorded it; returns whether the parent has. */
  async finish(organizationId: string): Promise<boolean> {
    const word = this.lookUps.recorded(organizationId);
    const child = this.owed.get(organizationId) ?? (word && (await this.childOf(word)));
    if (child?.subOrganizationId !== organizationId) return false;
    await this.found(child);
    this.reports.finished(organizationId);
    return true;
  }

  /**
   * Whether the parent has recorded a sub-organization that was founded before it was decided on, as in earlier
   * releases. The read model says where to look, and the parent's stream decides.
   */
  async isConfirmed(organizationId: string): Promise<boolean> {
    const word = await this.lookUps.recordedByNow(organizationId);
    const event = word && (await this.eventAt(word));
    if (event?.type !== 'SubOrganizationCreated') return false;
    return (event.data as { readonly subOrganizationId: string }).subOrganizationId === organizationId;
  }

  /** Completes every interrupted founding, and reports sub-organizations that no parent knows. */
  async sweep(signal: AbortSignal): Promise<void> {
    let count = 0;
    for (const organizationId of this.lookUps.unfounded()) {
      if (signal.aborted) return;
      if (++count % rest.every === 0) await pause(rest.ms, undefined, { signal, ref: false });
      // Failures are reported; the sub-organization is founded when someone asks for it.
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
