import { readdirSync, readFileSync } from 'node:fs';
import { activities } from '../../src/activities/index.js';
import { apply, nothingLoaded } from '../../src/ledger/loaded-organization.js';
import { buildRegistry } from '../../src/decide/registry.js';
import { rulesNumber } from '../../src/domain/activity/rules.js';
import type { Vote } from '../../src/domain/activity/events.js';
import {
  organizationEventTypes,
  organizationStream,
  type OrganizationEvent,
} from '../../src/domain/organization/organization.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { notDecidedAgain, redecide } from '../../src/replay/decide-again.js';
import { verifyVote } from '../../src/replay/verify-vote.js';

const folder = new URL('./', import.meta.url);
const read = (name: string): string => readFileSync(new URL(name, folder), 'utf8');
const files = readdirSync(folder).filter((name) => name.endsWith('.jsonl'));

/** A stream as it was recorded by an earlier release. Its texts are parsed anew for each reader. */
function recorded(file: string): RecordedEvent[] {
  return read(file)
    .trimEnd()
    .split('\n')
    .map((line) => {
      const event = JSON.parse(line) as Omit<RecordedEvent, 'position'> & { position: string };
      return { ...event, position: BigInt(event.position) };
    });
}

/** Maps as lists of [key, value], as the committed states have them. */
const asLists = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_key, member: unknown) => (member instanceof Map ? [...member] : member)));

/** The stream of the parent of a sub-organization, which is in another file of that version; empty for others. */
function parentOf(file: string): RecordedEvent[] {
  const { parentOrganizationId } = recorded(file)[0]!.data as { parentOrganizationId?: string };
  if (parentOrganizationId === undefined) return [];
  const version = /\.v\d+\.jsonl$/.exec(file)![0];
  const parent = files
    .filter((one) => one.endsWith(version))
    .map(recorded)
    .find(([first]) => first!.stream === organizationStream(parentOrganizationId));
  if (!parent) throw new Error(`the stream of organization \`${parentOrganizationId}\` should be recorded too`);
  return parent;
}

const registry = buildRegistry(activities);

/** What no recorded stream has: a list that only grows shorter. */
const untold: readonly OrganizationEvent['type'][] = [
  // No release records it: it is the mark of a history in a test harness.
  'HistoryImported',
];

describe('streams of earlier releases', () => {
  it('are there, each with its state', () => {
    expect(files.length).toBeGreaterThanOrEqual(2);
    const states = readdirSync(folder).filter((name) => name.endsWith('.state.json'));
    expect(states).toEqual(files.map((file) => file.replace('.jsonl', '.state.json')));
  });

  it('have every type of event in them but those that no story tells yet', () => {
    const types = new Set(files.flatMap(recorded).map(({ type }) => type));
    expect(organizationEventTypes.filter((type) => !types.has(type))).toEqual(untold);
  });

  it('have decisions by rules of every number', () => {
    const numbers = files.flatMap(recorded).flatMap(({ data }) => (data as { decision?: { rules?: number } }).decision?.rules ?? []);
    expect([...new Set(numbers)].sort((one, other) => one - other)).toEqual(
      Array.from({ length: rulesNumber }, (_, at) => at + 1),
    );
  });

  it('have decisions for which the steps of rules 4 just suffice, and one for which only those of older rules do', () => {
    const inDoubt = recorded('meter.v6.jsonl').flatMap(({ type, data }) => {
      const { policies = [] } = (data as { decision?: { policies?: readonly { error?: string }[] } }).decision ?? {};
      return type === 'ActivitySubmitted' && policies.length > 40 ? [policies.some(({ error }) => error !== undefined)] : [];
    });
    expect(inDoubt.slice(-3)).toEqual([false, true, true]);
  });

  it('have older versions of verbs in them, passkeys, and activities that still wait', () => {
    const events = files.flatMap(recorded);
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
    expect(files.some((file) => !read(file.replace('.jsonl', '.state.json')).includes('"openActivities": []'))).toBe(
      true,
    );
  });

  describe.each(files)('%s', (file) => {
    it('folds into the same state, its chain checked', () => {
      const loaded = nothingLoaded();
      for (const event of recorded(file)) apply(loaded, event);
      expect(asLists(loaded.organization)).toStrictEqual(JSON.parse(read(file.replace('.jsonl', '.state.json'))));
    });

    it('is decided as it was, if its rules have a number', () => {
      const stream = recorded(file);
      const made = redecide(stream, registry, parentOf(file));
      const before = notDecidedAgain(stream);
      expect(made.length + before.length).toBeGreaterThan(10);
      // Rules had no number yet when the first streams were recorded.
      if (file.endsWith('.v1.jsonl')) expect(made).toEqual([]);
      else expect(before).toEqual([]);
      for (const { recorded: events, again, outcome, outcomeAgain } of made) {
        expect({ outcome: outcomeAgain, events: again }).toStrictEqual({ outcome, events });
      }
    });

    it('has signatures that verify', async () => {
      for (const { data } of recorded(file)) {
        const { vote } = data as { vote?: Vote };
        if (vote) await verifyVote(vote);
      }
    });

    it('does not fold once a byte of it has changed', () => {
      const text = read(file);
      const place = text.indexOf('"userName":"') + '"userName":"'.length;
      const changed = (text.slice(0, place) + 'x' + text.slice(place + 1)).trimEnd().split('\n');
      const loaded = nothingLoaded();
      expect(() => {
        for (const line of changed) apply(loaded, JSON.parse(line) as RecordedEvent);
      }).toThrow(/the hash chain of stream .* is broken at revision/);
    });
  });
});
