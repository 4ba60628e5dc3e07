import { OutOfSteps, Steps } from '../steps.js';
import { analyse, type Analysis, type Predicate, type Term } from './consensus-analysis.js';
import { evaluate, evaluateBody, evaluateWith, isCertain, type Reading, type Scope } from './evaluate.js';
import { approverValue, credentialValue } from './namespaces.js';
import { rootsOf } from './roots.js';
import type { CheckedExpression } from './syntax.js';
import { AmbiguousText, Doubt, unreadable, type PolicyUser, type PolicyValue, type UserApproval } from './types.js';

/** Most steps that one question about a consensus may take: 10 ms. */
const maxStepsPerQuestion = 100_000;
/** Most steps for all questions about the voters of one decision: 20 ms. */
export const maxStepsInAll = 200_000;

/** What questions about consensuses may take, one and all together. */
export interface VoteBounds {
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
export class Voters {
  private readonly castVotes: readonly Vote[];
  private readonly scope: Scope;
  private readonly knownKinds = new Map<CheckedExpression, VoterKinds>();
  private readonly steps: Steps;
  private readonly questionSteps: number;
  private knownCandidates: ReadonlyMap<string, readonly Vote[]> | undefined;

  /**
   * `cast` are the live approvals in vote order, one per user; `outer` has the time and the names other than the
   * approvals. What votes could do is told with `bounds` of `all`.
   */
  constructor(
    private readonly users: () => readonly PolicyUser[],
    private readonly cast: readonly UserApproval[],
    private readonly outer: Scope,
    private readonly all = new Steps(),
    bounds: VoteBounds = { question: maxStepsPerQuestion, all: maxStepsInAll },
  ) {
    this.castVotes = cast.map(voteOf);
    this.scope = scopeOf(this.castVotes, outer, all);
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
    return this.ask(consensus, (tally) => {
      const kinds = this.kindsOf(consensus, tally);
      const cast = this.castVotes.map((vote) => kinds.choiceOf(vote, tally));
      const others = kinds.voters.filter(({ userId }) => !this.castBy(userId));
      return search(analyse(consensus), others, tally, (set) =>
        tally.holds([...alone(cast), ...set]) ? 'found' : 'none',
      );
    });
  }

  /**
   * Whether the approval of a user can matter: there are approvals of other users that do not satisfy the consensus, and
   * do together with this user's. It is the approval the user has cast, or any that it could cast.
   */
  contributes(consensus: CheckedExpression, userId: string): boolean {
    return this.ask(consensus, (tally) => {
      const analysis = analyse(consensus);
      const kinds = this.kindsOf(consensus, tally);
      const own = this.votesOf(userId).map((vote) => kinds.choiceOf(vote, tally));
      if (own.some((choice) => tally.holds(alone([choice])))) return true;
      // The usual case on the hot path: nothing in the expression looks at this user, so no set of others makes it matter.
      if (own.every(({ isNeutral }) => isNeutral)) return false;
      const others = kinds.voters.filter((voter) => voter.userId !== userId);
      const holdsWithOwn = (set: VoteSet) =>
        own.some((choice) =>
          analysis.kind === 'ordered'
            ? Array.from({ length: set.length + 1 }).some((_, place) =>
                tally.holds(set.toSpliced(place, 0, { choice, count: 1 })),
              )
            : tally.holds([...set, { choice, count: 1 }]),
        );
      return search(analysis, others, tally, (set) =>
        holdsWithOwn(set) ? (tally.holds(set) ? 'too-many' : 'found') : 'none',
      );
    });
  }

  /**
   * The fewest approvals of further users that would, with those cast, satisfy the consensus. Undefined when there are none, or
   * when telling takes too long.
   */
  fewestMore(consensus: CheckedExpression): number | undefined {
    const fewest = this.ask(consensus, (tally) => {
      const kinds = this.kindsOf(consensus, tally);
      const cast = alone(this.castVotes.map((vote) => kinds.choiceOf(vote, tally)));
      const others = kinds.voters.filter(({ userId }) => !this.castBy(userId));
      let size = 0;
      const isEnough = (set: VoteSet) => {
        size = sizeOf(set);
        return tally.holds([...cast, ...set]) ? 'found' : 'none';
      };
      return search(analyse(consensus), others, tally, isEnough, 'from the smallest') && { size };
    });
    return fewest ? fewest.size : undefined;
  }

  /** Ids of the users whose approval can matter, in the order of the users. */
  contributors(consensus: CheckedExpression): string[] {
    const answers = new Map<string, boolean>();
    const found: string[] = [];
    const voters = this.ask(consensus, (tally) => this.kindsOf(consensus, tally).voters) || [];
    for (const { userId, kind } of voters) {
      // Who has voted has no choice of credential left, and so may differ from others of its kind.
      const key = this.castBy(userId) ? `voted ${userId}` : kind;
      const answer = answers.get(key) ?? this.contributes(consensus, userId);
      answers.set(key, answer);
      if (answer) found.push(userId);
    }
    return found;
  }

  /** An answer within the bounds; beyond them it is no. */
  private ask<Answer>(consensus: CheckedExpression, answer: (tally: Tally) => Answer): Answer | false {
    const tally = new Tally(consensus, this.outer, this.steps.upTo(this.questionSteps), this.questionSteps);
    try {
      return answer(tally);
    } catch (error) {
      if (error instanceof OutOfSteps) return false;
      throw error;
    }
  }

  private castBy(userId: string): UserApproval | undefined {
    return this.cast.find(({ user }) => user.userId === userId);
  }

  private votesOf(userId: string): readonly Vote[] {
    const approval = this.castBy(userId);
    return approval ? [voteOf(approval)] : (this.candidatesOf().get(userId) ?? []);
  }

  /** By user: the votes it could cast. */
  private candidatesOf(): ReadonlyMap<string, readonly Vote[]> {
    this.knownCandidates ??= new Map(
      this.users().map((user) => [user.userId, user.credentials.map((credential) => voteOf({ user, credential }))]),
    );
    return this.knownCandidates;
  }

  private kindsOf(consensus: CheckedExpression, tally: Tally): VoterKinds {
    let kinds = this.knownKinds.get(consensus);
    if (!kinds) {
      const votes = this.users().reduce((sum, { credentials }) => sum + credentials.length, 0);
      // To be told apart by every field takes longer than by what each predicate makes of them.
      tally.steps.take('voteTold', tally.analysis.kind === 'subsets' ? 2 * votes : votes);
      kinds = new VoterKinds(consensus, this.candidatesOf(), this.castVotes, tally);
      this.knownKinds.set(consensus, kinds);
    }
    return kinds;
  }
}

/** One approval, as the language sees it. */
interface Vote {
  readonly approver: PolicyValue;
  readonly credential: PolicyValue;
}

function voteOf(approval: UserApproval): Vote {
  return { approver: approverValue(approval.user), credential: credentialValue(approval) };
}

/** The approvals as the language sees them: as lists that are made once they are asked for. */
function scopeOf(votes: readonly Vote[], outer: Scope, steps: Steps): Scope {
  let approvers: PolicyValue | undefined;
  let credentials: PolicyValue | undefined;
  const listOf = (part: (vote: Vote) => PolicyValue) => {
    steps.take('voteCopied', votes.length);
    return votes.map(part);
  };
  return {
    now: outer.now,
    value: (name) => {
      if (name === 'approvers') return (approvers ??= listOf((vote) => vote.approver));
      if (name === 'credentials') return (credentials ??= listOf((vote) => vote.credential));
      return outer.value(name);
    },
  };
}

/** A vote, as far as an expression can tell it from others: `mark` is the same where it cannot. */
interface Choice {
  readonly vote: Vote;
  readonly mark: string;
  /** It changes the value of the expression in no set of votes. */
  readonly isNeutral: boolean;
}

/** Votes together: how many there are of each choice, and of which voters, where it is of several alike. */
type VoteSet = readonly {
  readonly choice: Choice;
  readonly count: number;
  readonly of?: { readonly voters: readonly Voter[]; readonly place: number };
}[];

function alone(choices: readonly Choice[]): VoteSet {
  return choices.map((choice) => ({ choice, count: 1 }));
}

function sizeOf(set: VoteSet): number {
  return set.reduce((sum, { count }) => sum + count, 0);
}

/** Each of another user: an expression that relates them can tell that. */
function votesOf(set: VoteSet): readonly Vote[] {
  const taken = new Map<readonly Voter[], number>();
  return set.flatMap(({ choice, count, of }) => {
    if (!of) return [choice.vote];
    const { voters, place } = of;
    const from = taken.get(voters) ?? 0;
    taken.set(voters, from + count);
    return voters.slice(from, from + count).map(({ choices }) => choices[place]!.vote);
  });
}

/** Evaluates sets of votes for one question, and watches the bounds. */
class Tally {
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

  holds(set: VoteSet): boolean {
    if (!set.some(({ count }) => count > 0)) return false;
    this.steps.take('votesTried');
    const { analysis } = this;
    if (analysis.kind === 'symmetric') {
      const known = new Map(analysis.terms.map((term, index) => [term.node, this.valueOf(term, index, set)]));
      return this.certain(evaluateWith(known, this.consensus, this.outer, this.steps));
    }
    const votes = votesOf(set);
    this.steps.take('voteCopied', votes.length);
    return this.certain(evaluate(this.consensus, scopeOf(votes, this.outer, this.steps), this.steps));
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

  /** What a term is of a set of votes, from the letters that its votes have for it. */
  private valueOf({ last }: Term, index: number, set: VoteSet): PolicyValue {
    this.steps.take('listElement', set.length);
    let counted = 0;
    let isAny = false;
    let isAll = true;
    for (const { choice, count } of set) {
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
 * What each term makes of a vote, a letter each; `n` is neutral: it changes the value of the term in no list.
 */
function lettersOf(
  { approver, credential }: Vote,
  { terms }: Extract<Analysis, { kind: 'symmetric' }>,
  tally: Tally,
): string {
  let letters = '';
  for (const term of terms) letters += letterOf(term, term.list === 'approvers' ? approver : credential, tally);
  return letters;
}

function letterOf({ filters, last }: Term, element: PolicyValue, tally: Tally): string {
  for (const filter of filters) {
    const isKept = tally.predicate(filter, element);
    if (isKept !== true) return isKept === 'doubt' ? 'd' : 'n';
  }
  if (last === 'count') return 'c';
  const value = tally.predicate(last, element);
  if (value === (last.method === 'all')) return 'n';
  return value === 'doubt' ? 'd' : last.method === 'any' ? 't' : 'f';
}

/** A user who could approve, and the votes to choose from: one of each that can be told apart. */
interface Voter {
  readonly userId: string;
  /** Members of one kind can stand for each other. */
  readonly kind: string;
  readonly choices: readonly Choice[];
}

/** Who could approve, as far as one expression can tell them apart. */
class VoterKinds {
  readonly voters: readonly Voter[];
  private readonly likeness: Likeness | undefined;

  constructor(
    consensus: CheckedExpression,
    candidates: ReadonlyMap<string, readonly Vote[]>,
    cast: readonly Vote[],
    tally: Tally,
  ) {
    const { analysis } = tally;
    if (analysis.kind === 'subsets') this.likeness = new Likeness(consensus, analysis, candidates, cast, tally.outer);
    this.voters = [...candidates].flatMap(([userId, votes]) =>
      votes.length > 0 ? [this.voterOf(userId, votes, tally)] : [],
    );
  }

  choiceOf(vote: Vote, tally: Tally, aliases = new Map<string, string>()): Choice {
    if (tally.analysis.kind !== 'symmetric') {
      return { vote, mark: this.likeness?.markOf(vote, aliases) ?? '', isNeutral: false };
    }
    const mark = lettersOf(vote, tally.analysis, tally);
    return { vote, mark, isNeutral: !/[^n]/.test(mark) };
  }

  private voterOf(userId: string, votes: readonly Vote[], tally: Tally): Voter {
    const aliases = new Map<string, string>();
    const choices = votes.map((vote) => this.choiceOf(vote, tally, aliases));
    if (tally.analysis.kind === 'ordered') return { userId, kind: userId, choices };
    const distinct = [...new Map(choices.map((choice) => [choice.mark, choice])).values()];
    distinct.sort((a, b) => (a.mark < b.mark ? -1 : 1));
    return { userId, kind: distinct.map(({ mark }) => mark).join('|'), choices: distinct };
  }
}

/**
 * Tells which votes an expression that relates them cannot tell apart: those that agree in every field that it reads. A
 * text that only one user has, and that nothing else names, is like any other such text: to exchange all of one user's
 * with another's changes nothing.
 */
class Likeness {
  /** In lower case, as some comparisons do not look at it: who has a text, and which are no one user's. */
  private readonly holders = new Map<string, string>();
  private readonly shared = new Set<string>();
  private readonly isExact: boolean;
  /** The fields that the expression reads, by the part of a vote that has them. */
  private readonly fields: readonly { readonly part: keyof Vote; readonly field: string }[];

  constructor(
    consensus: CheckedExpression,
    analysis: Extract<Analysis, { kind: 'subsets' }>,
    candidates: ReadonlyMap<string, readonly Vote[]>,
    cast: readonly Vote[],
    outer: Scope,
  ) {
    const roots = [...rootsOf(consensus)];
    const fieldsOf = (part: keyof Vote, list: Term['list'], fields: readonly string[]) =>
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
    for (const text of [...analysis.texts, ...named, ...cast.flatMap((vote) => this.textsOf(vote))]) {
      this.shared.add(text.toLowerCase());
    }
    for (const [userId, votes] of candidates) {
      for (const vote of votes) for (const text of this.textsOf(vote)) this.note(text.toLowerCase(), userId);
    }
  }

  /** The same for two votes that can be exchanged together with their users. `aliases` are those of one user. */
  markOf(vote: Vote, aliases: Map<string, string>): string {
    return this.markOfValue(this.valuesOf(vote), aliases);
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

  private textsOf(vote: Vote): readonly string[] {
    return this.valuesOf(vote).flatMap(textsIn);
  }

  private valuesOf(vote: Vote): readonly PolicyValue[] {
    return this.fields.map(({ part, field }) => {
      const record = vote[part] as Readonly<Record<string, PolicyValue | undefined>>;
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

/** What a question makes of a set of votes: `too-many` when fewer may be what it looks for. */
type Test = (set: VoteSet) => 'found' | 'too-many' | 'none';

/**
 * Looks for a set of votes of the voters: first everybody, then, kind by kind, as few as are still too many, then
 * every set from the smallest on; or only that, where the smallest is wanted.
 */
function search(
  analysis: Analysis,
  voters: readonly Voter[],
  tally: Tally,
  test: Test,
  order: 'by guesses first' | 'from the smallest' = 'by guesses first',
): boolean {
  if (analysis.kind === 'ordered') return searchSequences(voters, tally, test);
  const { cap } = analysis;
  const kinds = new Map<string, Voter[]>();
  for (const voter of voters) {
    const known = kinds.get(voter.kind);
    if (known) known.push(voter);
    else kinds.set(voter.kind, [voter]);
  }
  const groups = [...kinds.values()].map((alike) => ({ voters: alike, choices: alike[0]!.choices }));
  const slots = groups.flatMap(({ voters: alike, choices }, group) =>
    choices.map((choice, place) => ({
      choice,
      group,
      place,
      of: { voters: alike, place },
      limit: choice.isNeutral ? 1 : Math.min(cap, alike.length),
    })),
  );
  const setOf = (counts: readonly number[]): VoteSet => {
    tally.steps.take('listElement', counts.length);
    return counts.flatMap((count, index) => (count > 0 ? [{ ...slots[index]!, count }] : []));
  };

  // What is found at all is mostly found here, also where there are too many sets to try each.
  const guesses = tally.steps.spent + tally.steps.left / 2;
  const isGuessing = () => order === 'by guesses first' && tally.steps.spent < guesses;
  const mostChoices = Math.max(0, ...groups.map(({ choices }) => choices.length));
  for (let choice = 0; choice < mostChoices && isGuessing(); choice += 1) {
    const counts = slots.map(({ group, place, limit }) => {
      const { choices } = groups[group]!;
      return place === Math.min(choice, choices.length - 1) ? limit : 0;
    });
    if (test(setOf(counts)) === 'found') return true;
    for (let index = 0; index < counts.length; index += 1) {
      let fewest = 0;
      let kept = counts[index]!;
      while (fewest < kept && isGuessing()) {
        counts[index] = Math.floor((fewest + kept) / 2);
        const answer = test(setOf(counts));
        if (answer === 'found') return true;
        if (answer === 'too-many') kept = counts[index]!;
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
    capacity[index] = behind + Math.min(inGroup, groups[group]!.voters.length);
    if (slots[index - 1]?.group !== group) {
      behind = capacity[index]!;
      inGroup = 0;
    }
  }
  const free = groups.map(({ voters: alike }) => alike.length);
  const set: VoteSet[number][] = [];
  const fill = (first: number, left: number): boolean => {
    if (left === 0) return test(set) === 'found';
    for (let index = first; index < slots.length && left <= capacity[index]! && !tally.isSpent; index += 1) {
      const { choice, group, limit, of } = slots[index]!;
      for (let count = Math.min(left, limit, free[group]!); count > 0; count -= 1) {
        set.push({ choice, count, of });
        free[group]! -= count;
        const isFound = fill(index + 1, left - count);
        free[group]! += count;
        set.pop();
        if (isFound) return true;
      }
    }
    return false;
  };
  for (let size = 0; size <= (capacity[0] ?? 0) && !tally.isSpent; size += 1) if (fill(0, size)) return true;
  return false;
}

function searchSequences(voters: readonly Voter[], tally: Tally, test: Test): boolean {
  const sequence: VoteSet[number][] = [];
  const used = new Set<Voter>();
  const extend = (left: number): boolean => {
    if (tally.isSpent) return false;
    if (left === 0) return test(sequence) === 'found';
    return voters.some((voter) => {
      if (used.has(voter)) return false;
      used.add(voter);
      const isFound = voter.choices.some((choice) => {
        sequence.push({ choice, count: 1 });
        const isFoundWith = extend(left - 1);
        sequence.pop();
        return isFoundWith;
      });
      used.delete(voter);
      return isFound;
    });
  };
  for (let length = 0; length <= voters.length && !tally.isSpent; length += 1) if (extend(length)) return true;
  return false;
}
