import { availableMemory, flagsFor } from '../../dist/cli/start/memory.js';

/** What `npm start` gives Node.js on this machine. */
export const nodeFlags = flagsFor(availableMemory());
