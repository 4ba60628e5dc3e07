import { analyse, type Analysis, type Term } from './consensus-analysis.js';
import { evaluate, evaluateBody, isCertain, type Meter, type Reading, type Scope } from './evaluate.js';
import { approverValue, credentialValue } from './namespaces.js';
import type { CheckedExpression } from './syntax.js';
import type { PolicyUser, PolicyValue, UserApproval } from './types.js';

/** Most evaluation steps that one question about a consensus may take: some ten milliseconds. */
const maxStepsPerQuestion = 200_000;
/** Most evaluation steps for all questions to one electorate: a tenth of a second. */
const maxStepsInAll = 1_000_000;

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
  private readonly members = new Map<CheckedExpression, readonly Member[]>();
  private knownCandidates: ReadonlyMap<string, readonly Ballot[]> | undefined;
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

  /** What the consensus is of the approvals cast, and whether they satisfy it. */
  read(consensus: CheckedExpression): { readonly reading: Reading; readonly isMet: boolean } {
    const reading = evaluate(consensus, this.scope);
    return { reading, isMet: isCertain(reading) && this.cast.length > 0 };
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
    if (analysis.kind === 'symmetric' && own.every((ballot) => isNeutral(signature(ballot, analysis, trial))))
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
    return approval ? [ballotOf(approval)] : (this.candidates.get(userId) ?? []);
  }

  /** By user: the ballots it could cast. */
  private get candidates(): ReadonlyMap<string, readonly Ballot[]> {
    this.knownCandidates ??= new Map(
      this.users.map((user) => [user.userId, user.credentials.map((credential) => ballotOf({ user, credential }))]),
    );
    return this.knownCandidates;
  }

  private membersFor(consensus: CheckedExpression): readonly Member[] {
    let members = this.members.get(consensus);
    if (!members) {
      members = this.makeMembers(consensus);
      this.members.set(consensus, members);
    }
    return members;
  }

  private makeMembers(consensus: CheckedExpression): readonly Member[] {
    const analysis = analyse(consensus);
    const trial = new Trial(consensus, this.outer, this.total);
    const members: Member[] = [];
    for (const [userId, ballots] of this.candidates) {
      if (trial.isSpent) break;
      if (ballots.length > 0) members.push(memberOf(userId, ballots, analysis, trial));
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
    return isCertain(evaluate(this.consensus, scopeOf(ballots, this.outer), this.meter));
  }

  /** A doubt anywhere keeps an ALLOW from applying, so what the outcome would be nonetheless does not matter here. */
  predicate(body: CheckedExpression, element: PolicyValue): boolean | 'doubt' {
    const { truth, doubt } = evaluateBody(body, element, this.outer, this.meter);
    return doubt ? 'doubt' : truth === 'true';
  }
}

/**
 * What each term makes of a ballot, a letter each; `n` is neutral: it changes the value of the term in no list.
 */
function signature(
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
  const value = trial.predicate(last.body, element);
  if (value === (last.method === 'all')) return 'n';
  return value === 'doubt' ? 'd' : last.method === 'any' ? 't' : 'f';
}

function isNeutral(letters: string): boolean {
  return !/[^n]/.test(letters);
}

/** A user who could approve, and the ballots to choose from: one of each signature. */
interface Member {
  readonly userId: string;
  /** Members of one kind can stand for each other. */
  readonly kind: string;
  readonly choices: readonly { readonly ballot: Ballot; readonly isNeutral: boolean }[];
}

function memberOf(userId: string, ballots: readonly Ballot[], analysis: Analysis, trial: Trial): Member {
  if (analysis.kind !== 'symmetric') {
    return { userId, kind: userId, choices: ballots.map((ballot) => ({ ballot, isNeutral: false })) };
  }
  const [only] = ballots;
  if (only && ballots.length === 1) {
    const letters = signature(only, analysis, trial);
    return { userId, kind: letters, choices: [{ ballot: only, isNeutral: isNeutral(letters) }] };
  }
  const bySignature = new Map(ballots.map((ballot) => [signature(ballot, analysis, trial), ballot]));
  const signatures = [...bySignature.keys()].sort();
  return {
    userId,
    kind: signatures.join('|'),
    choices: signatures.map((letters) => ({ ballot: bySignature.get(letters)!, isNeutral: isNeutral(letters) })),
  };
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
