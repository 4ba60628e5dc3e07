import { createHmac, randomBytes } from 'node:crypto';
import { limitExceeded } from '../domain/errors.js';

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
   * Counts once for a key, and says how often it may still be.
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED RATE_LIMIT_EXCEEDED, and nothing is counted
   */
  take(key: string, { trusted = false }: { readonly trusted?: boolean } = {}): number {
    const now = this.now();
    const digest = this.digestOf(key);
    const window = this.windows.get(digest);
    if (window && window.endsAt > now) {
      if (window.count >= this.options.most) throw this.refusal(window, now);
      window.count += 1;
      return this.options.most - window.count;
    }
    this.forgetEnded(now);
    const room = trusted ? this.maxKeys : Math.floor(this.maxKeys * (1 - reserve));
    if (this.windows.size >= room) {
      const [oldest] = this.windows.values();
      throw this.refusal(oldest!, now);
    }
    this.windows.delete(digest);
    this.windows.set(digest, { count: 1, endsAt: now + this.options.windowMs });
    return this.options.most - 1;
  }

  /** Refuses what `take` would refuse for this key, and counts nothing. @throws {CoordinatorError} as `take` */
  check(key: string): void {
    const now = this.now();
    const window = this.windows.get(this.digestOf(key));
    if (window && window.endsAt > now && window.count >= this.options.most) throw this.refusal(window, now);
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
