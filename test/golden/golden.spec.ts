import { readdirSync } from 'node:fs';
import { activities } from '../../src/activities/index.js';
import { apply, nothingLoaded } from '../../src/ledger/loaded-organization.js';
import { buildRegistry } from '../../src/decide/registry.js';
import type { Vote } from '../../src/domain/activity/events.js';
import {
  organizationEventTypes,
  organizationStream,
  type OrganizationEvent,
} from '../../src/domain/organization/organization.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { redecide } from '../../src/audit/verify/decide-again.js';
import { verifyVote } from '../../src/audit/verify/verify-vote.js';
import { goldenLines, goldenNames, goldenState, goldenStream } from './streams.js';

/** Maps as lists of [key, value], as the committed states have them. */
const asLists = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_key, member: unknown) => (member instanceof Map ? [...member] : member)));

/** The stream of the parent of a sub-organization, which is in another file of that version; empty for others. */
function parentOf(name: string): RecordedEvent[] {
  const { parentOrganizationId } = goldenStream(name)[0]!.data as { parentOrganizationId?: string };
  if (parentOrganizationId === undefined) return [];
  const version = /\.v\d+$/.exec(name)![0];
  const parent = goldenNames
    .filter((one) => one.endsWith(version))
    .map(goldenStream)
    .find(([first]) => first!.stream === organizationStream(parentOrganizationId));
  if (!parent) throw new Error(`the stream of organization \`${parentOrganizationId}\` should be recorded too`);
  return parent;
}

const registry = buildRegistry(activities);

/** What no recorded stream has: a list that only grows shorter. */
const untold: readonly OrganizationEvent['type'][] = [
  // No coordinator records it: it is the mark of a history in a test harness.
  'HistoryImported',
  // No request records it: it is an operator's act.
  'ClockMended',
];

describe('recorded streams', () => {
  it('are there, each with its state', () => {
    expect(goldenNames.length).toBeGreaterThanOrEqual(2);
    const states = readdirSync(new URL('./', import.meta.url)).filter((name) => name.endsWith('.state.json.br'));
    expect(states.sort()).toEqual(goldenNames.map((name) => `${name}.state.json.br`));
  });

  it('have every type of event in them but those that no story tells yet', () => {
    const types = new Set(goldenNames.flatMap(goldenStream).map(({ type }) => type));
    expect(organizationEventTypes.filter((type) => !types.has(type))).toEqual(untold);
  });

  it('have older versions of verbs in them, passkeys, and activities that still wait', () => {
    const events = goldenNames.flatMap(goldenStream);
    const submitted = events.flatMap(({ type, data }) =>
      type === 'ActivitySubmitted' ? [(data as { type: string }).type] : [],
    );
    expect(submitted.filter((type) => registry.versions.get(type)?.lift).length).toBeGreaterThanOrEqual(2);
    const schemes = new Set(events.flatMap(({ data }) => (data as { vote?: Vote }).vote?.scheme ?? []));
    expect(schemes).toEqual(
      new Set([
        'SIGNATURE_SCHEME_TK_API_P256',
        'SIGNATURE_SCHEME_TK_ATTESTED_P256',
        'SIGNATURE_SCHEME_TK_WEBAUTHN',
      ]),
    );
    const waiting = goldenNames.map((name) => (goldenState(name) as { openActivities: readonly unknown[] }).openActivities);
    expect(waiting.some(({ length }) => length > 0)).toBe(true);
  });

  describe.each(goldenNames)('%s', (name) => {
    it('folds into the same state, its chain checked', () => {
      const loaded = nothingLoaded();
      for (const event of goldenStream(name)) apply(loaded, event);
      expect(asLists(loaded.organization)).toStrictEqual(goldenState(name));
    });

    it('is decided as it was', () => {
      const made = redecide(goldenStream(name), registry, parentOf(name));
      expect(made.length).toBeGreaterThan(10);
      for (const { recorded: events, again, outcome, outcomeAgain } of made) {
        expect({ outcome: outcomeAgain, events: again }).toStrictEqual({ outcome, events });
      }
    });

    it('has signatures that verify', async () => {
      for (const { data } of goldenStream(name)) {
        const { vote } = data as { vote?: Vote };
        if (vote) await verifyVote(vote);
      }
    });

    it('does not fold once a byte of it has changed', () => {
      const text = goldenLines(name).join('\n');
      const place = text.indexOf('"userName":"') + '"userName":"'.length;
      const changed = (text.slice(0, place) + 'x' + text.slice(place + 1)).split('\n');
      const loaded = nothingLoaded();
      expect(() => {
        for (const line of changed) apply(loaded, JSON.parse(line) as RecordedEvent);
      }).toThrow(/the hash chain of stream .* is broken at revision/);
    });
  });
});
