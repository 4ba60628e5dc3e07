import { ApiError, type StampingClient } from '../client/stamping-client.js';
import type { ActivityEnvelope } from '../wire/envelope.js';
import type { EventData, EventType } from '../client/recorded-events.js';
import type { RecordedEvent } from '../ledger/event-store.js';

/** What jest and vitest pass a matcher as `this`. */
interface MatcherContext {
  readonly isNot?: boolean;
  equals(actual: unknown, expected: unknown): boolean;
  readonly utils?: { diff?(expected: unknown, actual: unknown): string | null | undefined };
}

interface MatcherResult {
  readonly pass: boolean;
  message(): string;
}

/** The outcome of a request: the activity, or the error returned. */
type Outcome = { readonly activity: ActivityEnvelope } | { readonly error: ApiError };

/** The outcome of one policy, as a denial shows it. */
interface PolicyEvaluation {
  readonly policyId: string;
  readonly policyName?: string;
  readonly outcome: string;
  readonly error?: string;
  readonly clause?: { readonly name: string; readonly text: string; readonly outcome: string };
}

/** Some members of a value, each with its value or an asymmetric matcher such as `expect.any(String)`. */
type Expected<Value> = Value extends readonly unknown[]
  ? Value
  : Value extends object
    ? { readonly [Name in keyof Value]?: Expected<Value[Name]> }
    : Value;

/** The types of the matchers, for extending those of jest or vitest (docs/how-to/test-with-the-harness.md). */
export interface CountersignMatchers<Returned = unknown> {
  /** The activity is completed. Takes an activity, or a promise of one. */
  toBeAllowed(): Promise<Returned>;
  /** The activity is waiting for votes, and each of these users may approve it. */
  toNeedApprovalFrom(...users: readonly Approver[]): Promise<Returned>;
  /** The request is denied; by a DENY with this name or id, if one is given. */
  toBeDeniedBy(policy?: string): Promise<Returned>;
  /** The coordinator has recorded an event of this type, with at least these members in its data. */
  toHaveRecorded<Type extends EventType>(type: Type, data?: Expected<EventData<Type>>): Promise<Returned>;
}

/** Someone who may be able to approve an activity: a `TestUser`. */
interface Approver {
  readonly userId: string;
  readonly client: StampingClient;
}

/** Matchers for `expect.extend`. On failure, each says what happened instead, and why. */
export const matchers = {
  async toBeAllowed(this: MatcherContext, received: unknown): Promise<MatcherResult> {
    const outcome = await outcomeOf(received);
    return resultOf(this, isCompleted(outcome), 'to be allowed', described(outcome));
  },

  async toNeedApprovalFrom(
    this: MatcherContext,
    received: unknown,
    ...users: readonly Approver[]
  ): Promise<MatcherResult> {
    const outcome = await outcomeOf(received);
    const isWaiting = 'activity' in outcome && outcome.activity.status === 'ACTIVITY_STATUS_CONSENSUS_NEEDED';
    if (!isWaiting) return resultOf(this, false, 'to wait for approval', described(outcome));
    const { id: activityId } = outcome.activity;
    const answers = await Promise.all(
      users.map(async ({ userId, client }) => {
        const { activity } = await client.query<{ activity: ActivityEnvelope }>('get_activity', { activityId });
        return { userId, mayApprove: activity.canApprove };
      }),
    );
    const unable = answers.filter(({ mayApprove }) => !mayApprove).map(({ userId }) => userId);
    return resultOf(
      this,
      unable.length === 0,
      `to need the approval of ${users.map(({ userId }) => userId).join(', ') || 'somebody'}`,
      unable.length === 0
        ? 'each of them may approve it'
        : `these may not approve it: ${unable.join(', ')}${waitsFor(outcome.activity)}`,
    );
  },

  async toBeDeniedBy(this: MatcherContext, received: unknown, policy?: string): Promise<MatcherResult> {
    const outcome = await outcomeOf(received);
    const isDenied = 'error' in outcome && outcome.error.body.turnkeyErrorCode === 'REQUEST_NOT_AUTHORIZED';
    const denying = ({ policyId, policyName, outcome: said }: PolicyEvaluation) =>
      said === 'OUTCOME_DENY_EXPLICIT' && [policyId, policyName].includes(policy);
    const pass = isDenied && (policy === undefined || evaluationsOf(outcome.error).some(denying));
    return resultOf(this, pass, `to be denied${policy === undefined ? '' : ` by ${policy}`}`, described(outcome));
  },

  async toHaveRecorded(
    this: MatcherContext,
    received: { events(): Promise<readonly RecordedEvent[]> },
    type: string,
    data: object = {},
  ): Promise<MatcherResult> {
    const events = await received.events();
    const ofType = events.filter((event) => event.type === type);
    const pass = ofType.some((event) => holds(this, event.data, data));
    const wanted = `to have recorded ${type} ${JSON.stringify(data)}`;
    const lines = ofType.map((event) => `  ${event.revision} ${JSON.stringify(event.data)}`);
    const types = [...new Set(events.map((event) => event.type))].join(', ');
    const nearest = ofType.at(-1);
    const difference = nearest && !pass && this.utils?.diff?.(data, spokenOf(nearest.data, data));
    const instead =
      lines.length > 0
        ? `of this type are recorded:\n${lines.join('\n')}${difference ? `\n\nThe last of them:\n${difference}` : ''}`
        : `recorded types: ${types}`;
    return resultOf(this, pass, wanted, instead);
  },
};

function resultOf({ isNot }: MatcherContext, pass: boolean, wanted: string, instead: string): MatcherResult {
  return { pass, message: () => `expected ${isNot ? 'not ' : ''}${wanted}; ${instead}` };
}

async function outcomeOf(received: unknown): Promise<Outcome> {
  try {
    const activity = (await received) as ActivityEnvelope | undefined;
    if (typeof activity?.status !== 'string') {
      throw new TypeError(`expected an activity or a promise of one, got ${JSON.stringify(activity)}`);
    }
    return { activity };
  } catch (error) {
    if (error instanceof ApiError) return { error };
    throw error;
  }
}

function isCompleted(outcome: Outcome): boolean {
  return 'activity' in outcome && outcome.activity.status === 'ACTIVITY_STATUS_COMPLETED';
}

function described(outcome: Outcome): string {
  if ('activity' in outcome) {
    const { id, status, failure } = outcome.activity;
    return `activity ${id} is ${status}${failure ? `: ${JSON.stringify(failure)}` : ''}${waitsFor(outcome.activity)}`;
  }
  const { error } = outcome;
  const said = evaluationsOf(error).map(
    ({ policyId, policyName = policyId, outcome: one, error: why, clause }) =>
      `  ${policyName}: ${one}${clause ? `, ${clause.name} \`${clause.text}\` is ${clause.outcome}` : ''}${why ? ` (${why})` : ''}`,
  );
  return [`the response was ${error.message}`, ...said].join('\n');
}

function waitsFor({ waitsFor: missing }: ActivityEnvelope): string {
  return missing ? `. ${missing.text}` : '';
}

function evaluationsOf({ body }: ApiError): readonly PolicyEvaluation[] {
  return body.details.flatMap((detail) => (detail['policyEvaluations'] as PolicyEvaluation[] | undefined) ?? []);
}

/** The recorded data, without members that the expectation does not mention. */
function spokenOf(actual: unknown, expected: unknown): unknown {
  if (!isPlain(expected) || !isPlain(actual)) return actual;
  const spoken = Object.keys(expected).filter((name) => name in actual);
  return Object.fromEntries(spoken.map((name) => [name, spokenOf(actual[name], expected[name])]));
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

/** Whether everything expected is present; other members do not matter. */
function holds(context: MatcherContext, actual: unknown, expected: unknown): boolean {
  if (!isPlain(expected)) return context.equals(actual, expected);
  return isPlain(actual) && Object.entries(expected).every(([name, value]) => holds(context, actual[name], value));
}
