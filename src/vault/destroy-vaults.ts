import { setTimeout as pause } from 'node:timers/promises';
import { Inject, Injectable, Optional } from '@nestjs/common';
import { LOGGER, type Log } from '../logging/logger.js';
import { Vault } from './vault.js';

/** Milliseconds until a retry. */
const retryMs = 60_000;
/** Vaults that a sweep checks before it pauses, and the pause in milliseconds. */
const rest = { every: 100, ms: 10 };
/**
 * Stop after this many in a row that are already gone: what a crash leaves behind is among the last that were ended.
 */
const goneInARow = 10_000;

/** Ensures that ended vaults are shredded, even if a store fails or a process dies in between. */
@Injectable()
export class VaultDestroyer {
  private readonly owed = new Set<string>();
  private readonly stopping = new AbortController();
  private retry: NodeJS.Timeout | undefined;
  private working: Promise<unknown> = Promise.resolve();

  constructor(
    @Inject(Vault) private readonly vault: Pick<Vault, 'shred' | 'isThere'>,
    @Inject(LOGGER) private readonly logger: Pick<Log, 'warn' | 'error'>,
    @Optional() private readonly pauseMs = retryMs,
  ) {}

  /** Shreds a vault. The decision stands, so a failure is reported and retried, never thrown. */
  async shred(vaultId: string): Promise<void> {
    try {
      await this.vault.shred(vaultId);
    } catch (error) {
      this.owe(vaultId, error);
    }
  }

  /**
   * Shreds those of the vaults that still exist, one by one in the background, once `ready` has resolved. The most
   * recently ended one comes first; it stops when nothing more is to be expected.
   */
  sweep(ready: (signal: AbortSignal) => Promise<void>, ended: () => Iterable<string>): void {
    this.working = this.sweepAll(ready, ended).catch((err: unknown) => {
      if (this.stopping.signal.aborted) return;
      this.logger.error({ err }, 'not all ended vaults were looked at; the next start does so again');
    });
  }

  /** Stops retrying, and resolves once nothing is in progress; the next start continues. */
  async close(): Promise<void> {
    this.stopping.abort();
    clearTimeout(this.retry);
    await this.working;
  }

  private async sweepAll(ready: (signal: AbortSignal) => Promise<void>, ended: () => Iterable<string>): Promise<void> {
    const { signal } = this.stopping;
    await ready(signal);
    if (signal.aborted) return;
    let requested = 0;
    let gone = 0;
    for (const vaultId of ended()) {
      if (signal.aborted || gone === goneInARow) return;
      if (++requested % rest.every === 0) await pause(rest.ms, undefined, { signal, ref: false });
      gone = (await this.shredLeftBehind(vaultId)) ? gone + 1 : 0;
    }
  }

  /** Whether it was already gone. */
  private async shredLeftBehind(vaultId: string): Promise<boolean> {
    try {
      if (!(await this.vault.isThere(vaultId))) return true;
      await this.vault.shred(vaultId);
      this.logger.warn({ vaultId }, 'an ended vault was left behind, and is shredded now');
    } catch (error) {
      this.owe(vaultId, error);
    }
    return false;
  }

  private owe(vaultId: string, err: unknown): void {
    this.logger.error({ err, vaultId }, 'an ended vault could not be shredded yet');
    this.owed.add(vaultId);
    if (this.stopping.signal.aborted || this.retry) return;
    this.retry = setTimeout(() => {
      this.retry = undefined;
      this.working = Promise.all([this.working, this.payBack()]);
    }, this.pauseMs).unref();
  }

  private async payBack(): Promise<void> {
    const owed = [...this.owed];
    this.owed.clear();
    for (const vaultId of owed) {
      if (this.stopping.signal.aborted) return;
      await this.shredLeftBehind(vaultId);
    }
  }
}
