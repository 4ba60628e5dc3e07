import type { Meter } from '../domain/steps.js';

/** Counters and timers of the driver (see `metrics/metrics.ts`). */
export interface DriverMetrics {
  decided(outcome: string, type: string): void;
  /** What one request has spent. */
  spent(on: 'submit' | 'query', meter: Meter): void;
  appended(seconds: number, batch: number): void;
  /** The store did not confirm an append. */
  appendFailed(): void;
  conflict(): void;
  folded(seconds: number, events: number): void;
}

export const DRIVER_METRICS = Symbol('DriverMetrics');
