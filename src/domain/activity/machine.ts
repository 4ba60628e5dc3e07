import { assign, createActor, setup, type SnapshotFrom } from 'xstate';
import type { ActivityStatus } from './events.js';

/** Who may still vote on an activity, by user id. */
export interface Voters {
  /** Users whose approval could count under today's policies and quorum. */
  readonly eligible: readonly string[];
  /** Users with a live approval. */
  readonly approved: readonly string[];
}

type Step =
  | { readonly type: 'evaluated'; readonly outcome: 'allow' | 'consensus-needed' }
  | { readonly type: 'approve'; readonly userId: string }
  | { readonly type: 'reject'; readonly userId: string }
  | { readonly type: 'completed' }
  | { readonly type: 'failed' };

/**
 * The lifecycle of an activity. The machine runs when something is decided, never when history is folded: each event
 * carries the status it led to, so history keeps its meaning when the machine changes. A denied submit is not an
 * activity, so there is no state for it.
 */
export const activityMachine = setup({
  types: {} as { context: Voters; events: Step; input: Voters },
  guards: {
    isAllowed: ({ event }) => event.type === 'evaluated' && event.outcome === 'allow',
    needsConsensus: ({ event }) => event.type === 'evaluated' && event.outcome === 'consensus-needed',
    mayApprove: ({ context, event }) =>
      event.type === 'approve' && context.eligible.includes(event.userId) && !context.approved.includes(event.userId),
    // Anyone who has approved may take it back, which ends the activity: a change of mind must never be ignored.
    mayReject: ({ context, event }) =>
      event.type === 'reject' && (context.eligible.includes(event.userId) || context.approved.includes(event.userId)),
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
        approve: {
          guard: 'mayApprove',
          target: 'deciding',
          actions: assign({ approved: ({ context, event }) => [...context.approved, event.userId] }),
        },
        reject: { guard: 'mayReject', target: 'rejected' },
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

/** Where the machine does not look at voters. */
const nobody: Voters = { eligible: [], approved: [] };

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

/** The machine at the beginning of an activity, or while it waits for votes. */
export function activityAt(state: 'created' | 'consensusNeeded', voters: Voters): ActivitySnapshot {
  return activityMachine.resolveState({ value: state, context: voters });
}

/**
 * One step of the machine.
 * @throws if the machine does not accept the step, which xstate itself would ignore silently
 */
export function step(snapshot: ActivitySnapshot, event: Step): ActivitySnapshot {
  if (!snapshot.can(event)) throw notTaken(snapshot, event.type);
  return activityMachine.transition(snapshot, event, inertScope);
}

function notTaken({ value }: ActivitySnapshot, type: Step['type']): Error {
  return new Error(`an activity that is ${value} does not take \`${type}\``);
}

/**
 * What xstate's pure functions would build for every step, built once: the machine has no actors, timers or effects
 * that could reach it, and building it costs several times the step itself.
 */
const inertScope: Parameters<typeof activityMachine.transition>[2] = (() => {
  const self = createActor(activityMachine, { input: nobody });
  const nothing = () => undefined;
  return {
    self,
    id: self.id,
    sessionId: self.sessionId,
    system: self.system,
    logger: nothing,
    defer: nothing,
    stopChild: nothing,
    emit: nothing,
    actionExecutor: nothing,
  };
})();

/** How a user may vote on the activity now: the same guards that refuse a vote. */
export function votingRights(
  snapshot: ActivitySnapshot,
  userId: string,
): { readonly canApprove: boolean; readonly canReject: boolean } {
  return {
    canApprove: snapshot.can({ type: 'approve', userId }),
    canReject: snapshot.can({ type: 'reject', userId }),
  };
}

// Voters affect neither how a submit is taken nor how an allowed activity ends, so the machine is asked once, not for
// every request.
const begun = activityAt('created', nobody);
const allowed = step(begun, { type: 'evaluated', outcome: 'allow' });
const ended = { completed: step(allowed, { type: 'completed' }), failed: step(allowed, { type: 'failed' }) };

/** The machine after a submit, according to the policies' outcome. */
export const afterSubmit = {
  allow: allowed,
  'consensus-needed': step(begun, { type: 'evaluated', outcome: 'consensus-needed' }),
} as const satisfies Readonly<Record<string, ActivitySnapshot>>;

/**
 * The machine after the effects of an allowed activity have happened, or failed.
 * @throws if it was not allowed before
 */
export function afterEffects(snapshot: ActivitySnapshot, how: 'completed' | 'failed'): ActivitySnapshot {
  if (snapshot.value !== 'pending') throw notTaken(snapshot, how);
  return ended[how];
}
