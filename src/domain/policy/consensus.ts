import { evaluate, evaluateBody, type Meter, type Scope } from './evaluate.js';
import { approverValue, credentialValue } from './namespaces.js';
import { PolicyEvaluationError, type CheckedExpression } from './syntax.js';
import type { PolicyUser, PolicyValue, UserApproval } from './types.js';

/** Most evaluation steps that one question about a consensus may take: some ten milliseconds. */
export const maxStepsPerQuestion = 200_000;
/** Most evaluation steps for all questions to one electorate: a tenth of a second. */
export const maxStepsInAll = 1_000_000;

/**
 * Answers whose approval a consensus has, could get, and depends on (client protocol 9.5), at one revision.
 *
 * A set of approvals satisfies a consensus when it is not empty and the expression is true of it without an error: an
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
  private readonly members = new Map<CheckedExpression, readonly Member[]>();
  private readonly total: Meter = { steps: 0 };

  /**
   * `cast` are the live approvals in vote order, one per user; `outer` has the time and the names other than the
   * approvals.
   */
  constructor(
    private readonly users: readonly PolicyUser[],
    private readonly cast: readonly UserApproval[],
    private readonly outer: Scope,
  ) {
    this.castBallots = cast.map(ballotOf);
    this.scope = scopeOf(this.castBallots, outer);
  }

  /**
   * Whether the approvals cast satisfy the consensus.
   * @throws {PolicyEvaluationError}
   */
  isSatisfied(consensus: CheckedExpression): boolean {
    const isTrue = evaluate(consensus, this.scope) === true;
    return isTrue && this.cast.length > 0;
  }

  /** Whether some approvals of further users, with those cast, would satisfy the consensus. */
  isReachable(consensus: CheckedExpression): boolean {
    const others = this.membersFor(consensus).filter(({ userId }) => !this.castBy(userId));
    const trial = new Trial(consensus, this.outer, this.total);
    return search(analyse(consensus), others, trial, (set) =>
      trial.holds([...this.castBallots, ...set]) ? 'found' : 'none',
    );
  }

  /**
   * Whether the approval of a user can matter: there are approvals of other users that do not satisfy the consensus, and
   * do together with this user's. It is the approval the user has cast, or any that it could cast.
   */
  contributes(consensus: CheckedExpression, userId: string): boolean {
    const analysis = analyse(consensus);
    const own = this.ballotsOf(userId);
    const trial = new Trial(consensus, this.outer, this.total);
    if (own.some((ballot) => trial.holds([ballot]))) return true;
    // The usual case on the hot path: nothing in the expression looks at this user, so no company makes it matter.
    if (analysis.kind === 'symmetric' && own.every((ballot) => signature(ballot, analysis, trial).isNeutral))
      return false;
    const others = this.membersFor(consensus).filter((member) => member.userId !== userId);
    const holdsWithOwn = (set: readonly Ballot[]) =>
      own.some((ballot) =>
        analysis.kind === 'ordered'
          ? Array.from({ length: set.length + 1 }).some((_, place) => trial.holds(set.toSpliced(place, 0, ballot)))
          : trial.holds([...set, ballot]),
      );
    return search(analysis, others, trial, (set) =>
      holdsWithOwn(set) ? (trial.holds(set) ? 'too-many' : 'found') : 'none',
    );
  }

  /** Ids of the users whose approval can matter, in the order of the users. */
  contributors(consensus: CheckedExpression): string[] {
    const answers = new Map<string, boolean>();
    const found: string[] = [];
    for (const { userId, kind } of this.membersFor(consensus)) {
      // Who has voted has no choice of credential left, and so may differ from others of its kind.
      const key = this.castBy(userId) ? `voted ${userId}` : kind;
      const answer = answers.get(key) ?? this.contributes(consensus, userId);
      answers.set(key, answer);
      if (answer) found.push(userId);
    }
    return found;
  }

  private castBy(userId: string): UserApproval | undefined {
    return this.cast.find(({ user }) => user.userId === userId);
  }

  private ballotsOf(userId: string): readonly Ballot[] {
    const approval = this.castBy(userId);
    if (approval) return [ballotOf(approval)];
    const user = this.users.find((one) => one.userId === userId);
    return user ? possibleBallots(user) : [];
  }

  private membersFor(consensus: CheckedExpression): readonly Member[] {
    let members = this.members.get(consensus);
    if (!members) {
      const analysis = analyse(consensus);
      const trial = new Trial(consensus, this.outer, this.total);
      members = this.users
        .filter(({ credentials }) => credentials.length > 0)
        .flatMap((user) => (trial.isSpent ? [] : [memberOf(user, analysis, trial)]));
      this.members.set(consensus, members);
    }
    return members;
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

function possibleBallots(user: PolicyUser): Ballot[] {
  return user.credentials.map((credential) => ballotOf({ user, credential }));
}

function scopeOf(ballots: readonly Ballot[], outer: Scope): Scope {
  const approvers = ballots.map(({ approver }) => approver);
  const credentials = ballots.map(({ credential }) => credential);
  return {
    now: outer.now,
    value: (name) => (name === 'approvers' ? approvers : name === 'credentials' ? credentials : outer.value(name)),
  };
}

/** Evaluates sets of ballots for one question, and watches the bounds. */
class Trial {
  private readonly before: number;

  constructor(
    private readonly consensus: CheckedExpression,
    private readonly outer: Scope,
    private readonly meter: Meter,
  ) {
    this.before = meter.steps;
  }

  get isSpent(): boolean {
    return this.spends(maxStepsPerQuestion);
  }

  /** Whether the question has taken that many steps, or all questions together too many. */
  spends(steps: number): boolean {
    return this.meter.steps - this.before >= steps || this.meter.steps >= maxStepsInAll;
  }

  holds(ballots: readonly Ballot[]): boolean {
    if (ballots.length === 0) return false;
    const scope = scopeOf(ballots, this.outer);
    return orError(() => evaluate(this.consensus, scope, this.meter) === true) === true;
  }

  predicate(body: CheckedExpression, element: PolicyValue): boolean | 'error' {
    return orError(() => evaluateBody(body, element, this.outer, this.meter) === true);
  }
}

function orError(evaluation: () => boolean): boolean | 'error' {
  try {
    return evaluation();
  } catch (error) {
    if (error instanceof PolicyEvaluationError) return 'error';
    throw error;
  }
}

/** One way an expression looks at the approvals: `list.filter(…)….any(…)`, `.all(…)` or `.count()`. */
interface Term {
  readonly list: 'approvers' | 'credentials';
  readonly filters: readonly CheckedExpression[];
  readonly last: { readonly method: 'any' | 'all'; readonly body: CheckedExpression } | 'count';
}

/**
 * How much an expression can tell approvals apart.
 * `symmetric`: it looks at each alone and counts, so that only how many there are of each signature matters, and no more
 * than `cap` of one: `cap` is beyond every number it compares a count with.
 * `subsets`: it relates approvals to each other, so that each user stands for itself.
 * `ordered`: it picks by position, so that the order matters as well.
 */
type Analysis =
  | { readonly kind: 'symmetric'; readonly terms: readonly Term[]; readonly cap: number }
  | { readonly kind: 'subsets' }
  | { readonly kind: 'ordered' };

/** Remembers a pure function of an expression, by its identity. */
const analyses = new WeakMap<CheckedExpression, Analysis>();

function analyse(consensus: CheckedExpression): Analysis {
  let analysis = analyses.get(consensus);
  if (!analysis) {
    analysis = new Analyser().analyse(consensus);
    analyses.set(consensus, analysis);
  }
  return analysis;
}

class Analyser {
  private readonly terms: Term[] = [];
  private largest = 0n;
  private isCapped = true;
  private isOrdered = false;
  private isRelational = false;

  analyse(consensus: CheckedExpression): Analysis {
    this.visit(consensus, false);
    if (this.isOrdered) return { kind: 'ordered' };
    if (this.isRelational) return { kind: 'subsets' };
    // Beyond any number of users is as good as no cap.
    const cap = this.isCapped && this.largest < 1_000_000n ? Number(this.largest) + 1 : Infinity;
    return { kind: 'symmetric', terms: this.terms, cap };
  }

  private visit(node: CheckedExpression, isInBody: boolean): void {
    switch (node.kind) {
      case 'constant':
        this.constant(node.value);
        return;
      case 'root':
        // Reached only where no function of lists takes it: by an index or a slice.
        if (isApprovals(node.name)) this.isOrdered = true;
        return;
      case 'variable':
      case 'cron-span':
        return;
      case 'list':
        for (const item of node.items) this.visit(item, isInBody);
        return;
      case 'field':
        this.visit(node.of, isInBody);
        return;
      case 'index':
        this.visit(node.of, isInBody);
        this.visit(node.index, isInBody);
        return;
      case 'slice':
        this.visit(node.of, isInBody);
        this.visit(node.from, isInBody);
        this.visit(node.to, isInBody);
        return;
      case 'not':
        this.visit(node.operand, isInBody);
        return;
      case 'logical':
        for (const operand of node.operands) this.visit(operand, isInBody);
        return;
      case 'comparison':
        this.compared(node.left, node.right.kind === 'constant', isInBody);
        this.compared(node.right, node.left.kind === 'constant', isInBody);
        return;
      case 'contains':
        this.compared(node.item, node.of.kind === 'constant', isInBody);
        this.visit(node.of, isInBody);
        return;
      case 'count':
        this.compared(node, false, isInBody);
        return;
      case 'quantifier': {
        const source = sourceOf(node.of);
        if (source && node.method !== 'filter') {
          this.term({ ...source, last: { method: node.method, body: node.body } }, isInBody);
        } else {
          this.visit(node.of, isInBody);
          this.visit(node.body, true);
        }
        return;
      }
    }
  }

  /** A count of approvals that meets anything but constants may matter beyond every number in the text. */
  private compared(node: CheckedExpression, isWithConstant: boolean, isInBody: boolean): void {
    if (node.kind !== 'count') return this.visit(node, isInBody);
    const source = sourceOf(node.of);
    if (!source) return this.visit(node.of, isInBody);
    this.term({ ...source, last: 'count' }, isInBody);
    if (!isWithConstant) this.isCapped = false;
  }

  private term(term: Term, isInBody: boolean): void {
    const bodies = term.last === 'count' ? term.filters : [...term.filters, term.last.body];
    for (const body of bodies) this.visit(body, true);
    if (isInBody) this.isRelational = true;
    this.terms.push(term);
  }

  private constant(value: PolicyValue): void {
    if (typeof value === 'bigint' && value > this.largest) this.largest = value;
    if (Array.isArray(value)) for (const item of value as readonly PolicyValue[]) this.constant(item);
  }
}

function isApprovals(name: string): name is Term['list'] {
  return name === 'approvers' || name === 'credentials';
}

/** The approvals under a chain of filters, or undefined when the list is another. */
function sourceOf(list: CheckedExpression): Pick<Term, 'list' | 'filters'> | undefined {
  if (list.kind === 'root' && isApprovals(list.name)) return { list: list.name, filters: [] };
  if (list.kind !== 'quantifier' || list.method !== 'filter') return undefined;
  const source = sourceOf(list.of);
  return source && { list: source.list, filters: [...source.filters, list.body] };
}

/** What each term makes of a ballot. A neutral one changes the value of no term, whatever else is in the list. */
function signature(
  ballot: Ballot,
  { terms }: Extract<Analysis, { kind: 'symmetric' }>,
  trial: Trial,
): { key: string; isNeutral: boolean } {
  const parts = terms.map((term) => {
    const element = term.list === 'approvers' ? ballot.approver : ballot.credential;
    for (const filter of term.filters) {
      const isKept = trial.predicate(filter, element);
      if (isKept !== true) return isKept === 'error' ? 'error' : 'neutral';
    }
    if (term.last === 'count') return 'counted';
    const value = trial.predicate(term.last.body, element);
    return value === (term.last.method === 'all') ? 'neutral' : String(value);
  });
  return { key: parts.join(), isNeutral: parts.every((part) => part === 'neutral') };
}

/** A user who could approve, and the ballots to choose from: one of each signature. */
interface Member {
  readonly userId: string;
  /** Members of one kind can stand for each other. */
  readonly kind: string;
  readonly choices: readonly { readonly ballot: Ballot; readonly isNeutral: boolean }[];
}

function memberOf(user: PolicyUser, analysis: Analysis, trial: Trial): Member {
  const { userId } = user;
  const ballots = possibleBallots(user);
  if (analysis.kind !== 'symmetric') {
    return { userId, kind: userId, choices: ballots.map((ballot) => ({ ballot, isNeutral: false })) };
  }
  const choices = new Map<string, Member['choices'][number]>();
  for (const ballot of ballots) {
    const { key, isNeutral } = signature(ballot, analysis, trial);
    if (!choices.has(key)) choices.set(key, { ballot, isNeutral });
  }
  const keys = [...choices.keys()].sort();
  return { userId, kind: keys.join('|'), choices: keys.map((key) => choices.get(key)!) };
}

/** What a question makes of a set of ballots: `too-many` when fewer may be what it looks for. */
type Judge = (set: readonly Ballot[]) => 'found' | 'too-many' | 'none';

/**
 * Looks for a set of ballots of the members: first everybody, then, kind by kind, as few as are still too many, then
 * every set from the smallest on.
 */
function search(analysis: Analysis, members: readonly Member[], trial: Trial, judge: Judge): boolean {
  if (analysis.kind === 'ordered') return searchSequences(members, trial, judge);
  const cap = analysis.kind === 'symmetric' ? analysis.cap : 1;
  const kinds = new Map<string, { choices: Member['choices']; size: number }>();
  for (const { kind, choices } of members) {
    const known = kinds.get(kind);
    if (known) known.size += 1;
    else kinds.set(kind, { choices, size: 1 });
  }
  const groups = [...kinds.values()];
  const slots = groups.flatMap(({ choices, size }, group) =>
    choices.map(({ ballot, isNeutral }, place) => ({
      ballot,
      group,
      place,
      limit: isNeutral ? 1 : Math.min(cap, size),
    })),
  );
  const setOf = (counts: readonly number[]) =>
    counts.flatMap((count, index) => Array.from({ length: count }, () => slots[index]!.ballot));

  // What is found at all is mostly found here, also where there are too many sets to try each.
  const guesses = maxStepsPerQuestion / 2;
  const mostChoices = Math.max(0, ...groups.map(({ choices }) => choices.length));
  for (let choice = 0; choice < mostChoices && !trial.spends(guesses); choice += 1) {
    const counts = slots.map(({ group, place, limit }) => {
      const { choices } = groups[group]!;
      return place === Math.min(choice, choices.length - 1) ? limit : 0;
    });
    if (judge(setOf(counts)) === 'found') return true;
    for (let index = 0; index < counts.length; index += 1) {
      let fewest = 0;
      let kept = counts[index]!;
      while (fewest < kept && !trial.spends(guesses)) {
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
    capacity[index] = behind + Math.min(inGroup, groups[group]!.size);
    if (slots[index - 1]?.group !== group) {
      behind = capacity[index]!;
      inGroup = 0;
    }
  }
  const free = groups.map(({ size }) => size);
  const counts = slots.map(() => 0);
  const fill = (first: number, left: number): boolean => {
    if (left === 0) return judge(setOf(counts)) === 'found';
    for (let index = first; index < slots.length && left <= capacity[index]! && !trial.isSpent; index += 1) {
      const { group, limit } = slots[index]!;
      for (let count = Math.min(left, limit, free[group]!); count > 0; count -= 1) {
        counts[index] = count;
        free[group]! -= count;
        const isFound = fill(index + 1, left - count);
        free[group]! += count;
        counts[index] = 0;
        if (isFound) return true;
      }
    }
    return false;
  };
  for (let size = 0; size <= (capacity[0] ?? 0) && !trial.isSpent; size += 1) if (fill(0, size)) return true;
  return false;
}

function searchSequences(members: readonly Member[], trial: Trial, judge: Judge): boolean {
  const sequence: Ballot[] = [];
  const used = new Set<Member>();
  const extend = (left: number): boolean => {
    if (trial.isSpent) return false;
    if (left === 0) return judge([...sequence]) === 'found';
    return members.some((member) => {
      if (used.has(member)) return false;
      used.add(member);
      const isFound = member.choices.some(({ ballot }) => {
        sequence.push(ballot);
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
