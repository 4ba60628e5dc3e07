import { createHmac, randomBytes } from 'node:crypto';
import { CoordinatorError, limitExceeded } from '../domain/errors.js';

interface KeyedLimitOptions {
  /** What may be counted for one key within a window. */
  readonly most: number;
  readonly windowMs: number;
  /** What the limit is, as the refused read it: `600 requests a minute from one address`. */
  readonly name: string;
  /** Milliseconds; only differences count. The monotonic clock unless given. */
  readonly now?: () => number;
  /** Keys that are remembered at the same time; a hundred bytes each. */
  readonly maxKeys?: number;
}

interface Window {
  count: number;
  readonly endsAt: number;
}

/** How many times as much as a network the network around it may have counted. */
const wider = 4;
/** 65 536 keys are about 8 MB. */
const usualMaxKeys = 65_536;
/** The share of the keys that only `trusted` takes can open, as strangers could fill all others. */
const reserve = 1 / 8;

/**
 * Counts by key, in windows that begin with a key's first count. Keys are kept as digests under a key of this process, so
 * that callers decide neither how much they take nor where they fall. A window that has not ended is never forgotten, since
 * its absence would permit something: when the table is full, new keys are refused (security rule R5).
 */
export class KeyedLimit {
  private readonly windows = new Map<string, Window>();
  private readonly salt = randomBytes(16);
  private readonly now: () => number;
  private readonly maxKeys: number;

  constructor(private readonly options: KeyedLimitOptions) {
    this.now = options.now ?? (() => performance.now());
    this.maxKeys = options.maxKeys ?? usualMaxKeys;
  }

  /** Keys that are remembered. */
  get size(): number {
    return this.windows.size;
  }

  /**
   * Counts once for a key, and says how often it may still be. Of several keys, which are a network and those around it
   * (`networksOf`), each has four times the limit of the one before: a holder of many networks gets no more than that.
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED RATE_LIMIT_EXCEEDED, and nothing is counted
   */
  take(keys: string | readonly string[], { trusted = false }: { readonly trusted?: boolean } = {}): number {
    const now = this.now();
    this.forgetEnded(now);
    const levels = [keys].flat().map((key, level) => {
      const digest = this.digestOf(key);
      const window = this.windows.get(digest);
      return { digest, window, left: this.options.most * wider ** level - (window?.count ?? 0) };
    });
    const used = levels.find(({ left }) => left <= 0);
    if (used) throw this.refusal(used.window!, now);
    const added = levels.filter(({ window }) => !window).length;
    const room = trusted ? this.maxKeys : Math.floor(this.maxKeys * (1 - reserve));
    if (added > 0 && this.windows.size + added > room) {
      const [oldest] = this.windows.values();
      throw this.refusal(oldest!, now);
    }
    for (const { digest, window } of levels) {
      if (window) window.count += 1;
      else this.windows.set(digest, { count: 1, endsAt: now + this.options.windowMs });
    }
    return Math.min(...levels.map(({ left }) => left)) - 1;
  }

  /** Counts if that is permitted, and says whether it was. Options and keys are those of `take`. */
  admits(...requested: Parameters<KeyedLimit['take']>): boolean {
    try {
      this.take(...requested);
      return true;
    } catch (error) {
      if (error instanceof CoordinatorError) return false;
      throw error;
    }
  }

  /** Refuses what `take` would refuse for this key, and counts nothing. @throws {CoordinatorError} as `take` */
  check(key: string): void {
    const now = this.now();
    const window = this.windows.get(this.digestOf(key));
    if (window && this.isExhausted(window, now)) throw this.refusal(window, now);
  }

  /** Whether nothing may be counted for this key until its window ends. */
  isReached(key: string): boolean {
    const window = this.windows.get(this.digestOf(key));
    return window !== undefined && this.isExhausted(window, this.now());
  }

  /** Uncounts once for each key what was taken and turned out not to count. */
  giveBack(keys: string | readonly string[]): void {
    for (const key of [keys].flat()) {
      const digest = this.digestOf(key);
      const window = this.windows.get(digest);
      if (!window) continue;
      window.count -= 1;
      if (window.count === 0) this.windows.delete(digest);
    }
  }

  private isExhausted({ count, endsAt }: Window, now: number): boolean {
    return endsAt > now && count >= this.options.most;
  }

  private digestOf(key: string): string {
    return createHmac('sha256', this.salt).update(key).digest('base64').slice(0, 22);
  }

  /** All windows last equally long, so they end in the order in which they began. */
  private forgetEnded(now: number): void {
    for (const [digest, { endsAt }] of this.windows) {
      if (endsAt > now) return;
      this.windows.delete(digest);
    }
  }

  private refusal({ endsAt }: Window, now: number) {
    return limitExceeded(this.options.name, Math.max(1, Math.ceil((endsAt - now) / 1_000)));
  }
}
