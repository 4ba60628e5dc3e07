import { parentPort, workerData } from 'node:worker_threads';
import { ReadModelDatabase } from './database.js';
import { readModels } from './index.js';
import { unpackEvents, type PackedEvents } from './packed-events.js';
import { Projector, type EventSource } from './projector.js';

/** The thread that writes the rows: it projects what it receives, and reports its progress. */

const { file, source } = workerData as { readonly file: string; readonly source: EventSource };
const database = new ReadModelDatabase(file);
const projector = new Projector(database, readModels, source);

parentPort?.postMessage(projector.progress());
parentPort?.on('message', (events: PackedEvents | 'close') => {
  if (events === 'close') {
    database.close();
    parentPort?.close();
    return;
  }
  parentPort?.postMessage(projector.project(unpackEvents(events)));
});
