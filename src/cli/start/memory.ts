const mebibyte = 1024 * 1024;

/**
 * Node.js flags for the memory available to this process. Half is for the heap, 8 GiB at most: the rest is for bodies,
 * SQLite's caches, and the system. By default Node takes a quarter, whatever a container allows. New objects get more
 * space than usual, because a batch of decisions creates many that die with it.
 * @param bytes memory of the machine, or of the container
 */
export function flagsFor(bytes: number): readonly string[] {
  const heap = Math.min(Math.max(Math.floor(bytes / 2 / mebibyte), 192), 8_192);
  const semiSpace = heap >= 1_024 ? 64 : heap >= 512 ? 32 : 16;
  return [`--max-old-space-size=${heap}`, `--max-semi-space-size=${semiSpace}`];
}
