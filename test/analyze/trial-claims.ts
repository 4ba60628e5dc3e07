import { activities } from '../../src/activities/index.js';
import { Trials } from '../../packages/analyze/src/trial/trials.js';
import { buildRegistry } from '../../src/decide/registry.js';
import { analysedActivities } from '../../packages/analyze/src/analysed-activities.js';
import { readQuestions } from '../../packages/analyze/src/analysis-file.js';
import type { AnalysisSubject, Claim, FoundCase } from '../../packages/analyze/src/analysis-subject.js';
import { readPolicyFile } from '../../src/audit/policies/policy-files.js';

const registry = buildRegistry(activities);
const rules = { environment: registry.policyEnvironment, activities: analysedActivities(registry) };
/** One coordinator for the claims of a spec. */
/** Of a whole spec, however busy the machine is. */
export const trials = new Trials(600_000);
const now = Date.UTC(2026, 0, 5, 12);

afterAll(() => trials.end());

/** Policies, each as a line of a file, and the users of it. */
export function fileOf(...policies: readonly string[]) {
  const text = [
    'quorum: { members: [Ann] }',
    'users: [Ann, Dev, Ops, Sam]',
    'tags: [ops]',
    'wallets: [Treasury]',
    'privateKeys: [Releases]',
    'policies:',
    ...policies.map((fields, index) => `  - { name: Policy ${index}, ${fields} }`),
  ];
  const file = readPolicyFile('policies.yaml', text.join('\n'), rules.environment);
  const { subject, mistakes } = readQuestions('a.yaml', 'users: { Ops: [ops] }', file, new Map(), rules);
  expect([...file.mistakes, ...mistakes]).toEqual([]);
  return { file, subject };
}

/** What a claim is of; everything else is as usual. */
export type Case = {
  readonly type?: string;
  /** `Dev`, or `Dev by passkey`, the submitter first. */
  readonly by: readonly string[];
  readonly resources?: FoundCase['request']['resources'];
  readonly params?: FoundCase['request']['activity']['params'];
};

const sign = 'ACTIVITY_TYPE_SIGN_TRANSACTION_V2';

/** That policies allow a request. */
export function claimOf(subject: AnalysisSubject, { type = sign, by, resources = {}, params = {} }: Case): Claim {
  const { kind, resource, action, isRootOnly, own } = rules.activities.find((one) => one.type === type)!;
  const approvals = by.map((text) => {
    const [name, how] = text.split(' by ');
    const { userId, credentials } = subject.users.find(({ userName }) => userName === name)!;
    return { userId, credential: credentials[how === 'passkey' ? 1 : 0]! };
  });
  const activity = {
    type,
    kind,
    params,
    ...(resource === undefined ? {} : { resource }),
    ...(action === undefined ? {} : { action }),
  };
  const request = {
    activity,
    resources,
    submitterId: approvals[0]!.userId,
    rootQuorumOnly: isRootOnly,
    ownCredentials: own === 'session' && own,
  };
  return { found: { request, users: subject.users, approvals, now }, set: subject, isAllowed: true };
}

/** What comes of a request that policies are said to allow. */
export async function executed(policies: readonly string[], given: Case) {
  const { file, subject } = fileOf(...policies);
  return trials.execute([claimOf(subject, given)], subject, file.names);
}

/** Why a request by Dev is not executed; what came of it, if it is. */
export async function whyNot(given: Partial<Case>, policies: readonly string[] = ['effect: allow']) {
  const result = await executed(policies, { by: ['Dev'], ...given });
  return result.outcome === 'decided' ? result.why : result;
}

/** The kind of a type of activity. */
export const ofKind = (type: string): string => rules.activities.find((one) => one.type === type)!.kind;
