import type { Scope } from '../../src/domain/policy/evaluate.js';
import { evaluate } from '../../src/domain/policy/evaluate.js';
import { compileClause } from '../../src/domain/policy/language.js';
import type { PolicyEnvironment } from '../../src/domain/policy/namespaces.js';
import { NotApplicable, Unreadable, type Approval, type PolicyValue } from '../../src/domain/policy/types.js';
import type { AuthorizationRequest } from '../../src/domain/policy/types.js';
import { isOfType, isRecord } from '../../src/domain/policy/values.js';
import type { OpenRequest } from '../../packages/analyze/src/smt-request.js';
import { integer, text, type Term } from '../../packages/analyze/src/smt-script.js';
import type { Unknown } from '../../packages/analyze/src/smt-unknown.js';
import { tags } from '../../packages/analyze/src/smt-values.js';

/** The constants of an open request, for one request that is known. */
export function valuesIn(
  open: OpenRequest,
  request: AuthorizationRequest,
  approvals: readonly Approval[],
  environment: PolicyEnvironment,
  now: number,
): ReadonlyMap<string, Term> {
  const values = new Map<string, Term>();
  const { users, votes, choices, order, submitter } = open.voters;
  const place = (userId: string) => users.findIndex((user) => user.userId === userId);
  const cast = approvals.map(({ userId, credential }) => ({ place: place(userId), id: credential.id }));
  values.set(submitter, integer(place(request.submitterId)));
  votes.forEach((vote, index) => values.set(vote, String(cast.some((one) => one.place === index))));
  choices.forEach((choice, index) => {
    const id = cast.find((one) => one.place === index)?.id;
    values.set(
      choice,
      integer(
        Math.max(
          0,
          users[index]!.credentials.findIndex((one) => one.id === id),
        ),
      ),
    );
  });
  order.forEach((at, index) => values.set(at, integer(cast[index]?.place ?? 0)));
  values.set(open.isRootOnly, String(request.rootQuorumOnly));
  values.set(open.own, request.ownCredentials === 'session' ? '2' : request.ownCredentials ? '1' : '0');
  const scope: Scope = { now, value: () => undefined };
  for (const [name, isOpen] of open.schedules) {
    values.set(isOpen, String(evaluate(compileClause(name, 'time', environment), scope).truth === 'true'));
  }
  for (const [name, unknown] of open.unknown) {
    const value = environment.namespaces.get(name)!.value(request, [], { now, user: () => undefined });
    close(unknown, value, value === undefined, values);
  }
  const defaults = { Bool: 'false', Int: '0', String: '""' };
  for (const [name, sort] of open.script.constants) if (!values.has(name)) values.set(name, defaults[sort]);
  return values;
}

function close(unknown: Unknown, value: PolicyValue | undefined, isMissing: boolean, values: Map<string, Term>): void {
  const { constants, type } = unknown;
  const set = (name: Parameters<typeof constants.get>[0], term: Term) => {
    const constant = constants.get(name);
    if (constant !== undefined) values.set(constant, term);
    return constant !== undefined;
  };
  const isNothing = isMissing || value instanceof NotApplicable;
  const isUnreadable = !isNothing && (value === undefined || value instanceof Unreadable || !isOfType(value, type));
  // An unknown that is read must be able to be what it is.
  if (constants.size > 0 || unknown.parts.size > 0) {
    if (!set('missing', String(isNothing)) && isNothing) throw new Error(`\`${unknown.path}\` cannot be missing`);
    if (!set('unreadable', String(isUnreadable)) && isUnreadable)
      throw new Error(`\`${unknown.path}\` cannot be unreadable`);
  }
  const there = isNothing || isUnreadable ? undefined : value;
  if (typeof there === 'boolean') set('bool', String(there));
  if (typeof there === 'bigint') set('integer', integer(there));
  if (typeof there === 'string') set('text', text(there));
  if (Array.isArray(there)) set('length', integer(there.length));
  if (there !== undefined) set('tag', tagOf(there));
  for (const [name, part] of unknown.parts) {
    const within = partOf(there, name);
    if (there !== undefined || within !== undefined) close(part, within, false, values);
  }
}

function tagOf(value: PolicyValue): Term {
  if (typeof value === 'boolean') return tags.bool;
  if (typeof value === 'bigint') return tags.integer;
  if (typeof value === 'string') return tags.text;
  return Array.isArray(value) ? tags.list : tags.record;
}

function partOf(value: PolicyValue | undefined, name: string): PolicyValue | undefined {
  const [, place] = /^\[(\d+)\]$/.exec(name) ?? [];
  if (place !== undefined) return Array.isArray(value) ? (value as readonly PolicyValue[])[Number(place)] : undefined;
  if (value === undefined || !isRecord(value)) return undefined;
  const record = value as Readonly<Record<string, PolicyValue | undefined>>;
  return Object.hasOwn(record, name) ? record[name] : undefined;
}
