import { Described, ListOf, Uuid } from '../wire/fields.js';
import { defineQuery, OrganizationRequest, type QueryContext } from './define-query.js';

class FindingShape {
  @Uuid()
  policyId!: string;

  @Described({ type: 'string' })
  policyName!: string;

  @Described(
    { type: 'string', enum: ['condition', 'consensus', 'time'] },
    { optional: true, about: 'The clause; absent if it is about the policy as a whole.' },
  )
  clause?: 'condition' | 'consensus' | 'time';

  @Described({ type: 'string' }, { optional: true, about: 'Line in the clause, from "1".' })
  line?: string;

  @Described({ type: 'string' }, { optional: true, about: 'Column in the line, from "1", in UTF-16 code units.' })
  column?: string;

  @Described({ type: 'string' }, { about: 'Which check found it; see the how-to.' })
  code!: string;

  @Described(
    { type: 'string', enum: ['problem', 'warning', 'note'] },
    {
      about:
        'problem: it cannot do what it says; warning: it may do something else than it seems to; note: worth knowing.',
    },
  )
  severity!: 'problem' | 'warning' | 'note';

  @Described({ type: 'string' }, { about: 'What was found.' })
  text!: string;

  @Described({ type: 'string' }, { about: 'What to do about it.' })
  help!: string;
}

class LintPoliciesRequest extends OrganizationRequest {}

/** What was found in the policies of an organization. */
export class LintPoliciesResponse {
  @ListOf(() => FindingShape, { about: 'By policy, problems first; up to 1,000.' })
  findings!: readonly FindingShape[];

  @Described({ type: 'string' }, { optional: true, about: 'Why something is left out.' })
  notComplete?: string;
}

export interface LintPort {
  /** What is wrong with the organization's policies, or easily misunderstood. */
  lint(): Promise<LintPoliciesResponse>;
}

export const lintPolicies = defineQuery({
  path: 'lint_policies',
  summary:
    'Policies without effect, and those that may do something else than they seem to, for members of the root quorum.',
  request: LintPoliciesRequest,
  response: LintPoliciesResponse,
  readsHistory: true,
  answer: (_request, context: QueryContext & LintPort) => context.lint(),
});
