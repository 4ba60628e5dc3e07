import { coordinatorTasks, type PoolOfTasks } from '../../src/coordinator/coordinator-pool.js';
import { QueryTasks } from '../../src/queries/query-tasks.js';
import { ReadModelDatabase } from '../../src/read-models/database.js';
import { readModels } from '../../src/read-models/index.js';
import { Projector } from '../../src/read-models/projector.js';
import { TaskPool } from '../../src/threads/task-pool.js';

type Parameters = ConstructorParameters<typeof QueryTasks>;
type Store = Parameters[1];

type TaskOptions = Parameters[3] & {
  readonly store: Pick<Store, 'read'> & Partial<Store>;
  /** For threads that do something else. */
  readonly file?: URL;
  readonly longestMs?: number;
};

/** What queries have done in threads, with a pool and rows of its own. */
export function queryTasks({ store, file, longestMs, ...states }: TaskOptions) {
  const rows = new ReadModelDatabase(':memory:');
  new Projector(rows, readModels, { identity: 'query tasks', head: -1n });
  const pool: PoolOfTasks = new TaskPool({
    ...coordinatorTasks,
    ...(file ? { file } : {}),
    ...(longestMs === undefined ? {} : { longestMs }),
  });
  const tasks = new QueryTasks(pool, { head: () => Promise.resolve(undefined), ...store }, rows, states);
  const close = async () => {
    await pool.close();
    rows.close();
  };
  return Object.assign(tasks, { close });
}
