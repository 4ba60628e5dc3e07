import { decideSubmit } from '../../src/decide/submit.js';
import { decideVote } from '../../src/decide/vote.js';
import type { DecisionContext, Voter, DecisionResult } from '../../src/decide/decision-context.js';
import type { Registry } from '../../src/decide/registry.js';
import type { Vote, VoteSelection } from '../../src/domain/activity/events.js';
import { CoordinatorError } from '../../src/domain/errors.js';
import { apiKeyCredentialType } from '../../src/domain/organization/credentials.js';
import {
  emptyOrganization,
  evolve,
  type Organization,
  type OrganizationEvent,
} from '../../src/domain/organization/organization.js';
import { anOrganization } from '../activities/facts.js';
import { id } from '../activities/given.js';

/** The activity that is submitted and voted on. */
const activityId = id(800);

/**
 * One activity before an organization: decided by the real functions on really folded facts, without stamps or a store,
 * so that a property can try thousands of orders of votes.
 */
export class OneActivity {
  readonly organization: Organization = emptyOrganization();
  private now = Date.UTC(2026, 0, 2);

  constructor(
    private readonly registry: Registry,
    facts: readonly OrganizationEvent[],
  ) {
    for (const fact of [anOrganization(), ...facts]) evolve(this.organization, fact, Date.UTC(2026, 0, 1));
  }

  /** Submits it; the events of the decision are history from then on. */
  submit(userId: string, type: string, parameters: Readonly<Record<string, unknown>>): Outcome {
    const version = this.registry.versions.get(type)!;
    const intent = version.lift?.(parameters) ?? parameters;
    const timestampMs = String(this.now);
    const rest = { activityId, type, parameters, fingerprint: 'its fingerprint', timestampMs };
    const submission = { ...rest, intent, generateAppProofs: undefined };
    const voter = this.voter(userId);
    return this.decide(() =>
      decideSubmit(this.basis(), submission, vote(voter, 'VOTE_SELECTION_APPROVED'), voter, undefined),
    );
  }

  vote(userId: string, selection: VoteSelection = 'VOTE_SELECTION_APPROVED'): Outcome {
    const open = this.organization.openActivities.get(activityId);
    if (!open) return { status: 'not waiting', events: [] };
    const voter = this.voter(userId);
    return this.decide(() => decideVote(this.basis(), open, vote(voter, selection), voter, undefined));
  }

  wait(ms: number): void {
    this.now += ms;
  }

  private decide(decide: () => DecisionResult): Outcome {
    let result: DecisionResult;
    try {
      result = decide();
    } catch (error) {
      if (error instanceof CoordinatorError) return { status: error.code, events: [], refusal: error };
      throw error;
    }
    if (result.kind === 'prepare') throw new Error('there is nothing to prepare with');
    for (const event of result.events) evolve(this.organization, event, this.now);
    const last = result.events.at(-1)!;
    const status = 'status' in last.data ? last.data.status.replace('ACTIVITY_STATUS_', '') : '';
    return { status, events: result.events };
  }

  basis(): DecisionContext {
    return { registry: this.registry, organization: this.organization, revision: 0, now: this.now };
  }

  private voter(userId: string): Voter {
    const key = this.organization.users.get(userId)!.apiKeys[0]!;
    const { apiKeyId, credentialType, publicKey } = key;
    return { userId, credential: { id: apiKeyId, userId, type: credentialType, publicKey } };
  }
}

/** The status that a decision led to, or the code of its refusal. */
export interface Outcome {
  readonly status: string;
  readonly events: readonly OrganizationEvent[];
  readonly refusal?: CoordinatorError;
}

/** A user of that number with an API key, whose public key is a mere name: nothing is verified here. */
export function aVoter(number: number, userTags: readonly string[] = []): OrganizationEvent[] {
  const userId = voterId(number);
  const key = { apiKeyId: id(200 + number), apiKeyName: 'key', publicKey: `key of ${number}` };
  const curve = 'API_KEY_CURVE_ED25519';
  return [
    { type: 'UserCreated', data: { userId, userName: `voter ${number}`, userTags } },
    { type: 'ApiKeyCreated', data: { userId, ...key, curve, credentialType: apiKeyCredentialType[curve] } },
  ];
}

export const voterId = (number: number): string => id(100 + number);

function vote({ userId, credential }: Voter, selection: VoteSelection): Vote {
  return {
    voteId: `vote of ${userId}`,
    userId,
    selection,
    message: '',
    fingerprint: `said by ${userId}`,
    publicKey: credential.publicKey,
    signature: '',
    scheme: 'SIGNATURE_SCHEME_TK_API_ED25519',
    credentialId: credential.id,
  };
}
