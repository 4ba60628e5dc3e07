import fc from 'fast-check';
import type { ActivityEvent } from '../../src/domain/activity/events.js';
import { emptyOrganization, evolve } from '../../src/domain/organization/organization.js';
import { fingerprintOf } from '../../src/stamps/fingerprint.js';
import { ApiError, startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { submitPath } from '../../src/client/stamping-client.js';
import { furnish, sampleSettings, submitSamples } from '../e2e/samples.js';
import { isLong } from '../long.js';

/** Requests; `LONG=1` sends many. */
const wanted = isLong ? 20_000 : 500;
const atOnce = 16;

let coordinator: TestCoordinator;
let samples: Readonly<Record<string, object>>;

beforeAll(async () => {
  coordinator = await startCoordinator({ seed: 'fuzz', store: 'sqlite', settings: sampleSettings });
  samples = submitSamples(await furnish(coordinator));
});

afterAll(() => coordinator.close());

/** A place in a JSON value, and what becomes of it there. */
interface Mutation {
  readonly at: number;
  readonly kind: 'remove' | 'replace' | 'wrap' | 'repeat' | 'rename';
  readonly value: unknown;
}

const oddities = fc.constantFrom(
  null,
  '',
  ' ',
  0,
  -1,
  1e308,
  '0x',
  '-0',
  '../../etc/passwd',
  '%s%n',
  '\u0000',
  '\ud83d\ude00',
  'é',
  'x'.repeat(5_000),
  '00000000-0000-4000-8000-000000000000',
  'constructor',
  '__proto__',
  [],
  {},
  [[[[[[]]]]]],
  true,
);

const mutation: fc.Arbitrary<Mutation> = fc.record({
  at: fc.nat({ max: 10_000 }),
  kind: fc.constantFrom('remove', 'replace', 'wrap', 'repeat', 'rename'),
  value: fc.oneof(oddities, fc.jsonValue({ maxDepth: 3 })),
});

/** Every place in a value, as the object or list that holds it and its name there. */
function placesOf(
  value: unknown,
  places: [Record<string, unknown>, string][] = [],
): [Record<string, unknown>, string][] {
  if (typeof value !== 'object' || value === null) return places;
  const holder = value as Record<string, unknown>;
  for (const name of Object.keys(holder)) {
    places.push([holder, name]);
    placesOf(holder[name], places);
  }
  return places;
}

function mutated(sample: object, mutations: readonly Mutation[]): unknown {
  const changed = structuredClone(sample) as Record<string, unknown>;
  for (const { at, kind, value } of mutations) {
    const places = placesOf(changed);
    const place = places[at % Math.max(1, places.length)];
    if (!place) return value;
    const [holder, name] = place;
    if (kind === 'remove') {
      if (Array.isArray(holder)) holder.splice(Number(name), 1);
      else delete holder[name];
    } else if (kind === 'replace') holder[name] = value;
    else if (kind === 'wrap') holder[name] = [holder[name]];
    else if (kind === 'repeat') holder[name] = [holder[name], holder[name]];
    else holder[`${name}x`] = value;
  }
  return changed;
}

test('nearly right and wholly wrong intents are answered clearly, and what is refused leaves nothing', async () => {
  const types = Object.keys(samples);
  const request = fc.record({
    type: fc.constantFrom(...types),
    shape: fc.oneof(
      { weight: 9, arbitrary: fc.array(mutation, { maxLength: 3 }) },
      { weight: 1, arbitrary: fc.constant(undefined) },
    ),
    other: fc.jsonValue({ maxDepth: 4 }),
  });
  const stream = fc.sample(request, { numRuns: wanted, seed: 20_261_121 }).values();
  const refused = new Set<string>();
  const statuses = new Map<number, number>();
  const surprises: string[] = [];
  let last = coordinator.clock.now();

  const worker = async () => {
    for (const { type, shape, other } of stream) {
      const parameters = shape === undefined ? other : mutated(samples[type]!, shape);
      const { organizationId } = coordinator;
      const body = JSON.stringify({ type, timestampMs: String(++last), organizationId, parameters });
      let status = 200;
      try {
        await coordinator.client.post(submitPath(type), body);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        status = error.status;
        refused.add(fingerprintOf(Buffer.from(body)));
        if (status >= 500 || !error.body.message)
          surprises.push(`${status} ${error.body.message}: ${body.slice(0, 2_000)}`);
      }
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));

  expect(surprises).toEqual([]);
  const sent = [...statuses.values()].reduce((sum, count) => sum + count, 0);
  expect(sent).toBe(wanted);
  // Both were tried: what is refused, and what is nearly right and was done.
  expect(statuses.get(400)).toBeGreaterThan(sent / 10);
  expect(statuses.get(200)).toBeGreaterThan(sent / 100);

  // The caller is who it was before, and history holds nothing of what was refused but failures that count.
  expect(await coordinator.client.query('whoami')).toMatchObject({ organizationId: coordinator.organizationId });
  const organization = emptyOrganization();
  const begun = new Map<string, string>();
  for (const { type, data, metadata } of await coordinator.events()) {
    evolve(organization, { type, data }, (metadata as { at: number }).at);
    const event = { type, data } as ActivityEvent;
    if (event.type === 'ActivitySubmitted' && refused.has(event.data.fingerprint)) {
      begun.set(event.data.activityId, event.data.type);
    }
    if (event.type === 'ActivityFailed') begun.delete(event.data.activityId);
  }
  expect([...begun.values()]).toEqual([]);
}, 400_000);
