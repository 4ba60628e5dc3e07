/** Where folded organizations are saved, and which streams are folded at all. */
export interface HistoryOptions {
  /** Where folded organizations are saved between runs; if absent, nowhere. */
  readonly snapshotFolder?: string;
  /** Where states that questions about history have come by are kept; if absent, nowhere. */
  readonly stateFolder?: string;
  /** For a test harness that continues an imported history: it is folded, and its webhook endpoints receive nothing. */
  readonly takesImported?: boolean;
}

export const HISTORY = Symbol('HistoryOptions');
