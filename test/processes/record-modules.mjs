/** Given to a process by `--import`: writes the address of each module that it loads to the file `MODULES_FILE`. */
import { appendFileSync } from 'node:fs';
import { register } from 'node:module';
import { isMainThread } from 'node:worker_threads';

// The hooks have a thread of their own, in which this file is loaded again.
if (isMainThread) register(import.meta.url);

export function load(url, context, next) {
  appendFileSync(process.env.MODULES_FILE, `${url}\n`);
  return next(url, context);
}
