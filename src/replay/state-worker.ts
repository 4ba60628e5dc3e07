import { parentPort } from 'node:worker_threads';
import { CoordinatorError } from '../domain/errors.js';
import { unpackEvents } from '../read-models/packed-events.js';
import { KeptStates } from './kept-states.js';
import { StateConversation } from './state-conversation.js';
import type { ToStateWorker, FromStateWorker } from './state-thread.js';

/** The thread that answers queries about states: given a query, it says which events it needs, and when it has enough. */

const port = parentPort;
let conversation: StateConversation | undefined;
/** Of the one folder that this thread is told of. */
let states: KeptStates | undefined;

async function heard(message: ToStateWorker): Promise<FromStateWorker> {
  try {
    switch (message.kind) {
      case 'question': {
        const { kept } = message;
        if (kept) states ??= new KeptStates(kept.folder, kept.bounds);
        conversation = new StateConversation(message, kept && { ...kept, states: states! });
        return await conversation.begin();
      }
      case 'events':
        return await conversation!.take(unpackEvents(message.events));
      case 'end':
        return await conversation!.end();
    }
  } catch (error) {
    conversation = undefined;
    if (error instanceof CoordinatorError) {
      return { kind: 'refused', code: error.code, message: error.message };
    }
    return { kind: 'failed', reason: error instanceof Error ? error.message : String(error) };
  }
}

port?.on('message', (message: ToStateWorker) => void heard(message).then((said) => port.postMessage(said)));
