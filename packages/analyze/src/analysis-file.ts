import {
  errorMessage,
  type PolicyCredential,
  type PolicyUser,
  type PolicyValue,
  type LintRules,
  recordAt,
  textsAt,
  valueWithIds,
  type PolicyFile,
  readUsers,
  YamlFile,
  type Mistake,
} from 'countersign/internal';
import type { AnalysedActivity } from './analysed-activities.js';
import { OpenQuestion } from './analysis-open.js';
import type { AnalysedSet, AnalysisQuestion, AnalysisSubject, GivenFacts } from './analysis-subject.js';

/** A question of a file, and the answer that the file expects. */
export interface AskedQuestion {
  readonly file: string;
  readonly name: string;
  readonly question: AnalysisQuestion;
  /** As the file writes it: one of the words, or `unconfirmed`. */
  readonly expected: string;
  /** How the file writes the two answers. */
  readonly words: { readonly yes: string; readonly no: string };
}

/** How a file writes that an answer rests on an example that was not executed. */
export const unconfirmed = 'unconfirmed';

/** What a file of questions may use. */
export interface AnalysisRules {
  readonly environment: LintRules['environment'];
  readonly activities: readonly AnalysedActivity[];
}

const fileKeys = ['users', 'questions'];
const questionKeys = {
  can: ['name', 'can', 'do', 'by', 'params', 'resources', 'now', 'expect'],
  same: ['name', 'same', 'expect'],
  implied: ['name', 'implied', 'by', 'expect'],
  lockedOutWithout: ['name', 'lockedOutWithout', 'do', 'expect'],
} as const;
const possible = { yes: 'possible', no: 'never' };
const plain = { yes: 'yes', no: 'no' };

/** Reads a file of questions; `others` are the other files of policies in the folder, by name. */
export function readQuestions(
  name: string,
  text: string,
  policies: PolicyFile,
  others: ReadonlyMap<string, PolicyFile>,
  rules: AnalysisRules,
): {
  readonly subject: AnalysisSubject;
  readonly asked: readonly AskedQuestion[];
  readonly mistakes: readonly Mistake[];
} {
  const file = new YamlFile(name, text);
  const root = recordAt(file, file.value, [], fileKeys);
  const users = Array.from(readUsers(file, root['users'], policies).values(), withPasskey);
  const subject: AnalysisSubject = { users, policies: policies.policies, quorum: policies.quorum, ...rules };
  const input: unknown = root['questions'] ?? [];
  if (!Array.isArray(input)) file.wrong(['questions'], 'must be a list');
  const requested = (Array.isArray(input) ? (input as readonly unknown[]) : []).flatMap((one, index) => {
    const read = new Reader(file, ['questions', index], policies, others, subject).question(one);
    return read ? [{ file: name, name: read.name ?? `question ${index + 1}`, ...read.rest }] : [];
  });
  return { subject, asked: requested, mistakes: file.mistakes };
}

/** Each user has an API key and a passkey. */
function withPasskey(user: PolicyUser): PolicyUser {
  const passkey: PolicyCredential = {
    id: `passkey of ${user.userName}`,
    userId: user.userId,
    type: 'CREDENTIAL_TYPE_WEBAUTHN_AUTHENTICATOR',
    publicKey: '',
    credentialId: `passkey of ${user.userName}`,
  };
  return { ...user, credentials: [...user.credentials, passkey] };
}

type Asked = Omit<AskedQuestion, 'file' | 'name'>;

class Reader {
  constructor(
    private readonly file: YamlFile,
    private readonly path: readonly (string | number)[],
    private readonly policies: PolicyFile,
    private readonly others: ReadonlyMap<string, PolicyFile>,
    private readonly subject: AnalysisSubject,
  ) {}

  question(input: unknown): { readonly name: string | undefined; readonly rest: Asked } | undefined {
    const before = this.file.mistakes.length;
    const kind = (Object.keys(questionKeys) as (keyof typeof questionKeys)[]).find(
      (key) => typeof input === 'object' && input !== null && key in input,
    );
    if (kind === undefined) {
      this.wrong([], `must ask one of ${Object.keys(questionKeys).join(', ')}`);
      return undefined;
    }
    const one = recordAt(this.file, input, this.path, questionKeys[kind]);
    const rest = this.asked(kind, one);
    const name = typeof one['name'] === 'string' ? one['name'] : undefined;
    return this.file.mistakes.length > before ? undefined : { name, rest };
  }

  private asked(kind: keyof typeof questionKeys, one: Readonly<Record<string, unknown>>): Asked {
    const words = kind === 'can' ? possible : plain;
    const allowed: readonly string[] = [words.yes, words.no, unconfirmed];
    const expected = allowed.find((word) => word === one['expect']);
    if (expected === undefined) this.wrong(['expect'], `must be ${words.yes}, ${words.no} or ${unconfirmed}`);
    return { question: this.read(kind, one), expected: expected ?? words.no, words };
  }

  private read(kind: keyof typeof questionKeys, one: Readonly<Record<string, unknown>>): AnalysisQuestion {
    switch (kind) {
      case 'can': {
        const activities = this.activities(one['do']);
        const question = { kind, ...this.who(one['can']), activities, given: this.given(one) } as const;
        this.try(question.given);
        return question;
      }
      case 'same': {
        const sets = Array.isArray(one['same']) ? (one['same'] as readonly unknown[]) : [];
        if (sets.length !== 2) this.wrong(['same'], 'must be two files of policies, or lists of names of policies');
        return { kind, sets: [this.set(sets[0], ['same', 0]), this.set(sets[1], ['same', 1])] };
      }
      case 'implied':
        return { kind, set: this.set(one['implied'], ['implied']), by: this.set(one['by'], ['by']) };
      case 'lockedOutWithout': {
        const names = typeof one[kind] === 'string' ? [one[kind]] : textsAt(this.file, one[kind], [...this.path, kind]);
        const without = names.flatMap((name) => this.user(name, [kind]) ?? []);
        return {
          kind: 'locked-out',
          without,
          activities: one['do'] === undefined ? this.subject.activities : this.activities(one['do']),
        };
      }
    }
  }

  private who(input: unknown): Pick<Extract<AnalysisQuestion, { kind: 'can' }>, 'users' | 'approvals'> {
    const all = this.subject.users.map(({ userId }) => userId);
    const others = all.filter((userId) => !this.policies.quorum.userIds.includes(userId));
    if (input === 'anyone') return { users: all };
    if (input === 'one credential') return { users: all, approvals: 1 };
    if (input === 'non-root users') return { users: others };
    if (input === 'one non-root credential') return { users: others, approvals: 1 };
    if (Array.isArray(input)) {
      const names = textsAt(this.file, input, [...this.path, 'can']);
      return { users: names.flatMap((name, index) => this.user(name, ['can', index]) ?? []) };
    }
    this.wrong(['can'], 'must be anyone, non-root users, one credential, one non-root credential, or a list of users');
    return { users: [] };
  }

  private activities(input: unknown): readonly AnalysedActivity[] {
    const names = typeof input === 'string' ? [input] : textsAt(this.file, input, [...this.path, 'do']);
    if (names.length === 0) this.wrong(['do'], 'must be an action, a kind or a type of activity, or a list of these');
    const found = names.map((name) => ({
      name,
      activities: this.subject.activities.filter((one) => [one.action, one.kind, one.type].includes(name)),
    }));
    for (const { name, activities } of found) {
      if (activities.length === 0) this.wrong(['do'], `there is no action, kind or type of activity \`${name}\``);
    }
    return [...new Set(found.flatMap(({ activities }) => activities))];
  }

  private given(one: Readonly<Record<string, unknown>>): GivenFacts {
    const by = one['by'] === undefined ? undefined : this.user(one['by'], ['by']);
    const now = one['now'] === undefined ? undefined : Date.parse(typeof one['now'] === 'string' ? one['now'] : '');
    if (Number.isNaN(now)) this.wrong(['now'], 'must be a time such as 2026-01-05T12:00:00Z');
    return {
      ...(by === undefined ? {} : { by }),
      params: this.values('params', one['params']),
      resources: this.values('resources', one['resources']),
      ...(now === undefined ? {} : { now }),
    };
  }

  private values(key: string, input: unknown = {}): Readonly<Record<string, PolicyValue>> {
    if (typeof input !== 'object' || input === null || Array.isArray(input)) {
      this.wrong([key], 'must be values by name');
      return {};
    }
    return valueWithIds(input, this.policies.names) as Readonly<Record<string, PolicyValue>>;
  }

  /** Reports facts that the language does not have. */
  private try(input: GivenFacts): void {
    try {
      new OpenQuestion(this.subject, [], []).fix(input);
    } catch (error) {
      this.wrong(['resources'], errorMessage(error));
    }
  }

  private set(input: unknown, path: readonly (string | number)[]): AnalysedSet {
    const { quorum, policies } = this.policies;
    if (input === 'policies.yaml') return { quorum, policies };
    const other = typeof input === 'string' ? this.others.get(input) : undefined;
    if (other) return { quorum: other.quorum, policies: other.policies };
    const names = typeof input === 'string' ? [] : textsAt(this.file, input, [...this.path, ...path]);
    if (names.length === 0)
      this.wrong(path, 'must be a file of policies in the folder, or a list of names of policies');
    const chosen = names.flatMap((name, index) => {
      const policy = policies.find(({ policyName }) => policyName === name);
      if (!policy) this.wrong([...path, index], `there is no policy \`${name}\` in policies.yaml`);
      return policy ?? [];
    });
    return { quorum, policies: chosen };
  }

  private user(name: unknown, path: readonly (string | number)[]): string | undefined {
    const user = this.subject.users.find(({ userName }) => userName === name);
    if (!user) this.wrong(path, `there is no user \`${String(name)}\` in the policies`);
    return user?.userId;
  }

  private wrong(path: readonly (string | number)[], text: string): void {
    this.file.wrong([...this.path, ...path], text);
  }
}
