import type { AnyActivity } from '../activities/define-activity.js';
import { CoordinatorError } from '../domain/errors.js';
import { isAuthProxyUser } from '../domain/organization/auth-proxy.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import type { User } from '../domain/organization/users.js';
import type { AuthorizationContext } from '../domain/policy/question.js';
import { type AuthorizationRequest, type PolicyUser, unreadable, type PolicyValue } from '../domain/policy/types.js';
import type { Registry } from './registry.js';
import { credentialsOf } from './resolve-caller.js';
import { submittersOf } from './submitters.js';
import { type Basis, ReadFirst, tenantOf } from './basis.js';

/** Whether what policies read of a request has to be read out of something first. */
export function readsResources({ resources, payloads }: AnyActivity): boolean {
  return resources !== undefined || payloads !== undefined;
}

/** Of an activity that waits: what cannot be read any more is what its `check` says. */
export function readFirstIfThere(definition: AnyActivity, intent: object, basis: Basis): void {
  try {
    readFirst(definition, intent, basis);
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
  }
}

/** What a request is about, as policies read it. */
export type About = Pick<AuthorizationRequest, 'resources' | 'parts'>;

/** @throws {CoordinatorError} when it cannot be read */
export function aboutOf(definition: AnyActivity, intent: object, basis: Basis): About {
  const { organization } = basis;
  if (definition.resources ?? definition.payloads) readFirst(definition, intent, basis);
  const parts = definition.payloads?.(intent, organization);
  return parts ? { parts } : { resources: definition.resources?.(intent, organization) };
}

/** Of an activity that waits. What it is about may be gone, or not be read any more: policies are told, and decide. */
export function aboutStillThere(definition: AnyActivity, intent: object, basis: Basis): About {
  try {
    return aboutOf(definition, intent, basis);
  } catch (error) {
    if (error instanceof CoordinatorError) return { resources: unreadable(error.message) };
    throw error;
  }
}

/**
 * Sends the decision away to have read what takes long.
 * @throws {ReadFirst}
 */
export function readFirst(definition: AnyActivity, intent: object, { organization, reading }: Basis): void {
  const ahead = reading ? definition.ahead?.(intent, organization, reading) : undefined;
  if (ahead) throw new ReadFirst(ahead);
}

export function questionOf(
  registry: Registry,
  type: string,
  definition: AnyActivity,
  intent: object,
  submitterId: string,
  submitterOrganization: OrganizationView,
  about: About,
): AuthorizationRequest {
  const { policy, params } = definition;
  const values: Record<string, PolicyValue | undefined> = {};
  for (const [name, param] of Object.entries(params ?? {})) values[name] = param.from(intent);
  const { kind } = registry.versions.get(type)!;
  return {
    activity: { type, kind, params: values, ...(policy === 'root-quorum-only' ? {} : policy) },
    ...about,
    submitterId,
    rootQuorumOnly: policy === 'root-quorum-only',
    // The user of an auth proxy is nobody's own: its policy says all that it may do.
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

export function policyContext(basis: Basis, guest?: User): AuthorizationContext {
  const { registry, organization, now, steps, clauses, rules } = basis;
  const { policies, rootQuorum, users } = organization;
  return {
    policies: [...policies.values()],
    rootQuorum,
    user: (userId) => {
      const user = users.get(userId) ?? (guest?.userId === userId ? guest : undefined);
      return user && policyUser(user);
    },
    tenant: tenantOf(organization),
    ...(steps ? { steps } : {}),
    ...(clauses ? { clauses } : {}),
    ...(rules === undefined ? {} : { rules }),
    // Built only when a policy asks for it: the usual decision needs no list of all users.
    get users() {
      return [...users.values(), ...(guest && !users.has(guest.userId) ? [guest] : [])].map(policyUser);
    },
    environment: registry.policyEnvironment,
    now,
  };
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
