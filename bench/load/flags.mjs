import { totalmem } from 'node:os';
import { flagsFor } from '../../dist/cli/start/memory.js';

/** What `npm start` gives Node.js on this machine. */
export const nodeFlags = flagsFor(totalmem());
