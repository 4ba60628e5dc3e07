import { totalmem } from 'node:os';

const mebibyte = 1024 * 1024;
/** Space for new objects of the main thread, in MiB: a collection may copy all of it while the thread waits (docs/performance.md). */
const semiSpace = 16;
/** Growth of the heap between two full collections, in percent. V8 itself lets a small heap grow fourfold. */
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
