import { readdir } from 'node:fs/promises';
import {
  activities,
  buildRegistry,
  readPolicyFile,
  type PolicyFile,
  BadUsage,
  type Outcome,
  exitCodes,
  unreadableFile,
  printable,
  table,
  mistakesShown,
  textIn,
  type AnalyzeOptions,
  type Terminal,
} from 'countersign/internal';
import { analysedActivities } from './analysed-activities.js';
import { analyse } from './analysis.js';
import { readQuestions, unconfirmed, type AskedQuestion } from './analysis-file.js';
import { mostElements } from './analysis-open.js';
import type { AnalysisAnswer, AnalysisSubject, Example } from './analysis-subject.js';
import { SolverProcess } from './solver.js';
import { Trials, type Execution } from './trial/trials.js';

const registry = buildRegistry(activities);
const rules = { environment: registry.policyEnvironment, activities: analysedActivities(registry) };

interface Answered extends AskedQuestion {
  readonly subject: AnalysisSubject;
  readonly answer: AnalysisAnswer;
}

interface Told extends Answered {
  /** Of an answer with an example. */
  readonly execution: Execution | undefined;
}

/** Answers the questions of a folder about all requests. */
export async function analyzeFolder(terminal: Terminal, folder: string, { limit }: AnalyzeOptions): Promise<Outcome> {
  const seconds = Number(limit);
  if (!/^\d{1,4}$/.test(limit) || seconds === 0) throw new BadUsage(`--limit ${limit}: must be seconds from 1 to 9999`);
  const names = (await filesIn(terminal, folder)).filter((name) => name.endsWith('.yaml')).sort();
  const asking = names.filter((name) => name.endsWith('.analysis.yaml'));
  if (asking.length === 0) throw new BadUsage(`\`${folder}\` has no file that ends in .analysis.yaml`);
  const policies = await policiesIn(terminal, folder, 'policies.yaml');
  const drafts = names.filter((name) => !/\.(?:analysis|test)\.yaml$/.test(name) && name !== 'policies.yaml');
  const others = new Map(
    await Promise.all(drafts.map(async (name) => [name, await policiesIn(terminal, folder, name)] as const)),
  );
  const read = await Promise.all(
    asking.map(async (name) => readQuestions(name, await textIn(terminal, folder, name), policies, others, rules)),
  );
  const mistakes = [policies, ...others.values(), ...read].flatMap((one) => one.mistakes);
  if (mistakes.length > 0) return { text: mistakesShown(mistakes), json: { mistakes }, exitCode: exitCodes.failed };
  const solver = new SolverProcess(seconds * 1000);
  const answered: Answered[] = [];
  try {
    for (const { subject, asked: requested } of read) {
      for (const one of requested) {
        const answer = await analyse(one.question, subject, (script) => solver.run(script));
        answered.push({ ...one, subject, answer });
      }
    }
  } finally {
    await solver.end();
  }
  const told = await executed(answered, policies);
  return {
    text: withNames(shown(terminal, told, read[0]!.subject), policies),
    json: { questions: told.map(forPrograms), bounds: boundsOf(read[0]!.subject) },
    exitCode: told.every(isGood) ? exitCodes.done : exitCodes.failed,
  };
}

/** With what a coordinator does about the examples, which it is shown in the order of their times. */
async function executed(answered: readonly Answered[], { names }: PolicyFile): Promise<readonly Told[]> {
  const trials = new Trials();
  const done = new Map<Answered, Execution>();
  const timeOf = ({ answer: { claims = [] } }: Answered): number => claims[0]?.found.now ?? 0;
  try {
    for (const one of [...answered].sort((a, b) => timeOf(a) - timeOf(b))) {
      const { claims, unclaimed } = one.answer;
      if (claims) done.set(one, await trials.execute(claims, one.subject, names).catch(brokenBy(one)));
      else if (unclaimed !== undefined) done.set(one, { outcome: 'decided', why: unclaimed });
    }
  } finally {
    await trials.end();
  }
  return answered.map((one) => ({ ...one, execution: done.get(one) }));
}

/** A mistake of ours is none of an answer: nothing is said then, so that it cannot pass for a reason not to execute. */
const brokenBy =
  ({ name, answer: { example } }: Answered) =>
  (cause: unknown): never => {
    const what = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
    const of = `the example of “${name}” (${example?.activity ?? 'no activity'})`;
    throw new Error(
      `executing ${of} failed, which is a defect of Countersign: please report it, with the files:\n${what}`,
      { cause },
    );
  };

const isGood = (told: Told): boolean => wordOf(told) === told.expected;

async function filesIn(terminal: Terminal, folder: string): Promise<readonly string[]> {
  try {
    return await readdir(terminal.path(folder));
  } catch (error) {
    throw unreadableFile(folder, error);
  }
}

async function policiesIn(terminal: Terminal, folder: string, name: string): Promise<PolicyFile> {
  return readPolicyFile(name, await textIn(terminal, folder, name), rules.environment);
}

function wordOf({ answer: { answer }, words, execution }: Told): string {
  if (execution?.outcome === 'disagreed') return 'a coordinator disagrees';
  if (execution?.outcome === 'decided') return unconfirmed;
  if (answer === 'yes' || answer === 'no') return words[answer];
  return answer === 'disagree' ? 'the solver and the evaluator disagree' : answer;
}

function forPrograms(told: Told) {
  const { file, name, expected, answer, execution } = told;
  const { example, note, lost, widened } = answer;
  return {
    file,
    name,
    expected,
    got: wordOf(told),
    ...(example ? { example } : {}),
    ...(execution ? { execution } : {}),
    ...(note === undefined ? {} : { note }),
    ...(lost ? { lost } : {}),
    widened,
  };
}

function shown(terminal: Terminal, told: readonly Told[], subject: AnalysisSubject): string {
  const rows = told.map((one) => {
    return [
      isGood(one) ? 'ok' : 'FAILED',
      one.name,
      isGood(one) ? wordOf(one) : `${wordOf(one)}; expected ${one.expected}`,
    ];
  });
  const details = told.flatMap((one) => {
    const lines = linesOf(one);
    return lines.length > 0
      ? [`${printable(one.name)}\n${lines.map((line) => `  ${printable(line)}\n`).join('')}`]
      : [];
  });
  const good = told.filter(isGood).length;
  const bounds = boundsOf(subject).map((bound) => `  ${printable(bound)}\n`);
  return [
    table(terminal, ['', 'QUESTION', 'ANSWER'], rows),
    ...details,
    `“never”, “same” and “implied” are proved for all requests within these bounds:\n${bounds.join('')}`,
    `${good} of ${told.length} answers are as expected.\n`,
  ].join('\n');
}

/** The text with `<wallet Treasury>` where it has the id. */
function withNames(text: string, { names }: PolicyFile): string {
  const all = [...names].flatMap(([kind, ids]) => Array.from(ids, ([name, id]) => [id, `<${kind} ${name}>`] as const));
  return all.reduce((shorter, [id, name]) => shorter.replaceAll(id, printable(name)), text);
}

function linesOf({ answer: { example, note, lost, widened }, execution }: Told): readonly string[] {
  return [
    ...(example ? exampleLines(example) : []),
    ...(note === undefined ? [] : [note]),
    ...(execution ? [executionLine(execution)] : []),
    ...(lost && lost.length > 0
      ? [
          `nobody could do any more: ${lost.length > 8 ? `${lost.slice(0, 8).join(', ')} and ${lost.length - 8} more` : lost.join(', ')}`,
        ]
      : []),
    ...widened.map((one) => `approximated: ${one}`),
  ];
}

function exampleLines({ activity, submitter, approvals, facts, now }: Example): readonly string[] {
  const others = approvals.length > 0 ? `, then ${approvals.join(', ')} approve${approvals.length > 1 ? '' : 's'}` : '';
  const told = Object.entries(facts).map(([path, value]) => `${path} is ${value}`);
  return [`${submitter} submits ${activity}${others}`, ...told, ...(now === undefined ? [] : [`at ${now}`])];
}

function executionLine(execution: Execution): string {
  if (execution.outcome === 'decided') return `decided, not executed: ${execution.why}`;
  if (execution.outcome === 'disagreed') return execution.why;
  const { steps, as } = execution;
  const [one = '', other] = steps.map((some) => some.join(', then '));
  const said = other === undefined ? one : `${one} by the first; ${other} by the second`;
  return `executed in a coordinator${as === undefined ? '' : ` as ${as}`}: ${said}`;
}

function boundsOf({ users, quorum }: AnalysisSubject): readonly string[] {
  return [
    `the ${users.length} users of the file, each with one API key and one passkey; ${quorum.threshold} of ${quorum.userIds.length} are the root quorum`,
    'who accepts an invitation is as one of them who is not in the root quorum',
    `lists in a request have at most ${mostElements} elements; texts and numbers are unlimited within their types, characters up to U+2FFFF`,
    'hexadecimal values and names of transaction types are as decoders give them; what a request has depends on its kind',
    'users, tags, policies and credentials stay as they are while it waits; no approval lapses, no clause runs out of steps',
    'only policies are considered: a verb may refuse more, such as changes to members of the root quorum',
    'examples are decided by the code that decides real requests, and executed in a coordinator, with its own ids and keys',
  ];
}
