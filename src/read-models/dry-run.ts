import { invalidField } from '../domain/errors.js';
import { DecimalString, Described, Flag, JsonObject, ListOf, Nested, OneOf, Text } from '../wire/fields.js';
import { WaitsForShape } from '../wire/shapes.js';
import type { ProofAnswer } from './explanations.js';
import { defineQuery, OrganizationRequest, type QueryContext } from './define-query.js';
import { ProofShape } from './explanations.js';
import { PolicyOutcomeShape } from './reasons.js';

/** What a request would come to if it were submitted now. */
export interface DryRunTold {
  readonly outcome: 'allow' | 'consensus-needed' | 'deny-explicit' | 'deny-implicit';
  readonly decidedBy: 'root-quorum' | 'policy' | 'own-credentials' | 'none';
  readonly policyEvaluations: readonly PolicyOutcomeShape[];
  readonly waitsFor?: WaitsForShape;
  /** Why it would be denied, refused or fail. */
  readonly refusal?: { readonly code: string; readonly message: string };
  /** It is allowed; what then comes of it depends on codes, tokens, keys or others' servers. */
  readonly needsWorld?: true;
}

class TriedActivityShape {
  @Text({ max: 255, about: 'As in a submit: ACTIVITY_TYPE_…' })
  type!: string;

  @JsonObject({ about: 'As in a submit.' })
  parameters!: Readonly<Record<string, unknown>>;
}

class DryRunRequest extends OrganizationRequest {
  @DecimalString({
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    about: 'As in a submit: now, in milliseconds since the epoch.',
  })
  timestampMs!: string;

  @Nested(() => TriedActivityShape)
  activity!: TriedActivityShape;

  @Flag({ optional: true, about: 'Also prove the decision, as explain_activity does; for members of the root quorum.' })
  withProof?: boolean;
}

class DryRunRefusalShape {
  @Described({ type: 'string' }, { about: 'The code of the error.' })
  code!: string;

  @Text()
  message!: string;
}

class DryRunResponse {
  @OneOf(['allow', 'consensus-needed', 'deny-explicit', 'deny-implicit'])
  outcome!: string;

  @OneOf(['root-quorum', 'policy', 'own-credentials', 'none'])
  decidedBy!: string;

  @ListOf(() => PolicyOutcomeShape, {
    about: 'What each policy says that could apply; for a denial, as the 403 would.',
  })
  policyEvaluations!: readonly PolicyOutcomeShape[];

  @Nested(() => WaitsForShape, { optional: true, about: 'What it would wait for.' })
  waitsFor?: WaitsForShape;

  @Nested(() => DryRunRefusalShape, {
    optional: true,
    about: 'Why it would be denied, or, if it is allowed, why it would be refused or fail.',
  })
  refusal?: DryRunRefusalShape;

  @Described(
    { type: 'boolean', const: true },
    {
      optional: true,
      about: 'It is allowed, but its result depends on what was not asked: codes, tokens, keys, or other servers.',
    },
  )
  needsWorld?: true;

  @Nested(() => ProofShape, { optional: true })
  proof?: ProofShape;

  @Text({ optional: true, about: 'Why there is no proof, if one was asked for.' })
  notExplained?: string;
}

export interface DryRunPort {
  /**
   * What an activity would come to if the caller submitted it.
   * @throws {CoordinatorError} as the submit would before it is decided; PERMISSION_DENIED for a proof that is not for the caller
   */
  dryRun(
    activity: {
      readonly type: string;
      readonly parameters: Readonly<Record<string, unknown>>;
      readonly timestampMs: string;
    },
    withProof: boolean,
  ): Promise<DryRunTold & ProofAnswer>;
}

export const dryRun = defineQuery({
  path: 'dry_run',
  summary:
    'What an activity would come to if the caller submitted it now: decided, and forgotten. Nothing is prepared, recorded or sent, and ' +
    'this body is none that a submit accepts.',
  request: DryRunRequest,
  response: DryRunResponse,
  async answer({ activity, timestampMs, withProof }, context: QueryContext & DryRunPort) {
    if (activity.type.startsWith('ACTIVITY_TYPE_'))
      return context.dryRun({ ...activity, timestampMs }, withProof === true);
    throw invalidField('activity.type', 'must be a type such as ACTIVITY_TYPE_CREATE_USERS_V4');
  },
});
