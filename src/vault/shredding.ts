import { setTimeout as pause } from 'node:timers/promises';
import type { Vault } from './vault.js';

interface Reports {
  /** It is tried again by itself. */
  failed(vaultId: string, error: unknown): void;
  /** A vault that had been left behind is gone. */
  caughtUp(vaultId: string): void;
  /** The sweep could not go on; the next start begins it anew. */
  stopped(error: unknown): void;
}

/** Milliseconds until what failed is tried again. */
const retryMs = 60_000;
/** Vaults that a sweep asks for until it lets others pass, for so many milliseconds. */
const rest = { every: 100, ms: 10 };
/** So many that are gone one after the other: what a crash leaves behind is among the last that were ended. */
const goneInARow = 10_000;

/** Sees to it that vaults that were ended are shredded, although a store may fail and a process may end in between. */
export class Shredder {
  private readonly owed = new Set<string>();
  private readonly stopping = new AbortController();
  private retry: NodeJS.Timeout | undefined;
  private working: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly vault: Pick<Vault, 'shred' | 'isThere'>,
    private readonly reports: Reports,
    private readonly pauseMs = retryMs,
  ) {}

  /** Shreds a vault. What was decided stands, so a failure is reported and tried again, and never thrown. */
  async shred(vaultId: string): Promise<void> {
    try {
      await this.vault.shred(vaultId);
    } catch (error) {
      this.owe(vaultId, error);
    }
  }

  /**
   * Shreds those of the vaults that are still there, one by one in the background, once `ready` has resolved. The one that
   * was ended last comes first; it stops when there is nothing left to expect.
   */
  sweep(ready: (signal: AbortSignal) => Promise<void>, ended: () => Iterable<string>): void {
    this.working = this.sweepAll(ready, ended).catch((error: unknown) => {
      if (!this.stopping.signal.aborted) this.reports.stopped(error);
    });
  }

  /** Stops trying, and resolves when nothing is under way; the next start goes on. */
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

  /** Whether it was gone already. */
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
