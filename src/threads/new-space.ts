import { setFlagsFromString } from 'node:v8';

/** Space for new objects of each thread beside the main one, in MiB. Node.js has 16. */
const semiSpace = 4;

/**
 * Threads that start from now on have a small space for new objects: what they make lives for one message. It is a flag of V8 rather
 * than a limit of each `Worker`, since the flag that the main thread was started with comes before such limits.
 */
export function keepThreadsSmall(): void {
  setFlagsFromString(`--max-semi-space-size=${semiSpace}`);
}

/** By how much the heap of each thread grows before garbage is collected, in percent. V8 lets a small one grow fourfold. */
const heapGrowth = 50;

/** For a command that reads a whole store: its heap stays near what it uses, and its threads are small. */
export function keepHeapSmall(): void {
  keepThreadsSmall();
  setFlagsFromString(`--heap-growing-percent=${heapGrowth}`);
}
