import type { AnalysedActivity } from './analysed-activities.js';
import type { AnalysedSet, AnalysisSubject, GivenFacts, Solve } from './analysis-subject.js';
import { coreOf, factsIn, known, modelOf, readModel, wishesInCore, withCore, type Model } from './smt-model.js';
import { OpenRequest, type OpenDecision } from './smt-request.js';
import { and, apply, not, or, same, yes, type Term } from './smt-script.js';
import { beOneOf, limitsOf } from './smt-shape.js';
import { isOfOtherChain, usualAddresses, usualCall, usualChain, usualIn, usualUser } from './smt-usual.js';

/** Most elements of a list in a request. */
export const mostElements = 3;

/** A question's open request: one of some activities, and what sets of policies decide about it. */
export class OpenQuestion {
  readonly request: OpenRequest;
  readonly decisions: readonly OpenDecision[];
  private readonly limits;
  private readonly which: Term;
  /** What policies and questions speak of. */
  private readonly read: Set<string>;

  constructor(
    private readonly subject: AnalysisSubject,
    private readonly activities: readonly AnalysedActivity[],
    sets: readonly AnalysedSet[],
  ) {
    const { environment, users } = subject;
    this.limits = limitsOf(environment, mostElements);
    const policies = sets.flatMap((set) => set.policies);
    this.request = new OpenRequest({ environment, users, limits: this.limits, areUsersOpen: true }, policies);
    this.decisions = sets.map(({ policies: some, quorum }) => this.request.decidedBy(some, quorum));
    this.read = new Set(this.pathsSoFar());
    this.which = beOneOf(this.request, activities, new Set(sets.flatMap(({ quorum }) => quorum.userIds)));
    // Who asks approves by it, before all others.
    const { voters } = this.request;
    this.request.script.facts.push(or(...voters.votes.map((vote, place) => and(vote, voters.asks(place)))));
    const [first] = voters.order;
    if (first !== undefined) this.request.script.facts.push(same(first, voters.submitter));
  }

  /** What holds of the requests that people would think of first, what matters most first. What is `fix`ed counts, so that is first. */
  get wishes(): readonly Term[] {
    // What is said of other chains may be all that is possible.
    const isOfOthers = [...this.read].some(isOfOtherChain);
    const addresses = [...this.request.unknown.values()].flatMap(usualAddresses);
    const wishes = [...this.usualFacts(), ...(isOfOthers ? [] : usualChain(this.request)), ...addresses];
    return wishes.filter((requestedVote) => requestedVote !== yes);
  }

  /** What a model says of what was read. */
  told(model: Model): { readonly facts: Readonly<Record<string, string>>; readonly readsTime: boolean } {
    const { unknown, schedules } = this.request;
    const facts = [...unknown].flatMap(([name, one]) => {
      if (name === 'time') return [];
      const all = factsIn(one, model, this.read);
      return name === 'activity' ? all.filter(([path]) => path.startsWith('activity.params.')) : all;
    });
    return { facts: Object.fromEntries(facts), readsTime: schedules.size > 0 || unknown.has('time') };
  }

  private pathsSoFar(): readonly string[] {
    return [...this.request.unknown.values()].flatMap((one) => one.paths);
  }

  /** The readings of all sets together. */
  get all(): OpenDecision {
    return { ...this.decisions[0]!, readings: this.decisions.flatMap(({ readings }) => readings) };
  }

  /** What conditions and times come to: all that votes do not decide. */
  get clauses(): readonly Term[] {
    const read = this.all.readings.filter(({ clause }) => clause !== 'consensus');
    return [
      ...new Set(
        read.flatMap(({ reading: { isTrue, isUnreadable, isDoubted } }) =>
          [isTrue, isUnreadable, isDoubted].filter((term) => /^[tv]\d+$/.test(term)),
        ),
      ),
    ];
  }

  /** Consensuses read e-mail addresses or keys of users, which are open. */
  get areUsersRead(): boolean {
    return [...this.request.unknown.keys()].some((name) => name.startsWith('users['));
  }

  /** What is wider than in any request: examples may depend on it, proofs hold all the same. */
  get widened(): readonly string[] {
    const { schedules, vagueComparisons } = this.request;
    return [
      ...this.limits.widened,
      ...(schedules.size > 1 ? ['schedules were taken to be independent of each other'] : []),
      ...(schedules.size > 0 && this.request.unknown.has('time')
        ? ['a schedule was taken to be independent of the time']
        : []),
      ...(vagueComparisons.length > 0
        ? ['texts that may stand for others, such as the address of an account, may be in doubt anywhere']
        : []),
    ];
  }

  /** Everything can be read, values are as they are written, and it is not long ago. */
  private usualFacts(): readonly Term[] {
    const { unknown, script, vagueComparisons } = this.request;
    const values = [...unknown.values()].flatMap(usualIn).map((term) => script.name(term));
    // A digest may be that of typed data, which cannot be read then.
    const described = unknown.get('eth')?.parts;
    const opaque = ['eip_712', 'eip_7702_authorization'].map((name) =>
      described?.get(name)?.constants.get('unreadable'),
    );
    const unreadable = [...unknown.values()].flatMap((one) => one.absences).filter((one) => !opaque.includes(one));
    const time = unknown.get('time')?.parts.get('now')?.constants.get('integer');
    return [
      ...unreadable.map(not),
      ...values,
      ...vagueComparisons.map(not),
      ...usualUser(this.request, this.subject).map((term) => script.name(term)),
      ...usualCall(this.request).map((term) => script.name(term)),
      ...(time === undefined ? [] : [script.name(apply('>=', time, '1767614400000'))]),
    ];
  }

  /** Facts about the request. @throws {Error} that says what the language does not have */
  fix({ by, params, resources, now }: GivenFacts): readonly Term[] {
    const { request, subject } = this;
    const { environment, users } = subject;
    const terms: Term[] = [];
    const before = new Set(this.pathsSoFar());
    if (by !== undefined) terms.push(request.voters.asks(users.findIndex(({ userId }) => userId === by)));
    for (const [name, value] of Object.entries(resources)) {
      if (!environment.namespaces.has(name)) throw new Error(`there is no \`${name}\` in the language`);
      terms.push(...known(request.rootAt(name), value));
    }
    if (Object.keys(params).length > 0) terms.push(...known(request.rootAt('activity'), { params }));
    if (now !== undefined) terms.push(...known(request.rootAt('time'), { now: BigInt(now) }));
    for (const path of this.pathsSoFar()) if (!before.has(path)) this.read.add(path);
    for (const name of Object.keys(resources)) this.read.add(name);
    if (Object.keys(params).length > 0) this.read.add('activity').add('activity.params');
    return terms;
  }

  /** All that is needed to make a request of a model. */
  get terms(): readonly Term[] {
    const { constants } = this.request.script;
    const readings = this.all.readings.flatMap(({ reading }) => [reading.isTrue]);
    const outcomes = this.decisions.flatMap(({ isAllowed, isDenied }) => [isAllowed, isDenied]);
    return [...new Set([...constants.keys(), ...readings, ...this.clauses, ...outcomes])];
  }

  activityIn(model: Model): AnalysedActivity {
    return this.activities[Number(model.get(this.which) ?? 0n)]!;
  }
}

/** A request as a model has it; `none` if there is none, and otherwise why it is not known. */
type Found = { readonly model: Model; readonly activity: AnalysedActivity } | string;

/** Most conflicts of wishes that are resolved. */
const mostConflicts = 4;

/** A request in which these hold, as usual as it can be. */
export async function askSolver(open: OpenQuestion, goals: readonly Term[], solve: Solve): Promise<Found> {
  let { wishes } = open;
  const usual = await modelFor(open, [...goals, ...wishes], solve);
  if (typeof usual !== 'string' || wishes.length === 0) return usual;
  const found = await modelFor(open, goals, solve);
  if (typeof found === 'string' || usual !== 'none') return found;
  for (let conflict = 0; conflict < mostConflicts; conflict++) {
    const [first, ...others] = await conflictOf(open, goals, wishes, solve);
    if (first === undefined) break;
    // The first matters most, so the others are given up for it.
    const givenUp = new Set(others.length > 0 ? others : [first]);
    wishes = wishes.filter((_, place) => !givenUp.has(place));
    const better = await modelFor(open, [...goals, ...wishes], solve);
    if (typeof better !== 'string') return better;
    if (better !== 'none') break;
  }
  return found;
}

/** Wishes that cannot be had together, by their places in order; none if that is not known. */
async function conflictOf(open: OpenQuestion, goals: readonly Term[], wishes: readonly Term[], solve: Solve) {
  const answer = await solve(`${withCore}${open.request.script.text()}${coreOf(goals, wishes)}`);
  return wishesInCore(answer ?? '');
}

async function modelFor(open: OpenQuestion, goals: readonly Term[], solve: Solve): Promise<Found> {
  const answer = await solve(`${open.request.script.text()}${modelOf(goals, open.terms)}`);
  if (answer === undefined) return 'the solver was ended at the time limit';
  const [status = '', ...rest] = answer.trim().split('\n');
  if (status === 'unsat') return 'none';
  if (status !== 'sat') {
    if (status.startsWith('(error')) throw new Error(`the solver refuses the translation: ${status}`);
    return 'the solver could not find out';
  }
  const model = readModel(rest.join('\n'));
  return { model, activity: open.activityIn(model) };
}
