import { parse } from 'yaml';
import { read } from './read.js';

const { groups } = parse(read('deploy/prometheus/alerts.yml')) as {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string; readonly expr: string }[] }[];
};
const rules = groups.flatMap((group) => group.rules);
const { panels } = JSON.parse(read('deploy/grafana/countersign.json')) as {
  readonly panels: readonly { readonly targets: readonly { readonly expr: string }[] }[];
};
const queries = [...rules, ...panels.flatMap(({ targets }) => targets)].map(({ expr }) => expr);

test('the guide says of every alert, and of no other, what it means and what to do', () => {
  const rows = [...read('docs/how-to/watch-it-run.md').matchAll(/^\| `(Countersign\w+)` +\|([^|]+)\|([^|]+)\|$/gm)];
  expect(rows.map(([, alert]) => alert).sort()).toEqual(rules.map(({ alert }) => alert).sort());
  for (const [, , means, asks] of rows) expect([means!.trim(), asks!.trim()]).not.toContain('');
});

test('alerts and dashboard ask for metrics that there are', () => {
  const known = new Set(
    [...read('docs/reference/metrics.md').matchAll(/^\| `(countersign_\w+)`/gm)].map(([, name]) => name),
  );
  const asked = queries.flatMap((query) => query.match(/countersign_\w+/g) ?? []);
  expect(asked.length).toBeGreaterThan(20);
  const missing = asked.filter((name) => !known.has(name) && !known.has(name.replace(/_(?:bucket|count|sum)$/, '')));
  expect(missing).toEqual([]);
});

test('systemd starts it again whenever it ends, and gives it time to stop', () => {
  const unit = read('deploy/systemd/countersign.service');
  const settings = Object.fromEntries(
    unit
      .split('\n')
      .filter((line) => /^\w+=/.test(line))
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
  expect(settings).toMatchObject({
    Restart: 'always',
    StartLimitIntervalSec: '0',
    LimitCORE: '0',
    NoNewPrivileges: 'yes',
  });
  expect(Number(settings['TimeoutStopSec'])).toBeGreaterThan(20 + 5);
});

test('nginx and haproxy ask another coordinator when one says 503, cannot be reached, or dies', () => {
  expect(read('deploy/nginx.conf')).toMatch(/^ +proxy_next_upstream error timeout http_503 non_idempotent;$/m);
  expect(read('deploy/haproxy.cfg')).toMatch(/^ +retry-on conn-failure empty-response 503$/m);
});
