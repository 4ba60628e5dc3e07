import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { readEvent } from '../../src/ledger/read-event.js';

const recorded = (type: string, data: unknown, metadata: unknown): RecordedEvent => ({
  stream: 'organization-1',
  revision: 7,
  position: 8n,
  id: '3f2504e0-4f89-41d3-9a0c-0305e82c3301',
  type,
  data,
  metadata,
});

describe('readEvent', () => {
  it('returns what an event says', () => {
    const data = { name: 'Ada' };
    const event = readEvent(recorded('UserCreated', data, { schemaVersion: 1, at: 5 }));
    expect(event).toEqual({ type: 'UserCreated', data });
    expect(event.data).toBe(data);
  });

  it('refuses another schema version, and says what to do', () => {
    expect(() => readEvent(recorded('UserCreated', {}, { schemaVersion: 2 }))).toThrow(
      'the event `UserCreated` at revision 7 of stream `organization-1` has the schema version `2`, ' +
        'and this release reads only 1: start the release that wrote it',
    );
  });

  it.each([[undefined], [null], ['1'], [0], [-1], [1.5], [Number.NaN]])('refuses the version %p', (schemaVersion) => {
    expect(() => readEvent(recorded('UserCreated', {}, { schemaVersion }))).toThrow('this release reads only 1');
  });

  it.each([[null], ['text'], [undefined], [{}]])('refuses the metadata %p', (metadata) => {
    expect(() => readEvent(recorded('UserCreated', {}, metadata))).toThrow('the schema version `undefined`');
  });

  it('reads the intent from the signed body when it is looked at, and wherever the data are copied to', () => {
    const signed = { userName: 'Ada', userEmail: null };
    const message = JSON.stringify({ type: 'ACTIVITY_TYPE_UPDATE_USER', parameters: signed });
    const event = () => readEvent(recorded('ActivitySubmitted', { vote: { message } }, { schemaVersion: 1, at: 5 }));
    const whole = { vote: { message }, intent: { userName: 'Ada' } };
    const data = event().data as typeof whole;
    expect(data.intent).toEqual(whole.intent);
    expect(data.intent).toBe(data.intent);
    expect(Object.keys(event().data as object)).toEqual(['vote', 'intent']);
    expect(JSON.parse(JSON.stringify(event().data))).toEqual(whole);
    expect(structuredClone(event().data)).toEqual(whole);
    expect(Object.entries({ ...(event().data as object) })).toEqual(Object.entries(whole));
  });
});
