import { organizationStream } from '../domain/organization/organization.js';
import type { EventStore, RecordedEvent } from '../ledger/event-store.js';
import { storedEvent } from '../ledger/stored-event.js';
import type { Rows } from './database.js';
import { causesOf, type OrganizationEventShape } from './events.js';
import { Families } from '../fairness/families.js';
import { OwnThread } from '../threads/own-thread.js';
import { packEvents } from './packed-events.js';
import { mostBytesOfPages, type Page } from './pages.js';
import type { ToTell } from './telling.js';
import { workerFile } from '../threads/worker-file.js';

/** Pages of one family of organizations that are told or wait. */
const mostOfFamily = 8;
/** Milliseconds until a thread that does not answer is ended. */
const usualLongestMs = 30_000;
/** Memory of the thread, in MiB. */
const heapMib = 256;

interface TellingOptions {
  readonly longestMs?: number;
  /** The worker's file; the one of this build unless told. */
  readonly file?: URL;
}

/**
 * Tells pages of events, in a thread of its own: looking for what must not be told takes long in long requests. One page of
 * a family, a parent with its sub-organizations, at a time. A thread that dies or does not answer is replaced.
 */
export class TellingThread {
  private readonly families = new Families(mostOfFamily, 'pages of events in progress or waiting');
  private readonly thread: OwnThread<ToTell, Page<OrganizationEventShape>>;

  constructor(
    private readonly store: Pick<EventStore, 'read'>,
    private readonly rows: Rows,
    { longestMs = usualLongestMs, file = workerFile('./telling-worker.js', import.meta.url) }: TellingOptions = {},
  ) {
    this.thread = new OwnThread({
      name: 'telling',
      file,
      heapMib,
      longestMs,
      late: `the events could not be read within ${longestMs} ms`,
      ended: 'the thread that tells events has ended',
    });
  }

  /**
   * Events of an organization from a revision on, as they may be read now.
   * @param family the parent's id, of a parent and of its sub-organizations
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED when too many of the family wait; UNAVAILABLE when the thread was lost
   */
  async told(
    family: string,
    { organizationId, from, limit, now }: { organizationId: string; from: number; limit: number; now: number },
  ): Promise<Page<OrganizationEventShape>> {
    return this.families.inTurn({ family, organizationId }, async () => {
      const { events, hasMore } = await this.read(organizationId, from, limit);
      const stream = organizationStream(organizationId);
      const causes = await causesOf(this.rows, organizationId, events, (at) => this.store.read(stream, at));
      const page = await this.thread.talk((say) => say({ events: packEvents(events), causes, now }));
      return { texts: page.texts, hasMore: page.hasMore || hasMore };
    });
  }

  /** No more than a page holds is read. */
  private async read(organizationId: string, from: number, limit: number) {
    const events: RecordedEvent[] = [];
    let text = 0;
    for await (const event of this.store.read(organizationStream(organizationId), from)) {
      const { data, metadata } = storedEvent(event);
      text += data.length + metadata.length;
      if (events.length > 0 && text > mostBytesOfPages) return { events, hasMore: true };
      if (events.push(event) === limit) break;
    }
    return { events, hasMore: false };
  }

  async close(): Promise<void> {
    await this.thread.close();
  }
}
