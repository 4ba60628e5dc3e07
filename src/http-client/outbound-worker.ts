import { parentPort, workerData } from 'node:worker_threads';
import { guardedFetch, guardedTarget } from './guarded-fetch.js';
import { codeOf, GuardedFetchError } from './guarded-request.js';
import type { FromThread, ThreadData, ToThread } from './outbound-http.js';

// A thread of `OutboundHttp`.

const options = workerData as ThreadData;
const fetch = guardedFetch(options);
const check = guardedTarget(options);
const running = new Map<number, AbortController>();

parentPort!.on('message', (requested: ToThread) => {
  if ('cancelled' in requested) running.get(requested.cancelled)?.abort();
  else void answer(requested);
});

async function answer({ id, url, request }: Exclude<ToThread, { cancelled: number }>): Promise<void> {
  const cancelling = new AbortController();
  running.set(id, cancelling);
  let told: FromThread;
  try {
    const response = request ? await fetch(url, { ...request, signal: cancelling.signal }) : await check(url);
    told = response ? { id, response } : { id };
  } catch (error) {
    // Anything else is a mistake of ours, and ends the thread.
    if (!(error instanceof GuardedFetchError)) throw error;
    const { rule, message, cause } = error;
    told = { id, failure: { rule, message, ...(cause === undefined ? {} : { code: codeOf(cause) }) } };
  }
  running.delete(id);
  parentPort!.postMessage(told);
}
