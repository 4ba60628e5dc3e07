import { and, assign, setup, transition, type SnapshotFrom } from 'xstate';
import type { ActivityStatus, Vote } from './events.js';

/** The votes on an activity that still count, and who may cast more. */
export interface Voting {
  /** Users whose approval could count under today's policies and quorum. */
  readonly eligible: readonly string[];
  readonly votes: readonly Pick<Vote, 'userId' | 'selection'>[];
}

type Step =
  | { readonly type: 'evaluated'; readonly outcome: 'allow' | 'consensus-needed' }
  /** `isAboutVoter`: every effect concerns the user who rejects, and somebody else requested it. */
  | { readonly type: 'approve' | 'reject'; readonly userId: string; readonly isAboutVoter?: boolean }
  | { readonly type: 'completed' }
  | { readonly type: 'failed' };

const has = ({ votes }: Voting, userId: string, selection: Vote['selection']): boolean =>
  votes.some((vote) => vote.userId === userId && vote.selection === selection);

/**
 * The lifecycle of an activity, its votes and who may vote. The machine runs when something is decided, never when
 * history is folded: each event carries the status it led to, so history keeps its meaning when the machine changes. A
 * denied submit is not an activity, so there is no state for it.
 */
export const activityMachine = setup({
  types: {} as { context: Voting; events: Step; input: Voting },
  guards: {
    isAllowed: ({ event }) => event.type === 'evaluated' && event.outcome === 'allow',
    needsConsensus: ({ event }) => event.type === 'evaluated' && event.outcome === 'consensus-needed',
    mayApprove: ({ context, event }) =>
      event.type === 'approve' &&
      context.eligible.includes(event.userId) &&
      !has(context, event.userId, 'VOTE_SELECTION_APPROVED'),
    // Users who have approved may take it back: a change of mind must never be ignored.
    mayReject: ({ context, event }) =>
      event.type === 'reject' &&
      (context.eligible.includes(event.userId) || has(context, event.userId, 'VOTE_SELECTION_APPROVED')) &&
      !has(context, event.userId, 'VOTE_SELECTION_REJECTED'),
    isAboutVoter: ({ event }) => event.type === 'reject' && event.isAboutVoter === true,
  },
  actions: {
    recordApproval: assign({
      votes: ({ context, event }) =>
        event.type === 'approve'
          ? [...context.votes, { userId: event.userId, selection: 'VOTE_SELECTION_APPROVED' as const }]
          : context.votes,
    }),
    // A rejection takes an earlier approval back.
    recordRejection: assign({
      votes: ({ context, event }) =>
        event.type === 'reject'
          ? [
              ...context.votes.filter(({ userId }) => userId !== event.userId),
              { userId: event.userId, selection: 'VOTE_SELECTION_REJECTED' as const },
            ]
          : context.votes,
    }),
  },
}).createMachine({
  id: 'activity',
  context: ({ input }) => input,
  initial: 'created',
  states: {
    created: {
      on: {
        evaluated: [
          { guard: 'isAllowed', target: 'pending' },
          { guard: 'needsConsensus', target: 'consensusNeeded' },
        ],
      },
    },
    consensusNeeded: {
      on: {
        approve: { guard: 'mayApprove', target: 'deciding', actions: 'recordApproval' },
        reject: [
          // Nobody can veto a change about themselves.
          { guard: and(['mayReject', 'isAboutVoter']), actions: 'recordRejection' },
          { guard: 'mayReject', target: 'rejected', actions: 'recordRejection' },
        ],
      },
    },
    deciding: {
      on: {
        evaluated: [
          { guard: 'isAllowed', target: 'pending' },
          { guard: 'needsConsensus', target: 'consensusNeeded' },
        ],
      },
    },
    pending: { on: { completed: 'completed', failed: 'failed' } },
    completed: { type: 'final' },
    failed: { type: 'final' },
    rejected: { type: 'final' },
  },
});

export type ActivitySnapshot = SnapshotFrom<typeof activityMachine>;
type StateName = ActivitySnapshot['value'];

const statusOf: Readonly<Record<StateName, ActivityStatus>> = {
  created: 'ACTIVITY_STATUS_CREATED',
  consensusNeeded: 'ACTIVITY_STATUS_CONSENSUS_NEEDED',
  deciding: 'ACTIVITY_STATUS_CONSENSUS_NEEDED',
  pending: 'ACTIVITY_STATUS_PENDING',
  completed: 'ACTIVITY_STATUS_COMPLETED',
  failed: 'ACTIVITY_STATUS_FAILED',
  rejected: 'ACTIVITY_STATUS_REJECTED',
};

/** The wire status of a state of the machine. */
export function activityStatus(snapshot: ActivitySnapshot): ActivityStatus {
  return statusOf[snapshot.value];
}

/** The machine at the start of an activity, or while it waits for votes. */
export function activityAt(state: 'created' | 'consensusNeeded', context: Voting): ActivitySnapshot {
  return activityMachine.resolveState({ value: state, context });
}

/**
 * One step of the machine.
 * @throws if the machine does not accept the step, which xstate itself would ignore silently
 */
export function step(snapshot: ActivitySnapshot, event: Step): ActivitySnapshot {
  if (!snapshot.can(event)) throw new Error(`an activity that is ${snapshot.value} does not take \`${event.type}\``);
  const [next] = transition(activityMachine, snapshot, event);
  return next;
}

/** Whether a user may cast that vote now. Every place that shows or enforces the right asks this. */
export function mayVote(snapshot: ActivitySnapshot, type: 'approve' | 'reject', userId: string): boolean {
  return snapshot.can({ type, userId });
}

/** How any of these users may vote on the activity now. */
export function votingRights(
  snapshot: ActivitySnapshot,
  userIds: readonly string[],
): { readonly canApprove: boolean; readonly canReject: boolean } {
  return {
    canApprove: userIds.some((userId) => mayVote(snapshot, 'approve', userId)),
    canReject: userIds.some((userId) => mayVote(snapshot, 'reject', userId)),
  };
}

// No vote takes part in a submit, so the machine takes its steps once and not for every request: `transition` builds an
// actor each time, which costs more than the rest of the decision (docs/adr/0002).
const started = activityAt('created', { eligible: [], votes: [] });
const allowed = step(started, { type: 'evaluated', outcome: 'allow' });
const waiting = step(started, { type: 'evaluated', outcome: 'consensus-needed' });
const endOfAllowed = { completed: step(allowed, { type: 'completed' }), failed: step(allowed, { type: 'failed' }) };

/** The machine after a submit, according to the policies' outcome. The voters do not affect it. */
export function afterSubmit(outcome: 'allow' | 'consensus-needed'): ActivitySnapshot {
  return outcome === 'allow' ? allowed : waiting;
}

/** The status of an activity that was allowed once it has been executed. @throws as `step` */
export function statusAfter(pending: ActivitySnapshot, type: 'completed' | 'failed'): ActivityStatus {
  return activityStatus(pending === allowed ? endOfAllowed[type] : step(pending, { type }));
}
