import type { Logger } from 'pino';
import { errorMessage } from '../domain/errors.js';
import type { HealthObserver } from '../ports/health.js';

/** One line when a condition starts, one with its duration when it ends, and one when the process cannot continue. */
export function logConditions(logger: Logger): HealthObserver {
  return {
    started: ({ name, severity, message }) => logger.warn({ condition: name, severity }, message),
    ended: ({ name, severity }, durationMs) =>
      logger.info(
        { condition: name, severity, durationMs: Math.round(durationMs) },
        `the condition \`${name}\` has ended`,
      ),
    failed: ({ message, cause }) => logger.fatal(cause === undefined ? {} : { cause: errorMessage(cause) }, message),
  };
}
