import { openEventStore } from '../../ledger/stores/open-event-store.js';
import { BadUsage } from '../bad-usage.js';
import type { CliCommand, Outcome } from '../command.js';
import { storeSettings, withStoreOnly, type StoreOptions } from '../stores.js';
import type { Terminal } from '../terminal.js';

interface RedeliverOptions extends StoreOptions {
  readonly organization: string;
  readonly endpoint: string;
  readonly event?: string;
  readonly abandoned?: boolean;
}

/** `countersign webhooks redeliver`; see docs/how-to/webhooks.md. */
export function mountWebhooksRedeliver(parent: CliCommand): void {
  withStoreOnly(parent.command('redeliver'), 'With a profile, ask the operator to repeat the deliveries')
    .summary('repeat deliveries to an endpoint')
    .description(
      'Repeats deliveries to a webhook endpoint: the same events, to its current URL. Stop the ' +
        'coordinator of a SQLite store first; it delivers after its next start.',
    )
    .requiredOption('--organization <id>', 'the organization of the endpoint')
    .requiredOption('--endpoint <id>', 'the endpoint')
    .option('--event <id>', 'repeat one delivery, whether or not it arrived; the id is in X-Turnkey-Event-Id')
    .option('--abandoned', 'repeat every delivery that was given up')
    .example(
      'countersign webhooks redeliver --data-dir ./data --organization "$ORGANIZATION" --endpoint "$ENDPOINT" --abandoned',
      'Deliver again what an endpoint missed while it was down',
    )
    .answers((options: RedeliverOptions) => redeliver(parent.terminal, options));
}

async function redeliver(terminal: Terminal, options: RedeliverOptions): Promise<Outcome> {
  const { organization: organizationId, endpoint: endpointId, event: eventId, abandoned = false } = options;
  if (abandoned === Boolean(eventId)) throw new BadUsage('select one event with --event, or add --abandoned');
  const { eventStore, dataDir } = storeSettings(terminal, options);
  const webhooks = await import('../../webhooks/redeliver.js');
  const store = await openEventStore(eventStore, dataDir);
  try {
    const wanted = { organizationId, endpointId, eventId };
    const count = await webhooks.redeliver({ store, clock: { now: () => Date.now() } }, wanted);
    const noun = count === 1 ? 'delivery' : 'deliveries';
    return { text: `${count} ${noun} to endpoint ${endpointId} will be repeated.\n`, json: { count } };
  } finally {
    await store.close();
  }
}
