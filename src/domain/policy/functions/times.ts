import type { Evaluation } from '../evaluate.js';
import { PolicyError, type Expression, type Position } from '../syntax.js';
import { isInCronSpan, parseCronSpan, parseTimestamp, type CronSpan as Span } from '../time.js';
import type { PolicyValue } from '../types.js';
import { FunctionCall, type Checking, type Meaning, type PolicyFunction } from './function.js';

/** An instant. */
export const Timestamp: PolicyFunction = {
  name: 'Timestamp',
  form: 'f(…)',
  check: ({ arguments: args }, at, checking) => {
    const texts = textsOf('Timestamp', args, at, checking);
    const [text] = texts;
    if (text === undefined || texts.length !== 1) {
      throw new PolicyError(`\`Timestamp\` takes one argument, such as '2026-03-01T00:00:00Z'`, at);
    }
    const value = parseTimestamp(text);
    if (value !== undefined) return { kind: 'constant', value, type: { kind: 'timestamp' }, at };
    throw new PolicyError(`\`${text}\` is no RFC 3339 time with offset zero, such as 2026-03-01T00:00:00Z`, at);
  },
};

/** Whether the time of the decision is within a window of a schedule. */
export const CronSpan: PolicyFunction = {
  name: 'CronSpan',
  form: 'f(…)',
  check: ({ arguments: args }, at, checking) => {
    const texts = textsOf('CronSpan', args, at, checking);
    const [cron, duration, zone] = texts;
    if (cron === undefined || duration === undefined || zone === undefined || texts.length !== 3) {
      throw new PolicyError(`\`CronSpan\` takes three arguments: cron expression, duration, time zone`, at);
    }
    const span = parseCronSpan(cron, duration, zone);
    if (typeof span === 'string') throw new PolicyError(span, at);
    return new InCronSpan(span, `CronSpan('${cron}', '${duration}', '${zone}')`, at);
  },
};

/** For a week: every day, every hour and minute, and the clock as often as it may have changed. */
const scheduleSteps = 1_000;

class InCronSpan extends FunctionCall {
  readonly parts = [];
  readonly schedules = 1;
  readonly holds = 0;
  readonly each = undefined;
  readonly isFilter = false;
  readonly seeks = undefined;
  readonly isCount = false;
  readonly meaning: Meaning;

  constructor(
    private readonly span: Span,
    name: string,
    at: Position,
  ) {
    super({ kind: 'bool' }, at);
    this.meaning = { kind: 'schedule', name };
  }

  override evaluate({ now, steps }: Evaluation): PolicyValue {
    return isInCronSpan(this.span, now, steps);
  }

  override worstSteps(): number {
    return scheduleSteps;
  }

  override readApprovals(): void {
    // A clock refers to no user.
  }
}

function textsOf(name: string, args: readonly Expression[], at: Position, { clause }: Checking): readonly string[] {
  if (clause !== 'time') throw new PolicyError(`\`${name}\` can be used in a time clause only`, at);
  return args.map((argument) => {
    if (argument.kind === 'string') return argument.value;
    throw new PolicyError(`the arguments of \`${name}\` are strings in single quotes`, argument.at);
  });
}
