/**
 * Preloaded by a server that is under test: how long its main thread is kept between two turns of the event loop, in
 * processor time of that very thread, so that whatever else the machine does counts little. Told on SIGUSR2, into the
 * file that MAIN_THREAD_FILE names, with what the collection of garbage took of it.
 */
import { PerformanceObserver } from 'node:perf_hooks';
import { openSync, readSync, renameSync, writeFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

const file = process.env['MAIN_THREAD_FILE'];
const everyMs = 5;

/** Milliseconds that this thread has run; where the system does not say so, milliseconds that have passed. */
function clockOfThread() {
  try {
    const times = openSync(`/proc/self/task/${process.pid}/schedstat`, 'r');
    const text = Buffer.alloc(64);
    const read = () => Number(text.toString('latin1', 0, readSync(times, text, 0, 64, 0)).split(' ')[0]) / 1e6;
    return read() > 0 ? read : () => performance.now();
  } catch {
    return () => performance.now();
  }
}

if (isMainThread && file) {
  const clock = clockOfThread();
  /** The longest time between two turns: how much of it the thread has run, and from when to when it was. */
  let longest = { ms: 0, from: 0, to: 0 };
  let collections = [];
  let told = 0;
  let last = { clock: clock(), at: performance.now() };
  new PerformanceObserver((list) => collections.push(...list.getEntries())).observe({ entryTypes: ['gc'] });
  setInterval(() => {
    const now = { clock: clock(), at: performance.now() };
    const ms = now.clock - last.clock;
    if (ms > longest.ms) longest = { ms, from: last.at, to: now.at };
    last = now;
  }, everyMs).unref();
  process.on('SIGUSR2', () => {
    told += 1;
    const { ms, from, to } = longest;
    longest = { ms: 0, from: 0, to: 0 };
    // Collections are told of a turn later.
    setTimeout(() => {
      const within = collections.filter(({ startTime }) => startTime >= from && startTime < to);
      const collectingMs = within.reduce((sum, { duration }) => sum + duration, 0);
      collections = [];
      // Renamed, so that nobody reads half of it.
      writeFileSync(`${file}.new`, JSON.stringify({ told, longestMs: ms, collectingMs }));
      renameSync(`${file}.new`, file);
    }, everyMs);
  });
}
