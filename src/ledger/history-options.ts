/** Where folded organizations are kept, and which streams are folded at all. */
export interface HistoryOptions {
  /** Where folded organizations are kept between runs; none are without it. */
  readonly snapshotFolder?: string;
  /** A test harness that goes on from an imported history: it is folded, and its webhooks are told nothing. */
  readonly takesImported?: boolean;
}

export const HISTORY = Symbol('HistoryOptions');
