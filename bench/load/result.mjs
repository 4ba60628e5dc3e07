import { execFileSync } from 'node:child_process';
import { cpus, loadavg, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Where figures were measured: machine, versions, and what else the machine did in the minute before. */
export function surroundings() {
  return {
    at: new Date().toISOString(),
    commit: commit(),
    machine: {
      cpu: cpus()[0]?.model.trim(),
      cores: cpus().length,
      memoryGiB: Number((totalmem() / 2 ** 30).toFixed(1)),
    },
    node: process.versions.node,
    load: Number(loadavg()[0].toFixed(1)),
  };
}

/** Ends what a benchmark prints: one line of JSON, which `bench/all.mjs` reads. @param figures numbers by name */
export function printResult(bench, figures) {
  const rounded = Object.entries(figures).map(([name, value]) => [name, Number(Number(value).toPrecision(4))]);
  console.log(JSON.stringify({ bench, ...surroundings(), figures: Object.fromEntries(rounded) }));
}

/** The middle one. */
export function median(values) {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)];
}

/** With a mark if files differ from it; undefined outside of a clone. */
function commit() {
  try {
    const said = execFileSync('git', ['describe', '--always', '--dirty', '--exclude', '*'], {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return said.trim();
  } catch {
    return undefined;
  }
}
