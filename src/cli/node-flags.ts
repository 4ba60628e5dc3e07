/**
 * Prints the Node.js flags for the memory of this machine or container: `node $(node dist/cli/node-flags.js)
 * dist/main.js`.
 */
import { availableMemory, flagsFor } from './start/memory.js';

process.stdout.write(`${flagsFor(availableMemory()).join(' ')}\n`);
