import { OutOfSteps, Steps } from '../steps.js';
import { analyse, type Analysis, type Predicate, type Term } from './consensus-analysis.js';
import { evaluate, evaluateBody, evaluateWith, isCertain, type Reading, type Scope } from './evaluate.js';
import { approverValue, credentialValue } from './namespaces.js';
import { rootsOf } from './roots.js';
import type { CheckedExpression } from './syntax.js';
import { AmbiguousText, Doubt, unreadable, type PolicyUser, type PolicyValue, type UserApproval } from './types.js';

/** Most steps that one question about a consensus may take: 10 ms. */
const maxStepsPerQuestion = 100_000;
/** Most steps for all questions to one electorate: 20 ms. */
export const maxStepsInAll = 200_000;

/** What questions about consensuses may take, one and all together. */
export interface ElectionBounds {
  readonly question: number;
  readonly all: number;
}

/**
 * Answers whose approval a consensus has, could get, and depends on (client protocol 9.5), at one revision.
 *
 * A set of approvals satisfies a consensus when it is not empty and the expression is true of it and nowhere in doubt: an
 * activity that nobody approved has no consensus, whatever the expression says of an empty list. Users approve with one
 * of their credentials, so one without any cannot approve.
 *
 * Answers are exact for every expression, monotone or not, as long as telling stays within the two bounds above. Users
 * that the expression cannot tell apart stand for each other, which keeps usual expressions far below. Beyond the bounds
 * a yes still rests on a set of approvals that was found; a no may then mean "too many to tell". So the bounds can deny
 * a request that could have waited for votes, and can allow nothing.
 */
export class Electorate {
  private readonly castBallots: readonly Ballot[];
  private readonly scope: Scope;
  private readonly rolls = new Map<CheckedExpression, Roll>();
  private readonly steps: Steps;
  private readonly questionSteps: number;
  private knownCandidates: ReadonlyMap<string, readonly Ballot[]> | undefined;

  /**
   * `cast` are the live approvals in vote order, one per user; `outer` has the time and the names other than the
   * approvals. What votes could do is told with `bounds` of `all`.
   */
  constructor(
    private readonly users: () => readonly PolicyUser[],
    private readonly cast: readonly UserApproval[],
    private readonly outer: Scope,
    private readonly all = new Steps(),
    bounds: ElectionBounds = { question: maxStepsPerQuestion, all: maxStepsInAll },
  ) {
    this.castBallots = cast.map(ballotOf);
    this.scope = scopeOf(this.castBallots, outer, all);
    this.steps = all.upTo(bounds.all);
    this.questionSteps = bounds.question;
  }

  /** What the consensus is of the approvals cast, and whether they satisfy it. */
  read(consensus: CheckedExpression): { readonly reading: Reading; readonly isMet: boolean } {
    const reading = evaluate(consensus, this.scope, this.all);
    return { reading, isMet: isCertain(reading) && this.cast.length > 0 };
  }

  /** Whether some approvals of further users, with those cast, would satisfy the consensus. */
  isReachable(consensus: CheckedExpression): boolean {
    return this.ask(consensus, (trial) => {
      const roll = this.rollOf(consensus, trial);
      const cast = this.castBallots.map((ballot) => roll.choiceOf(ballot, trial));
      const others = roll.members.filter(({ userId }) => !this.castBy(userId));
      return search(analyse(consensus), others, trial, (set) =>
        trial.holds([...alone(cast), ...set]) ? 'found' : 'none',
      );
    });
  }

  /**
   * Whether the approval of a user can matter: there are approvals of other users that do not satisfy the consensus, and
   * do together with this user's. It is the approval the user has cast, or any that it could cast.
   */
  contributes(consensus: CheckedExpression, userId: string): boolean {
    return this.ask(consensus, (trial) => {
      const analysis = analyse(consensus);
      const roll = this.rollOf(consensus, trial);
      const own = this.ballotsOf(userId).map((ballot) => roll.choiceOf(ballot, trial));
      if (own.some((choice) => trial.holds(alone([choice])))) return true;
      // The usual case on the hot path: nothing in the expression looks at this user, so no company makes it matter.
      if (own.every(({ isNeutral }) => isNeutral)) return false;
      const others = roll.members.filter((member) => member.userId !== userId);
      const holdsWithOwn = (set: Company) =>
        own.some((choice) =>
          analysis.kind === 'ordered'
            ? Array.from({ length: set.length + 1 }).some((_, place) =>
                trial.holds(set.toSpliced(place, 0, { choice, count: 1 })),
              )
            : trial.holds([...set, { choice, count: 1 }]),
        );
      return search(analysis, others, trial, (set) =>
        holdsWithOwn(set) ? (trial.holds(set) ? 'too-many' : 'found') : 'none',
      );
    });
  }

  /**
   * The fewest approvals of further users that would, with those cast, satisfy the consensus. Undefined when there are none, or
   * when telling takes too long.
   */
  fewestMore(consensus: CheckedExpression): number | undefined {
    const fewest = this.ask(consensus, (trial) => {
      const roll = this.rollOf(consensus, trial);
      const cast = alone(this.castBallots.map((ballot) => roll.choiceOf(ballot, trial)));
      const others = roll.members.filter(({ userId }) => !this.castBy(userId));
      let size = 0;
      const isEnough = (set: Company) => {
        size = sizeOf(set);
        return trial.holds([...cast, ...set]) ? 'found' : 'none';
      };
      return search(analyse(consensus), others, trial, isEnough, 'from the smallest') && { size };
    });
    return fewest ? fewest.size : undefined;
  }

  /** Ids of the users whose approval can matter, in the order of the users. */
  contributors(consensus: CheckedExpression): string[] {
    const answers = new Map<string, boolean>();
    const found: string[] = [];
    const members = this.ask(consensus, (trial) => this.rollOf(consensus, trial).members) || [];
    for (const { userId, kind } of members) {
      // Who has voted has no choice of credential left, and so may differ from others of its kind.
      const key = this.castBy(userId) ? `voted ${userId}` : kind;
      const answer = answers.get(key) ?? this.contributes(consensus, userId);
      answers.set(key, answer);
      if (answer) found.push(userId);
    }
    return found;
  }

  /** An answer within the bounds; beyond them it is no. */
  private ask<Answer>(consensus: CheckedExpression, answer: (trial: Trial) => Answer): Answer | false {
    const trial = new Trial(consensus, this.outer, this.steps.upTo(this.questionSteps), this.questionSteps);
    try {
      return answer(trial);
    } catch (error) {
      if (error instanceof OutOfSteps) return false;
      throw error;
    }
  }

  private castBy(userId: string): UserApproval | undefined {
    return this.cast.find(({ user }) => user.userId === userId);
  }

  private ballotsOf(userId: string): readonly Ballot[] {
    const approval = this.castBy(userId);
    return approval ? [ballotOf(approval)] : (this.candidatesOf().get(userId) ?? []);
  }

  /** By user: the ballots it could cast. */
  private candidatesOf(): ReadonlyMap<string, readonly Ballot[]> {
    this.knownCandidates ??= new Map(
      this.users().map((user) => [user.userId, user.credentials.map((credential) => ballotOf({ user, credential }))]),
    );
    return this.knownCandidates;
  }

  private rollOf(consensus: CheckedExpression, trial: Trial): Roll {
    let roll = this.rolls.get(consensus);
    if (!roll) {
      const ballots = this.users().reduce((sum, { credentials }) => sum + credentials.length, 0);
      // To be told apart by every field takes longer than by what each predicate makes of them.
      trial.steps.take('ballotTold', trial.analysis.kind === 'subsets' ? 2 * ballots : ballots);
      roll = new Roll(consensus, this.candidatesOf(), this.castBallots, trial);
      this.rolls.set(consensus, roll);
    }
    return roll;
  }
}

/** One approval, as the language sees it. */
interface Ballot {
  readonly approver: PolicyValue;
  readonly credential: PolicyValue;
}

function ballotOf(approval: UserApproval): Ballot {
  return { approver: approverValue(approval.user), credential: credentialValue(approval) };
}

/** The approvals as the language sees them: as lists that are made once they are asked for. */
function scopeOf(ballots: readonly Ballot[], outer: Scope, steps: Steps): Scope {
  let approvers: PolicyValue | undefined;
  let credentials: PolicyValue | undefined;
  const listOf = (part: (ballot: Ballot) => PolicyValue) => {
    steps.take('ballotCopied', ballots.length);
    return ballots.map(part);
  };
  return {
    now: outer.now,
    value: (name) => {
      if (name === 'approvers') return (approvers ??= listOf((ballot) => ballot.approver));
      if (name === 'credentials') return (credentials ??= listOf((ballot) => ballot.credential));
      return outer.value(name);
    },
  };
}

/** A ballot, as far as an expression can tell it from others: `mark` is the same where it cannot. */
interface Choice {
  readonly ballot: Ballot;
  readonly mark: string;
  /** It changes the value of the expression in no company. */
  readonly isNeutral: boolean;
}

/** Ballots together: how many there are of each choice, and of which members, where it is of several alike. */
type Company = readonly {
  readonly choice: Choice;
  readonly count: number;
  readonly of?: { readonly members: readonly Member[]; readonly place: number };
}[];

function alone(choices: readonly Choice[]): Company {
  return choices.map((choice) => ({ choice, count: 1 }));
}

function sizeOf(company: Company): number {
  return company.reduce((sum, { count }) => sum + count, 0);
}

/** Each of another user: an expression that relates them can tell that. */
function ballotsOf(company: Company): readonly Ballot[] {
  const taken = new Map<readonly Member[], number>();
  return company.flatMap(({ choice, count, of }) => {
    if (!of) return [choice.ballot];
    const { members, place } = of;
    const from = taken.get(members) ?? 0;
    taken.set(members, from + count);
    return members.slice(from, from + count).map(({ choices }) => choices[place]!.ballot);
  });
}

/** Evaluates sets of ballots for one question, and watches the bounds. */
class Trial {
  readonly analysis: Analysis;

  constructor(
    private readonly consensus: CheckedExpression,
    readonly outer: Scope,
    readonly steps: Steps,
    private readonly budget: number,
  ) {
    this.analysis = analyse(consensus);
  }

  get isSpent(): boolean {
    return this.steps.left <= 0;
  }

  holds(company: Company): boolean {
    if (!company.some(({ count }) => count > 0)) return false;
    this.steps.take('trialMade');
    const { analysis } = this;
    if (analysis.kind === 'symmetric') {
      const known = new Map(analysis.terms.map((term, index) => [term.node, this.valueOf(term, index, company)]));
      return this.certain(evaluateWith(known, this.consensus, this.outer, this.steps));
    }
    const ballots = ballotsOf(company);
    this.steps.take('ballotCopied', ballots.length);
    return this.certain(evaluate(this.consensus, scopeOf(ballots, this.outer, this.steps), this.steps));
  }

  /** What ran out of steps is neither a yes nor a no. */
  private certain(reading: Reading): boolean {
    if (this.steps.isSpent) throw new OutOfSteps(this.budget, 'policyNode');
    return isCertain(reading);
  }

  /** A doubt anywhere keeps an ALLOW from applying, so what the outcome would be nonetheless does not matter here. */
  predicate(predicate: Predicate, element: PolicyValue): boolean | 'doubt' {
    const { truth, doubt } = evaluateBody(predicate, element, this.outer, this.steps);
    return doubt ? 'doubt' : truth === 'true';
  }

  /** What a term is of a company, from the letters that its ballots have for it. */
  private valueOf({ last }: Term, index: number, company: Company): PolicyValue {
    this.steps.take('listElement', company.length);
    let counted = 0;
    let isAny = false;
    let isAll = true;
    for (const { choice, count } of company) {
      if (count === 0) continue;
      const letter = choice.mark[index];
      if (letter === 'd') return inDoubt;
      if (letter === 'c') counted += count;
      if (letter === 't') isAny = true;
      if (letter === 'f') isAll = false;
    }
    if (last === 'count') return BigInt(counted);
    return last.method === 'any' ? isAny : isAll;
  }
}

const inDoubt = unreadable('an approval is in doubt');

/**
 * What each term makes of a ballot, a letter each; `n` is neutral: it changes the value of the term in no list.
 */
function lettersOf(
  { approver, credential }: Ballot,
  { terms }: Extract<Analysis, { kind: 'symmetric' }>,
  trial: Trial,
): string {
  let letters = '';
  for (const term of terms) letters += letterOf(term, term.list === 'approvers' ? approver : credential, trial);
  return letters;
}

function letterOf({ filters, last }: Term, element: PolicyValue, trial: Trial): string {
  for (const filter of filters) {
    const isKept = trial.predicate(filter, element);
    if (isKept !== true) return isKept === 'doubt' ? 'd' : 'n';
  }
  if (last === 'count') return 'c';
  const value = trial.predicate(last, element);
  if (value === (last.method === 'all')) return 'n';
  return value === 'doubt' ? 'd' : last.method === 'any' ? 't' : 'f';
}

/** A user who could approve, and the ballots to choose from: one of each that can be told apart. */
interface Member {
  readonly userId: string;
  /** Members of one kind can stand for each other. */
  readonly kind: string;
  readonly choices: readonly Choice[];
}

/** Who could approve, as far as one expression can tell them apart. */
class Roll {
  readonly members: readonly Member[];
  private readonly likeness: Likeness | undefined;

  constructor(
    consensus: CheckedExpression,
    candidates: ReadonlyMap<string, readonly Ballot[]>,
    cast: readonly Ballot[],
    trial: Trial,
  ) {
    const { analysis } = trial;
    if (analysis.kind === 'subsets') this.likeness = new Likeness(consensus, analysis, candidates, cast, trial.outer);
    this.members = [...candidates].flatMap(([userId, ballots]) =>
      ballots.length > 0 ? [this.memberOf(userId, ballots, trial)] : [],
    );
  }

  choiceOf(ballot: Ballot, trial: Trial, aliases = new Map<string, string>()): Choice {
    if (trial.analysis.kind !== 'symmetric') {
      return { ballot, mark: this.likeness?.markOf(ballot, aliases) ?? '', isNeutral: false };
    }
    const mark = lettersOf(ballot, trial.analysis, trial);
    return { ballot, mark, isNeutral: !/[^n]/.test(mark) };
  }

  private memberOf(userId: string, ballots: readonly Ballot[], trial: Trial): Member {
    const aliases = new Map<string, string>();
    const choices = ballots.map((ballot) => this.choiceOf(ballot, trial, aliases));
    if (trial.analysis.kind === 'ordered') return { userId, kind: userId, choices };
    const distinct = [...new Map(choices.map((choice) => [choice.mark, choice])).values()];
    distinct.sort((a, b) => (a.mark < b.mark ? -1 : 1));
    return { userId, kind: distinct.map(({ mark }) => mark).join('|'), choices: distinct };
  }
}

/**
 * Tells which ballots an expression that relates them cannot tell apart: those that agree in every field that it reads. A
 * text that only one user has, and that nothing else names, is like any other such text: to exchange all of one user's
 * with another's changes nothing.
 */
class Likeness {
  /** In lower case, as some comparisons do not look at it: who has a text, and which are no one user's. */
  private readonly holders = new Map<string, string>();
  private readonly shared = new Set<string>();
  private readonly isExact: boolean;
  /** The fields that the expression reads, by the part of a ballot that has them. */
  private readonly fields: readonly { readonly part: keyof Ballot; readonly field: string }[];

  constructor(
    consensus: CheckedExpression,
    analysis: Extract<Analysis, { kind: 'subsets' }>,
    candidates: ReadonlyMap<string, readonly Ballot[]>,
    cast: readonly Ballot[],
    outer: Scope,
  ) {
    const roots = [...rootsOf(consensus)];
    const fieldsOf = (part: keyof Ballot, list: Term['list'], fields: readonly string[]) =>
      roots.includes(list)
        ? fields.filter((field) => analysis.fields.has(field)).map((field) => ({ part, field }))
        : [];
    this.fields = [
      ...fieldsOf('approver', 'approvers', ['id', 'tags', 'email', 'alias']),
      ...fieldsOf('credential', 'credentials', ['id', 'user_id', 'type', 'credential_id', 'public_key']),
    ];
    const others = roots.filter((name) => name !== 'approvers' && name !== 'credentials');
    // Of a requester all texts are known; what else there is may be named in any way.
    this.isExact = analysis.takesApart || others.some((name) => name !== 'requester');
    if (this.isExact) return;
    const named = others.flatMap((name) => textsIn(outer.value(name)));
    for (const text of [...analysis.texts, ...named, ...cast.flatMap((ballot) => this.textsOf(ballot))]) {
      this.shared.add(text.toLowerCase());
    }
    for (const [userId, ballots] of candidates) {
      for (const ballot of ballots) for (const text of this.textsOf(ballot)) this.note(text.toLowerCase(), userId);
    }
  }

  /** The same for two ballots that can be exchanged together with their users. `aliases` are those of one user. */
  markOf(ballot: Ballot, aliases: Map<string, string>): string {
    return this.markOfValue(this.valuesOf(ballot), aliases);
  }

  private markOfValue(value: PolicyValue | undefined, aliases: Map<string, string>): string {
    if (Array.isArray(value)) {
      let mark = `${value.length}[`;
      for (const element of value as readonly PolicyValue[]) mark += this.markOfValue(element, aliases);
      return mark;
    }
    if (typeof value !== 'string') return '-';
    const text = value.toLowerCase();
    if (this.isExact || this.shared.has(text)) return `${value.length}=${value}`;
    const alias = aliases.get(text) ?? `#${aliases.size}`;
    aliases.set(text, alias);
    return alias;
  }

  private note(text: string, userId: string): void {
    const holder = this.holders.get(text) ?? userId;
    this.holders.set(text, holder);
    if (holder !== userId) this.shared.add(text);
  }

  private textsOf(ballot: Ballot): readonly string[] {
    return this.valuesOf(ballot).flatMap(textsIn);
  }

  private valuesOf(ballot: Ballot): readonly PolicyValue[] {
    return this.fields.map(({ part, field }) => {
      const record = ballot[part] as Readonly<Record<string, PolicyValue | undefined>>;
      return record[field] ?? [];
    });
  }
}

function textsIn(value: PolicyValue | undefined): readonly string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return (value as readonly PolicyValue[]).flatMap(textsIn);
  if (typeof value !== 'object' || value instanceof Doubt || value instanceof AmbiguousText) return [];
  return Object.values(value).flatMap(textsIn);
}

/** What a question makes of a set of ballots: `too-many` when fewer may be what it looks for. */
type Judge = (set: Company) => 'found' | 'too-many' | 'none';

/**
 * Looks for a set of ballots of the members: first everybody, then, kind by kind, as few as are still too many, then
 * every set from the smallest on; or only that, where the smallest is wanted.
 */
function search(
  analysis: Analysis,
  members: readonly Member[],
  trial: Trial,
  judge: Judge,
  order: 'by guesses first' | 'from the smallest' = 'by guesses first',
): boolean {
  if (analysis.kind === 'ordered') return searchSequences(members, trial, judge);
  const { cap } = analysis;
  const kinds = new Map<string, Member[]>();
  for (const member of members) {
    const known = kinds.get(member.kind);
    if (known) known.push(member);
    else kinds.set(member.kind, [member]);
  }
  const groups = [...kinds.values()].map((alike) => ({ members: alike, choices: alike[0]!.choices }));
  const slots = groups.flatMap(({ members: alike, choices }, group) =>
    choices.map((choice, place) => ({
      choice,
      group,
      place,
      of: { members: alike, place },
      limit: choice.isNeutral ? 1 : Math.min(cap, alike.length),
    })),
  );
  const setOf = (counts: readonly number[]): Company => {
    trial.steps.take('listElement', counts.length);
    return counts.flatMap((count, index) => (count > 0 ? [{ ...slots[index]!, count }] : []));
  };

  // What is found at all is mostly found here, also where there are too many sets to try each.
  const guesses = trial.steps.spent + trial.steps.left / 2;
  const isGuessing = () => order === 'by guesses first' && trial.steps.spent < guesses;
  const mostChoices = Math.max(0, ...groups.map(({ choices }) => choices.length));
  for (let choice = 0; choice < mostChoices && isGuessing(); choice += 1) {
    const counts = slots.map(({ group, place, limit }) => {
      const { choices } = groups[group]!;
      return place === Math.min(choice, choices.length - 1) ? limit : 0;
    });
    if (judge(setOf(counts)) === 'found') return true;
    for (let index = 0; index < counts.length; index += 1) {
      let fewest = 0;
      let kept = counts[index]!;
      while (fewest < kept && isGuessing()) {
        counts[index] = Math.floor((fewest + kept) / 2);
        const verdict = judge(setOf(counts));
        if (verdict === 'found') return true;
        if (verdict === 'too-many') kept = counts[index]!;
        else fewest = counts[index]! + 1;
      }
      counts[index] = kept;
    }
  }

  // How many the slots from each on can take, so that no branch is entered that cannot be filled.
  const capacity: number[] = [];
  for (let index = slots.length - 1, inGroup = 0, behind = 0; index >= 0; index -= 1) {
    const { group, limit } = slots[index]!;
    inGroup += limit;
    capacity[index] = behind + Math.min(inGroup, groups[group]!.members.length);
    if (slots[index - 1]?.group !== group) {
      behind = capacity[index]!;
      inGroup = 0;
    }
  }
  const free = groups.map(({ members: alike }) => alike.length);
  const company: Company[number][] = [];
  const fill = (first: number, left: number): boolean => {
    if (left === 0) return judge(company) === 'found';
    for (let index = first; index < slots.length && left <= capacity[index]! && !trial.isSpent; index += 1) {
      const { choice, group, limit, of } = slots[index]!;
      for (let count = Math.min(left, limit, free[group]!); count > 0; count -= 1) {
        company.push({ choice, count, of });
        free[group]! -= count;
        const isFound = fill(index + 1, left - count);
        free[group]! += count;
        company.pop();
        if (isFound) return true;
      }
    }
    return false;
  };
  for (let size = 0; size <= (capacity[0] ?? 0) && !trial.isSpent; size += 1) if (fill(0, size)) return true;
  return false;
}

function searchSequences(members: readonly Member[], trial: Trial, judge: Judge): boolean {
  const sequence: Company[number][] = [];
  const used = new Set<Member>();
  const extend = (left: number): boolean => {
    if (trial.isSpent) return false;
    if (left === 0) return judge(sequence) === 'found';
    return members.some((member) => {
      if (used.has(member)) return false;
      used.add(member);
      const isFound = member.choices.some((choice) => {
        sequence.push({ choice, count: 1 });
        const isFoundWith = extend(left - 1);
        sequence.pop();
        return isFoundWith;
      });
      used.delete(member);
      return isFound;
    });
  };
  for (let length = 0; length <= members.length && !trial.isSpent; length += 1) if (extend(length)) return true;
  return false;
}
