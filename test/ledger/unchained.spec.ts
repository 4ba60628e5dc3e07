import { canonicalJson } from '../../src/domain/canonical-json.js';
import { BrokenChain, GENESIS_HASH, linkIn, verifyChain } from '../../src/ledger/chain.js';
import { emptyTail, seal, type Fact } from '../../src/ledger/seal.js';
import { parseEvent, type StoredEvent } from '../../src/ledger/stored-event.js';
import type { Unchained } from '../../src/ledger/unchained.js';

const stream = 'organization-4b7e2d1c-0000-4000-8000-000000000001';
const fact: Fact = {
  type: 'OrganizationRenamed',
  data: { name: 'Zoë' },
  metadata: { at: 1, $correlationId: 'a', $causationId: 'b' },
};
const traced: Unchained = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', salt: 'c2FsdA==' };

function stored(unchained?: Unchained): StoredEvent {
  const [event] = seal(stream, emptyTail, [unchained ? { ...fact, unchained } : fact]).events;
  const { id, type, json } = event!;
  return { stream, revision: 0, position: 0n, id, type, ...json! };
}

/** The link of an event, as a reader of the text and as one of the values verify it. */
function verified(event: StoredEvent): string {
  const link = verifyChain(GENESIS_HASH, parseEvent(event));
  const { data, metadata, ...rest } = event;
  const parsed = { ...rest, data: JSON.parse(data) as unknown, metadata: JSON.parse(metadata) as unknown };
  expect(verifyChain(GENESIS_HASH, parsed)).toBe(link);
  return link;
}

/** With something else in place of its unchained metadata. */
function tampered(event: StoredEvent, unchained: string): StoredEvent {
  const end = event.metadata.indexOf(',"unchained":');
  return { ...event, metadata: `${event.metadata.slice(0, end)}${unchained}}` };
}

test('the link and the id are those of the same event without unchained metadata', () => {
  const [plain, one] = [stored(), stored(traced)];
  expect(one.id).toBe(plain.id);
  expect(one.metadata).toBe(`${plain.metadata.slice(0, -1)},"unchained":${canonicalJson(traced)}}`);
  expect(linkIn(one)).toBe(linkIn(plain));
  expect(verified(one)).toBe(verified(plain));
});

test.each([
  ['changed', ',"unchained":{"traceparent":"another"}'],
  ['removed', ''],
  ['of a later release', ',"unchained":{"later":{"a":[1]}}'],
  ['empty', ',"unchained":{}'],
  ['like a link', `,"unchained":{"x":{"hash":"${'0'.repeat(64)}","unchained":{}}}`],
])('the chain accepts unchained metadata that is %s', (_what, unchained) => {
  expect(verified(tampered(stored(traced), unchained))).toBe(verified(stored()));
});

test.each([
  ['another time', ',"unchained":{},"at":2'],
  ['another correlation', ',"unchained":{"a":{}},"$correlationId":"x","unchained":{}'],
  ['the mark of a redacted event', ',"unchained":{},"redacted":true'],
  ['a member of no release', ',"unchained":{},"__proto__":{"at":2}'],
  ['another time before it', ',"at":2,"unchained":{}'],
])('the chain refuses chained metadata behind the link: %s', (_what, unchained) => {
  const event = tampered(stored(traced), unchained);
  expect(() => verifyChain(GENESIS_HASH, parseEvent(event))).toThrow(BrokenChain);
});

test.each([
  ['a text', '"00-4bf"', 'is not an object'],
  ['a list', '[1]', 'is not an object'],
  ['nothing', 'null', 'is not an object'],
  ['1,025 bytes', `{"a":"${'x'.repeat(1017)}"}`, 'has 1025 bytes, and at most 1024 are allowed'],
])('the chain refuses unchained metadata that is %s', (_what, unchained, problem) => {
  const event = tampered(stored(traced), `,"unchained":${unchained}`);
  expect(() => verifyChain(GENESIS_HASH, parseEvent(event))).toThrow(problem);
});

test('an event with too much of it is not created', () => {
  expect(verified(stored({ a: 'x'.repeat(1016) }))).toBe(verified(stored()));
  expect(() => stored({ a: 'x'.repeat(1017) })).toThrow(
    'the event `OrganizationRenamed` cannot be recorded: its `unchained` metadata has 1025 bytes, and at most 1024 are allowed',
  );
});
