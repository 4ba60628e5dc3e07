import type { DivergenceKind } from '../audit/simulate/what-if-report.js';
import type { StoreOptions } from './stores.js';

/** The kinds of difference with which `--fail-on` ends with 1. */
export const failures: Readonly<Record<string, readonly DivergenceKind[]>> = {
  'new-allow': ['newly-allowed'],
  'new-denial': ['newly-denied', 'now-waits'],
  any: ['newly-allowed', 'newly-denied', 'now-waits', 'not-judged', 'otherwise'],
};

export interface WhatIfCommandOptions extends StoreOptions {
  readonly profile?: string;
  readonly file: string;
  readonly from?: string;
  readonly failOn?: string;
  readonly json?: boolean;
}
