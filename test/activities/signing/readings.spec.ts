import { memoryForReadings, Readings } from '../../../src/activities/readings.js';
import { Steps } from '../../../src/domain/steps.js';
import type { PayloadsToRead } from '../../../src/transactions/payloads.js';

const job: PayloadsToRead = {
  kind: 'payloads',
  encoding: 'PAYLOAD_ENCODING_TEXT_UTF8',
  hashFunction: 'HASH_FUNCTION_SHA256',
  payloads: ['hello'],
  fields: ['payload'],
};

test('what threads have read is kept in so many bytes, with a share for each family', () => {
  const readings = new Readings<object, PayloadsToRead>(memoryForReadings());
  /** Nothing may be read here: whatever is not known is to be read elsewhere. */
  const unread = (intent: object) => readings.ahead(intent, '', job, new Steps(0));
  const keep = (intent: object, spent: number, family: string) =>
    unread(intent)!.keep({ spent, value: { signed: [], distinct: [] } }, family);
  const victims = {};
  keep(victims, 100_000, 'victim');
  const strangers = Array.from({ length: 20 }, () => ({}));
  for (const intent of strangers) keep(intent, 1_000_000, 'parent of strangers');
  expect(unread(victims)).toBeUndefined();
  // 16 MB each, of 64 MiB.
  expect(strangers.filter((intent) => !unread(intent))).toEqual(strangers.slice(-4));
});
