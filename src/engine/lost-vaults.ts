import { setTimeout as pause } from 'node:timers/promises';
import { organizationStream } from '../domain/organization/organization.js';
import type { EventMetadata } from '../ledger/chain.js';
import type { EventStore } from '../ledger/event-store.js';
import { attemptEndsMs } from './attempts.js';
import type { Clock } from '../ports/clock.js';

/** A vault that no event is known to name. */
export interface UnnamedVault {
  readonly vaultId: string;
  readonly organizationId: string;
  readonly revision: number;
  readonly at: number;
}

interface Ports {
  readonly store: EventStore;
  readonly clock: Clock;
  /** Of attempts between two times (milliseconds since the epoch, the first exclusive), the latest first. */
  readonly unnamed: (after: number, until: number) => Iterable<UnnamedVault>;
  /** Whether this process may yet record what names the vault. */
  readonly isLive: (vaultId: string) => boolean;
  readonly vault: { isThere(vaultId: string): Promise<boolean>; shred(vaultId: string): Promise<void> };
  readonly reports: {
    /** It was left behind by a crash, or by a store whose answer never came. */
    swept(vaultId: string, organizationId: string): void;
    /** It is tried again by the next sweep. */
    failed(vaultId: string, error: unknown): void;
    stopped(error: unknown): void;
  };
  readonly intervalMs?: number;
}

/** Age from which a vault that nothing names is looked at, in milliseconds. */
const lostAfterMs = 60 * 60_000;
const intervalMs = 10 * 60_000;
/** Vaults that a sweep looks at until it lets others pass, for so many milliseconds. */
const rest = { every: 100, ms: 10 };
/** By how much the clocks of coordinators may differ, generously, in milliseconds. */
const clocksDifferMs = 5 * 60_000;
/** So many that are gone one after the other: what a crash leaves behind is among the last that were made. */
const goneInARow = 10_000;

/**
 * Destroys what attempts have sealed that no decision names: after a crash, and where a store did not say what became of
 * an append. Not before it is certain that nothing will (R7).
 */
export class LostVaults {
  private readonly stopping = new AbortController();
  /** Looked at, and not yet decided on. */
  private readonly doubtful = new Map<string, UnnamedVault>();
  private lookedUntil = -Infinity;
  private working: Promise<void> = Promise.resolve();

  constructor(private readonly ports: Ports) {}

  /** Sweeps once `ready` has resolved, and at intervals from then on. */
  start(ready: (signal: AbortSignal) => Promise<void>): void {
    const { reports, intervalMs: every = intervalMs } = this.ports;
    const { signal } = this.stopping;
    const run = async () => {
      await ready(signal);
      while (!signal.aborted) {
        await this.sweep().catch(reports.stopped);
        await pause(every, undefined, { signal, ref: false });
      }
    };
    this.working = run().catch((error: unknown) => {
      if (!signal.aborted) reports.stopped(error);
    });
  }

  async close(): Promise<void> {
    this.stopping.abort();
    await this.working;
  }

  /** Looks at everything that has become old enough since the last time, and once more at what was doubtful. */
  async sweep(): Promise<void> {
    const { signal } = this.stopping;
    const { clock, unnamed } = this.ports;
    const until = clock.now() - lostAfterMs;
    const doubtful = [...this.doubtful.values()];
    this.doubtful.clear();
    let asked = 0;
    let gone = 0;
    for (const vaults of [doubtful, unnamed(this.lookedUntil, until)]) {
      for (const one of vaults) {
        if (signal.aborted || gone === goneInARow) break;
        if (++asked % rest.every === 0) await pause(rest.ms, undefined, { signal, ref: false });
        gone = (await this.look(one)) ? gone + 1 : 0;
      }
    }
    this.lookedUntil = Math.max(this.lookedUntil, until);
  }

  /** Whether it was gone already. */
  private async look(one: UnnamedVault): Promise<boolean> {
    const { vault, reports } = this.ports;
    const { vaultId, organizationId } = one;
    try {
      if (!(await vault.isThere(vaultId))) return true;
      const fate = await this.fateOf(one);
      if (fate === 'open') this.doubtful.set(vaultId, one);
      if (fate !== 'lost') return false;
      await vault.shred(vaultId);
      reports.swept(vaultId, organizationId);
    } catch (error) {
      this.doubtful.set(vaultId, one);
      reports.failed(vaultId, error);
    }
    return false;
  }

  /** What the organization's stream says of it; not the read model, which may be behind. */
  private async fateOf({ vaultId, organizationId, revision, at }: UnnamedVault): Promise<'named' | 'lost' | 'open'> {
    const { store, isLive } = this.ports;
    if (isLive(vaultId)) return 'open';
    // Where nobody else writes, an attempt that is not this process's own is nobody's.
    let isPast = store.exclusive;
    let isEmpty = revision < 0;
    for await (const { type, data, metadata } of store.read(organizationStream(organizationId), revision + 1)) {
      isEmpty = false;
      if (JSON.stringify(data).includes(vaultId)) return 'named';
      // An append of the attempt stands before the first event of a time when it could not be recorded any more.
      isPast ||=
        type === 'OrganizationDeleted' || (metadata as EventMetadata).at >= at + attemptEndsMs + clocksDifferMs;
    }
    // A sub-organization that is not founded yet names nothing yet.
    return isPast && !isEmpty ? 'lost' : 'open';
  }
}
