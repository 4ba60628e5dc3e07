import { parentPort } from 'node:worker_threads';
import { tellEvents, type ToTell } from './telling.js';

/** The thread that tells events: of each list that it is given it answers the page. */

const port = parentPort;
port?.on('message', (job: ToTell) => port.postMessage(tellEvents(job)));
