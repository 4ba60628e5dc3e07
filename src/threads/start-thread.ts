import { Worker } from 'node:worker_threads';

interface ThreadOptions<Heard> {
  readonly name: string;
  readonly workerData: object;
  /** Memory of the thread, in MiB; unlimited unless given. */
  readonly heapMib?: number;
  readonly hear: (message: Heard) => void;
  /** Both may be called: a thread that fails ends too. */
  readonly failed: (error: unknown) => void;
  readonly ended: (code: number) => void;
}

/** A thread for a service that has a state of its own; what has none is a task of a `TaskPool`. */
export function startThread<Heard>(file: URL, options: ThreadOptions<Heard>) {
  const { name, workerData, heapMib, hear, failed, ended } = options;
  const resourceLimits = heapMib === undefined ? {} : { resourceLimits: { maxOldGenerationSizeMb: heapMib } };
  // Flags of the process such as --input-type or --watch are not meant for the thread, and some would stop it.
  const thread = new Worker(file, { name, workerData, execArgv: [], ...resourceLimits });
  thread.on('message', hear).on('error', failed);
  const hasEnded = new Promise<void>((resolve) => thread.once('exit', (code) => resolve(ended(code))));
  return { thread, hasEnded };
}
