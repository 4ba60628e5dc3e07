import { parentPort } from 'node:worker_threads';
import { tellEvents, type ToTell } from './telling.js';

/** The thread that builds pages of events: for each list that it receives, it returns the page. */

const port = parentPort;
port?.on('message', (job: ToTell) => port.postMessage(tellEvents(job)));
