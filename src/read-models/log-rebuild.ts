import type { Log } from '../logging/logger.js';
import type { Rebuild } from './runner.js';

/** Interval between two lines about the progress of a rebuild, in milliseconds. */
const progressMs = 10_000;

/** A line when a rebuild of read models starts, one every ten seconds, and one when it has ended. */
export function logRebuild(logger: Pick<Log, 'info' | 'warn'>, now: () => number = () => performance.now()) {
  let started = 0;
  let reported = 0;
  return (state: 'started' | 'advanced' | 'ended', { models, reached, goal }: Rebuild): void => {
    const time = now();
    const durationMs = Math.round(time - started);
    if (state === 'started') {
      started = reported = time;
      logger.warn(
        { models, position: String(reached), goal: String(goal) },
        'rebuilding read models from the events: queries of them answer 503 until that is done',
      );
    } else if (state === 'ended') {
      logger.info({ models, position: String(reached), durationMs }, 'read models rebuilt');
    } else if (time - reported >= progressMs) {
      reported = time;
      const percent = goal > 0n ? Number((reached * 100n) / goal) : 0;
      logger.info({ percent, position: String(reached), goal: String(goal), durationMs }, 'rebuilding read models');
    }
  };
}
