/**
 * Preloaded by a server that is under test: how long its main thread is kept between two turns of the event loop, in
 * processor time of that very thread, so that whatever else the machine does counts little. Told on SIGUSR2, into the
 * file that MAIN_THREAD_FILE names.
 */
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
  let longestMs = 0;
  let told = 0;
  let last = clock();
  setInterval(() => {
    const now = clock();
    longestMs = Math.max(longestMs, now - last);
    last = now;
  }, everyMs).unref();
  process.on('SIGUSR2', () => {
    told += 1;
    // Renamed, so that nobody reads half of it.
    writeFileSync(`${file}.new`, JSON.stringify({ told, longestMs }));
    renameSync(`${file}.new`, file);
    longestMs = 0;
  });
}
