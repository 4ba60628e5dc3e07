import {
  type Clause,
  type Policy,
  type PolicyType,
  type PolicyUser,
  type PolicyEnvironment,
  approvalNamespaces,
  PolicyError,
  type CheckedExpression,
  compiled,
} from 'countersign/internal';
import { readOpenly, type OpenReading } from './smt-expression.js';
import { and, apply, howMany, no, not, or, same, Script, yes, type Term } from './smt-script.js';
import { Unknown, type Limits } from './smt-unknown.js';
import type { Open } from './smt-values.js';
import { OpenVoters } from './smt-voters.js';

const clauses = ['time', 'condition', 'consensus'] as const;
const text: PolicyType = { kind: 'string' };
const certain: OpenReading = { isTrue: yes, isUnreadable: no, isNotApplicable: no, isDoubted: no };
/** What a clause that is not valid any more comes to. */
const invalid: OpenReading = { isTrue: no, isUnreadable: yes, isNotApplicable: no, isDoubted: yes };

/** What a question leaves open of users, and what may be missing or unreadable in a request. */
export interface OpenRequestOptions {
  readonly environment: PolicyEnvironment;
  readonly users: readonly PolicyUser[];
  readonly limits: Limits;
  /** E-mail addresses and keys of users are open. */
  readonly areUsersOpen: boolean;
}

/** The outcome of a set of policies for the open request. */
export interface OpenDecision {
  readonly isAllowed: Term;
  /** Some DENY applies. */
  readonly isDenied: Term;
  /** By policy and clause, what tells requests apart. */
  readonly readings: readonly { readonly policy: Policy; readonly clause: Clause; readonly reading: OpenReading }[];
}

/** One request of which everything is open, with the approvals that it has. */
export class OpenRequest {
  readonly script = new Script();
  readonly voters: OpenVoters;
  /** Policies cannot grant it. */
  readonly isRootOnly: Term;
  /** 0: it does not manage the submitter's own credentials; 1: it does; 2: it is only a session. */
  readonly own: Term;
  /** What a request brings along, and what is open of users, by name. */
  readonly unknown = new Map<string, Unknown>();
  /** Whether a window is open, by its name. */
  readonly schedules = new Map<string, Term>();
  /** For each comparison of a text that may stand for others: whether it is in doubt. */
  readonly vagueComparisons: Term[] = [];
  private readonly roots = new Map<string, Open>();
  private readonly read = new Map<string, OpenReading>();

  constructor(
    private readonly options: OpenRequestOptions,
    policies: readonly Policy[],
  ) {
    const { environment, users, areUsersOpen } = options;
    const consensuses = policies.flatMap(({ consensus }) => {
      const read = compiled(consensus, 'consensus', environment);
      return read === undefined || read instanceof PolicyError ? [] : [read];
    });
    const open = areUsersOpen ? (path: string) => this.unknownAt(path, text).open : undefined;
    this.voters = new OpenVoters(this.script, users, consensuses, open);
    this.isRootOnly = this.script.constant('Bool');
    this.own = this.script.constant('Int');
    this.script.facts.push(and(apply('<=', '0', this.own), apply('<=', this.own, '2')));
  }

  /** The value of a name in a request. */
  unknownAt(name: string, type: PolicyType): Unknown {
    let unknown = this.unknown.get(name);
    if (!unknown) {
      unknown = new Unknown(this.script, name, type, this.options.limits);
      this.unknown.set(name, unknown);
    }
    return unknown;
  }

  /** A root of the language that a request brings along. */
  rootAt(name: string): Unknown {
    return this.unknownAt(name, this.options.environment.namespaces.get(name)!.type);
  }

  /** What these policies, and this root quorum, decide about it (docs/reference/policy-language.md). */
  decidedBy(
    policies: readonly Policy[],
    rootQuorum: { readonly threshold: number; readonly userIds: readonly string[] },
  ): OpenDecision {
    const { script, voters, isRootOnly, own } = this;
    const hasVotes = apply('>', voters.howMany, '0');
    const read = policies.map((policy) => ({ policy, by: clauses.map((clause) => this.readingOf(policy, clause)) }));
    const allows = read.filter(({ policy }) => policy.effect === 'EFFECT_ALLOW');
    const denies = read.filter(({ policy }) => policy.effect === 'EFFECT_DENY');
    const isDenied = or(
      ...denies.map(({ by }) => and(...by.map(({ isTrue, isUnreadable }) => or(isTrue, isUnreadable)))),
    );
    const applies = (by: readonly OpenReading[]) =>
      and(hasVotes, ...by.map(({ isTrue, isDoubted }) => and(isTrue, not(isDoubted))));
    const isSpokenTo = or(
      ...allows.map(({ policy, by }) => {
        if (policy.condition === undefined) return no;
        const [time, condition, consensus] = by as [OpenReading, OpenReading, OpenReading];
        const speaks = [time, condition].map(({ isTrue, isUnreadable }) => or(isTrue, isUnreadable));
        const isMet = and(hasVotes, consensus.isTrue, ...by.map(({ isDoubted }) => not(isDoubted)));
        return and(...speaks, not(isMet));
      }),
    );
    const hasSubmitter = or(...voters.votes.map((vote, place) => and(vote, voters.asks(place))));
    const isOwn = and(hasSubmitter, or(same(own, '2'), and(same(own, '1'), not(isSpokenTo))));
    const byPolicies = and(not(isRootOnly), not(isDenied), or(...allows.map(({ by }) => applies(by)), isOwn));
    return {
      isAllowed: script.name(or(this.isMetBy(rootQuorum), byPolicies)),
      isDenied: script.name(isDenied),
      readings: read.flatMap(({ policy, by }) =>
        by.map((reading, index) => ({ policy, clause: clauses[index]!, reading })),
      ),
    };
  }

  private isMetBy({ threshold, userIds }: { readonly threshold: number; readonly userIds: readonly string[] }): Term {
    if (!(threshold >= 1)) return no;
    const { users, votes } = this.voters;
    const ofMembers = votes.filter((_, place) => userIds.includes(users[place]!.userId));
    return apply('>=', howMany(ofMembers), String(threshold));
  }

  private readingOf(policy: Policy, clause: Clause): OpenReading {
    const written = policy[clause];
    if (written === undefined) return certain;
    const key = `${clause} ${written}`;
    let reading = this.read.get(key);
    if (!reading) {
      const expression = compiled(written, clause, this.options.environment);
      reading =
        expression === undefined || expression instanceof PolicyError ? invalid : this.readingOfText(expression);
      this.read.set(key, reading);
    }
    return reading;
  }

  private readingOfText(expression: CheckedExpression): OpenReading {
    return readOpenly(this.script, expression, {
      root: (name) => this.valueOf(name),
      schedule: (name) => {
        const known = this.schedules.get(name) ?? this.script.constant('Bool');
        this.schedules.set(name, known);
        return known;
      },
      vague: () => {
        const isVague = this.script.constant('Bool');
        this.vagueComparisons.push(isVague);
        return isVague;
      },
    });
  }

  private valueOf(name: string): Open {
    let value = this.roots.get(name);
    if (!value) {
      if (approvalNamespaces.has(name)) value = this.voters.approvals(name);
      else if (name === 'requester') value = this.voters.requester();
      else value = this.rootAt(name).open;
      this.roots.set(name, value);
    }
    return value;
  }
}
