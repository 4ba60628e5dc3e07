/** Prints the flags that fit the memory of this machine or container: `node $(node dist/cli/node-flags.js) dist/main.js`. */
import { totalmem } from 'node:os';
import { flagsFor } from './start/memory.js';

// Without a bound of a container it is 0, or larger than any machine.
const allowed = process.constrainedMemory() || Infinity;
process.stdout.write(`${flagsFor(Math.min(totalmem(), allowed)).join(' ')}\n`);
