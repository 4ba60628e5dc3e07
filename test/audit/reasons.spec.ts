import { setTimeout } from 'node:timers/promises';
import { activities } from '../../src/activities/index.js';
import { buildRegistry } from '../../src/decide/registry.js';
import type { Decision } from '../../src/domain/activity/events.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import type { ReasonsAnswer, ReasonsQuestion } from '../../src/read-models/reasons.js';
import { eventOf, isDeciding } from '../../src/audit/verify/deciding-events.js';
import { explainDecisions, reasonsSteps, stepsForOthers } from '../../src/audit/explain/explain-decisions.js';
import { queryTasks } from '../coordinator/query-tasks.js';
import { moduleFile } from '../threads/module-file.js';
import { longStream } from './long-stream.js';
import { storeWith } from './streams-store.js';
import { goldenNames, goldenNamesOf, goldenStream } from '../golden/streams.js';

const registry = buildRegistry(activities);

/** Recorded streams, by the name of their file without its version. */
function recorded(version: string): Map<string, RecordedEvent[]> {
  return new Map(goldenNamesOf(version).map((name) => [name.split('.')[0]!, goldenStream(name)]));
}

interface Recorded {
  readonly activityId: string;
  readonly revision: number;
  readonly decision: Decision;
}

/** The decisions of a stream, by activity. */
function decisionsIn(stream: readonly RecordedEvent[]): Map<string, Recorded[]> {
  const found = new Map<string, Recorded[]>();
  for (const one of stream) {
    const event = eventOf(one);
    if (!isDeciding(event) || event.type === 'ActivityRejected') continue;
    const { activityId, decision } = event.data;
    found.set(activityId, [...(found.get(activityId) ?? []), { activityId, revision: one.revision, decision }]);
  }
  return found;
}

function told(
  stream: readonly RecordedEvent[],
  made: readonly Recorded[],
  parents: readonly RecordedEvent[] = [],
  asked: Partial<ReasonsQuestion> = {},
): Promise<ReasonsAnswer> {
  const { authority } = made[0]!.decision;
  const question = {
    organizationId: 'any',
    activityId: made[0]!.activityId,
    decisions: made.length,
    isConcerned: true,
    ...(authority ? { authority } : {}),
    ...asked,
  };
  const parent = question.authority && { organizationId: question.authority.organizationId, events: parents };
  return explainDecisions(question, registry, storeWith(stream, parent));
}

const withoutReasons = ({ told: all }: ReasonsAnswer) =>
  all.map(({ voteId, outcomes }) => ({
    voteId,
    outcomes: outcomes.map(({ policyName: _name, clause: _clause, ...said }) => said),
  }));

const asRecorded = (made: readonly Recorded[]) =>
  made.map(({ decision: { voteId, evaluations: policies } }) => ({ voteId, outcomes: policies }));

const versions = [...new Set(goldenNames.map((name) => name.split('.')[1]!))];

test.each(versions)(
  'each outcome in the streams of %s comes out as recorded, with the name of its policy',
  async (version) => {
    const streams = recorded(version);
    let [clauses, ofParents] = [0, 0];
    for (const [name, stream] of streams) {
      for (const made of decisionsIn(stream).values()) {
        if (made.every(({ decision }) => decision.evaluations.length === 0)) continue;
        const answer = await told(stream, made, streams.get(name.replace('-child', '')));
        const said = withoutReasons(answer).map((one, index) => {
          const { evaluations: policies, policySet } = made[index]!.decision;
          if (!policySet) return one;
          // Those that could not apply are not recorded: they follow.
          const recordedIds = new Set(policies.map(({ policyId }) => policyId));
          const others = one.outcomes.filter(({ policyId }) => !recordedIds.has(policyId));
          expect(others.map(({ outcome }) => outcome)).toEqual(
            Array.from({ length: policySet.count - recordedIds.size }, () => 'OUTCOME_DENY_IMPLICIT'),
          );
          return { ...one, outcomes: one.outcomes.filter((each) => !others.includes(each)) };
        });
        expect(said).toEqual(asRecorded(made));
        const all = answer.told.flatMap((one) => one.outcomes);
        for (const { policyName } of all) expect(policyName).toMatch(/./);
        clauses += all.filter(({ clause }) => clause).length;
        if (made[0]!.decision.authority) ofParents += all.length;
      }
    }
    expect(clauses).toBeGreaterThan(0);
    expect(ofParents).toBeGreaterThan(0);
  },
);

test('what a parent’s policies said stays as recorded where its stream is missing, or not for the reader', async () => {
  const streams = recorded('v1');
  const [name, made] = [...streams]
    .flatMap(([file, stream]) => [...decisionsIn(stream).values()].map((one) => [file, one] as const))
    .find(([, [first]]) => first!.decision.authority && first!.decision.evaluations.length > 0)!;
  const answer = await told(streams.get(name)!, made);
  expect(answer.told.map(({ outcomes }) => outcomes)).toEqual(made.map(({ decision }) => decision.evaluations));
});

const question: ReasonsQuestion = { organizationId: 'acme', activityId: 'none', decisions: 1, isConcerned: true };
const tooMuch = /^too much has happened before: run `countersign replay`/;

test('folds less for somebody whom the activity does not concern, and says that it did not explain', async () => {
  const answerTo = async (isConcerned: boolean, steps: number) => {
    // An event of some size takes about a quarter of a step for each of its bytes.
    const store = storeWith([...longStream(10, steps / 2)]);
    return (await explainDecisions({ ...question, isConcerned }, registry, store)).notExplained;
  };
  expect(await answerTo(false, stepsForOthers / 10)).toBeUndefined();
  expect(await answerTo(false, stepsForOthers)).toMatch(tooMuch);
  expect(await answerTo(true, stepsForOthers)).toBeUndefined();
  expect(await answerTo(true, reasonsSteps)).toMatch(tooMuch);
});

describe('the thread', () => {
  const ask = (tasks: ReturnType<typeof queryTasks>, organizationId = 'acme', family = 'acme') =>
    tasks.reasons({ family, organizationId }, { ...question, organizationId }, () => undefined);
  const founded = {
    async *read() {
      yield* await Promise.resolve(longStream(1, 1));
    },
  };

  test('makes one explanation of a family at a time; of one too many it says so', async () => {
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
    const waiting = Array.from({ length: 8 }, () => ask(tasks));
    // Where it is not refused, it waits for the others.
    const one = await Promise.race([ask(tasks), setTimeout(1_000, { told: [], notExplained: 'it waits' })]);
    goOn();
    const answers = await Promise.all(waiting);
    await tasks.close();
    expect(one.notExplained).toBe('other explanations are in progress: ask again');
    expect(answers).toEqual(waiting.map(() => ({ told: [] })));
    expect(most).toBe(1);
  });

  test('refuses a broken chain, and says that it explained nothing where it dies or does not respond', async () => {
    const broken = queryTasks({
      store: {
        async *read() {
          for (const event of longStream(2, 1)) {
            yield await Promise.resolve(event.revision === 1 ? { ...event, data: { name: 'forged' } } : event);
          }
        },
      },
    });
    await expect(ask(broken)).rejects.toThrow('is broken at revision 1');
    await broken.close();

    for (const act of ['process.exit(1)', 'new Promise(() => undefined)']) {
      const file = await moduleFile(`export const reasons = () => ${act};`);
      const tasks = queryTasks({ store: founded, file, longestMs: 2_000 });
      expect((await ask(tasks)).notExplained).toMatch(/has ended|was not available within 2 s/);
      await tasks.close();
    }
  });
});
