import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { closed, type EventSchema } from '../../scripts/event-schema.mjs';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { readEvent } from '../../src/ledger/read-event.js';

// That it follows from the types is what `reference.spec.ts` sees to.
const file = new URL('../../docs/reference/events.schema.json', import.meta.url);
const schema = JSON.parse(readFileSync(file, 'utf8')) as EventSchema;
const ajv = new Ajv2020({ strict: true, strictTypes: false, allErrors: true });
ajv.addSchema(closed(schema), 'events');
const documented = new Set(Object.keys(schema.$defs));

/** What an event has that the reference does not say, or lacks that it says; nothing of leases, which are no history. */
export function deviations(event: Pick<RecordedEvent, 'type' | 'data' | 'metadata' | 'stream'>): string[] {
  const { type, stream } = event;
  if (/^(lease|renewals|snapshot)-/.test(stream)) return [];
  if (!documented.has(type)) return [`${type} of ${stream} is not documented`];
  const validate = ajv.getSchema(`events#/$defs/${type}`)!;
  if (validate(readEvent(event as RecordedEvent).data)) return [];
  return (validate.errors ?? []).map(({ instancePath, message = '', params }) =>
    [type, instancePath, message, JSON.stringify(params)].join(' '),
  );
}
