import { organizationStream } from '../domain/organization/organization.js';
import type { EventStore, RecordedEvent } from '../ledger/event-store.js';
import { storedEvent } from '../ledger/stored-event.js';
import type { Rows } from './database.js';
import { causesOf, type ListedEvent } from './events.js';
import { Families } from '../fairness/families.js';
import { OwnThread } from '../threads/own-thread.js';
import { packEvents } from './packed-events.js';
import { mostBytesOfPages, type TextPage } from './pages.js';
import type { ToTell } from './telling.js';

/** Pages of one family of organizations, running or waiting. */
const mostOfFamily = 8;
/** Milliseconds until an unresponsive thread is ended. */
const usualLongestMs = 30_000;
/** Memory of the thread, in MiB. */
const heapMib = 256;

interface Asked {
  readonly organizationId: string;
  /** Whose member reads them: the organization, or its parent. */
  readonly readerOrganizationId: string;
  /** A revision. */
  readonly from: number;
  readonly limit: number;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

interface TellingOptions {
  readonly longestMs?: number;
  /** The worker's file, by default that of this build. */
  readonly file?: URL;
}

/**
 * Builds pages of events in a separate thread, because searching long requests for secrets takes long. Each family, a
 * parent with its sub-organizations, has one page at a time. A thread that dies or stops responding is replaced.
 */
export class TellingThread {
  private readonly families = new Families(mostOfFamily, 'pages of events in progress or waiting');
  private readonly thread: OwnThread<ToTell, TextPage<ListedEvent>>;

  constructor(
    private readonly store: Pick<EventStore, 'read'>,
    private readonly rows: Rows,
    { longestMs = usualLongestMs, file = new URL('./telling-worker.js', import.meta.url) }: TellingOptions = {},
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
   * @param family the parent's id, for a parent and for its sub-organizations
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED if too many of the family are waiting; UNAVAILABLE if the thread was
   * lost
   */
  async told(
    family: string,
    { organizationId, readerOrganizationId, from, limit, now }: Asked,
  ): Promise<TextPage<ListedEvent>> {
    return this.families.inTurn({ family, organizationId: readerOrganizationId }, async () => {
      const { events, hasMore } = await this.read(organizationId, from, limit);
      const stream = organizationStream(organizationId);
      const causes = await causesOf(this.rows, organizationId, events, (at) => this.store.read(stream, at));
      const page = await this.thread.talk((say) =>
        say({ events: packEvents(events), causes, now, readerOrganizationId }),
      );
      return { texts: page.texts, hasMore: page.hasMore || hasMore };
    });
  }

  /** Reads no more than a page holds. */
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
