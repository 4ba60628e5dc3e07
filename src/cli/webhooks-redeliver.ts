import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { BadSetting, environment, readConfig } from '../config.js';
import { eventsFile, openEventStore } from '../ledger/stores/open-event-store.js';
import { redeliver, type Wanted } from '../webhooks/redeliver.js';

/** Has webhooks delivered once more; see docs/how-to/webhooks.md. */

const usage =
  'npm run webhooks:redeliver -- --organization ID --endpoint ID (--event ID | --abandoned)\n' +
  '  --event      one delivery, also one that arrived; the id is X-Turnkey-Event-Id\n' +
  '  --abandoned  all that were given up';

class BadUsage extends Error {}

function wanted(): Wanted {
  const text = { type: 'string' } as const;
  const options = { organization: text, endpoint: text, event: text, abandoned: { type: 'boolean' } } as const;
  let values: ReturnType<typeof parseArgs<{ options: typeof options }>>['values'];
  try {
    ({ values } = parseArgs({ options }));
  } catch (error) {
    throw new BadUsage(error instanceof Error ? error.message : String(error));
  }
  const { organization: organizationId, endpoint: endpointId, event: eventId, abandoned = false } = values;
  if (!organizationId || !endpointId) throw new BadUsage('name the organization and the endpoint');
  if (abandoned === Boolean(eventId)) throw new BadUsage('say either which event, or --abandoned');
  return { organizationId, endpointId, eventId };
}

async function run(): Promise<string> {
  const which = wanted();
  const { eventStore, dataDir } = readConfig(environment());
  if (eventStore === 'memory:') throw new Error('EVENT_STORE=memory: keeps nothing between starts');
  if (eventStore === 'sqlite:' && !existsSync(eventsFile(dataDir))) {
    throw new Error(`there is no ${eventsFile(dataDir)}: set DATA_DIR to the folder of the coordinator`);
  }
  const store = await openEventStore(eventStore, dataDir);
  try {
    const count = await redeliver({ store, clock: { now: () => Date.now() } }, which);
    return `${count} ${count === 1 ? 'delivery' : 'deliveries'} to endpoint ${which.endpointId} will be made once more.\n`;
  } finally {
    await store.close();
  }
}

try {
  process.stdout.write(await run());
} catch (error) {
  const message = error instanceof Error ? error.message : String(error);
  const help = error instanceof BadUsage ? `\n${usage}` : '';
  process.stderr.write(`countersign cannot deliver again: ${message}${help}\n`);
  process.exitCode = error instanceof BadSetting || error instanceof BadUsage ? 2 : 1;
}
