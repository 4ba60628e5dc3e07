import type { INestApplicationContext } from '@nestjs/common';
import type { Logger } from 'pino';
import { REGISTRY, type Registry } from '../decide/registry.js';
import { findSilentPolicies } from '../decide/silent-policies.js';
import { Children } from '../coordinator/children.js';
import type { Rows } from '../read-models/database.js';
import { policiesAfter } from '../read-models/policies.js';

/** After a start, once the rows have caught up, checks what an earlier run may have left behind. */
export function runStartupChecks(
  app: INestApplicationContext,
  caughtUp: (signal: AbortSignal) => Promise<void>,
  { rows, logger }: { readonly rows: Rows; readonly logger: Logger },
): { close(): Promise<void> } {
  const stopping = new AbortController();
  const { signal } = stopping;
  const failed = (message: string) => (err: unknown) => {
    if (!signal.aborted) logger.error({ err }, message);
  };
  const children = caughtUp(signal)
    .then(() => app.get(Children).sweep(signal))
    .catch(failed('startup check of sub-organizations did not finish'));
  const policies = caughtUp(signal)
    .then(() =>
      findSilentPolicies(
        (after, limit) => policiesAfter(rows, after, limit),
        app.get<Registry>(REGISTRY).policyEnvironment,
        (where, mistake) => logger.warn({ ...where, mistake }, 'a policy compares with what nothing can be'),
        signal,
      ),
    )
    .catch(failed('startup check of policies did not finish'));
  return {
    async close() {
      stopping.abort();
      await Promise.all([children, policies]);
    },
  };
}
