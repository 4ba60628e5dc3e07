import { parentPort } from 'node:worker_threads';
import { problemWith, type RecordedStamp } from './verify-vote.js';

/** The thread that verifies stamps: for each list, it returns in order what is wrong with each. */

const port = parentPort;
/** The answer before: a list may be done before an earlier one, but answers name no list, so they keep the order. */
let answered: Promise<void> = Promise.resolve();

port?.on('message', (stamps: readonly RecordedStamp[]) => {
  const verified = Promise.all(stamps.map(problemWith));
  answered = answered.then(async () => port.postMessage(await verified));
});
