import { authorize, eligibleApprovers } from '../../domain/policy/authorize.js';
import { ballotOf } from '../../domain/policy/ballot.js';
import type { AuthorizationContext } from '../../domain/policy/request-evaluation.js';
import type { Approval, AuthorizationRequest, PolicyUser, PolicyValue } from '../../domain/policy/types.js';
import type { Counts } from '../approvers/count-vectors.js';
import type { LintRules } from '../lint/lint-subject.js';
import { minimalApprovers } from '../approvers/minimal-approvers.js';
import { recordAt, textsAt, valueWithIds, type PolicyFile } from './policy-files.js';
import { YamlFile, type Mistake } from './yaml-file.js';

/** One test of policies, and what came out. */
export interface PolicyTestResult {
  readonly file: string;
  readonly name: string;
  readonly expected: string;
  readonly got: string;
}

const fileKeys = ['users', 'tests'];
const testKeys = ['name', 'by', 'activity', 'params', 'resources', 'approvals', 'now', 'expect'];
/** Sets listed by a result. */
const mostSets = 20;

/** Runs the tests of a file on the policies of its folder, with the code that decides. No server is needed. */
export function runPolicyTests(
  name: string,
  text: string,
  policies: PolicyFile,
  rules: LintRules,
): { readonly results: readonly PolicyTestResult[]; readonly mistakes: readonly Mistake[] } {
  const file = new YamlFile(name, text);
  const root = recordAt(file, file.value, [], fileKeys);
  const users = readUsers(file, root['users'], policies);
  const tests: unknown = root['tests'] ?? [];
  if (!Array.isArray(tests)) file.wrong(['tests'], 'must be a list');
  const results = (Array.isArray(tests) ? (tests as readonly unknown[]) : []).flatMap((one, index) => {
    const test = recordAt(file, one, ['tests', index], testKeys);
    const before = file.mistakes.length;
    const run = new Run(file, ['tests', index], test, users, policies, rules);
    const said = run.outcome();
    return file.mistakes.length > before
      ? []
      : [{ file: name, name: typeof test['name'] === 'string' ? test['name'] : `test ${index + 1}`, ...said }];
  });
  return { results, mistakes: file.mistakes };
}

/** Users by name, with the tags that the tests give them; each has one API key. */
export function readUsers(file: YamlFile, input: unknown, { names }: PolicyFile): ReadonlyMap<string, PolicyUser> {
  const tagged = recordAt(file, input ?? {}, ['users'], [...names.get('user')!.keys()]);
  return new Map(
    Array.from(names.get('user')!, ([userName, userId]) => {
      const tags = textsAt(file, tagged[userName], ['users', userName]).flatMap((tag, index) => {
        const id = names.get('tag')!.get(tag);
        if (id === undefined) file.wrong(['users', userName, index], `there is no tag \`${tag}\` in the policies`);
        return id ?? [];
      });
      const credential = { id: `key of ${userName}`, userId, type: 'CREDENTIAL_TYPE_API_KEY_P256', publicKey: '' };
      return [userName, { userId, userName, tags, credentials: [credential] }];
    }),
  );
}

/** One test. */
class Run {
  constructor(
    private readonly file: YamlFile,
    private readonly path: readonly (string | number)[],
    private readonly test: Readonly<Record<string, unknown>>,
    private readonly users: ReadonlyMap<string, PolicyUser>,
    private readonly policies: PolicyFile,
    private readonly rules: LintRules,
  ) {}

  outcome(): Pick<PolicyTestResult, 'expected' | 'got'> {
    const { test } = this;
    const by = this.userAt(['by'], test['by']);
    const approvers = textsAt(this.file, test['approvals'], [...this.path, 'approvals']).map((name, index) =>
      this.userAt(['approvals', index], name),
    );
    const activity = this.rules.activities.find(
      ({ type, kind }) => type === test['activity'] || kind === test['activity'],
    );
    if (!activity)
      this.wrong(['activity'], `there is no activity \`${String(test['activity'])}\` that policies decide on`);
    const expected = this.expected();
    const now = this.now();
    if (!activity || !by || approvers.includes(undefined)) return { expected, got: '' };
    const { hasResources: _hasResources, ...attributes } = activity;
    const request: AuthorizationRequest = {
      activity: { ...attributes, params: this.values('params') },
      ...(test['resources'] === undefined ? {} : { resources: this.values('resources') }),
      submitterId: by.userId,
      rootQuorumOnly: false,
      ownCredentials: false,
    };
    const cast = [by, ...approvers].flatMap((user): Approval[] =>
      user ? [{ userId: user.userId, credential: user.credentials[0]! }] : [],
    );
    const { quorum, policies } = this.policies;
    const context: AuthorizationContext = {
      policies,
      rootQuorum: quorum,
      users: [...this.users.values()],
      environment: this.rules.environment,
      now,
    };
    return { expected, got: this.got(request, cast, context) };
  }

  private got(request: AuthorizationRequest, cast: readonly Approval[], context: AuthorizationContext): string {
    const { outcome } = authorize(request, cast, context);
    if (outcome === 'allow') return 'allow';
    if (outcome !== 'consensus-needed') return 'deny';
    const mayVote = [...eligibleApprovers(request, cast, context)];
    const requested = { ballot: ballotOf(request, cast, context), mayVote, unasked: [] };
    const { classes, passing, sets } = minimalApprovers(requested, this.rules.environment);
    if (sets > BigInt(mostSets)) return `needs one of ${sets} sets`;
    const names = new Map(Array.from(this.users.values(), ({ userId, userName }) => [userId, userName]));
    return needs(passing.flatMap((counts) => usersIn(counts, classes).map((set) => set.map((id) => names.get(id)!))));
  }

  private expected(): string {
    const { expect } = this.test;
    if (expect === 'allow' || expect === 'deny') return expect;
    const isRecord = typeof expect === 'object' && expect !== null && !Array.isArray(expect);
    const input = isRecord ? recordAt(this.file, expect, [...this.path, 'expect'], ['needs'])['needs'] : undefined;
    if (Array.isArray(input)) {
      return needs(
        input.map((set: unknown, index) => textsAt(this.file, set, [...this.path, 'expect', 'needs', index])),
      );
    }
    this.wrong(['expect'], 'must be allow, deny, or { needs: [[a user, another], …] }');
    return '';
  }

  private now(): number {
    const { now = '2026-01-05T12:00:00Z' } = this.test;
    const ms = Date.parse(String(now));
    if (Number.isNaN(ms)) this.wrong(['now'], 'must be a time such as 2026-01-05T12:00:00Z');
    return ms;
  }

  private values(key: 'params' | 'resources'): Readonly<Record<string, PolicyValue>> {
    const input = this.test[key] ?? {};
    const value = valueWithIds(input, this.policies.names);
    return typeof input === 'object' && !Array.isArray(input) ? (value as Readonly<Record<string, PolicyValue>>) : {};
  }

  private userAt(path: readonly (string | number)[], name: unknown): PolicyUser | undefined {
    const user = typeof name === 'string' ? this.users.get(name) : undefined;
    if (!user) this.wrong(path, `there is no user \`${String(name)}\` in the policies`);
    return user;
  }

  private wrong(path: readonly (string | number)[], text: string): void {
    this.file.wrong([...this.path, ...path], text);
  }
}

function needs(sets: readonly (readonly string[])[]): string {
  const texts = sets.map((set) => `[${[...set].sort().join(', ')}]`).sort();
  return texts.length === 0 ? 'needs nobody who can be found' : `needs ${texts.join(' or ')}`;
}

function usersIn(counts: Counts, classes: readonly (readonly string[])[]): readonly (readonly string[])[] {
  return counts.reduce<readonly (readonly string[])[]>(
    (made, count, index) => made.flatMap((set) => chosen(classes[index]!, count).map((some) => [...set, ...some])),
    [[]],
  );
}

function chosen(from: readonly string[], count: number): readonly (readonly string[])[] {
  if (count === 0) return [[]];
  return from.flatMap((first, index) => chosen(from.slice(index + 1), count - 1).map((rest) => [first, ...rest]));
}
