import type { Registry } from '../../decide/registry.js';
import { organizationStream } from '../../domain/organization/organization.js';
import type { EventMetadata } from '../../ledger/chain.js';
import type { EventReader } from '../../ledger/event-store.js';
import { streamsIn } from '../timeline/all-events.js';
import { HistoryLines, streamsOf, type HistoryEvent, type HistoryHeader } from './history-file.js';
import { dataOf, isWithheld } from './live-secrets.js';
import { Redactor } from './redact.js';
import { Rewriting } from './rewriting.js';

export interface ExportOptions {
  readonly organizationId: string;
  readonly registry: Registry;
  /** Milliseconds since the epoch: secrets still live at that time are omitted. */
  readonly now: number;
  /** Key of the pseudonyms, 32 random bytes that nobody keeps; without it, personal data is kept. */
  readonly redactionKey?: Uint8Array;
}

/** Facts about an export besides the file. */
export interface ExportReport {
  readonly header: HistoryHeader;
  readonly events: number;
  /** Events in which something was replaced. */
  readonly changed: number;
  /** Decisions that the pseudonyms change, in words. */
  readonly otherwise: readonly string[];
  /** Names of members that were replaced because it is unknown what they contain. */
  readonly unknownMembers: readonly string[];
}

/** The organization to be exported does not exist. */
export class NothingToExport extends Error {
  constructor(organizationId: string) {
    super(`no organization \`${organizationId}\` in this store`);
    this.name = 'NothingToExport';
  }
}

/**
 * Writes the history of an organization, line by line: everything that its decisions have read. Reads the streams
 * twice, because a name may be quoted before it is introduced.
 * @throws {NothingToExport}
 * @throws {StoreUnavailable}
 */
export async function exportHistory(
  store: EventReader,
  options: ExportOptions,
  write: (line: string) => Promise<void> | void,
): Promise<ExportReport> {
  const { organizationId, registry, now, redactionKey } = options;
  const head = (await store.head()) ?? -1n;
  const parentOrganizationId = await parentOf(store, organizationId);
  const home = { organizationId, ...(parentOrganizationId === undefined ? {} : { parentOrganizationId }) };
  const redactor = redactionKey && new Redactor(redactionKey, registry.policyEnvironment.vocabulary ?? {});
  const completed = new Set<string>();
  let hasLiveTokens = false;
  const seen = { completed, now };
  for await (const event of streamsIn(store, streamsOf(home), head)) {
    if (event.type === 'ActivityCompleted') completed.add((event.data as { activityId: string }).activityId);
    redactor?.data(dataOf(event));
  }
  if (!redactor) {
    for await (const event of streamsIn(store, streamsOf(home), head)) {
      hasLiveTokens ||= isWithheld(event, seen);
      if (hasLiveTokens) break;
    }
  }
  const lines = new HistoryLines();
  const said = {
    ...home,
    exportedAt: now,
    redacted: redactor ? 'personal-data' : hasLiveTokens ? 'tokens' : 'none',
  } as const;
  await write(lines.header(said));
  const rewriting = new Rewriting(home, seen, registry, redactor);
  let events = 0;
  const put = async (rewritten: readonly HistoryEvent[]) => {
    for (const event of rewritten) {
      events++;
      // Its unknown members may be about people.
      await write(lines.event(redactor ? withoutUnchained(event) : event));
    }
  };
  for await (const event of streamsIn(store, streamsOf(home), head)) await put(rewriting.take(event));
  await put(rewriting.end());
  await write(lines.end());
  return {
    header: { format: 'countersign history', version: 1, ...said },
    events,
    changed: rewriting.changed,
    otherwise: rewriting.otherwise,
    unknownMembers: [...(redactor?.unknown ?? [])],
  };
}

/** The link does not cover what is removed. */
function withoutUnchained(event: HistoryEvent): HistoryEvent {
  const { unchained: _unchained, ...metadata } = event.metadata as EventMetadata;
  return { ...event, metadata };
}

async function parentOf(store: EventReader, organizationId: string): Promise<string | undefined> {
  for await (const { data } of store.read(organizationStream(organizationId))) {
    return (data as { readonly parentOrganizationId?: string }).parentOrganizationId;
  }
  throw new NothingToExport(organizationId);
}
