import { parentPort } from 'node:worker_threads';
import { problemWith, type RecordedStamp } from './verify-vote.js';

/** The thread that verifies stamps: for each list, it returns in order what is wrong with each. */

const port = parentPort;
port?.on('message', (stamps: readonly RecordedStamp[]) => {
  void Promise.all(stamps.map(problemWith)).then((problems) => port.postMessage(problems));
});
