/** Given to a process by `--import`: the read models cannot be closed, and the store says when it is. */
import { isMainThread } from 'node:worker_threads';
import { SqliteEventStore } from '../../dist/ledger/stores/sqlite/sqlite.js';
import { ReadModelRunner } from '../../dist/read-models/runner.js';

if (isMainThread) {
  ReadModelRunner.prototype.close = () => Promise.reject(new Error('the rows are stuck'));
  const { close } = SqliteEventStore.prototype;
  SqliteEventStore.prototype.close = async function () {
    await close.call(this);
    process.stderr.write('the event store is closed\n');
  };
}
