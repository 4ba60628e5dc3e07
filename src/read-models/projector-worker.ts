import { parentPort, workerData } from 'node:worker_threads';
import { plainError } from '../threads/thread-error.js';
import { isDamage, ReadModelDatabase } from './database.js';
import { readModels } from './index.js';
import { unpackEvents } from './packed-events.js';
import type { Answer, Batch } from './projecting.js';
import { Projector, type EventSource } from './projector.js';

/** The thread that writes the rows: it projects what it receives, and reports its progress. */

const { file, source } = workerData as { readonly file: string; readonly source: EventSource };
const database = new ReadModelDatabase(file);
const projector = new Projector(database, readModels, source);

parentPort?.postMessage({ progress: projector.progress(), leftOut: projector.leftOut() } satisfies Answer);
parentPort?.on('message', (batch: Batch | 'close') => {
  if (batch === 'close') {
    database.close();
    parentPort?.close();
    return;
  }
  parentPort?.postMessage(answerTo(batch));
});

/** Nothing of a batch is written that fails: once there is room again, the thread takes the same events. */
function answerTo({ events, models }: Batch): Answer {
  try {
    return { progress: projector.project(unpackEvents(events), models), leftOut: projector.leftOut() };
  } catch (error) {
    return { fault: plainError(error), isDamage: isDamage(error) };
  }
}
