import { memoryForReadings, Readings } from '../../../src/activities/readings.js';
import { Steps } from '../../../src/domain/steps.js';
import type { PayloadsToRead, ReadPayloads } from '../../../src/transactions/payloads.js';

const job: PayloadsToRead = {
  kind: 'payloads',
  encoding: 'PAYLOAD_ENCODING_TEXT_UTF8',
  hashFunction: 'HASH_FUNCTION_SHA256',
  payloads: ['hello'],
  fields: ['payload'],
};

function world() {
  const readings = new Readings<object, PayloadsToRead>(memoryForReadings());
  /** Nothing may be read here: whatever is not known is to be read elsewhere. */
  const unread = (intent: object) => readings.ahead(intent, '', job, new Steps(0));
  const keep = (intent: object, spent: number, family: string, value: ReadPayloads) =>
    unread(intent)!.keep({ spent, value }, family);
  return { unread, keep };
}

test('what threads have read is kept in so many bytes, with a share for each family', () => {
  const { unread, keep } = world();
  const read: ReadPayloads = { signed: [], distinct: [{ field: 'payload', content: { resources: {} } }] };
  const victims = {};
  keep(victims, 100_000, 'victim', read);
  const strangers = Array.from({ length: 20 }, () => ({}));
  for (const intent of strangers) keep(intent, 1_000_000, 'parent of strangers', read);
  expect(unread(victims)).toBeUndefined();
  // 16 MB each, of 64 MiB.
  expect(strangers.filter((intent) => !unread(intent))).toEqual(strangers.slice(-4));
});

test('a digest takes as much of it as it has, however much was hashed', () => {
  const { unread, keep } = world();
  const intents = Array.from({ length: 100 }, () => ({}));
  for (const intent of intents) {
    keep(intent, 1_000_000, 'one', { signed: [new Uint8Array(32)], distinct: [{ field: 'payload' }] });
  }
  expect(intents.filter((intent) => unread(intent))).toEqual([]);
  // What is signed as it is was not hashed.
  const whole = Array.from({ length: 40 }, () => ({}));
  for (const intent of whole) {
    keep(intent, 1, 'one', { signed: [new Uint8Array(2_000_000)], distinct: [{ field: 'payload' }] });
  }
  expect(whole.filter((intent) => !unread(intent))).toHaveLength(33);
});
