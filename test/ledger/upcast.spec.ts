import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { upcast } from '../../src/ledger/upcast.js';

const recorded = (type: string, data: unknown, metadata: unknown): RecordedEvent => ({
  stream: 'organization-1',
  revision: 7,
  position: 8n,
  id: '3f2504e0-4f89-41d3-9a0c-0305e82c3301',
  type,
  data,
  metadata,
});

describe('upcast', () => {
  it('returns a current event unchanged', () => {
    const event = recorded('UserCreated', { name: 'Ada' }, { schemaVersion: 1, at: 5 });
    expect(upcast(event)).toBe(event);
  });

  it('refuses a version from the future, and says what to do', () => {
    expect(() => upcast(recorded('UserCreated', {}, { schemaVersion: 2 }))).toThrow(
      'the event `UserCreated` at revision 7 of stream `organization-1` has schema version 2, ' +
        'but this release supports at most 1: start the release that wrote it, or a newer one',
    );
  });

  it.each([[undefined], [null], ['1'], [0], [-1], [1.5], [Number.NaN]])('refuses the version %p', (schemaVersion) => {
    expect(() => upcast(recorded('UserCreated', {}, { schemaVersion }))).toThrow('not a whole number from 1');
  });

  it.each([[null], ['text'], [undefined], [{}]])('refuses the metadata %p', (metadata) => {
    expect(() => upcast(recorded('UserCreated', {}, metadata))).toThrow('not a whole number from 1');
  });

  it('reads the intent from the signed body when it is looked at, and wherever the data are copied to', () => {
    const signed = { userName: 'Ada', userEmail: null };
    const message = JSON.stringify({ type: 'ACTIVITY_TYPE_UPDATE_USER', parameters: signed });
    const event = () => upcast(recorded('ActivitySubmitted', { vote: { message } }, { schemaVersion: 2, at: 5 }));
    const whole = { vote: { message }, intent: { userName: 'Ada' } };
    const data = event().data as typeof whole;
    expect(data.intent).toEqual(whole.intent);
    expect(data.intent).toBe(data.intent);
    expect(Object.keys(event().data as object)).toEqual(['vote', 'intent']);
    expect(JSON.parse(JSON.stringify(event().data))).toEqual(whole);
    expect(structuredClone(event().data)).toEqual(whole);
    expect(Object.entries({ ...(event().data as object) })).toEqual(Object.entries(whole));
  });

  it('leaves alone the intent that an event of version 1 has itself', () => {
    const data = { intent: { userName: 'Ada' }, vote: { message: '{}' } };
    expect(upcast(recorded('ActivitySubmitted', data, { schemaVersion: 1, at: 5 })).data).toEqual(data);
  });

  describe('of a type that has changed twice', () => {
    const lifts = new Map([
      [
        'UserCreated',
        [
          (data: unknown) => ({ names: [(data as { name: string }).name] }),
          (data: unknown) => ({ ...(data as object), tags: [] }),
        ],
      ],
    ]);

    it('lifts from any version to the newest, and says so in the metadata', () => {
      const newest = { names: ['Ada'], tags: [] };
      const first = recorded('UserCreated', { name: 'Ada' }, { schemaVersion: 1, at: 5 });
      expect(upcast(first, lifts)).toEqual({ ...first, data: newest, metadata: { schemaVersion: 3, at: 5 } });
      const second = recorded('UserCreated', { names: ['Ada'] }, { schemaVersion: 2, at: 5 });
      expect(upcast(second, lifts)).toEqual({ ...second, data: newest, metadata: { schemaVersion: 3, at: 5 } });
      const third = recorded('UserCreated', newest, { schemaVersion: 3, at: 5 });
      expect(upcast(third, lifts)).toBe(third);
      expect(() => upcast(recorded('UserCreated', newest, { schemaVersion: 4 }), lifts)).toThrow('supports at most 3');
    });

    it('does not change the recorded event', () => {
      const event = recorded('UserCreated', { name: 'Ada' }, { schemaVersion: 1 });
      upcast(event, lifts);
      expect(event).toEqual(recorded('UserCreated', { name: 'Ada' }, { schemaVersion: 1 }));
    });

    it('does not change other types', () => {
      const event = recorded('UserDeleted', {}, { schemaVersion: 1 });
      expect(upcast(event, lifts)).toBe(event);
      expect(() => upcast(recorded('UserDeleted', {}, { schemaVersion: 2 }), lifts)).toThrow('supports at most 1');
    });
  });
});
