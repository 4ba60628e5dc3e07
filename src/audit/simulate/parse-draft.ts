import { CoordinatorError, invalidFields } from '../../domain/errors.js';
import { presentMembers } from '../../domain/organization/event.js';
import type { OrganizationEvent, OrganizationView } from '../../domain/organization/organization.js';
import { weights } from '../../domain/steps.js';
import { checkPolicyText } from '../../domain/policy/language.js';
import type { PolicyEnvironment } from '../../domain/policy/namespaces.js';
import type { Policy } from '../../domain/policy/types.js';
import { derivedId } from '../../ledger/ids.js';
import type { HeldFacts } from './branch.js';
import { validate } from '../../wire/validate.js';
import {
  Draft,
  type DraftChange,
  type DraftPolicy,
  type DraftQuorum,
  type DraftTag,
} from '../../read-models/draft-shapes.js';

/**
 * A draft, checked as far as it can be without a state.
 * @throws {CoordinatorError} INVALID_ARGUMENT that names each bad member, or says what is wrong with a clause
 */
export function readDraft(plain: object, environment: PolicyEnvironment): Draft {
  const draft = validate(Draft, plain);
  if (Object.values(draft).every((part) => Array.isArray(part) && part.length === 0)) {
    throw new CoordinatorError(
      'INVALID_ARGUMENT',
      `the draft changes nothing: give at least one of ${Object.keys(parts)
        .map((name) => `\`${name}\``)
        .join(', ')}`,
    );
  }
  for (const [list, policies] of Object.entries({ policies: draft.policies, changedPolicies: draft.changedPolicies })) {
    for (const [index, policy] of (policies ?? []).entries()) checkClauses(policy, `${list}[${index}]`, environment);
  }
  const names = (draft.policies ?? []).map(({ policyName }) => policyName);
  const twice = names.findIndex((name, index) => names.indexOf(name) !== index);
  if (twice >= 0) {
    const field = `policies[${twice}].policyName`;
    throw invalidFields([{ field, description: `\`${names[twice]}\` appears twice: names of policies are unique` }]);
  }
  const { rootQuorum } = draft;
  const members = new Set(rootQuorum?.users).size;
  if (rootQuorum && rootQuorum.threshold > members) {
    const description = `${rootQuorum.threshold} of ${members} members can never approve: lower it, or add members`;
    throw invalidFields([{ field: 'rootQuorum.threshold', description }]);
  }
  return draft;
}

function checkClauses(policy: DraftPolicy | DraftChange, field: string, environment: PolicyEnvironment): void {
  for (const clause of ['condition', 'consensus', 'time'] as const) {
    const text = policy[clause];
    if (text === undefined) continue;
    try {
      checkPolicyText(text, clause, environment);
    } catch (error) {
      if (!(error instanceof CoordinatorError)) throw error;
      throw invalidFields([{ field: `${field}.${clause}`, description: error.message }]);
    }
  }
}

/** A part of a draft: what it says, and the events that make it hold; undefined while what it names is not there. */
interface Part {
  readonly text: string;
  /** How many names it looks up in a state. */
  readonly names: number;
  missingIn(organization: OrganizationView): readonly OrganizationEvent[] | undefined;
}

/** A draft as facts of a branch. Applying it changes it: it remembers which parts have held. */
export class HeldDraft implements HeldFacts {
  private readonly parts: readonly Part[];
  private readonly held = new Set<Part>();

  constructor(draft: Draft) {
    this.parts = partsOf(draft);
  }

  /** Names are sought in all that may have them, for each part. */
  stepsIn({ users, policies, userTags }: OrganizationView): number {
    const named = users.size + policies.size + userTags.size;
    const names = this.parts.reduce((sum, part) => sum + part.names, 0);
    return this.parts.length * weights.policyNode + names * named * weights.listElement;
  }

  missingIn(organization: OrganizationView): readonly OrganizationEvent[] {
    return this.parts.flatMap((part) => {
      const events = part.missingIn(organization);
      if (events) this.held.add(part);
      return events ?? [];
    });
  }

  /** The parts that never took effect, as what they name was never there. */
  get neverHeld(): readonly string[] {
    return this.parts.filter((part) => !this.held.has(part)).map(({ text }) => text);
  }
}

const parts = {
  policies: newPolicy,
  changedPolicies: changedPolicy,
  withoutPolicies: withoutPolicy,
  withoutUsers: withoutUser,
  rootQuorum: otherQuorum,
  userTags: otherTag,
} as const;

function partsOf({ policies, changedPolicies, withoutPolicies, withoutUsers, rootQuorum, userTags }: Draft): Part[] {
  return [
    ...(policies ?? []).map(parts.policies),
    ...(changedPolicies ?? []).map(parts.changedPolicies),
    ...(withoutPolicies ?? []).map(parts.withoutPolicies),
    ...(userTags ?? []).map(parts.userTags),
    ...(rootQuorum ? [parts.rootQuorum(rootQuorum)] : []),
    // The last: who is in the quorum or has a tag and is gone all the same is gone.
    ...(withoutUsers ?? []).map(parts.withoutUsers),
  ];
}

function newPolicy({ policyName, effect, condition, consensus, time, notes = '' }: DraftPolicy): Part {
  const policyId = derivedId('draft', policyName);
  const data = { policyId, policyName, effect, ...presentMembers({ condition, consensus, time }), notes };
  return {
    text: `policy \`${policyName}\``,
    names: 0,
    // No request of the history can name it, and so change it.
    missingIn: ({ policies }) => (policies.has(policyId) ? [] : [{ type: 'PolicyCreated', data }]),
  };
}

function changedPolicy({ policy: named, ...rest }: DraftChange): Part {
  const changes = presentMembers(rest);
  return {
    text: `policy \`${named}\` otherwise`,
    names: 1,
    missingIn: ({ policies }) => {
      const policy = policyCalled(named, policies);
      if (!policy) return undefined;
      return isAs(policy, changes) ? [] : [{ type: 'PolicyUpdated', data: { policyId: policy.policyId, ...changes } }];
    },
  };
}

function withoutPolicy(named: string): Part {
  let wasThere = false;
  return {
    text: `no policy \`${named}\``,
    names: 1,
    missingIn: ({ policies }) => {
      const policy = policyCalled(named, policies);
      wasThere ||= policy !== undefined;
      if (!policy) return wasThere ? [] : undefined;
      return [{ type: 'PolicyDeleted', data: { policyId: policy.policyId } }];
    },
  };
}

function withoutUser(named: string): Part {
  let wasThere = false;
  return {
    text: `no user \`${named}\``,
    names: 1,
    missingIn: ({ users }) => {
      const userId = userCalled(named, users);
      wasThere ||= userId !== undefined;
      if (userId === undefined) return wasThere ? [] : undefined;
      return [{ type: 'UserDeleted', data: { userId } }];
    },
  };
}

function otherQuorum({ threshold, users: named }: DraftQuorum): Part {
  return {
    text: `a root quorum of ${threshold} of ${named.map((one) => `\`${one}\``).join(', ')}`,
    names: named.length,
    missingIn: ({ users, rootQuorum }) => {
      const userIds = allOf(named, (one) => userCalled(one, users));
      if (!userIds) return undefined;
      const isSo = rootQuorum.threshold === threshold && isSameSet(rootQuorum.userIds, userIds);
      return isSo ? [] : [{ type: 'RootQuorumUpdated', data: { threshold, userIds } }];
    },
  };
}

function otherTag({ tag: named, users: owners }: DraftTag): Part {
  return {
    text: `tag \`${named}\` of ${owners.length === 0 ? 'nobody' : owners.map((one) => `\`${one}\``).join(', ')}`,
    names: 2 * owners.length + 1,
    missingIn: ({ users, userTags }) => {
      const tagId = tagCalled(named, userTags);
      const userIds = allOf(owners, (one) => userCalled(one, users));
      if (tagId === undefined || !userIds) return undefined;
      return [...users.values()].flatMap(({ userId, userTags: own }): OrganizationEvent[] => {
        const isOwner = userIds.includes(userId);
        if (own.includes(tagId) === isOwner) return [];
        const tags = isOwner ? [...own, tagId] : own.filter((one) => one !== tagId);
        return [{ type: 'UserUpdated', data: { userId, userTags: tags } }];
      });
    },
  };
}

type Members = Partial<Pick<Policy, 'effect' | 'condition' | 'consensus' | 'time'>>;

/** Whether a policy has these members. */
function isAs(policy: Policy, members: Members): boolean {
  return Object.entries(members).every(([member, value]) => policy[member as keyof Members] === value);
}

function allOf(named: readonly string[], find: (one: string) => string | undefined): string[] | undefined {
  const found = named.map(find).filter((one) => one !== undefined);
  return found.length === named.length ? [...new Set(found)] : undefined;
}

function isSameSet(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((element) => other.includes(element));
}

const policyCalled = (named: string, policies: OrganizationView['policies']): Policy | undefined =>
  policies.get(named) ?? [...policies.values()].find(({ policyName }) => policyName === named);

/** Names of users need not be unique: one that two have names nobody. */
function userCalled(named: string, users: OrganizationView['users']): string | undefined {
  if (users.has(named)) return named;
  const [found, ...others] = [...users.values()].filter(({ userName }) => userName === named);
  return others.length === 0 ? found?.userId : undefined;
}

const tagCalled = (named: string, tags: OrganizationView['userTags']): string | undefined =>
  tags.has(named) ? named : [...tags.values()].find(({ tagName }) => tagName === named)?.tagId;
