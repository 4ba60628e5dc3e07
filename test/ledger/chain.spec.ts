import fc from 'fast-check';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { canonicalJson, canonicalPieces } from '../../src/domain/canonical-json.js';
import {
  BrokenChain,
  chainEvent,
  GENESIS_HASH,
  linkTexts,
  verifyCanonicalChain,
  verifyChain,
} from '../../src/ledger/chain.js';
import { longestSlice } from '../../src/domain/text.js';
import type { ChainedEvent } from '../../src/ledger/chain.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { seal, emptyTail } from '../../src/ledger/seal.js';
import { parseEvent } from '../../src/ledger/stored-event.js';
import { schemaVersionOf } from '../../src/ledger/upcast.js';

interface Vectors {
  readonly numbers: readonly { readonly ieee754: string; readonly json: string }[];
  readonly notNumbers: readonly string[];
  readonly sample: { readonly input: string; readonly utf8: string };
  readonly sorting: { readonly input: string; readonly values: readonly string[] };
}

const rfc8785 = JSON.parse(readFileSync(new URL('../vectors/jcs/rfc8785.json', import.meta.url), 'utf8')) as Vectors;

describe('canonicalPieces', () => {
  const long = 64 * 1024 + 1;

  test('a long string is a piece by itself', () => {
    const text = 'a'.repeat(long);
    expect(canonicalPieces({ b: [text, 1], a: true })).toEqual(['{"a":true,"b":["', text, '",1]}']);
    expect(canonicalJson([text])).toBe(JSON.stringify([text]));
  });

  test('a short one is not', () => {
    const text = 'a'.repeat(long - 1);
    expect(canonicalPieces([text])).toEqual([JSON.stringify([text])]);
  });

  test.each([
    ['one with what JSON escapes', '"'.repeat(long)],
    ['one with characters of two code units', '😀'.repeat(long)],
  ])('%s is in slices', (_what, text) => {
    const pieces = canonicalPieces([text]);
    expect(pieces.join('')).toBe(JSON.stringify([text]));
    expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThanOrEqual(2 * longestSlice);
  });

  test('half a surrogate pair in a long one is refused', () => {
    expect(() => canonicalPieces([`${'a'.repeat(long)}\ud83d`])).toThrow('has a lone surrogate');
  });
});

describe('canonicalJson', () => {
  it.each(rfc8785.numbers)('writes the number $ieee754 as $json (RFC 8785, Appendix B)', ({ ieee754, json }) => {
    expect(canonicalJson(ieee754Number(ieee754))).toBe(json);
  });

  it.each(rfc8785.notNumbers)('refuses %s (RFC 8785, Appendix B)', (bits) => {
    expect(() => canonicalJson(ieee754Number(bits))).toThrow('has no JSON form');
  });

  it('writes the sample of RFC 8785, section 3.2.2, as the bytes of section 3.2.4', () => {
    const text = canonicalJson(JSON.parse(rfc8785.sample.input));
    expect(Buffer.from(text, 'utf8').toString('hex')).toBe(rfc8785.sample.utf8);
  });

  it('sorts members by UTF-16 code units (RFC 8785, section 3.2.3)', () => {
    const input = JSON.parse(rfc8785.sorting.input) as Record<string, string>;
    const keys = Object.keys(input);
    const expected = rfc8785.sorting.values.map((value) => {
      const key = keys.find((candidate) => input[candidate] === value);
      return `${JSON.stringify(key)}:${JSON.stringify(value)}`;
    });
    expect(canonicalJson(input)).toBe(`{${expected.join(',')}}`);
  });

  it('sorts integer-like members as text, though an object keeps them as numbers', () => {
    expect(canonicalJson({ 10: 1, 9: 2, 1: 3, a: { b: 1, a: 2 } })).toBe('{"1":3,"10":1,"9":2,"a":{"a":2,"b":1}}');
  });

  it('leaves no white space and handles empty values', () => {
    expect(canonicalJson({ b: [], a: {}, c: '', d: [[], [{}], null] })).toBe(
      '{"a":{},"b":[],"c":"","d":[[],[{}],null]}',
    );
  });

  it('escapes exactly what RFC 8785, section 3.2.2.2, asks for', () => {
    const controls = Array.from({ length: 32 }, (_, code) => String.fromCharCode(code)).join('');
    expect(canonicalJson(`${controls}"\\/\u007f\u0080\u2028\u2029é🔐`)).toBe(
      '"\\u0000\\u0001\\u0002\\u0003\\u0004\\u0005\\u0006\\u0007\\b\\t\\n\\u000b\\f\\r\\u000e\\u000f\\u0010\\u0011\\u0012\\u0013' +
        '\\u0014\\u0015\\u0016\\u0017\\u0018\\u0019\\u001a\\u001b\\u001c\\u001d\\u001e\\u001f' +
        '\\"\\\\/\u007f\u0080\u2028\u2029é🔐"',
    );
  });

  it.each([
    ['a lone high surrogate', 'a\ud800'],
    ['a lone low surrogate', '\udfffa'],
    ['surrogates in the wrong order', '\udc00\ud800'],
    ['one in a key', { 'a\ud800': 1 }],
    ['undefined', undefined],
    ['undefined in an array', [undefined]],
    ['a bigint', 1n],
    ['a function', () => 1],
    ['a symbol', Symbol('a')],
    ['NaN', [Number.NaN]],
    ['a date', { at: new Date(0) }],
  ])('refuses %s', (_name, value) => {
    expect(() => canonicalJson(value)).toThrow(TypeError);
  });

  it('leaves out undefined members, as the stored JSON does', () => {
    expect(canonicalJson({ b: undefined, a: 1, c: undefined })).toBe('{"a":1}');
    expect(canonicalJson({ b: undefined })).toBe('{}');
  });

  it('sorts few members and many alike, however long their names, when names come again too', () => {
    const name = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 100 }),
      fc.constantFrom('a', 'b', `${'long'.repeat(16)}1`, `${'long'.repeat(16)}2`, '\ue000', '\u{1f600}'),
    );
    fc.assert(
      fc.property(fc.uniqueArray(name, { maxLength: 60 }), (names) => {
        // As two bytes in this order, code units sort like the strings that they make.
        const codeUnits = (text: string): string => Buffer.from(text, 'utf16le').swap16().toString('hex');
        const inOrder = names.toSorted((one, other) => (codeUnits(one) < codeUnits(other) ? -1 : 1));
        const value = Object.fromEntries(names.map((each, index) => [each, index] as const));
        const expected = inOrder.map((each) => `${JSON.stringify(each)}:${names.indexOf(each)}`);
        expect(canonicalJson(value)).toBe(`{${expected.join(',')}}`);
      }),
      { numRuns: 500 },
    );
  });

  it('takes `__proto__` as a member like any other', () => {
    expect(canonicalJson(JSON.parse('{"b":1,"__proto__":{"a":1}}'))).toBe('{"__proto__":{"a":1},"b":1}');
  });

  it('is the same for what comes back from JSON, and means the same', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary', maxDepth: 5 }), (value) => {
        const text = canonicalJson(value);
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
        expect(canonicalJson(JSON.parse(JSON.stringify(value)))).toBe(text);
      }),
    );
  });
});

const STREAM = 'organization-4b7e2d1c-0000-4000-8000-000000000001';

describe('the chain', () => {
  it('starts from 32 zero bytes', () => {
    expect(GENESIS_HASH).toBe('0000000000000000000000000000000000000000000000000000000000000000');
  });

  it('is SHA-256 over the previous hash and the canonical event', () => {
    const [event] = unlinked(1) as [ChainedEvent];
    const canonical =
      '{"data":{"amount":"0","name":"Zoë 🔐"},"id":"00000000-0000-4000-8000-000000000000",' +
      '"metadata":{"$causationId":"cause-0","$correlationId":"activity-0","at":1700000000000,"schemaVersion":1},' +
      `"revision":0,"stream":"${STREAM}","type":"UserCreated"}`;
    const previous = 'ab'.repeat(32);
    const expected = createHash('sha256').update(Buffer.from(previous, 'hex')).update(canonical, 'utf8').digest('hex');
    expect(chainEvent(previous, event)).toBe(expected);
    expect(expected).toMatch(/^[0-9a-f]{64}$/);
  });

  it('hashes events that are larger than the usual buffer alike', () => {
    const [event] = unlinked(1) as [ChainedEvent];
    for (const length of [10_000, 21_600, 21_700, 65_536, 1_000_000]) {
      const large = { ...event, data: '€'.repeat(length) };
      const { data, id, metadata, revision, stream, type } = large;
      const text = canonicalJson({ data, id, metadata, revision, stream, type });
      const expected = createHash('sha256').update(Buffer.alloc(32)).update(text, 'utf8').digest('hex');
      expect(chainEvent(GENESIS_HASH, large)).toBe(expected);
    }
  });

  it('covers the metadata of each event of an append, whether they share it or not', () => {
    const shared = { at: 1, $correlationId: 'a', $causationId: 'b' };
    const others = [shared, shared, { ...shared, at: 2 }, shared, { ...shared, redacted: true as const }];
    const types = ['UserUpdated', 'ActivitySubmitted', 'ActivitySubmitted', 'UserUpdated', 'UserUpdated'];
    const facts = others.map((metadata, index) => ({ type: types[index]!, data: { index }, metadata }));
    const { events } = seal(STREAM, emptyTail, facts);
    let hash = GENESIS_HASH;
    for (const [revision, { json, ...event }] of events.entries()) {
      expect(event.metadata).toMatchObject({ ...others[revision], schemaVersion: schemaVersionOf(event.type) });
      expect(JSON.parse(json!.metadata)).toEqual(event.metadata);
      hash = verifyCanonicalChain(hash, { ...event, stream: STREAM, revision, position: 0n });
    }
  });

  it('does not depend on the order of members', () => {
    const [event] = unlinked(1) as [ChainedEvent];
    const { at, schemaVersion, $correlationId, $causationId } = event.metadata;
    const metadata = { $causationId, schemaVersion, $correlationId, at };
    expect(chainEvent(GENESIS_HASH, { ...event, data: { name: 'Zoë 🔐', amount: '0' }, metadata })).toBe(
      chainEvent(GENESIS_HASH, event),
    );
  });

  it.each([[''], ['00'], ['zz'.repeat(32)], ['00'.repeat(33)], ['00'.repeat(31) + '0g']])(
    'refuses `%s` as a previous hash',
    (previous) => {
      expect(() => chainEvent(previous, unlinked(1)[0] as ChainedEvent)).toThrow('is not 64 hex characters');
    },
  );

  it('verifies what was recorded, also after a way through JSON', () => {
    const events = chained(5);
    expect(verifyAll(events)).toBe((events[4]?.metadata as { hash: string }).hash);
    const restored = events.map((event) => ({
      ...event,
      data: JSON.parse(JSON.stringify(event.data)) as unknown,
      metadata: JSON.parse(JSON.stringify(event.metadata)) as unknown,
    }));
    expect(verifyAll(restored)).toBe(verifyAll(events));
  });

  it('covers metadata that is added one day', () => {
    const [event] = unlinked(1) as [ChainedEvent];
    const metadata = { ...event.metadata, actor: 'user-1' };
    const hash = chainEvent(GENESIS_HASH, { ...event, metadata });
    const recorded = { ...event, position: 1n, metadata: { ...metadata, hash } };
    expect(verifyChain(GENESIS_HASH, recorded)).toBe(hash);
    expect(() => verifyChain(GENESIS_HASH, { ...recorded, metadata: { ...metadata, actor: 'user-2', hash } })).toThrow(
      BrokenChain,
    );
  });

  describe('names the stream and the first bad revision when', () => {
    it('any character of an event is changed', () => {
      const events = chained(3);
      const stored = events.map((event) => JSON.stringify({ ...event, position: undefined }));
      const text = stored[1] ?? '';
      let changes = 0;
      for (let at = 0; at < text.length; at++) {
        const code = text.charCodeAt(at);
        const flipped = text.slice(0, at) + String.fromCharCode(code ^ 1) + text.slice(at + 1);
        const event = parsed(flipped);
        // What no longer parses, or means the same as before, is not a change that the store could hand out.
        if (event === undefined || canonicalJson(event) === canonicalJson(JSON.parse(text))) continue;
        changes++;
        const changed = events.map((recorded, index) => (index === 1 ? { ...event, position: 2n } : recorded));
        // The revision and the stream of the message are the event's own, which here may be what was changed.
        expect(() => verifyAll(changed as RecordedEvent[])).toThrow(BrokenChain);
      }
      expect(changes).toBeGreaterThan(200);
    });

    it('the data, type, id or metadata of an event is changed', () => {
      const changes: ((event: RecordedEvent) => RecordedEvent)[] = [
        (event) => ({ ...event, data: { ...(event.data as object), name: 'Eve' } }),
        (event) => ({ ...event, data: { ...(event.data as object), more: 1 } }),
        (event) => ({ ...event, data: null }),
        (event) => ({ ...event, type: 'UserDeleted' }),
        (event) => ({ ...event, id: '00000000-0000-4000-8000-00000000ffff' }),
        (event) => ({ ...event, metadata: { ...(event.metadata as object), at: 1 } }),
        (event) => ({ ...event, metadata: { ...(event.metadata as object), hash: 'ab'.repeat(32) } }),
        (event) => ({ ...event, metadata: { ...(event.metadata as object), hash: undefined } }),
        (event) => ({ ...event, metadata: {} }),
        (event) => ({ ...event, metadata: null }),
        (event) => ({ ...event, metadata: 'text' }),
        (event) => ({ ...event, data: '\ud800' }),
      ];
      for (const change of changes) {
        for (const at of [0, 2, 4]) expectBroken(chained(5).with(at, change(chained(5)[at] as RecordedEvent)), at);
      }
    });

    it('an event is dropped', () => {
      for (const at of [0, 1, 3]) expectBroken(chained(5).toSpliced(at, 1), at + 1);
    });

    it('an event is dropped and the others are renumbered', () => {
      const events = chained(5).toSpliced(2, 1);
      expectBroken(
        events.map((event, revision) => ({ ...event, revision })),
        2,
      );
    });

    it('two events are exchanged', () => {
      const events = chained(5);
      const [second, third] = [events[1] as RecordedEvent, events[2] as RecordedEvent];
      expectBroken(events.with(1, third).with(2, second), 2);
      expectBroken(events.with(1, { ...third, revision: 1 }).with(2, { ...second, revision: 2 }), 1);
    });

    it('an event is inserted, even with a hash that follows', () => {
      const events = chained(5);
      const previous = (events[1]?.metadata as { hash: string }).hash;
      const event: ChainedEvent = { ...(unlinked(3)[2] as ChainedEvent), id: 'inserted', data: { name: 'Eve' } };
      const forged = { ...event, position: 99n, metadata: { ...event.metadata, hash: chainEvent(previous, event) } };
      expectBroken(events.toSpliced(2, 1, forged), 3);
      expectBroken(events.toSpliced(2, 0, { ...forged, metadata: events[2]?.metadata }), 2);
    });

    it('an event is there twice', () => {
      const events = chained(5);
      expectBroken(events.toSpliced(3, 0, events[2] as RecordedEvent), 2);
    });

    it('the stream is renamed', () => {
      const renamed = chained(5).map((event) => ({ ...event, stream: 'organization-other' }));
      expect(() => verifyAll(renamed)).toThrow(
        'the hash chain of stream `organization-other` is broken at revision 0: ' +
          'its hash does not follow from its content and its predecessor',
      );
    });
  });
});

function ieee754Number(bits: string): number {
  return Buffer.from(bits, 'hex').readDoubleBE();
}

function unlinked(count: number): ChainedEvent[] {
  return Array.from({ length: count }, (_, revision) => ({
    stream: STREAM,
    revision,
    id: `00000000-0000-4000-8000-${String(revision).padStart(12, '0')}`,
    type: 'UserCreated',
    data: { name: 'Zoë 🔐', amount: String(revision) },
    metadata: {
      at: 1_700_000_000_000 + revision,
      schemaVersion: 1,
      $correlationId: `activity-${revision}`,
      $causationId: `cause-${revision}`,
    },
  }));
}

function chained(count: number): RecordedEvent[] {
  let hash = GENESIS_HASH;
  return unlinked(count).map((event) => {
    hash = chainEvent(hash, event);
    return { ...event, position: BigInt(event.revision + 1), metadata: { ...event.metadata, hash } };
  });
}

describe('verifyChain, over what a store has kept', () => {
  const stream = 'organization-1';
  const metadata = { at: 1, $correlationId: 'c', $causationId: 'c' };
  const [sealed] = seal(stream, emptyTail, [
    { type: 'UserRenamed', data: { userName: 'Ann', age: 1 }, metadata },
  ]).events;
  const { id, type, json } = sealed!;
  const stored = { stream, revision: 0, position: 1n, id, type, ...json! };
  const { hash } = sealed!.metadata as { readonly hash: string };

  it('takes the text as it was sealed, in another form too, and none in which anything has changed', () => {
    const spaced = { ...stored, data: JSON.stringify(JSON.parse(stored.data), null, 1) };
    const turned = { ...stored, metadata: JSON.stringify({ hash, ...(JSON.parse(stored.metadata) as object) }) };
    for (const one of [stored, spaced, turned]) {
      expect(verifyChain(GENESIS_HASH, parseEvent(one))).toBe(hash);
      expect(verifyCanonicalChain(GENESIS_HASH, parseEvent(one))).toBe(hash);
    }
    for (const change of [
      { data: stored.data.replace('Ann', 'Bob') },
      { metadata: stored.metadata.replace('"at":1', '"at":2') },
      { revision: 1 },
      { id: 'other' },
    ]) {
      expect(() => verifyChain(GENESIS_HASH, parseEvent({ ...stored, ...change }))).toThrow(BrokenChain);
    }
    expect(() => verifyChain('1'.repeat(64), parseEvent(stored))).toThrow(BrokenChain);
  });

  it('leaves it to whoever verifies everything that a forger has sealed a text with a member twice', () => {
    const data = stored.data.replace('{', '{"userName":"Eve",');
    const own = stored.metadata.replace(/,"hash":"\w+"\}$/, '}');
    const link = linkTexts(GENESIS_HASH, stored, data, own);
    const forged = { ...stored, data, metadata: stored.metadata.replace(hash, link) };
    expect(verifyChain(GENESIS_HASH, parseEvent(forged))).toBe(link);
    expect(() => verifyCanonicalChain(GENESIS_HASH, parseEvent(forged))).toThrow(BrokenChain);
  });
});

function verifyAll(events: readonly RecordedEvent[]): string {
  return events.reduce(verifyChain, GENESIS_HASH);
}

function expectBroken(events: readonly RecordedEvent[], revision: number): void {
  let error: unknown;
  try {
    verifyAll(events);
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(BrokenChain);
  expect(error).toMatchObject({ name: 'BrokenChain', stream: STREAM, revision });
  expect((error as Error).message).toContain(
    `the hash chain of stream \`${STREAM}\` is broken at revision ${revision}: `,
  );
}

function parsed(text: string): object | undefined {
  try {
    return JSON.parse(text) as object;
  } catch {
    return undefined;
  }
}
