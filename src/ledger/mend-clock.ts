import {
  endingsOf,
  longestLeadMs,
  type ClockMendedEvent,
  type EndedByMend,
} from '../domain/organization/clock-mends.js';
import { noSuchOrganization, organizationStream } from '../domain/organization/organization.js';
import { usedTokenKey, type TokenUse } from '../domain/organization/otps.js';
import { recordedForm } from '../domain/activity/recorded-form.js';
import type { Clock } from '../ports/clock.js';
import type { EventMetadata } from './chain.js';
import type { EventStore } from './event-store.js';
import { fold, nothingLoaded, type LoadedOrganization } from './loaded-organization.js';
import { lastTime } from './recorded-time.js';
import { seal, type Fact } from './seal.js';

/** Events of one append: a store takes them, however large they are. */
const mostAtOnce = 256;

interface Ports {
  readonly store: Pick<EventStore, 'read' | 'append'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly newId: () => string;
}

/** What a mend has done. Times are milliseconds since the epoch. */
export interface MendedClock {
  readonly name: string;
  /** Recorded time of the last event before. */
  readonly lastTime: number;
  readonly now: number;
  readonly sessions: number;
  readonly activities: number;
  readonly codes: number;
  readonly invitations: number;
}

/**
 * Ends the false time of an organization whose events were recorded with a clock that was ahead (docs/adr/0007): everything that the
 * false time could keep alive ends, and then its stream continues at today's time. If it is interrupted, nothing is decided in the
 * organization yet, and running it again continues.
 * @throws {CoordinatorError} NOT_FOUND ORGANIZATION_NOT_FOUND
 * @throws {Error} if its last event is not ahead of the clock
 * @throws {WrongRevision} if a coordinator records something there meanwhile
 */
export async function mendClock(ports: Ports, organizationId: string): Promise<MendedClock> {
  const now = ports.clock.now();
  const { loaded, uses } = await folded(ports.store, organizationId, now);
  const { organization } = loaded;
  const before = lastTime(organization);
  const ahead = Math.ceil((before - now) / 1000);
  if (before - now <= longestLeadMs) {
    const where = ahead > 0 ? `${ahead} s ahead of` : 'not ahead of';
    throw new Error(
      `the last event of organization \`${organizationId}\`, at ${new Date(before).toISOString()}, is ${where} the clock, at ` +
        `${new Date(now).toISOString()}: there is nothing to mend, as requests are decided up to 30 minutes ahead`,
    );
  }
  const endings = endingsOf(organization, before, now);
  const mendId = ports.newId();
  const factOf =
    (at: number) =>
    (event: EndedByMend | ClockMendedEvent): Fact => ({
      type: event.type,
      data: recordedForm(event.type, event.data),
      metadata: { at, $correlationId: mendId, $causationId: mendId },
    });
  const mended: ClockMendedEvent = { type: 'ClockMended', data: { lastTime: before, usedTokens: uses } };
  // The right time begins with the last of them.
  const facts = [...endings.map(factOf(before)), factOf(now)(mended)];
  await append(ports.store, loaded, facts);
  const count = (type: EndedByMend['type']): number => endings.filter((event) => event.type === type).length;
  return {
    name: organization.name,
    lastTime: before,
    now,
    sessions: count('ApiKeyDeleted'),
    activities: count('ActivityFailed'),
    codes: count('OtpInvalidated'),
    invitations: count('InvitationClosed'),
  };
}

/** The organization, and uses of tokens that are not expired and that its state has forgotten. */
async function folded(
  store: Ports['store'],
  organizationId: string,
  now: number,
): Promise<{ readonly loaded: LoadedOrganization; readonly uses: readonly TokenUse[] }> {
  const loaded = nothingLoaded();
  const uses = new Map<string, TokenUse>();
  for await (const recorded of store.read(organizationStream(organizationId))) {
    const { type, data } = fold(loaded, recorded);
    if (type !== 'VerificationTokenUsed') continue;
    const use = data as TokenUse;
    if (use.expiresAt > now) uses.set(usedTokenKey(use.tokenId, use.usage), use);
  }
  if (loaded.revision < 0) throw noSuchOrganization(organizationId);
  const { usedTokens } = loaded.organization;
  return { loaded, uses: [...uses].filter(([key]) => !usedTokens.has(key)).map(([, use]) => use) };
}

async function append(store: Ports['store'], loaded: LoadedOrganization, facts: readonly Fact[]): Promise<void> {
  const stream = organizationStream(loaded.organization.organizationId);
  let tail = { revision: loaded.revision, hash: loaded.hash };
  for (let at = 0; at < facts.length; at += mostAtOnce) {
    const sealed = seal(stream, tail, facts.slice(at, at + mostAtOnce));
    await store.append(stream, sealed.events, tail.revision);
    tail = sealed.tail;
  }
}

/** Whether an event is part of a mend: no request has caused it. */
export function isOfMend({ metadata }: { readonly metadata: unknown }): boolean {
  const { $correlationId, $causationId } = (metadata ?? {}) as Partial<EventMetadata>;
  return $correlationId !== undefined && $correlationId === $causationId;
}
