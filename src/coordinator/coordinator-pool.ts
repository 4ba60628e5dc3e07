import { Injectable } from '@nestjs/common';
import { TaskPool } from '../threads/task-pool.js';
import type * as tasks from './tasks.js';

/** Memory of each thread of the pool, in MiB. */
const heapMib = 512;

/** The module of the tasks, and what a thread that does them may have. */
export const coordinatorTasks = { file: new URL('./tasks.js', import.meta.url), heapMib };

/** A pool whose threads do these tasks. */
export type PoolOfTasks = TaskPool<typeof tasks>;

/** The threads of a coordinator. */
@Injectable()
export class CoordinatorPool extends TaskPool<typeof tasks> {
  constructor() {
    super(coordinatorTasks);
  }
}
