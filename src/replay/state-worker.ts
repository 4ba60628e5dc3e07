import { parentPort } from 'node:worker_threads';
import { CoordinatorError } from '../domain/errors.js';
import { unpackEvents } from '../read-models/packed-events.js';
import { StateTelling } from './tell-states.js';
import type { ToStateWorker, FromStateWorker } from './state-thread.js';

/** The thread that answers queries about states: given a query and then the events, it says when it has enough. */

const port = parentPort;
let telling: StateTelling | undefined;

function heard(message: ToStateWorker): FromStateWorker {
  try {
    switch (message.kind) {
      case 'question':
        telling = new StateTelling(message.organizationId, message.question, message.now);
        return { kind: 'go-on' };
      case 'events':
        return { kind: telling!.take(unpackEvents(message.events)) ? 'go-on' : 'enough' };
      case 'end': {
        const answer = telling!.answer();
        telling = undefined;
        return { kind: 'answer', answer };
      }
    }
  } catch (error) {
    telling = undefined;
    if (error instanceof CoordinatorError) {
      return { kind: 'refused', code: error.code, message: error.message };
    }
    return { kind: 'failed', reason: error instanceof Error ? error.message : String(error) };
  }
}

port?.on('message', (message: ToStateWorker) => port.postMessage(heard(message)));
