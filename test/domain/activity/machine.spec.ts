import { initialTransition, transition, type EventFromLogic } from 'xstate';
import {
  adjacencyMapToArray,
  getAdjacencyMap,
  getShortestPaths,
  getSimplePaths,
  type AdjacencyValue,
} from 'xstate/graph';
import {
  activityAt,
  activityMachine,
  activityStatus,
  afterSubmit,
  step,
  votingRights,
  type Voting,
  type ActivitySnapshot,
} from '../../../src/domain/activity/machine.js';

type Event = EventFromLogic<typeof activityMachine>;

const approvedBy = (...userIds: readonly string[]): Voting['votes'] =>
  userIds.map((userId) => ({ userId, selection: 'VOTE_SELECTION_APPROVED' }));

const users = ['ann', 'bob', 'eve'];
const subsets = (of: readonly string[]): string[][] =>
  of.reduce<string[][]>((sets, one) => [...sets, ...sets.map((set) => [...set, one])], [[]]);

/** Every event that there is, from every user. */
const events: readonly Event[] = [
  { type: 'evaluated', outcome: 'allow' },
  { type: 'evaluated', outcome: 'consensus-needed' },
  ...users.map((userId) => ({ type: 'approve', userId }) as const),
  ...users.map((userId) => ({ type: 'reject', userId }) as const),
  { type: 'reject', userId: 'bob', isAboutVoter: true },
  { type: 'completed' },
  { type: 'failed' },
];

/** Everybody who may be eligible, with the submitter's approval given. */
const everyStart: readonly Voting[] = subsets(users).map((eligible) => ({ eligible, votes: approvedBy('ann') }));

const stateNames = Object.keys(activityMachine.states) as ActivitySnapshot['value'][];
const finalNames = stateNames.filter((name) => activityMachine.states[name]?.type === 'final');

const stateKey = ({ value, context }: ActivitySnapshot): string =>
  `${value} eligible=${context.eligible.join()} votes=${context.votes
    .map(({ userId, selection }) => `${userId} ${selection}`)
    .toSorted()
    .join()}`;

/** A machine without end would be explored without end. */
const limit = 5_000;

const mapOf = (input: Voting) => getAdjacencyMap(activityMachine, { input, events, limit, serializeState: stateKey });

/** Its keys are of a type that no index matches, which would lose the type of the values. */
type Vertices = Readonly<Record<string, AdjacencyValue<ActivitySnapshot, Event>>>;

const explore = (input: Voting): ActivitySnapshot[] =>
  Object.values(mapOf(input) as Vertices).map(({ state }) => state);

/** The transitions that the machine takes: what it does not take leads nowhere. */
const edgesFrom = (input: Voting) => adjacencyMapToArray(mapOf(input)).filter(({ state, event }) => state.can(event));

const everySnapshot = everyStart.flatMap(explore);

describe('the activity machine, explored from every start', () => {
  it('has these states, and reaches every one of them', () => {
    expect(stateNames.toSorted()).toEqual(
      ['completed', 'consensusNeeded', 'created', 'deciding', 'failed', 'pending', 'rejected'].toSorted(),
    );
    const reached = Object.values(
      getShortestPaths(activityMachine, {
        input: { eligible: ['bob'], votes: approvedBy('ann') },
        events,
        limit,
        serializeState: ({ value }) => value,
      }),
    ).map(({ state }) => state.value);
    expect(new Set(reached)).toEqual(new Set(stateNames));
  });

  it('ends in completed, failed and rejected, and in nothing else', () => {
    expect(finalNames.toSorted()).toEqual(['completed', 'failed', 'rejected']);
    for (const snapshot of everySnapshot) {
      expect([snapshot.value, snapshot.status]).toEqual([
        snapshot.value,
        finalNames.includes(snapshot.value) ? 'done' : 'active',
      ]);
    }
  });

  it('accepts nothing in a final state', () => {
    const ended = everySnapshot.filter(({ value }) => finalNames.includes(value));
    expect(new Set(ended.map(({ value }) => value))).toEqual(new Set(finalNames));
    for (const snapshot of ended) {
      expect(events.filter((event) => snapshot.can(event))).toEqual([]);
    }
  });

  it('has a way to an end from every state in which anybody may still speak', () => {
    for (const input of everyStart) {
      const edges = edgesFrom(input).map(({ state, nextState }) => [stateKey(state), stateKey(nextState)] as const);
      const ending = new Set(
        explore(input)
          .filter(({ status }) => status === 'done')
          .map(stateKey),
      );
      const isSilent = (snapshot: ActivitySnapshot) => !events.some((event) => snapshot.can(event));
      for (let size = -1; size !== ending.size;) {
        size = ending.size;
        for (const [from, to] of edges) if (ending.has(to)) ending.add(from);
      }
      expect(
        explore(input)
          .filter((snapshot) => !isSilent(snapshot) && !ending.has(stateKey(snapshot)))
          .map(stateKey),
      ).toEqual([]);
    }
  });

  it('goes from state to state in exactly these ways', () => {
    const edges = new Set<string>();
    for (const { state, event, nextState } of everyStart.flatMap(edgesFrom)) {
      const ofReject = event.type === 'reject' && event.isAboutVoter === true ? ' about the voter' : '';
      const detail = event.type === 'evaluated' ? ` ${event.outcome}` : ofReject;
      edges.add(`${state.value} --${event.type}${detail}--> ${nextState.value}`);
    }
    expect([...edges].toSorted()).toEqual([
      'consensusNeeded --approve--> deciding',
      'consensusNeeded --reject about the voter--> consensusNeeded',
      'consensusNeeded --reject--> rejected',
      'created --evaluated allow--> pending',
      'created --evaluated consensus-needed--> consensusNeeded',
      'deciding --evaluated allow--> pending',
      'deciding --evaluated consensus-needed--> consensusNeeded',
      'pending --completed--> completed',
      'pending --failed--> failed',
    ]);
  });

  it('counts each approval once, on every path, and approves only who was eligible', () => {
    const paths = getSimplePaths(activityMachine, {
      input: { eligible: ['bob', 'eve'], votes: approvedBy('ann') },
      // How it ends does not change the votes.
      events: events.filter(({ type }) => type !== 'failed'),
      limit,
      serializeState: stateKey,
    });
    expect(paths.length).toBeGreaterThan(20);
    for (const { state, steps } of paths) {
      const cast: string[] = ['ann'];
      for (const { event, state: after } of steps) {
        if (event.type === 'approve' && after.value === 'deciding') {
          expect(['bob', 'eve']).toContain(event.userId);
          cast.push(event.userId);
        }
        if (event.type === 'reject') cast.splice(0, cast.length, ...cast.filter((userId) => userId !== event.userId));
      }
      expect(approversIn(state)).toEqual(cast.toSorted());
    }
  });

  it('is after a submit where it would be whoever the voters are', () => {
    for (const voters of everyStart) {
      for (const outcome of ['allow', 'consensus-needed'] as const) {
        const { value } = step(activityAt('created', voters), { type: 'evaluated', outcome });
        expect(afterSubmit(outcome).value).toBe(value);
      }
    }
  });

  it('never says CREATED once it was evaluated', () => {
    for (const input of everyStart) {
      const [created] = initialTransition(activityMachine, input);
      expect(activityStatus(created)).toBe('ACTIVITY_STATUS_CREATED');
      for (const { nextState } of edgesFrom(input)) {
        expect(activityStatus(nextState)).not.toBe('ACTIVITY_STATUS_CREATED');
      }
    }
  });

  it.each([
    ['consensusNeeded', 'ACTIVITY_STATUS_CONSENSUS_NEEDED'],
    ['deciding', 'ACTIVITY_STATUS_CONSENSUS_NEEDED'],
    ['pending', 'ACTIVITY_STATUS_PENDING'],
    ['completed', 'ACTIVITY_STATUS_COMPLETED'],
    ['failed', 'ACTIVITY_STATUS_FAILED'],
    ['rejected', 'ACTIVITY_STATUS_REJECTED'],
  ] as const)('is called in state %s on the wire %s', (value, status) => {
    expect(activityStatus(activityMachine.resolveState({ value, context: { eligible: [], votes: [] } }))).toBe(status);
  });
});

describe('who may vote', () => {
  // Each row: is bob eligible, has bob approved; may bob approve, may bob reject while votes are needed.
  const table = [
    [true, false, true, true],
    [true, true, false, true],
    [false, true, false, true],
    [false, false, false, false],
  ] as const;

  const votersWith = (isEligible: boolean, hasApproved: boolean): Voting => ({
    eligible: isEligible ? ['ann', 'bob'] : ['ann'],
    votes: hasApproved ? approvedBy('ann', 'bob') : approvedBy('ann'),
  });

  it.each(table)(
    'eligible %s, approved %s: approve %s, reject %s',
    (isEligible, hasApproved, canApprove, canReject) => {
      const snapshot = activityAt('consensusNeeded', votersWith(isEligible, hasApproved));
      expect(votingRights(snapshot, ['bob'])).toEqual({ canApprove, canReject });
    },
  );

  it.each(stateNames.filter((name) => name !== 'consensusNeeded'))('nobody votes in state %s', (value) => {
    for (const [isEligible, hasApproved] of table) {
      const snapshot = activityMachine.resolveState({ value, context: votersWith(isEligible, hasApproved) });
      for (const userId of users) {
        expect(votingRights(snapshot, [userId])).toEqual({ canApprove: false, canReject: false });
      }
    }
  });

  it('canApprove and canReject say what the machine accepts, in every state and for every user', () => {
    const starts = subsets(users).flatMap((eligible) =>
      subsets(users).map((approved) => ({ eligible, votes: approvedBy(...approved) })),
    );
    for (const context of starts) {
      for (const value of stateNames) {
        const snapshot = activityMachine.resolveState({ value, context });
        for (const userId of users) {
          const { canApprove, canReject } = votingRights(snapshot, [userId]);
          expect(canApprove).toBe(accepts(snapshot, { type: 'approve', userId }));
          expect(canReject).toBe(accepts(snapshot, { type: 'reject', userId }));
        }
      }
    }
  });

  it('adds the approver to the approvals, so that the same user cannot approve again', () => {
    const deciding = step(activityAt('consensusNeeded', { eligible: ['bob'], votes: approvedBy('ann') }), {
      type: 'approve',
      userId: 'bob',
    });
    const waiting = step(deciding, { type: 'evaluated', outcome: 'consensus-needed' });
    expect(waiting.context.votes).toEqual(approvedBy('ann', 'bob'));
    expect(votingRights(waiting, ['bob'])).toEqual({ canApprove: false, canReject: true });
    expect(() => step(waiting, { type: 'approve', userId: 'bob' })).toThrow();
  });
});

describe('a rejection of a change about the voter', () => {
  const own = { type: 'reject', userId: 'bob', isAboutVoter: true } as const;
  const before = activityAt('consensusNeeded', { eligible: ['bob', 'eve'], votes: approvedBy('ann', 'bob') });

  it('is recorded, takes the approval back, and ends nothing', () => {
    const after = step(before, own);
    expect([after.value, approversIn(after)]).toEqual(['consensusNeeded', ['ann']]);
    expect(votingRights(after, ['eve'])).toEqual({ canApprove: true, canReject: true });
  });

  it('is the only one that the voter may cast, even after another approval', () => {
    const after = step(before, own);
    expect(votingRights(after, ['bob'])).toEqual({ canApprove: true, canReject: false });
    const approved = step(step(after, { type: 'approve', userId: 'bob' }), {
      type: 'evaluated',
      outcome: 'consensus-needed',
    });
    expect(votingRights(approved, ['bob'])).toEqual({ canApprove: false, canReject: false });
  });

  it('is refused to a user who may not vote', () => {
    expect(() => step(before, { ...own, userId: 'eli' })).toThrow('does not take `reject`');
  });
});

describe('step', () => {
  it('accepts what the machine accepts and throws on everything else, naming state and event', () => {
    let taken = 0;
    for (const snapshot of everySnapshot) {
      for (const event of events) {
        if (accepts(snapshot, event)) taken += 1;
        else {
          expect(() => step(snapshot, event)).toThrow(
            new Error(`an activity that is ${snapshot.value} does not take \`${event.type}\``),
          );
        }
      }
    }
    expect(taken).toBeGreaterThan(50);
  });

  it('does not take an outcome that it does not know, in any state', () => {
    const unknown = { type: 'evaluated', outcome: 'deny-explicit' } as unknown as Event;
    for (const snapshot of everySnapshot) expect(() => step(snapshot, unknown)).toThrow('does not take `evaluated`');
    expect(everySnapshot.some(({ value }) => value === 'created')).toBe(true);
    expect(everySnapshot.some(({ value }) => value === 'deciding')).toBe(true);
  });

  it('goes where the transition function of xstate goes', () => {
    for (const snapshot of everySnapshot) {
      for (const event of events.filter((one) => snapshot.can(one))) {
        const [expected] = transition(activityMachine, snapshot, event);
        const { value, status, context } = step(snapshot, event);
        expect({ value, status, context }).toEqual({
          value: expected.value,
          status: expected.status,
          context: expected.context,
        });
      }
    }
  });

  it('does not change the snapshot that it was given', () => {
    const before = activityAt('consensusNeeded', { eligible: ['bob'], votes: approvedBy('ann') });
    step(before, { type: 'approve', userId: 'bob' });
    expect([before.value, before.context]).toEqual([
      'consensusNeeded',
      { eligible: ['bob'], votes: approvedBy('ann') },
    ]);
  });
});

const approversIn = ({ context: { votes } }: ActivitySnapshot): string[] =>
  votes.flatMap(({ userId, selection }) => (selection === 'VOTE_SELECTION_APPROVED' ? [userId] : [])).toSorted();

/** Whether the step leads anywhere: asked of the outcome, not of the guards. */
function accepts(snapshot: ActivitySnapshot, event: Event): boolean {
  try {
    const { value, context } = step(snapshot, event);
    return value !== snapshot.value || context !== snapshot.context;
  } catch {
    return false;
  }
}
