import { totalmem } from 'node:os';

const mebibyte = 1024 * 1024;
/**
 * Space for new objects of the main thread, in MiB. A collection may copy all of it to fresh memory while the thread waits:
 * with 32 it took 250 ms once on a machine whose memory is slow, and 64 made no request cheaper (docs/adr/0100).
 */
const semiSpace = 16;
/**
 * By how much what is alive may grow before the next full collection, in percent. V8 itself lets a small heap grow to up to four times
 * as much (docs/adr/0103).
 */
const growingPercent = 30;

/** Memory of this machine, or of the container that it is in, in bytes. */
export function availableMemory(): number {
  // Without a container limit it is 0, or larger than any machine.
  return Math.min(totalmem(), process.constrainedMemory() || Infinity);
}

/**
 * Node.js flags for the memory available to this process. Half is for the heap, 8 GiB at most: the rest is for bodies,
 * SQLite's caches, and the system. By default Node takes a quarter, whatever a container allows.
 * @param bytes memory of the machine, or of the container
 */
export function flagsFor(bytes: number): readonly string[] {
  const heap = Math.min(Math.max(Math.floor(bytes / 2 / mebibyte), 192), 8_192);
  return [
    `--max-old-space-size=${heap}`,
    `--max-semi-space-size=${semiSpace}`,
    `--heap-growing-percent=${growingPercent}`,
  ];
}
