import { Session } from 'node:inspector';

/** How often blocks of JavaScript are entered in some work: the same on every machine, as no time is. */
export function blocksEntered(work: () => unknown): number {
  const session = new Session();
  session.connect();
  try {
    session.post('Profiler.enable');
    session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
    work();
    let entered = 0;
    session.post('Profiler.takePreciseCoverage', (error, { result }) => {
      if (error) throw error;
      for (const { functions } of result) {
        for (const { ranges } of functions) for (const { count } of ranges) entered += count;
      }
    });
    return entered;
  } finally {
    session.disconnect();
  }
}
