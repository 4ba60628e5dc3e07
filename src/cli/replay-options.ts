import type { StoreOptions } from './stores.js';

/** Options of `countersign replay`. */
export interface ReplayOptions extends StoreOptions {
  readonly at: string;
  readonly diff?: string;
  readonly step?: boolean;
  readonly decisions?: boolean;
  readonly from?: string;
  readonly activity?: string;
  readonly tty: boolean;
  readonly json?: boolean;
  /** Asks the coordinator of a profile, instead of opening the store. */
  readonly profile?: string;
}
