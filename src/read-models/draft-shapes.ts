import { maxTextLength } from '../domain/policy/tokens.js';
import type { Policy } from '../domain/policy/types.js';
import { Label, ListOf, Nested, OneOf, Text, TextList, Whole } from '../wire/fields.js';

const effects: readonly Policy['effect'][] = ['EFFECT_ALLOW', 'EFFECT_DENY'];

/** A policy that there was not. */
export class DraftPolicy {
  @Label({ about: 'Its name; no other policy of the draft has it.' })
  policyName!: string;

  @OneOf(effects, { about: 'Effect of the policy when it applies.' })
  effect!: Policy['effect'];

  @Text({ optional: true, max: maxTextLength, about: 'When the policy applies; if absent, to every activity.' })
  condition?: string;

  @Text({ optional: true, max: maxTextLength, about: 'Who must approve; if absent, the submitter alone is enough.' })
  consensus?: string;

  @Text({ optional: true, about: 'A free-form note.' })
  notes?: string;

  @Text({ optional: true, max: maxTextLength, about: 'When the policy is active; if absent, always.' })
  time?: string;
}

/** A policy that is otherwise; what is absent stays as it was. */
export class DraftChange {
  @Label({ about: 'Name or id of the policy.' })
  policy!: string;

  @OneOf(effects, { optional: true, about: 'The effect instead.' })
  effect?: Policy['effect'];

  @Text({ optional: true, max: maxTextLength, about: 'The condition instead.' })
  condition?: string;

  @Text({ optional: true, max: maxTextLength, about: 'The consensus instead.' })
  consensus?: string;

  @Text({ optional: true, max: maxTextLength, about: 'The time instead.' })
  time?: string;
}

/** Another root quorum. */
export class DraftQuorum {
  @Whole({ min: 1, max: 100, about: 'Number of members who must approve.' })
  threshold!: number;

  @TextList({ min: 1, about: 'Its members, by name or id.' })
  users!: string[];
}

/** Whose tag it is. */
export class DraftTag {
  @Label({ about: 'Name or id of the tag.' })
  tag!: string;

  @TextList({ about: 'All users who have it, by name or id.' })
  users!: string[];
}

/**
 * What should have held in an organization. Each part takes effect from the start, or as soon as all that it names is
 * there, and stays: requests that change the same thing do so in vain.
 */
export class Draft {
  @ListOf(() => DraftPolicy, { optional: true, about: 'Policies that there were not.' })
  policies?: DraftPolicy[];

  @ListOf(() => DraftChange, { optional: true, about: 'Policies that are otherwise.' })
  changedPolicies?: DraftChange[];

  @TextList({ optional: true, about: 'Policies that are gone, by name or id.' })
  withoutPolicies?: string[];

  @TextList({ optional: true, about: 'Users who are gone, by name or id.' })
  withoutUsers?: string[];

  @Nested(() => DraftQuorum, { optional: true, about: 'Another root quorum.' })
  rootQuorum?: DraftQuorum;

  @ListOf(() => DraftTag, { optional: true, about: 'Tags that other users have.' })
  userTags?: DraftTag[];
}
