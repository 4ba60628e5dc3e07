import { parentPort } from 'node:worker_threads';
import { answerFor } from './between-threads.js';
import type { ToRead } from './reading.js';

/** Reads one input after the other, for `ReadingThreads`. */
parentPort?.on('message', (job: ToRead) => parentPort?.postMessage(answerFor(job)));
