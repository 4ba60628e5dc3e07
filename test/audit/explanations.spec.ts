import { setTimeout } from 'node:timers/promises';
import { activities } from '../../src/activities/index.js';
import { buildRegistry } from '../../src/decide/registry.js';
import type { Decision } from '../../src/domain/activity/events.js';
import { decisionSteps, decodingSteps, Steps } from '../../src/domain/steps.js';
import { explanationSteps, proveDecision } from '../../src/audit/explain/prove-decision.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import type { PartProofShape, ProofAnswer, ProofQuestion } from '../../src/read-models/explanations.js';
import { eventOf, isDeciding } from '../../src/audit/verify/deciding-events.js';
import { payFolding } from '../../src/audit/timeline/fold-cost.js';
import { queryTasks } from '../coordinator/query-tasks.js';
import { longStream } from './long-stream.js';
import { storeWith } from './streams-store.js';
import { goldenNames, goldenNamesOf, goldenStream } from '../golden/streams.js';

const registry = buildRegistry(activities);

/** Recorded streams of one release, by the name of their file without its version. */
function recorded(version: string): Map<string, RecordedEvent[]> {
  return new Map(goldenNamesOf(version).map((name) => [name.split('.')[0]!, goldenStream(name)]));
}

function decisionsIn(stream: readonly RecordedEvent[]): Map<string, Decision[]> {
  const found = new Map<string, Decision[]>();
  for (const one of stream) {
    const event = eventOf(one);
    if (!isDeciding(event) || event.type === 'ActivityRejected') continue;
    const { activityId, decision } = event.data;
    found.set(activityId, [...(found.get(activityId) ?? []), decision]);
  }
  return found;
}

function explained(
  stream: readonly RecordedEvent[],
  about: ProofQuestion['about'],
  decision: Decision,
  parents: readonly RecordedEvent[] = [],
): Promise<ProofAnswer> {
  const { authority } = decision;
  const question = { organizationId: 'any', about, now: 0, ...(authority ? { authority } : {}) };
  const parent = authority && { organizationId: authority.organizationId, events: parents };
  return proveDecision(question, registry, storeWith(stream, parent));
}

const versions = [...new Set(goldenNames.map((name) => name.split('.')[1]!))];

test.each(versions)(
  'every decision in the streams of %s is proved as it was made, by its own rules',
  async (version) => {
    const streams = recorded(version);
    let [proved, policies, sources] = [0, 0, 0];
    for (const [name, stream] of streams) {
      for (const [activityId, made] of decisionsIn(stream)) {
        for (const [index, decision] of made.entries()) {
          // What the root quorum decided has less to tell, and each explanation folds the stream: some of them.
          if (decision.decidedBy === 'root-quorum' && decision.revision % 11 > 0) continue;
          // Decisions made to be costly: what they rest on is costly to try, too.
          if (/^(meter|budgets)/.test(name) && decision.revision % 8 > 0) continue;
          const about = { kind: 'activity', activityId, decisions: index + 1, isWaiting: false } as const;
          const { proof, notExplained } = await explained(
            stream,
            about,
            decision,
            streams.get(name.replace('-child', '')),
          );
          expect(notExplained).toBeUndefined();
          const { outcome, decidedBy: by, revision, rules } = decision;
          expect([proof!.outcome, proof!.decidedBy, proof!.revision, proof!.rules]).toEqual([
            outcome,
            by,
            String(revision),
            rules,
          ]);
          const parts = proof!.parts.texts.map((text) => JSON.parse(text) as PartProofShape);
          proved += 1;
          for (const part of parts) {
            for (const policy of part.policies) {
              policies += 1;
              const said = decision.evaluations.filter(({ policyId }) => policyId === policy.policyId);
              // Under several payloads, an outcome that is the same for all is recorded once.
              if (policy.isAsked) expect(said.map((one) => one.outcome)).toContain(policy.outcome);
              const events = policy.clauses.flatMap((clause) => [
                clause.setBy,
                ...clause.parts.flatMap(({ from = [] }) => from.map(({ setBy }) => setBy)),
              ]);
              for (const setBy of [policy.setBy, ...events]) {
                if (!setBy) continue;
                sources += 1;
                const of = setBy.organizationId === undefined ? stream : streams.get(name.replace('-child', ''))!;
                expect(of[Number(setBy.revision)]).toMatchObject({ id: setBy.eventId, type: setBy.type });
                // Nothing is explained by what came later, but the vote that was being decided on.
                if (setBy.organizationId === undefined)
                  expect(Number(setBy.revision)).toBeLessThanOrEqual(revision + 1);
              }
            }
          }
        }
      }
    }
    expect([proved > 0, policies > 10, sources > 20]).toEqual([true, true, true]);
  },
);

const question: ProofQuestion = {
  organizationId: 'acme',
  about: { kind: 'activity', activityId: 'none', decisions: 1, isWaiting: true },
  now: 0,
};

test('ends where the history is too long, and says so', async () => {
  const answerTo = async (bytes: number) =>
    // An event of some size takes about a quarter of a step for each of its bytes.
    (await proveDecision(question, registry, storeWith([...longStream(10, bytes)]))).notExplained;
  expect(await answerTo(explanationSteps / 20)).toMatch('ask again');
  expect(await answerTo(explanationSteps / 2)).toMatch(/^too much has happened before/);
});

test.each([
  ['what is read at once', 'consensus', undefined, decisionSteps, 5 * decisionSteps],
  // What takes long to read.
  ['a large transaction', 'budgets', 135, decodingSteps, 2 * decodingSteps + 5 * decisionSteps],
] as const)('a proof is not begun with fewer steps than it may take: %s', async (_, name, at, few, enough) => {
  const stream = recorded('v1').get(name)!;
  const isMade = (event: RecordedEvent) => isDeciding(eventOf(event)) && event.type === 'ActivitySubmitted';
  const place = at ?? stream.findIndex(isMade);
  const { activityId } = (eventOf(stream[place]!) as { data: { activityId: string } }).data;
  const before = stream.slice(0, place);
  const answerWith = (left: number) => {
    const about = { kind: 'activity', activityId, decisions: 1, isWaiting: false } as const;
    const steps = new Steps(explanationSteps);
    for (const event of before) payFolding(steps, event);
    const budget = new Steps(steps.spent + left);
    const store = storeWith(stream.slice(0, place + 1));
    return proveDecision({ organizationId: 'any', about, now: 0 }, registry, store, budget);
  };
  expect((await answerWith(few)).notExplained).toMatch(/^too much has happened before/);
  expect((await answerWith(enough)).proof).toBeDefined();
});

test('one proof of a family is made at a time, and one too many refused', async () => {
  let goOn = (): void => undefined;
  const held = new Promise<void>((resolve) => (goOn = resolve));
  let [now, most] = [0, 0];
  const tasks = queryTasks({
    store: {
      async *read() {
        most = Math.max(most, ++now);
        await held;
        yield* longStream(1, 1);
        now--;
      },
    },
  });
  const ask = () => tasks.proof({ family: 'acme', organizationId: 'acme' }, question, () => undefined);
  const waiting = Array.from({ length: 8 }, ask);
  // Where it is not refused, it waits for the others.
  const one = await Promise.race([ask().catch((error: unknown) => error), setTimeout(1_000, 'it waits')]);
  goOn();
  const answers = await Promise.all(waiting);
  await tasks.close();
  expect(one).toMatchObject({ code: 'RESOURCE_EXHAUSTED' });
  expect(answers).toHaveLength(8);
  expect(most).toBe(1);
});
