import fc from 'fast-check';
import { isInCronSpan, parseCronSpan, parseTimestamp, type CronSpan } from '../../../src/domain/policy/time.js';

describe('a timestamp of the policy language', () => {
  it.each([
    ['1970-01-01T00:00:00Z', 0],
    ['2026-03-01T00:00:00Z', Date.UTC(2026, 2, 1)],
    ['2026-03-01t00:00:00z', Date.UTC(2026, 2, 1)],
    ['2026-03-01T12:34:56.7+00:00', Date.UTC(2026, 2, 1, 12, 34, 56, 700)],
    ['2026-03-01T12:34:56.789-00:00', Date.UTC(2026, 2, 1, 12, 34, 56, 789)],
    ['2024-02-29T23:59:59Z', Date.UTC(2024, 1, 29, 23, 59, 59)],
    ['0050-01-01T00:00:00Z', -60589296000000],
  ])('is read: %s', (text, expected) => {
    expect(parseTimestamp(text)).toBe(BigInt(expected));
  });

  it.each([
    '',
    '2026-03-01',
    '2026-03-01T00:00:00',
    '2026-03-01T00:00:00-05:00',
    '2026-03-01T00:00:00+00:01',
    '2026-03-01 00:00:00Z',
    '2026-02-30T00:00:00Z',
    '2025-02-29T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-00-01T00:00:00Z',
    '2026-03-00T00:00:00Z',
    '2026-03-01T24:00:00Z',
    '2026-03-01T00:60:00Z',
    '2026-03-01T00:00:60Z',
    '2026-12-31T24:00:00Z',
    '2026-03-01T00:00:00.0001Z',
    '2026-03-01T00:00:00.Z',
    '2026-3-1T00:00:00Z',
    '2026-03-01T00:00:00Z ',
    '+002026-03-01T00:00:00Z',
  ])('is not %j', (text) => {
    expect(parseTimestamp(text)).toBeUndefined();
  });
});

describe('a CronSpan', () => {
  const span = (cron: string, duration: string, zone: string): CronSpan => {
    const parsed = parseCronSpan(cron, duration, zone);
    if (typeof parsed === 'string') throw new Error(parsed);
    return parsed;
  };
  const at = (text: string) => Date.parse(text);

  it.each([
    // Monday 2026-03-02 in New York is UTC-5.
    ['0 9 * * 1-5', '8h', 'America/New_York', '2026-03-02T13:59:59.999Z', false],
    ['0 9 * * 1-5', '8h', 'America/New_York', '2026-03-02T14:00:00Z', true],
    ['0 9 * * 1-5', '8h', 'America/New_York', '2026-03-02T21:59:59.999Z', true],
    ['0 9 * * 1-5', '8h', 'America/New_York', '2026-03-02T22:00:00Z', false],
    ['0 9 * * 1-5', '8h', 'America/New_York', '2026-03-01T15:00:00Z', false],
    // Monday 2026-03-09, the day after the change to UTC-4: the fire keeps its local hour.
    ['0 9 * * 1-5', '8h', 'America/New_York', '2026-03-09T13:00:00Z', true],
    ['0 9 * * 1-5', '8h', 'America/New_York', '2026-03-09T12:59:00Z', false],
    // Over midnight, and over the end of a month and a year.
    ['0 22 * * *', '8h', 'UTC', '2026-01-01T05:59:00Z', true],
    ['0 22 31 12 *', '8h', 'UTC', '2026-01-01T05:59:00Z', true],
    ['0 22 31 12 *', '8h', 'UTC', '2026-01-02T05:59:00Z', false],
    // The duration is elapsed time: 22:00 for 8 h ends at 07:00 when the clock goes forward, at 05:00 when it goes back.
    ['0 22 * * *', '8h', 'America/New_York', '2026-03-08T10:59:00Z', true],
    ['0 22 * * *', '8h', 'America/New_York', '2026-03-08T11:00:00Z', false],
    ['0 22 * * *', '8h', 'America/New_York', '2026-11-01T09:59:00Z', true],
    ['0 22 * * *', '8h', 'America/New_York', '2026-11-01T10:00:00Z', false],
    // A gap: 02:30 does not exist on 2026-03-08 in New York and does not fire, not even late.
    ['30 2 * * *', '1h', 'America/New_York', '2026-03-08T06:45:00Z', false],
    ['30 2 * * *', '1h', 'America/New_York', '2026-03-08T07:00:00Z', false],
    ['30 2 * * *', '1h', 'America/New_York', '2026-03-08T07:45:00Z', false],
    ['30 2 * * *', '1h', 'America/New_York', '2026-03-07T07:45:00Z', true],
    ['30 2 * * *', '1h', 'America/New_York', '2026-03-09T06:45:00Z', true],
    // An overlap: 01:30 exists twice on 2026-11-01 and fires twice, not in between.
    ['30 1 * * *', '30m', 'America/New_York', '2026-11-01T05:30:00Z', true],
    ['30 1 * * *', '30m', 'America/New_York', '2026-11-01T06:00:00Z', false],
    ['30 1 * * *', '30m', 'America/New_York', '2026-11-01T06:30:00Z', true],
    ['30 1 * * *', '30m', 'America/New_York', '2026-11-01T07:00:00Z', false],
    // A gap at midnight: Cairo goes from 23:59 to 01:00 on 2026-04-24.
    ['0 0 * * *', '1h', 'Africa/Cairo', '2026-04-23T22:30:00Z', false],
    ['0 1 * * *', '1h', 'Africa/Cairo', '2026-04-23T22:30:00Z', true],
    // Half an hour: Lord Howe goes forward from 02:00 to 02:30 on 2026-10-04.
    ['15 2 * * *', '10m', 'Australia/Lord_Howe', '2026-10-03T15:47:00Z', false],
    ['15 2 * * *', '10m', 'Australia/Lord_Howe', '2026-10-02T15:47:00Z', true],
    ['30 2 * * *', '10m', 'Australia/Lord_Howe', '2026-10-03T15:32:00Z', true],
    // A zone with a quarter hour.
    ['0 0 * * *', '1m', 'Asia/Kathmandu', '2026-01-01T18:15:30Z', true],
    // Both days restricted: either will do. 2026-06-01 is a Monday, the 2nd a Tuesday, 2026-07-01 a Wednesday.
    ['0 9 1 * 1', '1h', 'UTC', '2026-06-08T09:30:00Z', true],
    ['0 9 1 * 1', '1h', 'UTC', '2026-07-01T09:30:00Z', true],
    ['0 9 1 * 1', '1h', 'UTC', '2026-07-02T09:30:00Z', false],
    ['0 9 1 * *', '1h', 'UTC', '2026-06-08T09:30:00Z', false],
    ['0 9 * * 1', '1h', 'UTC', '2026-07-01T09:30:00Z', false],
    // A restricted month holds for both.
    ['0 9 1 6 1', '1h', 'UTC', '2026-07-06T09:30:00Z', false],
    ['0 9 1 6 1', '1h', 'UTC', '2026-06-08T09:30:00Z', true],
    ['0 0 29 2 *', '1d', 'UTC', '2028-02-29T12:00:00Z', true],
    ['15,45 8-9,17 * * *', '1m', 'UTC', '2026-06-08T17:45:59Z', true],
    ['15,45 8-9,17 * * *', '1m', 'UTC', '2026-06-08T17:46:00Z', false],
    ['15,45 8-9,17 * * *', '1m', 'UTC', '2026-06-08T10:15:00Z', false],
    // The longest window reaches over a change of the clock.
    ['0 12 * * 0', '7d', 'Europe/Berlin', '2026-04-05T09:59:00Z', true],
    ['0 12 29 3 *', '7d', 'Europe/Berlin', '2026-04-05T09:59:59.999Z', true],
    ['0 12 29 3 *', '7d', 'Europe/Berlin', '2026-04-05T10:00:00Z', false],
    ['0 12 28 3 *', '7d', 'Europe/Berlin', '2026-04-04T10:59:59Z', true],
    ['0 12 28 3 *', '7d', 'Europe/Berlin', '2026-04-04T11:00:00Z', false],
    ['* * * * *', '1m', 'UTC', '1969-12-31T23:59:30Z', true],
    [' 0  9 * * * ', '1d12h30m', 'utc', '2026-06-09T21:29:00Z', true],
  ])('%s for %s in %s at %s: %s', (cron, duration, zone, now, expected) => {
    expect(isInCronSpan(span(cron, duration, zone), at(now))).toBe(expected);
  });

  it.each([
    ['* * * *', '1h', 'UTC', 'has 4 fields'],
    ['* * * * * *', '1h', 'UTC', 'has 6 fields'],
    ['@daily', '1h', 'UTC', 'has 1 fields'],
    [
      '*/5 * * * *',
      '1h',
      'UTC',
      '`*/5` is no minute: write `*`, or numbers and ranges of 0 to 59 such as `0` or `0-1,59`',
    ],
    ['60 * * * *', '1h', 'UTC', '`60` is no minute'],
    ['-1 * * * *', '1h', 'UTC', '`-1` is no minute'],
    ['0 24 * * *', '1h', 'UTC', '`24` is no hour'],
    ['0 0 0 * *', '1h', 'UTC', '`0` is no day of month'],
    ['0 0 32 * *', '1h', 'UTC', '`32` is no day of month'],
    ['0 0 * JAN *', '1h', 'UTC', '`JAN` is no month'],
    ['0 0 * 13 *', '1h', 'UTC', '`13` is no month'],
    ['0 0 * * MON', '1h', 'UTC', '`MON` is no day of week'],
    ['0 0 * * 7', '1h', 'UTC', '`7` is no day of week'],
    ['0 5-1 * * *', '1h', 'UTC', '`5-1` is no hour'],
    ['0 1, * * *', '1h', 'UTC', '`1,` is no hour'],
    ['0 *,1 * * *', '1h', 'UTC', '`*,1` is no hour'],
    ['0 0 30 2 *', '1h', 'UTC', '`0 0 30 2 *` never fires: no such day in that month'],
    ['0 0 31 4,6,9,11 *', '1h', 'UTC', 'never fires'],
    ['* * * * *', '', 'UTC', '`` is not a valid duration'],
    ['* * * * *', '8', 'UTC', '`8` is not a valid duration'],
    ['* * * * *', '90s', 'UTC', '`90s` is not a valid duration'],
    ['* * * * *', '1.5h', 'UTC', '`1.5h` is not a valid duration'],
    ['* * * * *', '1h1d', 'UTC', '`1h1d` is not a valid duration'],
    ['* * * * *', '1h1h', 'UTC', '`1h1h` is not a valid duration'],
    ['* * * * *', '-1h', 'UTC', '`-1h` is not a valid duration'],
    ['* * * * *', '0m', 'UTC', 'the duration `0m` is not more than 0 and at most 7 days'],
    ['* * * * *', '7d1m', 'UTC', 'the duration `7d1m` is not more than 0 and at most 7 days'],
    ['* * * * *', '999999d', 'UTC', 'the duration `999999d` is not more than 0 and at most 7 days'],
    ['* * * * *', '1h', 'Mars/Olympus', '`Mars/Olympus` is no IANA time zone'],
    ['* * * * *', '1h', '', '`` is no IANA time zone'],
    ['* * * * *', '1h', '+05:00', '`+05:00` is no IANA time zone'],
  ])('refuses %j, %j, %j', (cron, duration, zone, message) => {
    expect(parseCronSpan(cron, duration, zone)).toContain(message);
  });

  it('agrees with looking at the clock of the zone minute by minute', () => {
    const days = fc.constantFrom('2026-03-08', '2026-11-01', '2026-03-29', '2026-10-25', '2026-04-24', '2026-10-04');
    const zones = fc.constantFrom('America/New_York', 'Europe/Berlin', 'Africa/Cairo', 'Australia/Lord_Howe', 'UTC');
    const minutes = fc.constantFrom('0', '30', '15,45', '0-20');
    const hours = fc.constantFrom('*', '0', '1', '2', '1-3', '23');
    const dates = fc.constantFrom('*', '8', '1,29', '25');
    const weekdays = fc.constantFrom('*', '0', '1-5');
    const durations = fc.constantFrom(1, 30, 61, 150);
    fc.assert(
      fc.property(
        days,
        zones,
        fc.tuple(minutes, hours, dates, fc.constant('*'), weekdays),
        durations,
        fc.integer({ min: -26 * 3600, max: 26 * 3600 }),
        (day, zone, fields, length, seconds) => {
          const now = at(`${day}T00:00:00Z`) + seconds * 1000;
          const parsed = span(fields.join(' '), `${length}m`, zone);
          const clock = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'medium' });
          const has = (field: string, value: number) =>
            field === '*' ||
            field.split(',').some((part) => {
              const [from, to] = part.split('-').map(Number);
              return value >= from! && value <= (to ?? from!);
            });
          let expected = false;
          for (let fire = Math.floor(now / 60_000) * 60_000; fire > now - length * 60_000; fire -= 60_000) {
            const [date, time] = clock.format(fire).split(' ') as [string, string];
            const [hour, minute] = time.split(':').map(Number) as [number, number];
            const weekday = new Date(`${date}T00:00:00Z`).getUTCDay();
            const isDate = has(fields[2], Number(date.slice(8)));
            const isWeekday = has(fields[4], weekday);
            const isDay = fields[2] !== '*' && fields[4] !== '*' ? isDate || isWeekday : isDate && isWeekday;
            if (isDay && has(fields[0], minute) && has(fields[1], hour)) expected = true;
          }
          expect(isInCronSpan(parsed, now)).toBe(expected);
        },
      ),
      { numRuns: 400 },
    );
  });
});
