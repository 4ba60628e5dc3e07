import { setTimeout as pause } from 'node:timers/promises';
import type { Vault } from './vault.js';

interface Reports {
  /** Shredding failed; it is retried automatically. */
  failed(vaultId: string, error: unknown): void;
  /** A vault that had been left behind was shredded. */
  caughtUp(vaultId: string): void;
  /** The sweep could not continue; the next start begins it again. */
  stopped(error: unknown): void;
}

/** Milliseconds until a retry. */
const retryMs = 60_000;
/** Vaults that a sweep checks before it pauses, and the pause in milliseconds. */
const rest = { every: 100, ms: 10 };
/**
 * Stop after this many in a row that are already gone: what a crash leaves behind is among the last that were ended.
 */
const goneInARow = 10_000;

/** Ensures that ended vaults are shredded, even if a store fails or a process dies in between. */
export class VaultDestroyer {
  private readonly owed = new Set<string>();
  private readonly stopping = new AbortController();
  private retry: NodeJS.Timeout | undefined;
  private working: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly vault: Pick<Vault, 'shred' | 'isThere'>,
    private readonly reports: Reports,
    private readonly pauseMs = retryMs,
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
    this.working = this.sweepAll(ready, ended).catch((error: unknown) => {
      if (!this.stopping.signal.aborted) this.reports.stopped(error);
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
    let asked = 0;
    let gone = 0;
    for (const vaultId of ended()) {
      if (signal.aborted || gone === goneInARow) return;
      if (++asked % rest.every === 0) await pause(rest.ms, undefined, { signal, ref: false });
      gone = (await this.shredLeftBehind(vaultId)) ? gone + 1 : 0;
    }
  }

  /** Whether it was already gone. */
  private async shredLeftBehind(vaultId: string): Promise<boolean> {
    try {
      if (!(await this.vault.isThere(vaultId))) return true;
      await this.vault.shred(vaultId);
      this.reports.caughtUp(vaultId);
    } catch (error) {
      this.owe(vaultId, error);
    }
    return false;
  }

  private owe(vaultId: string, error: unknown): void {
    this.reports.failed(vaultId, error);
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
