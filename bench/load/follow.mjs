import { join } from 'node:path';
import { projectIntoFile } from '../../dist/read-models/projecting.js';
import { ReadModelRunner } from '../../dist/read-models/runner.js';

/** Follows the store with the read models until they have seen everything. */
export async function follow(store, folder) {
  const head = await store.head();
  const projecting = await projectIntoFile(join(folder, 'read-models.db'), { identity: 'bench', head }, store);
  const runner = new ReadModelRunner(store, projecting, {
    projected() {},
    failed: (model, _position, reason) => console.error(model, reason),
    interrupted: console.error,
  });
  runner.start();
  await runner.passed(head, 3_600_000);
  await runner.close();
  await projecting.close();
}
