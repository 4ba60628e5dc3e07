import { parentPort } from 'node:worker_threads';
import { activities } from '../activities/index.js';
import { buildRegistry } from '../decide/registry.js';
import { CoordinatorError } from '../domain/errors.js';
import { unpackEvents } from '../read-models/packed-events.js';
import { AskedEvents } from './asked-events.js';
import { readDraft } from './draft.js';
import type { FromWhatIfWorker, ToWhatIfWorker } from './what-if-thread.js';
import { boundedWhatIf } from './what-if.js';

/** The thread that decides histories again: it asks for events as it needs them, one question at a time. */

const port = parentPort;
const registry = buildRegistry(activities);
let asked: AskedEvents | undefined;
const say = (said: FromWhatIfWorker) => port?.postMessage(said);

async function answerTo({
  question: { draft, readsParent, ...question },
  head,
}: Extract<ToWhatIfWorker, { kind: 'question' }>): Promise<FromWhatIfWorker> {
  try {
    const events = new AskedEvents(head, (request) => say({ kind: 'read', ...request }));
    asked = events;
    const checked = readDraft(draft, registry.policyEnvironment);
    const hidesParent = readsParent === undefined;
    return {
      kind: 'answer',
      answer: await boundedWhatIf(events, { ...question, registry, draft: checked, hidesParent }),
    };
  } catch (error) {
    if (error instanceof CoordinatorError) {
      const { code, message, details } = error;
      return { kind: 'refused', error: { code, message, details } };
    }
    return { kind: 'failed', reason: error instanceof Error ? error.message : String(error) };
  }
}

port?.on('message', (message: ToWhatIfWorker) => {
  if (message.kind === 'question') void answerTo(message).then(say);
  else asked!.take(unpackEvents(message.events), message.isEnd);
});
