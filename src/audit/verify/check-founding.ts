import { isDeepStrictEqual } from 'node:util';
import {
  authProxyIds,
  beginningOf,
  recordedChild,
  rootBeginning,
  type Founding,
} from '../../decide/found-organization.js';
import { authProxyEnabled } from '../../domain/organization/auth-proxy.js';
import { organizationStream, type OrganizationEvent } from '../../domain/organization/organization.js';
import type { EventMetadata } from '../../ledger/chain.js';
import type { EventReader, RecordedEvent } from '../../ledger/event-store.js';
import { eventOf, isDeciding } from './deciding-events.js';

/** How an organization's stream begins: with so many events that no decision in it has recorded. */
export interface Beginning {
  readonly length: number;
  /** What is wrong, as a sentence. */
  readonly problem?: string;
}

/**
 * A sub-organization must begin as its parent recorded it, and the root organization as it was installed, if it was not
 * imported for tests.
 * @param recorded the first event of its stream
 * @param installed the root organization, if the store says which one it is
 */
export async function beginningIn(
  store: EventReader,
  organizationId: string,
  recorded: RecordedEvent,
  installed: Founding | undefined,
): Promise<Beginning> {
  const { parentOrganizationId, parentRevision } = recorded.data as {
    readonly parentOrganizationId?: string;
    readonly parentRevision?: number;
  };
  if (parentOrganizationId === undefined) {
    return installed?.organizationId === organizationId && !installed.imported
      ? asInstalled(store, recorded, installed)
      : { length: await foundedWith(store, recorded) };
  }
  const parent = `organization \`${parentOrganizationId}\``;
  if (parentRevision === undefined) return wrong(`it does not name the revision of ${parent} that founded it`);
  if (!Number.isSafeInteger(parentRevision) || parentRevision < 0)
    return wrong(`it names revision ${parentRevision} of ${parent}, which cannot be`);
  for await (const said of store.read(organizationStream(parentOrganizationId), parentRevision)) {
    const child = recordedChild(said, said.revision);
    if (child?.subOrganizationId !== organizationId) break;
    const beginning = beginningOf(child).map(factOf);
    const stored = await firstEvents(store, recorded.stream, beginning.length);
    return isDeepStrictEqual(stored.map(factOf), beginning)
      ? { length: beginning.length }
      : wrong(`it does not begin as \`${parentOrganizationId}\` recorded it`);
  }
  return wrong(`${parent} has not recorded this sub-organization at its revision ${parentRevision}`);
}

/** What follows is not blamed for it again. */
const wrong = (problem: string): Beginning => ({ length: Infinity, problem });

/** Of an auth proxy that an organization is founded with. */
const proxyEvents = 4;

async function asInstalled(store: EventReader, recorded: RecordedEvent, installed: Founding): Promise<Beginning> {
  const { organizationId, at } = installed;
  const cause = { at, $correlationId: organizationId, $causationId: organizationId };
  const root = rootBeginning(installed);
  const events = await firstEvents(store, recorded.stream, root.length + proxyEvents);
  const isSame = (event: OrganizationEvent, index: number) => {
    const { at: time, $correlationId, $causationId } = events[index]!.metadata as EventMetadata;
    const { type, data } = eventOf(events[index]!);
    const stored = [type, data, { at: time, $correlationId, $causationId }];
    return isDeepStrictEqual(stored, [event.type, event.data, cause]);
  };
  if (events.length < root.length || !root.every(isSame)) {
    return wrong('it does not begin as `installation-root` recorded it');
  }
  const enabled = events.length === root.length + proxyEvents ? eventOf(events.at(-1)!) : undefined;
  if (enabled?.type !== 'AuthProxyEnabled') return { length: root.length };
  const { vaultId, publicKey } = enabled.data;
  const whole = [...root, ...authProxyEnabled({ ...authProxyIds(organizationId), vaultId, publicKey })];
  const other = whole.findIndex((event, index) => !isSame(event, index));
  return { length: other < 0 ? whole.length : other };
}

/** How many events at the beginning are of the time and activity of the first, and decide nothing. */
async function foundedWith(store: EventReader, first: RecordedEvent): Promise<number> {
  let count = 0;
  for await (const event of store.read(first.stream)) {
    if (originOf(event) !== originOf(first) || isDeciding(eventOf(event))) break;
    count += 1;
  }
  return count;
}

function originOf({ metadata }: RecordedEvent): string {
  const { at, $correlationId } = metadata as EventMetadata;
  return JSON.stringify([at, $correlationId]);
}

/** The first event of a stream. */
export async function firstOf(store: EventReader, stream: string): Promise<RecordedEvent | undefined> {
  const [first] = await firstEvents(store, stream, 1);
  return first;
}

async function firstEvents(store: EventReader, stream: string, count: number): Promise<RecordedEvent[]> {
  const events: RecordedEvent[] = [];
  for await (const event of store.read(stream)) {
    if (events.push(event) === count) break;
  }
  return events;
}

function factOf({ type, data, metadata }: Pick<RecordedEvent, 'type' | 'data' | 'metadata'>): unknown {
  return { type, data, hash: (metadata as EventMetadata).hash };
}
