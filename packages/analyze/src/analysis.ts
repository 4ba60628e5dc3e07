import { authorize } from 'countersign/internal';
import { caseOf, contextOf, exampleOf } from './analysis-case.js';
import type {
  AnalysedSet,
  AnalysisAnswer,
  AnalysisQuestion,
  AnalysisSubject,
  FoundCase,
  Solve,
} from './analysis-subject.js';
import { askSolver, OpenQuestion } from './analysis-open.js';
import { allowing, claimsOf } from './analysis-claims.js';
import { wayTo } from './analysis-walk.js';
import { and, apply, integer, not, same, Untranslatable, type Term } from './smt-script.js';
import { holdsIn, type Model } from './smt-model.js';

/** Most requests that are found and turn out not to get there, before the answer is unknown. */
const mostTries = 25;

type CanQuestion = Extract<AnalysisQuestion, { kind: 'can' }>;

/** Answers a question about all requests. An example is decided by the code that decides, and must do what the solver says. */
export async function analyse(
  question: AnalysisQuestion,
  subject: AnalysisSubject,
  solve: Solve,
): Promise<AnalysisAnswer> {
  try {
    switch (question.kind) {
      case 'can':
        return await can(question, subject, solve);
      case 'same':
      case 'implied':
        return await compare(question, subject, solve);
      case 'locked-out':
        return await lockedOut(question, subject, solve);
    }
  } catch (error) {
    if (error instanceof Untranslatable) return { answer: 'unknown', note: error.message, widened: [] };
    throw error;
  }
}

async function can(question: CanQuestion, subject: AnalysisSubject, solve: Solve): Promise<AnalysisAnswer> {
  const { users, approvals: most = subject.users.length, activities, given: input } = question;
  if (activities.length === 0) return { answer: 'no', widened: [] };
  const open = new OpenQuestion(subject, activities, [subject]);
  const [decision] = open.decisions as [(typeof open.decisions)[number]];
  const { voters } = open.request;
  const goals: Term[] = [decision.isAllowed, apply('<=', voters.howMany, integer(most)), ...open.fix(input)];
  for (const [place, { userId }] of subject.users.entries()) {
    if (!users.includes(userId)) goals.push(not(voters.votes[place]!));
  }
  for (let attempt = 0; attempt < mostTries; attempt++) {
    const found = await askSolver(open, goals, solve);
    if (found === 'none') return { answer: 'no', widened: open.widened };
    if (typeof found === 'string') return { answer: 'unknown', note: found, widened: open.widened };
    const { model, activity } = found;
    const made = caseOf(open.request, model, decision, activity, subject);
    if (!made) return unknown(open, 'no moment was found at which all schedules are as the solver has them');
    if (authorize(made.request, made.approvals, contextOf(made, subject, subject)).outcome !== 'allow') {
      return contradicted(
        open,
        model,
        made,
        subject,
        'the solver says that it is allowed, the evaluator that it is not',
      );
    }
    const way = wayTo(made, subject, subject, users, most);
    if (way === undefined) return unknown(open, 'too many orders of votes would have to be tried');
    if (way !== 'none') {
      const found = { ...made, approvals: way };
      const example = exampleOf(found, subject, open.told(model));
      const claims = [{ found, set: subject, isAllowed: true }];
      return { answer: 'yes', example, claims, widened: open.widened };
    }
    // A coordinator would not collect these votes. All that decides on it is the same for every such request.
    if (open.areUsersRead) return unknown(open, 'it would be allowed by votes that a coordinator does not collect');
    goals.push(not(alike(open, model)));
  }
  return unknown(
    open,
    `more than ${mostTries} kinds of request would be allowed by votes that a coordinator does not collect`,
  );
}

/** Requests that votes cannot tell apart: by the same user, with the same values of conditions and times. */
function alike(open: OpenQuestion, model: Model): Term {
  const { submitter, own } = { submitter: open.request.voters.submitter, own: open.request.own };
  const fixed = [submitter, own].map((term) => same(term, integer((model.get(term) ?? 0n) as bigint)));
  const terms = open.clauses.map((term) => (holdsIn(model, term) ? term : not(term)));
  return and(...fixed, ...terms);
}

async function compare(
  question: Extract<AnalysisQuestion, { kind: 'same' | 'implied' }>,
  subject: AnalysisSubject,
  solve: Solve,
): Promise<AnalysisAnswer> {
  const [one, other] = question.kind === 'same' ? question.sets : [question.set, question.by];
  const isOfDenials = [one, other].every(({ policies }) => policies.every(({ effect }) => effect === 'EFFECT_DENY'));
  const open = new OpenQuestion(subject, subject.activities, [one, other]);
  const { isRootOnly } = open.request;
  const [first, second] = open.decisions.map(({ isAllowed, isDenied }) => (isOfDenials ? isDenied : isAllowed));
  const differs = question.kind === 'same' ? not(same(first!, second!)) : and(first!, not(second!));
  const found = await askSolver(open, [differs, ...(isOfDenials ? [not(isRootOnly)] : [])], solve);
  if (found === 'none') return { answer: 'yes', widened: open.widened };
  if (typeof found === 'string') return unknown(open, found);
  const { model, activity } = found;
  const made = caseOf(open.request, model, open.all, activity, subject);
  if (!made) return unknown(open, 'no moment was found at which all schedules are as the solver has them');
  const said = [one, other].map((set) => outcomeFor(made, set, subject, isOfDenials));
  const expected = [first!, second!].map((term) => holdsIn(model, term));
  if (said.some((outcome, index) => outcome !== expected[index])) {
    return contradicted(open, model, made, subject, 'the solver and the evaluator see different outcomes');
  }
  const example = exampleOf(made, subject, open.told(model));
  const verb = isOfDenials ? 'denied' : 'allowed';
  const note = `${verb} by the ${said[0] ? 'first' : 'second'}, not by the ${said[0] ? 'second' : 'first'}`;
  const claims = isOfDenials
    ? claimsOf(
        made,
        [one, other].map(allowing(made)),
        said.map((isDenied) => !isDenied),
        subject,
      )
    : claimsOf(made, [one, other], said, subject);
  return { answer: 'no', example, note, ...claims, widened: open.widened };
}

function outcomeFor(made: FoundCase, set: AnalysedSet, subject: AnalysisSubject, isOfDenials: boolean): boolean {
  // Denials are compared without the root quorum, which stands above them.
  const quorum = isOfDenials ? { threshold: 1, userIds: [] } : set.quorum;
  const { outcome } = authorize(made.request, made.approvals, contextOf(made, { ...set, quorum }, subject));
  return isOfDenials ? outcome === 'deny-explicit' : outcome === 'allow';
}

async function lockedOut(
  { without, activities }: Extract<AnalysisQuestion, { kind: 'locked-out' }>,
  subject: AnalysisSubject,
  solve: Solve,
): Promise<AnalysisAnswer> {
  const left: AnalysisSubject = {
    ...subject,
    users: subject.users.filter(({ userId }) => !without.includes(userId)),
    quorum: { ...subject.quorum, userIds: subject.quorum.userIds.filter((userId) => !without.includes(userId)) },
  };
  const before = await possible(activities, subject, solve);
  if (!('kinds' in before)) return before;
  const after = await possible(activities, left, solve);
  if (!('kinds' in after)) return after;
  const lost = [...before.kinds].filter((kind) => !after.kinds.has(kind)).sort();
  const isLocked = lost.length > 0;
  // What only they make possible, or what is possible without their votes.
  const shown: CanQuestion = {
    kind: 'can',
    users: (isLocked ? subject : left).users.map(({ userId }) => userId),
    activities: activities.filter(({ kind }) => (isLocked ? lost.includes(kind) : after.kinds.has(kind))),
    given: { params: {}, resources: {} },
  };
  const { example, claims } = await can(shown, subject, solve);
  return {
    answer: isLocked ? 'yes' : 'no',
    lost,
    ...(example ? { example, note: `possible ${isLocked ? 'with' : 'without'} them` } : {}),
    ...(claims ? { claims } : {}),
    widened: [...new Set([...before.widened, ...after.widened])],
  };
}

/** The kinds of activity that some users can do together, each shown by an example; or why that is not known. */
async function possible(
  activities: readonly CanQuestion['activities'][number][],
  subject: AnalysisSubject,
  solve: Solve,
): Promise<{ readonly kinds: ReadonlySet<string>; readonly widened: readonly string[] } | AnalysisAnswer> {
  const { threshold, userIds } = subject.quorum;
  // The root quorum can do everything, but not vote on what never waits, nor be invited.
  const byQuorum = activities.filter(
    ({ isAtOnce, submitter }) =>
      new Set(userIds).size >= threshold && !(isAtOnce && threshold > 1) && submitter !== 'invited',
  );
  const kinds = new Set(byQuorum.map(({ kind }) => kind));
  const users = subject.users.map(({ userId }) => userId);
  const widened = new Set<string>();
  for (;;) {
    const rest = activities.filter(({ kind, isRootOnly }) => !isRootOnly && !kinds.has(kind));
    if (rest.length === 0) return { kinds, widened: [...widened] };
    const answer = await can(
      { kind: 'can', users, activities: rest, given: { params: {}, resources: {} } },
      subject,
      solve,
    );
    for (const one of answer.widened) widened.add(one);
    if (answer.answer === 'no') return { kinds, widened: [...widened] };
    const found = activities.find(({ type }) => type === answer.example?.activity);
    if (!found) return answer;
    kinds.add(found.kind);
  }
}

const unknown = (open: OpenQuestion, note: string): AnalysisAnswer => ({
  answer: 'unknown',
  note,
  widened: open.widened,
});

/** What was made wider than it is may explain it; otherwise one of the two is wrong. */
function contradicted(
  open: OpenQuestion,
  model: Model,
  made: FoundCase,
  subject: AnalysisSubject,
  note: string,
): AnalysisAnswer {
  const example = exampleOf(made, subject, open.told(model));
  const isExplained = open.widened.length > 0;
  const why = isExplained ? 'it depends on what was made wider than it is' : note;
  return { answer: isExplained ? 'unknown' : 'disagree', example, note: why, widened: open.widened };
}
