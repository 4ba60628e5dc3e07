/**
 * Given to a process by `--import`: once the process has begun, starts a thread, as its libraries might, that makes many objects,
 * and writes the most bytes that this thread had for new objects to the file `SPACE_FILE`.
 */
import { writeFileSync } from 'node:fs';
import { isMainThread, Worker } from 'node:worker_threads';

const inThread = `
  const { getHeapSpaceStatistics } = require('node:v8');
  let most = 0;
  let kept = [];
  for (let round = 0; round < 400; round++) {
    // Survivors make V8 give it more.
    kept = [...kept.slice(-100_000), ...Array.from({ length: 2_000 }, (_, index) => ({ index, round }))];
    most = Math.max(most, getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space').space_size);
  }
  require('node:worker_threads').parentPort.postMessage(most);
`;

if (isMainThread) {
  setTimeout(() => {
    const thread = new Worker(inThread, { eval: true, execArgv: [] });
    thread.on('message', (most) => writeFileSync(process.env.SPACE_FILE, String(most)));
  }, 500);
}
