const mebibyte = 1024 * 1024;

/**
 * What Node.js is to be told of the memory that this process may have. Half of it is for the heap, 8 GiB at most: the rest is
 * for bodies, the caches of SQLite, and the system. Node by itself takes a quarter, whatever a container allows. New objects
 * get more room than usual: a batch of decisions makes many that end with it.
 * @param bytes memory of the machine, or of the container
 */
export function flagsFor(bytes: number): readonly string[] {
  const heap = Math.min(Math.max(Math.floor(bytes / 2 / mebibyte), 192), 8_192);
  const semiSpace = heap >= 1_024 ? 64 : heap >= 512 ? 32 : 16;
  return [`--max-old-space-size=${heap}`, `--max-semi-space-size=${semiSpace}`];
}
