import { parentPort } from 'node:worker_threads';
import { problemWith, type RecordedStamp } from './verify-vote.js';

/** The thread that verifies stamps: of each list it is given it answers, in order, what is wrong with each. */

const port = parentPort;
port?.on('message', (stamps: readonly RecordedStamp[]) => {
  void Promise.all(stamps.map(problemWith)).then((problems) => port.postMessage(problems));
});
