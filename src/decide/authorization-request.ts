import type { AnyActivity } from '../activities/define-activity.js';
import type { Vote } from '../domain/activity/events.js';
import { CoordinatorError } from '../domain/errors.js';
import { isAuthProxyUser } from '../domain/organization/auth-proxy.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import type { User } from '../domain/organization/users.js';
import type { AuthorizationContext } from '../domain/policy/request-evaluation.js';
import { type AuthorizationRequest, type PolicyUser, unreadable, type PolicyValue } from '../domain/policy/types.js';
import { activityVersion, type Registry } from './registry.js';
import { credentialsOf } from '../domain/organization/credentials-of-users.js';
import { invitedBy } from './resolve-caller.js';
import { submittersOf } from './submitters.js';
import { type DecisionContext, ReadFirst, type Submission, tenantOf, type Voter } from './decision-context.js';

/** Whether policies read parts of the request that have to be decoded first. */
export function readsResources({ resources, payloads }: AnyActivity): boolean {
  return resources !== undefined || payloads !== undefined;
}

/** For a waiting activity: what can no longer be read counts as its `check` says. */
export function readFirstIfThere(definition: AnyActivity, intent: object, context: DecisionContext): void {
  try {
    readFirst(definition, intent, context);
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
  }
}

/** What policies see of a request that nothing could allow: it costs nothing to read. */
export const notRead: About = { resources: unreadable('it was not read, as nothing could allow it') };

/** What a request is about, as policies see it. */
export type About = Pick<AuthorizationRequest, 'resources' | 'parts'>;

/** @throws {CoordinatorError} if it cannot be read */
export function aboutOf(definition: AnyActivity, intent: object, context: DecisionContext): About {
  const { organization } = context;
  if (definition.resources ?? definition.payloads) readFirst(definition, intent, context);
  const parts = definition.payloads?.(intent, organization);
  return parts ? { parts } : { resources: definition.resources?.(intent, organization) };
}

/** For a waiting activity. What it is about may be gone or unreadable by now: policies see that, and decide. */
export function aboutStillThere(definition: AnyActivity, intent: object, context: DecisionContext): About {
  try {
    return aboutOf(definition, intent, context);
  } catch (error) {
    if (error instanceof CoordinatorError) return { resources: unreadable(error.message) };
    throw error;
  }
}

/**
 * Interrupts the decision if something that takes long has to be read first.
 * @throws {ReadFirst}
 */
export function readFirst(definition: AnyActivity, intent: object, { organization, reading }: DecisionContext): void {
  const ahead = reading ? definition.ahead?.(intent, organization, reading) : undefined;
  if (ahead) throw new ReadFirst(ahead);
}

/** What policies are asked about a submit, and what they know. `questionOn` adds what the request is about. */
export function submitQuestion(
  context: DecisionContext,
  { type, intent }: Pick<Submission, 'type' | 'intent'>,
  vote: Pick<Vote, 'publicKey'>,
  { userId, authority }: Voter,
): {
  readonly definition: AnyActivity;
  /** Whoever submits is no member yet. */
  readonly isGuest: boolean;
  readonly context: AuthorizationContext;
  readonly questionOn: (about: About) => AuthorizationRequest;
} {
  const { definition } = activityVersion(context.registry, type);
  // Not a user yet, and none of the others' while policies count who is here.
  const isInvited = submittersOf(definition).is === 'invited';
  const guest = isInvited ? invitedBy(vote.publicKey, context.organization, context.now) : undefined;
  const home = authority?.organization ?? context.organization;
  return {
    definition,
    isGuest: guest !== undefined,
    context: policyContext(context, home, guest?.user),
    questionOn: (about: About) => questionOf(context.registry, type, definition, intent, userId, home, about),
  };
}

export function questionOf(
  registry: Registry,
  type: string,
  definition: AnyActivity,
  intent: object,
  submitterId: string,
  submitterOrganization: OrganizationView,
  about: About,
  isWaiting = false,
): AuthorizationRequest {
  const { policy, params } = definition;
  const values: Record<string, PolicyValue | undefined> = {};
  if (params) for (const name of Object.keys(params)) values[name] = params[name]!.from(intent);
  const { kind } = registry.versions.get(type)!;
  const activity =
    policy === 'root-quorum-only'
      ? { type, kind, params: values }
      : { type, kind, params: values, resource: policy.resource, action: policy.action };
  const { resources, parts } = about;
  return {
    activity,
    resources,
    parts,
    submitterId,
    isWaiting,
    rootQuorumOnly: policy === 'root-quorum-only',
    // The user of an auth proxy belongs to no person: it may do only what its policy says.
    ownCredentials:
      !isAuthProxyUser(submitterOrganization, submitterId) && ownCredentials(definition, intent, submitterId),
  };
}

function ownCredentials(
  definition: AnyActivity,
  intent: object,
  submitterId: string,
): AuthorizationRequest['ownCredentials'] {
  if (submittersOf(definition).needs === 'no-denial') return 'session';
  return definition.ownCredentialsOf?.(intent) === submitterId;
}

/**
 * What policies know.
 * @param organization whose policies and users decide
 * @param guest who is not a user yet
 */
export function policyContext(
  context: DecisionContext,
  organization: OrganizationView = context.organization,
  guest?: User,
): AuthorizationContext {
  const { registry, now, steps, clauses } = context;
  const { policies, rootQuorum, users } = organization;
  return {
    policies: [...policies.values()],
    rootQuorum,
    user: (userId) => {
      const user = users.get(userId) ?? (guest?.userId === userId ? guest : undefined);
      return user && policyUser(user);
    },
    tenant: tenantOf(organization),
    steps,
    clauses,
    users: new PolicyUsers(users, guest),
    environment: registry.policyEnvironment,
    now,
  };
}

/** All users and the guest, made when they are asked for: most decisions do not need them. */
class PolicyUsers implements Iterable<PolicyUser> {
  constructor(
    private readonly users: OrganizationView['users'],
    private readonly guest: User | undefined,
  ) {}

  *[Symbol.iterator](): Iterator<PolicyUser> {
    for (const user of this.users.values()) yield policyUser(user);
    if (this.guest && !this.users.has(this.guest.userId)) yield policyUser(this.guest);
  }
}

function policyUser(user: User): PolicyUser {
  return {
    userId: user.userId,
    userName: user.userName,
    ...(user.userEmail ? { email: user.userEmail } : {}),
    tags: user.userTags,
    credentials: credentialsOf(user),
  };
}
