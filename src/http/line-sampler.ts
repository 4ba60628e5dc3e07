interface Window {
  lines: number;
  leftOut: number;
  readonly endsAt: number;
}

/** How many lines one network may cause, per window. */
const mostLines = 60;
const windowMs = 60_000;
/** Networks that are counted separately; all further ones count as one. */
const mostNetworks = 1_024;

/** Limits the log lines that unauthenticated callers cause, per network, and reports how many were left out. */
export class LineSampler {
  /** In the order in which they end, because all last equally long. */
  private readonly windows = new Map<string, Window>();
  private timer: NodeJS.Timeout | undefined;

  /** @param monotonic milliseconds of a clock that never runs backwards */
  constructor(
    private readonly leftOut: (network: string, lines: number) => void,
    private readonly monotonic: () => number = () => performance.now(),
  ) {}

  /** Whether to write a line now. Counts it. */
  admits(network: string): boolean {
    this.endWindows();
    const key = this.windows.has(network) || this.windows.size < mostNetworks ? network : 'others';
    const window = this.windows.get(key) ?? { lines: 0, leftOut: 0, endsAt: this.monotonic() + windowMs };
    this.windows.set(key, window);
    this.timer ??= setInterval(() => this.endWindows(), 1_000).unref();
    if (window.lines < mostLines) {
      window.lines += 1;
      return true;
    }
    window.leftOut += 1;
    return false;
  }

  /** Reports what was left out in windows that have not ended. */
  close(): void {
    this.endWindows(Infinity);
  }

  private endWindows(now = this.monotonic()): void {
    for (const [network, { endsAt, leftOut }] of this.windows) {
      if (endsAt > now) return;
      this.windows.delete(network);
      if (leftOut > 0) this.leftOut(network, leftOut);
    }
    clearInterval(this.timer);
    this.timer = undefined;
  }
}
