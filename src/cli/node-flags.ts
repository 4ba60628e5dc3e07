/**
 * Prints the Node.js flags for the memory of this machine or container: `node $(node dist/cli/node-flags.js)
 * dist/main.js`.
 */
import { totalmem } from 'node:os';
import { flagsFor } from './start/memory.js';

// Without a container limit it is 0, or larger than any machine.
const allowed = process.constrainedMemory() || Infinity;
process.stdout.write(`${flagsFor(Math.min(totalmem(), allowed)).join(' ')}\n`);
