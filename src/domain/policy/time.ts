import { Steps } from '../steps.js';

const minute = 60_000;
const day = 24 * 60 * minute;
/** Longest duration of a CronSpan, in milliseconds: 7 days (docs/protocol.md, policy language). */
const maxDuration = 7 * day;

/**
 * Milliseconds since the epoch of an RFC 3339 time with offset zero (`Z`, `+00:00`, `-00:00`), or undefined if the text
 * is invalid, names a day that does not exist, or is finer than a millisecond.
 */
export function parseTimestamp(text: string): bigint | undefined {
  const match = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,3}))?(?:[Zz]|[+-]00:00)$/.exec(text);
  if (!match) return undefined;
  const [year, month, date, hours, minutes, seconds] = match.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const time = new Date(0);
  time.setUTCFullYear(year, month - 1, date);
  time.setUTCHours(hours, minutes, seconds, Number((match[7] ?? '').padEnd(3, '0')));
  const isReal =
    time.getUTCMonth() === month - 1 &&
    time.getUTCDate() === date &&
    hours < 24 &&
    minutes < 60 &&
    seconds < 60 &&
    time.getUTCFullYear() === year;
  return isReal ? BigInt(time.getTime()) : undefined;
}

/**
 * A schedule of windows: each minute of the zone's clock that matches the cron expression opens one of `duration` ms.
 */
export interface CronSpan {
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  /** Undefined for `*`: if both are restricted, a day matches if either does. */
  readonly daysOfMonth: ReadonlySet<number> | undefined;
  readonly daysOfWeek: ReadonlySet<number> | undefined;
  readonly months: ReadonlySet<number>;
  readonly duration: number;
  readonly clock: Intl.DateTimeFormat;
}

/** Parses the three arguments of CronSpan; a string says what is wrong with them. */
export function parseCronSpan(cron: string, duration: string, zone: string): CronSpan | string {
  const fields = cron.trim().split(/[ \t]+/);
  if (fields.length !== 5) {
    return `\`${cron}\` has ${fields.length} fields, not the five: minute, hour, day of month, month, day of week`;
  }
  const parsed = [];
  for (const [index, [name, low, high]] of cronFields.entries()) {
    const values = parseCronField(fields[index]!, low, high);
    if (!values) {
      return `\`${fields[index]}\` is no ${name}: write \`*\`, or numbers and ranges of ${low} to ${high} such as \`${low}\` or \`${low}-${low + 1},${high}\``;
    }
    parsed.push(values);
  }
  const [minutes, hours, daysOfMonth, months, daysOfWeek] = parsed as [
    number[],
    number[],
    number[],
    number[],
    number[],
  ];
  const length = parseDuration(duration);
  if (length === undefined)
    return `\`${duration}\` is not a valid duration: write whole days, hours and minutes such as \`1d12h30m\``;
  if (length <= 0 || length > maxDuration) return `the duration \`${duration}\` is not more than 0 and at most 7 days`;
  const clock = clockOf(zone);
  if (!clock) return `\`${zone}\` is no IANA time zone, such as \`America/New_York\` or \`UTC\``;
  const isAnyDate = fields[2] === '*';
  const isAnyWeekday = fields[4] === '*';
  if (!isAnyDate && isAnyWeekday && !months.some((month) => daysOfMonth[0]! <= longestMonth[month - 1]!)) {
    return `\`${cron}\` never fires: no such day in that month`;
  }
  return {
    minutes,
    hours,
    daysOfMonth: isAnyDate ? undefined : new Set(daysOfMonth),
    daysOfWeek: isAnyWeekday ? undefined : new Set(daysOfWeek),
    months: new Set(months),
    duration: length,
    clock,
  };
}

/**
 * Whether `now` (ms since the epoch) is in [fire, fire + duration) for some fire. A fire is an instant at which the
 * zone's clock starts showing a matching minute: minutes that a clock change skips never fire, repeated ones fire
 * twice. The duration is elapsed time. A function of its arguments and the process's time zone data: two processes
 * agree if their ICU data does.
 */
export function isInCronSpan(span: CronSpan, now: number, steps = new Steps()): boolean {
  const opened = now - span.duration;
  const offset = (at: number) => {
    steps.take('zoneOffset');
    return offsetAt(span.clock, at);
  };
  // A clock changes at most once or twice in a week; sampling each day finds every offset in the window.
  const offsets = new Set([offset(now)]);
  for (let at = opened; at < now; at += day) offsets.add(offset(at));
  for (const shown of offsets) {
    const firstDay = Math.floor((opened + shown) / day) * day;
    for (let midnight = Math.floor((now + shown) / day) * day; midnight >= firstDay; midnight -= day) {
      steps.take('policyNode');
      if (!isFireDay(span, new Date(midnight))) continue;
      steps.take('listElement', (span.hours.length * span.minutes.length) / 16);
      for (const hour of span.hours) {
        for (const minuteOfHour of span.minutes) {
          const fire = midnight + (hour * 60 + minuteOfHour) * minute - shown;
          if (fire <= now && fire > opened && offset(fire) === shown) return true;
        }
      }
    }
  }
  return false;
}

const cronFields = [
  ['minute', 0, 59],
  ['hour', 0, 23],
  ['day of month', 1, 31],
  ['month', 1, 12],
  ['day of week', 0, 6],
] as const;

const longestMonth = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

function isFireDay({ months, daysOfMonth, daysOfWeek }: CronSpan, date: Date): boolean {
  if (!months.has(date.getUTCMonth() + 1)) return false;
  if (!daysOfMonth) return !daysOfWeek || daysOfWeek.has(date.getUTCDay());
  return daysOfMonth.has(date.getUTCDate()) || (daysOfWeek?.has(date.getUTCDay()) ?? false);
}

/** Ascending values of one field, or undefined. */
function parseCronField(text: string, low: number, high: number): number[] | undefined {
  const values = new Set<number>();
  for (const part of (text === '*' ? `${low}-${high}` : text).split(',')) {
    const match = /^(\d{1,2})(?:-(\d{1,2}))?$/.exec(part);
    if (!match) return undefined;
    const from = Number(match[1]);
    const to = Number(match[2] ?? match[1]);
    if (from < low || to > high || from > to) return undefined;
    for (let value = from; value <= to; value += 1) values.add(value);
  }
  return [...values].sort((a, b) => a - b);
}

function parseDuration(text: string): number | undefined {
  const match = /^(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?$/.exec(text);
  if (!match || text === '') return undefined;
  const [days, hours, minutes] = match.slice(1).map((digits: string | undefined) => Number(digits ?? 0));
  return days! * day + hours! * 60 * minute + minutes! * minute;
}

/**
 * By name in lower case, because names are case-insensitive. Only names of zones are kept, of which there are a few
 * hundred.
 */
const clocks = new Map<string, Intl.DateTimeFormat>();

/** Creating a clock takes as long as a thousand steps of a policy. */
function clockOf(zone: string): Intl.DateTimeFormat | undefined {
  const name = zone.toLowerCase();
  const known = clocks.get(name);
  if (known) return known;
  const clock = makeClock(zone);
  if (clock) clocks.set(name, clock);
  return clock;
}

function makeClock(zone: string): Intl.DateTimeFormat | undefined {
  // Some versions of Intl accept offsets such as `+05:00` as zones; IANA does not.
  if (!/^[A-Za-z][A-Za-z0-9_+/-]*$/.test(zone)) return undefined;
  try {
    return new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
  } catch {
    return undefined;
  }
}

/** The difference between the zone's clock and UTC at an instant: milliseconds, positive east of Greenwich. */
function offsetAt(clock: Intl.DateTimeFormat, instant: number): number {
  const second = Math.floor(instant / 1000) * 1000;
  const parts: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {};
  for (const { type, value } of clock.formatToParts(second)) parts[type] = Number(value);
  return Date.UTC(parts.year!, parts.month! - 1, parts.day, parts.hour, parts.minute, parts.second) - second;
}
