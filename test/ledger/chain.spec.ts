import { createHash } from 'node:crypto';
import { canonicalJson } from '../../src/domain/canonical-json.js';
import {
  BrokenChain,
  chainEvent,
  GENESIS_HASH,
  linkTexts,
  verifyCanonicalChain,
  verifyChain,
} from '../../src/ledger/chain.js';
import type { ChainedEvent } from '../../src/ledger/chain.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { seal, emptyTail } from '../../src/ledger/seal.js';
import { parseEvent } from '../../src/ledger/stored-event.js';
import { schemaVersion } from '../../src/ledger/read-event.js';

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
      expect(event.metadata).toMatchObject({ ...others[revision], schemaVersion });
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
