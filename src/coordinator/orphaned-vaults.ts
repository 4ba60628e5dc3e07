import { setTimeout as pause } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { organizationStream } from '../domain/organization/organization.js';
import { GENESIS_HASH, verifyChain, type EventMetadata } from '../ledger/chain.js';
import { EVENT_STORE, type EventStore } from '../ledger/event-store.js';
import { attemptEndsMs } from './attempts.js';
import { LOGGER, type Log } from '../logging/logger.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import { InstallationIndex } from '../read-models/indexes.js';
import type { UnnamedVault } from '../read-models/unnamed-vaults.js';
import { Vault } from '../vault/vault.js';
import { Driver } from './execute-activity.js';

/** Age at which a vault that nothing names is examined, in milliseconds. */
const lostAfterMs = 60 * 60_000;
const intervalMs = 10 * 60_000;
/** Vaults that a sweep examines before it pauses, and the pause in milliseconds. */
const rest = { every: 100, ms: 10 };
/** Generous bound on the difference between coordinators' clocks, in milliseconds. */
const clocksDifferMs = 5 * 60_000;
/** Stop after this many in a row that are already gone: what a crash leaves behind is among the last created. */
const goneInARow = 10_000;

/**
 * Destroys secrets that attempts have sealed and no decision names: after a crash, or if a store did not report the
 * outcome of an append. Only once it is certain that none ever will (R7).
 */
@Injectable()
export class OrphanedVaults {
  private readonly stopping = new AbortController();
  /** Examined, but still undecided. */
  private readonly doubtful = new Map<string, UnnamedVault>();
  private lookedUntil = -Infinity;
  private working: Promise<void> = Promise.resolve();

  constructor(
    @Inject(EVENT_STORE) private readonly store: EventStore,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(InstallationIndex) private readonly index: Pick<InstallationIndex, 'unnamedVaults'>,
    @Inject(Driver) private readonly driver: Pick<Driver, 'isLive'>,
    @Inject(Vault) private readonly vault: Pick<Vault, 'isThere' | 'shred'>,
    @Inject(LOGGER) private readonly logger: Pick<Log, 'warn' | 'error'>,
  ) {}

  /** Sweeps once `ready` has resolved, and at intervals after that. */
  start(ready: (signal: AbortSignal) => Promise<void>): void {
    const { signal } = this.stopping;
    const run = async () => {
      await ready(signal);
      while (!signal.aborted) {
        await this.sweep().catch((err: unknown) => this.stopped(err));
        await pause(intervalMs, undefined, { signal, ref: false });
      }
    };
    this.working = run().catch((err: unknown) => {
      if (!signal.aborted) this.stopped(err);
    });
  }

  private stopped(err: unknown): void {
    this.logger.error({ err }, 'not all vaults were looked at; the next sweep does so again');
  }

  async close(): Promise<void> {
    this.stopping.abort();
    await this.working;
  }

  /** Examines everything that has become old enough since the last sweep, and the undecided ones again. */
  async sweep(): Promise<void> {
    const { signal } = this.stopping;
    const until = this.clock.now() - lostAfterMs;
    const doubtful = [...this.doubtful.values()];
    this.doubtful.clear();
    let requested = 0;
    let gone = 0;
    for (const vaults of [doubtful, this.index.unnamedVaults(this.lookedUntil, until)]) {
      for (const one of vaults) {
        if (signal.aborted || gone === goneInARow) break;
        if (++requested % rest.every === 0) await pause(rest.ms, undefined, { signal, ref: false });
        gone = (await this.look(one)) ? gone + 1 : 0;
      }
    }
    this.lookedUntil = Math.max(this.lookedUntil, until);
  }

  /** Whether it was already gone. */
  private async look(one: UnnamedVault): Promise<boolean> {
    const { vault } = this;
    const { vaultId, organizationId } = one;
    try {
      if (!(await vault.isThere(vaultId))) return true;
      const fate = await this.fateOf(one);
      if (fate === 'open') this.doubtful.set(vaultId, one);
      if (fate !== 'lost') return false;
      await vault.shred(vaultId);
      this.logger.warn({ vaultId, organizationId }, 'a vault that no decision names was left behind, and is shredded');
    } catch (err) {
      this.doubtful.set(vaultId, one);
      this.logger.error({ err, vaultId }, 'a vault that no decision names could not be looked at');
    }
    return false;
  }

  /**
   * What the organization's stream says, because the read model may be behind.
   * @throws {BrokenChain} if it is damaged: an altered event may have named the vault
   */
  private async fateOf({ vaultId, organizationId, revision, at }: UnnamedVault): Promise<'named' | 'lost' | 'open'> {
    const { store, driver } = this;
    if (driver.isLive(vaultId)) return 'open';
    // If nobody else writes to the store, an attempt that is not this process's own belongs to nobody.
    let isPast = store.exclusive;
    let isEmpty = revision < 0;
    let link = revision < 0 ? GENESIS_HASH : undefined;
    for await (const event of store.read(organizationStream(organizationId), Math.max(0, revision))) {
      const { type, data, metadata } = event;
      link = link === undefined ? (metadata as EventMetadata).hash : verifyChain(link, event);
      if (event.revision <= revision) continue;
      isEmpty = false;
      if (JSON.stringify(data).includes(vaultId)) return 'named';
      // An append of the attempt would be before the first event from a time when it could no longer be recorded.
      isPast ||=
        type === 'OrganizationDeleted' || (metadata as EventMetadata).at >= at + attemptEndsMs + clocksDifferMs;
    }
    // A sub-organization that is not founded yet cannot name anything.
    return isPast && !isEmpty ? 'lost' : 'open';
  }
}
