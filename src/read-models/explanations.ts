import type { DeniedRequest } from '../domain/activity/denial.js';
import { CoordinatorError } from '../domain/errors.js';
import { Described, ListOf, Nested, OneOf, Text, Uuid } from '../wire/fields.js';
import { activityOf } from './activities.js';
import type { Rows } from './database.js';
import { denialOf, isByPolicies, type Denial } from './denials.js';
import { defineQuery, OrganizationRequest, type QueryContext } from './define-query.js';
import type { TextPage } from './pages.js';

/** Asks why a decision on an activity is what it is. */
export interface ProofQuestion {
  readonly organizationId: string;
  readonly about:
    | {
        readonly kind: 'activity';
        readonly activityId: string;
        /** How many decisions were made on it; the last of them is explained. */
        readonly decisions: number;
        /** It waits for votes: what is explained is how it would be decided now. */
        readonly isWaiting: boolean;
      }
    | {
        /** Nobody has submitted it: how it would be decided now, if this user stamped it with that credential. */
        readonly kind: 'request';
        readonly type: string;
        readonly parameters: Readonly<Record<string, unknown>>;
        readonly userId: string;
        readonly credentialId: string;
      }
    | {
        readonly kind: 'denial';
        readonly denial: DeniedRequest;
        /** Last revision of the organization's stream that it is based on. */
        readonly revision: number;
        readonly rules: number | undefined;
        /** When it was decided, milliseconds since the epoch. */
        readonly at: number;
      };
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** The parent that decided, and the revision of its stream; only if its policies may be shown. */
  readonly authority?: { readonly organizationId: string; readonly revision: number };
}

const truths = ['true', 'false', 'unreadable', 'not-applicable'] as const;
const outcomes = ['allow', 'consensus-needed', 'deny-explicit', 'deny-implicit'] as const;

/** The event that gave something the value that it has. */
export class SetByShape {
  @Described({ type: 'string' }, { about: 'Event type.' })
  type!: string;

  @Described({ type: 'string' }, { about: "Revision in the organization's stream." })
  revision!: string;

  @Uuid()
  eventId!: string;

  @Uuid({ optional: true, about: 'The organization of that stream, if it is the parent.' })
  organizationId?: string;
}

/** What a value was read from. */
export class ValueSourceShape {
  @OneOf(['request', 'time', 'vote', 'user', 'credential', 'wallet', 'private-key', 'wallet-account'])
  of!: string;

  @Described({ type: 'string' }, { optional: true, about: 'Its id; for a wallet account, its address.' })
  id?: string;

  @Described({ type: 'string' }, { optional: true, about: 'Its name now.' })
  name?: string;

  @Nested(() => SetByShape, {
    optional: true,
    about: 'The event that set the value; absent for a request that is not recorded, and for the time.',
  })
  setBy?: SetByShape;
}

/** One part of a clause: a line of the tree. */
export class ClausePartShape {
  @Described({ type: 'integer' }, { about: 'How deep it is in the tree: 0 is the whole clause. Its parts follow it.' })
  depth!: number;

  @Described({ type: 'string' }, { about: 'As its author wrote it, on one line; cut after 200 characters.' })
  text!: string;

  @Described(
    { type: 'string' },
    { about: 'Its value, as the policy language would write it; unreadable, or not-applicable.' },
  )
  value!: string;

  @Described({ type: 'string' }, { optional: true, about: 'Why it is in doubt; where the doubt began.' })
  doubt?: string;

  @Described(
    { type: 'integer' },
    { optional: true, about: 'The element of the list that this predicate was asked of, from 0.' },
  )
  element?: number;

  @Described({ type: 'integer' }, { optional: true, about: 'How many further elements are not listed.' })
  more?: number;

  @ListOf(() => ValueSourceShape, { optional: true, about: 'What it was read from; of votes, the first four.' })
  from?: readonly ValueSourceShape[];
}

/** One clause of a policy in a decision. */
export class ClauseProofShape {
  @OneOf(['condition', 'consensus', 'time'])
  clause!: string;

  @Described({ type: 'string' }, { about: 'As its author wrote it, on one line; cut after 200 characters.' })
  text!: string;

  @OneOf(truths)
  value!: string;

  @Described({ type: 'boolean' }, { optional: true, about: 'Of a consensus: whether the approvals satisfy it.' })
  isMet?: boolean;

  @Described({ type: 'string' }, { optional: true, about: 'Why it is in doubt.' })
  doubt?: string;

  @Nested(() => SetByShape, { optional: true })
  setBy?: SetByShape;

  @ListOf(() => ClausePartShape, { about: 'The tree of its parts; empty if there was no room for it.' })
  parts!: readonly ClausePartShape[];
}

/** One policy in a decision. */
export class PolicyProofShape {
  @Uuid()
  policyId!: string;

  @Described({ type: 'string' }, {})
  policyName!: string;

  @OneOf(['EFFECT_ALLOW', 'EFFECT_DENY'])
  effect!: string;

  @Described({ type: 'string' }, { about: 'OUTCOME_…' })
  outcome!: string;

  @Described({ type: 'string' }, { optional: true, about: 'unreadable or not-applicable.' })
  doubt?: string;

  @Described({ type: 'string' }, { optional: true, about: 'Why the policy is in doubt.' })
  error?: string;

  @Described({ type: 'boolean' }, { about: 'False if its condition demands another activity, so it was not asked.' })
  isAsked!: boolean;

  @Described({ type: 'boolean' }, { about: 'The decision rests on it.' })
  isDeciding!: boolean;

  @Nested(() => SetByShape, { optional: true })
  setBy?: SetByShape;

  @ListOf(() => ClauseProofShape)
  clauses!: readonly ClauseProofShape[];
}

/** The decision about one payload, or about the whole request. */
export class PartProofShape {
  @Described({ type: 'string' }, { optional: true, about: 'Index of the payload, if there are several.' })
  payload?: string;

  @OneOf(outcomes)
  outcome!: string;

  @OneOf(['denials', 'allows', 'own-credentials', 'implicit-denial'], { about: 'The rule that decided.' })
  decidedBy!: string;

  @OneOf(['applies', 'not-own', 'not-approved', 'spoken-to'], {
    about:
      'Whether it is about credentials of the submitter, who may manage them unless a policy speaks to it; spoken-to: one does.',
  })
  ownCredentials!: string;

  @Described(
    { type: 'array', items: { type: 'string', format: 'uuid' } },
    { optional: true, about: 'The policies that speak to it.' },
  )
  spokenToBy?: readonly string[];

  @ListOf(() => PolicyProofShape)
  policies!: readonly PolicyProofShape[];
}

/** The root quorum in a decision. */
export class RootQuorumProofShape {
  @Described({ type: 'integer' }, {})
  threshold!: number;

  @Described({ type: 'integer' }, { about: 'How many members it has.' })
  members!: number;

  @Described({ type: 'array', items: { type: 'string', format: 'uuid' } }, { about: 'Members who have approved.' })
  approvedBy!: readonly string[];

  @Described({ type: 'boolean' }, {})
  isMet!: boolean;

  @Described({ type: 'boolean' }, { about: 'The submitter is a member, so it may still be asked.' })
  mayBeAsked!: boolean;

  @Nested(() => SetByShape, { optional: true })
  setBy?: SetByShape;
}

/** One change of the facts that a decision rests on. */
export class FactChangeShape {
  @OneOf(['vote', 'asked-by', 'tag-added', 'tag-removed', 'policy-gone', 'clause-gone', 'root-quorum-member'])
  kind!: string;

  @Uuid({ optional: true })
  userId?: string;

  @Described({ type: 'string' }, { optional: true })
  tagId?: string;

  @Uuid({ optional: true })
  policyId?: string;

  @Described({ type: 'string' }, { optional: true })
  clause?: string;

  @Described({ type: 'string' }, { about: 'The change in words.' })
  text!: string;
}

/** Changes that together, and no fewer of them, flip a decision. */
export class FlipShape {
  @OneOf(['allow', 'consensus-needed'], { about: 'What the decision would be.' })
  outcome!: string;

  @ListOf(() => FactChangeShape)
  changes!: readonly FactChangeShape[];
}

/** Why a request is decided as it is. */
export class ProofShape {
  @OneOf(outcomes)
  outcome!: string;

  @OneOf(['root-quorum', 'policy', 'own-credentials', 'none'])
  decidedBy!: string;

  @Described({ type: 'string' }, { about: 'The decision in a sentence.' })
  text!: string;

  @Described({ type: 'string' }, { about: "Last revision of the organization's stream that it is based on." })
  revision!: string;

  @Described({ type: 'integer' }, { about: 'Number of the rules that decide it.' })
  rules!: number;

  @Described({ type: 'string', format: 'date-time' }, { about: 'The time of the decision.' })
  decidedAt!: string;

  @Uuid({ optional: true, about: 'The parent, if its users and policies decided.' })
  authorityId?: string;

  @Uuid({ optional: true, about: 'The member of the root quorum whose own approval it needs, or that of the quorum.' })
  waitsForMember?: string;

  @Described({ type: 'boolean', const: true }, { optional: true, about: 'It needs votes, and nobody could cast one.' })
  isOutOfReach?: true;

  @Described({ type: 'boolean' }, { about: 'Policies cannot allow it.' })
  isRootQuorumOnly!: boolean;

  @Nested(() => RootQuorumProofShape)
  rootQuorum!: RootQuorumProofShape;

  @ListOf(() => PartProofShape, { about: 'One for each payload. Empty where the root quorum decided, or alone may.' })
  parts!: readonly PartProofShape[];

  @ListOf(() => FlipShape, {
    about: 'The smallest changes that would flip a denial, or let pass what waits. Each was tried, and flips it.',
  })
  flips!: readonly FlipShape[];

  @Described({ type: 'boolean', const: true }, { optional: true, about: 'Not every policy or part is listed.' })
  isCut?: true;

  @Described(
    { type: 'boolean', const: true },
    { optional: true, about: 'There may be other flips: not all were tried.' },
  )
  flipsAreCut?: true;
}

/** A proof, or why there is none. */
class ExplainActivityResponse {
  @Nested(() => ProofShape, { optional: true })
  proof?: ProofShape;

  @Text({ optional: true, about: 'Why there is no proof.' })
  notExplained?: string;
}

/** As the thread that makes it hands it over: what may be large is written already. */
export interface ProofAnswer {
  readonly proof?: Omit<ProofShape, 'parts'> & { readonly parts: TextPage<PartProofShape> };
  readonly notExplained?: string;
}

class ExplainActivityRequest extends OrganizationRequest {
  @Uuid({ about: 'Its id, or the denialId of a denial.' })
  activityId!: string;
}

export interface ProofsPort {
  /** Why a decision is what it is, as far as that does not take too long. */
  proofs(question: ProofQuestion): Promise<ProofAnswer>;
}

export const explainActivity = defineQuery({
  path: 'explain_activity',
  summary:
    'Proves a denial, the last decision on an activity, or for one that waits how it would be decided now: each policy, each part of its ' +
    'text, the event that set each value, and the smallest changes that would flip it; for members of the root quorum ' +
    'and users who may vote on it, and of a denial for everybody who may list it.',
  request: ExplainActivityRequest,
  response: ExplainActivityResponse,
  readsHistory: true,
  isForVoters: true,
  // As `list_denials` is.
  isForReaders: ({ organizationId, activityId }, rows) => denialOf(rows, organizationId, activityId) !== undefined,
  async answer({ organizationId, activityId }, context: QueryContext & ProofsPort) {
    const { rows, now, callerOrganizationId } = context;
    const denial = denialOf(rows, organizationId, activityId);
    const requested = denial ? aboutDenial(denial) : aboutActivity(rows, organizationId, activityId);
    if ('notExplained' in requested) return requested;
    const { about, authority } = requested;
    if (authority && authority.organizationId !== callerOrganizationId) {
      return { notExplained: 'the parent’s policies decided: they are for its own members' };
    }
    return context.proofs({ organizationId, about, now, ...(authority ? { authority } : {}) });
  },
});

type About = Pick<ProofQuestion, 'about' | 'authority'>;

function aboutActivity(rows: Rows, organizationId: string, activityId: string): About {
  const { decisions, status } = activityOf(rows, organizationId, activityId);
  const [first] = decisions;
  if (!first) throw new CoordinatorError('NOT_FOUND', `activity \`${activityId}\` has no decision`);
  const isWaiting = status === 'ACTIVITY_STATUS_CONSENSUS_NEEDED';
  const about = { kind: 'activity', activityId, decisions: decisions.length, isWaiting } as const;
  return { about, ...(first.authority ? { authority: first.authority } : {}) };
}

function aboutDenial(listed: Denial): About | { readonly notExplained: string } {
  const { reason, revision, rules, authority, createdAt, ...denial } = listed;
  if (!isByPolicies(denial)) return { notExplained: `no policy denied it, but this rule: ${reason}` };
  if (revision === undefined) {
    return { notExplained: 'the build that denied it did not record at which revision of the organization it did so' };
  }
  const at = Number(createdAt.seconds) * 1_000 + Number(createdAt.nanos) / 1_000_000;
  const about = { kind: 'denial', denial, revision: Number(revision), rules, at } as const;
  return { about, ...(authority ? { authority: { ...authority, revision: Number(authority.revision) } } : {}) };
}
