import type { PolicyFunction } from './functions/function.js';
import { policyFunctions } from './functions/table.js';
import {
  notApplicable,
  unreadable,
  type AuthorizationRequest,
  type Clause,
  type PolicyType,
  type PolicyUser,
  type PolicyValue,
  type UserApproval,
} from './types.js';

/** One root name of the policy language: where it may be used, its type, and its value in a request. */
export interface Namespace {
  readonly name: string;
  readonly clauses: readonly Clause[];
  readonly type: PolicyType;
  /** Undefined if the request has no such thing, like NotApplicable. `approvals` are in vote order, one per user. */
  value(
    request: AuthorizationRequest,
    approvals: readonly UserApproval[],
    context: NamespaceContext,
  ): PolicyValue | undefined;
  /** For a list of the approvals: one of them as its element. Hypothetical votes build such lists too. */
  readonly ofApproval?: (approval: UserApproval) => PolicyValue;
}

/** The organization that decides. `now` is milliseconds since the epoch. */
interface NamespaceContext {
  readonly now: number;
  user(userId: string): PolicyUser | undefined;
}

/** Everything that policies of a build can refer to. Build it once: compiled expressions are cached by its identity. */
export interface PolicyEnvironment {
  readonly namespaces: ReadonlyMap<string, Namespace>;
  readonly functions: readonly PolicyFunction[];
  /** Possible values of texts in requests, by record and field; see `known-literals.ts`. */
  readonly vocabulary?: Readonly<Record<string, ReadonlySet<string>>>;
}

const string = { kind: 'string' } as const;

const userType: PolicyType = {
  kind: 'record',
  name: 'User',
  fields: { id: string, tags: { kind: 'list', of: string }, email: string, alias: string },
};

const credentialType: PolicyType = {
  kind: 'record',
  name: 'Credential',
  fields: { id: string, user_id: string, type: string, credential_id: string, public_key: string },
};

function userValue(user: PolicyUser): PolicyValue {
  return { id: user.userId, tags: user.tags, email: user.email, alias: user.userName };
}

/** A list of the approvals, in vote order. */
function listOfApprovals(
  name: string,
  element: PolicyType,
  ofApproval: (approval: UserApproval) => PolicyValue,
): ApprovalNamespace {
  return {
    name,
    clauses: ['consensus'],
    type: { kind: 'list', of: element },
    value: (_request, approvals) => approvals.map(ofApproval),
    ofApproval,
  };
}

type ApprovalNamespace = Namespace & Required<Pick<Namespace, 'ofApproval'>>;

const approvers = listOfApprovals('approvers', userType, ({ user }) => userValue(user));

const credentials = listOfApprovals('credentials', credentialType, ({ user, credential }) => ({
  id: credential.id,
  user_id: user.userId,
  type: credential.type,
  credential_id: credential.credentialId,
  public_key: credential.publicKey,
}));

/** The lists of approvals by name, in the order in which they tell voters apart. */
export const approvalNamespaces: ReadonlyMap<string, ApprovalNamespace> = new Map(
  [approvers, credentials].map((namespace) => [namespace.name, namespace]),
);

const requester: Namespace = {
  name: 'requester',
  clauses: ['condition', 'consensus'],
  type: userType,
  value: ({ submitterId }, _approvals, { user }) => {
    const submitter = user(submitterId);
    return submitter ? userValue(submitter) : unreadable('the user who asked is no longer here');
  },
};

const time: Namespace = {
  name: 'time',
  clauses: ['time'],
  type: { kind: 'record', name: 'Time', fields: { now: { kind: 'timestamp' } } },
  value: (_request, _approvals, { now }) => ({ now: BigInt(Math.floor(now)) }),
};

/** What is the same for every payload of a request. */
export const ofWholeRequest: ReadonlySet<string> = new Set(['activity', requester.name, time.name]);

/**
 * The namespaces of policies (docs/protocol.md). `params` are the fields of `activity.params`; `extra` adds resource namespaces,
 * where a nested name such as `eth.tx` is a field of the root `eth`.
 * @throws {Error} if two namespaces share a name: a defect of the caller
 */
export function policyEnvironment(
  params: Readonly<Record<string, PolicyType>>,
  extra: readonly Namespace[] = [],
): PolicyEnvironment {
  const unexposed = Object.fromEntries(Object.keys(params).map((name) => [name, notApplicable]));
  const activity: Namespace = {
    name: 'activity',
    clauses: ['condition'],
    type: {
      kind: 'record',
      name: 'Activity',
      fields: {
        type: string,
        kind: string,
        resource: string,
        action: string,
        params: { kind: 'record', name: 'ActivityParams', fields: params },
      },
    },
    // What a type of activity does not expose is not applicable, whatever is sent.
    value: ({ activity }) => {
      const { type, kind, resource, action, params } = activity;
      return {
        type,
        kind,
        resource,
        action,
        params: Object.keys(params).length === 0 ? unexposed : { ...unexposed, ...params },
      };
    },
  };
  const namespaces = new Map<string, Namespace>();
  for (const namespace of [activity, ...approvalNamespaces.values(), requester, time, ...extra]) {
    if (namespaces.has(namespace.name)) throw new Error(`namespace \`${namespace.name}\` is declared twice`);
    namespaces.set(namespace.name, namespace);
  }
  return { namespaces, functions: policyFunctions };
}
