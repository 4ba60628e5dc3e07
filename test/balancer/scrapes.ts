import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { exchange } from '../e2e/exchange.js';

// Real scrapes of real coordinators, before and during faults, are what `promtool test rules` evaluates the published alerts on.

const run = promisify(execFile);
const read = (path: string) => readFile(new URL(`../../${path}`, import.meta.url), 'utf8');
const alertsFile = new URL('../../deploy/prometheus/alerts.yml', import.meta.url).pathname;

/** The samples of one scrape, by series. */
export type Scrape = ReadonlyMap<string, number>;

/** What Prometheus records of a scrape; undefined means that nobody responded. */
function scrapeOf(text: string | undefined): Scrape {
  const target = 'job="countersign",instance="one"';
  const samples = new Map([[`up{${target}}`, text === undefined ? 0 : 1]]);
  for (const line of (text ?? '').split('\n')) {
    const [, name, labels = '', value] = /^((?:countersign|process)_\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (name === undefined || !Number.isFinite(Number(value))) continue;
    samples.set(`${name}{${labels === '' ? '' : `${labels},`}${target}}`, Number(value));
  }
  return samples;
}

export async function scrape(url: string): Promise<Scrape> {
  return scrapeOf(
    await exchange(`${url}/metrics`).then(
      ({ text }) => text,
      () => undefined,
    ),
  );
}

/** A scrape every 15 s: each of these, so many times in a row. */
type Timeline = readonly (readonly [Scrape, number])[];

function seriesOf(timeline: Timeline): object[] {
  const names = new Set(timeline.flatMap(([samples]) => [...samples.keys()]));
  return [...names].map((series) => ({
    series,
    values: timeline
      .flatMap(([samples, times]) => Array<number | string>(times).fill(samples.get(series) ?? '_'))
      .join(' '),
  }));
}

/** Runs PromQL tests on a timeline, at its end. */
async function promtool(timeline: Timeline, tests: readonly { readonly expr: string; readonly value?: number }[]) {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-alerts-'));
  const end = (timeline.reduce((sum, [, times]) => sum + times, 0) - 1) * 15;
  try {
    const file = join(folder, 'test.json');
    const promql = tests.map(({ expr, value }) => ({
      expr,
      eval_time: `${end}s`,
      exp_samples: value === undefined ? [] : [{ labels: '{}', value }],
    }));
    const test = { interval: '15s', input_series: seriesOf(timeline), promql_expr_test: promql };
    // JSON is YAML.
    await writeFile(file, JSON.stringify({ rule_files: [alertsFile], evaluation_interval: '15s', tests: [test] }));
    return await run('promtool', ['test', 'rules', file]).then(
      () => '',
      ({ stdout, stderr }: { stdout: string; stderr: string }) => `${stdout}${stderr}`,
    );
  } finally {
    await rm(folder, { recursive: true });
  }
}

const { groups } = parse(await read('deploy/prometheus/alerts.yml')) as {
  groups: { rules: { alert: string }[] }[];
};
/** Names of the published alerts. */
export const alerts = groups.flatMap(({ rules }) => rules.map(({ alert }) => alert));
/** Those that were seen to fire. */
export const fired = new Set<string>();

const firing = (alert: string) => `count(ALERTS{alertname="${alert}",alertstate="firing"})`;

/** Every alert named fires at the end of the timeline, and none did before the fault. */
export async function expectFiring(names: readonly string[], before: Timeline, during: Timeline): Promise<void> {
  const quiet = { expr: 'count(ALERTS{alertstate="firing"})' };
  expect(await promtool([[before.at(-1)![0], 40]], [quiet])).toBe('');
  expect(
    await promtool(
      [...before, ...during],
      names.map((name) => ({ expr: firing(name), value: 1 })),
    ),
  ).toBe('');
  for (const name of names) fired.add(name);
}

/** Every query of the dashboard returns data from real scrapes. */
export async function expectDashboard(one: Scrape, two: Scrape): Promise<void> {
  const { panels } = JSON.parse(await read('deploy/grafana/countersign.json')) as {
    panels: { targets: { expr: string }[] }[];
  };
  const queries = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr.replaceAll('$__rate_interval', '5m')));
  expect(queries.length).toBeGreaterThan(10);
  const tests = queries.map((expr) => ({ expr: `clamp_max(count(${expr}), 1)`, value: 1 }));
  expect(
    await promtool(
      [
        [one, 4],
        [two, 8],
      ],
      tests,
    ),
  ).toBe('');
}
