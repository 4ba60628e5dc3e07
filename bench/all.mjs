/**
 * Every row of the table in bench/README.md, one program after another, in about twenty minutes on an idle machine. Prints
 * the table "what, aim, now" and writes all figures to bench/results/<date>.json, with machine, versions and commit. A
 * program that fails, or takes longer than it may, is named as failed in its rows, and the end is 1. `npm run bench:all [--
 * --only NAME]` runs the program of that name only, and `--quick` sees that it runs and writes nothing. `--beside FOLDER` runs
 * each program of another checkout, built, right after the same program of this one, for a column of its own: the same machine
 * in the same minutes. What that one does not have is named as missing in its column, and is no failure.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readArguments, refuse } from '../scripts/arguments.mjs';
import { programs, rows } from './load/aims.mjs';
import { surroundings } from './load/result.mjs';

const { quick: isQuick, only, beside } = readArguments({ flags: ['quick'], options: { only: '', beside: '' } });
if (only !== '' && !Object.hasOwn(programs, only)) {
  refuse(`no program is named \`${only}\`: name one of ${Object.keys(programs).join(', ')}`);
}

const here = fileURLToPath(new URL('..', import.meta.url));
const other = beside === '' ? undefined : resolve(beside);
if (other !== undefined && !existsSync(join(other, 'dist'))) {
  refuse(`\`${beside}\` has no folder \`dist\`: name another checkout, and build it first`);
}

/** What a program of a checkout said: its last line as JSON, or why there is none. */
async function run(checkout, name) {
  const { args = [], minutes } = programs[name];
  const file = join(checkout, 'bench', `${name}.mjs`);
  if (!existsSync(file)) return { missing: true };
  const child = spawn(process.execPath, [file, ...(isQuick ? ['--quick'] : args)], {
    cwd: checkout,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const timer = setTimeout(() => child.kill('SIGTERM'), minutes * 60_000);
  let said = '';
  let complained = '';
  child.stdout.setEncoding('utf8').on('data', (more) => (said += more));
  child.stderr.setEncoding('utf8').on('data', (more) => (complained += more));
  const [code, signal] = await new Promise((ended) => child.on('close', (...how) => ended(how)));
  clearTimeout(timer);
  const last = said.trim().split('\n').at(-1);
  if (signal !== null) return { failed: `took longer than ${minutes} minutes` };
  if (code !== 0 || !last.startsWith('{')) {
    // Kept in files that others read: no path of this machine.
    return { failed: `ended with ${code}: ${complained.replaceAll(checkout, '').trim().slice(-2_000)}` };
  }
  return JSON.parse(last);
}

const before = surroundings();
const results = {};
const others = {};
const sides = [[here, results], ...(other === undefined ? [] : [[other, others]])];
for (const name of Object.keys(programs)) {
  if (only !== '' && name !== only) continue;
  for (const [checkout, said] of sides) {
    const begun = performance.now();
    said[name] = await run(checkout, name);
    const took = `${((performance.now() - begun) / 1000).toFixed(0)} s`;
    const { failed, missing } = said[name];
    const how = failed ? `, FAILED: ${failed}` : missing ? ', which is not there' : '';
    console.error(`${name}${checkout === here ? '' : `, of ${beside}`}: ${took}${how}`);
  }
}

/** What a row says of the figures that its program gave. */
function saidIn(results, { program, figures }) {
  const { failed, missing: isMissing, figures: found } = results[program];
  if (isMissing) return '–';
  if (failed) return '**failed**';
  // What is not a number is null in JSON.
  const missing = figures.map(({ name }) => name).filter((name) => typeof found[name] !== 'number');
  if (missing.length > 0) return isQuick ? 'not in a quick run' : `**not said: ${missing.join(', ')}**`;
  return figures.map(({ name, unit = '' }) => `${found[name].toLocaleString('en')}${unit}`).join('; ');
}

const columns = [
  ['what', ({ what }) => what],
  ['aim', ({ aim }) => aim],
  ...(other === undefined ? [] : [[beside, (row) => saidIn(others, row)]]),
  [`now (load ${before.load} before it began)`, (row) => saidIn(results, row)],
  ['command', ({ program }) => `\`${commandOf(program)}\``],
];
console.log(`| ${columns.map(([name]) => name).join(' | ')} |`);
console.log(`|${' --- |'.repeat(columns.length)}`);
for (const row of rows.filter(({ program }) => program in results)) {
  console.log(`| ${columns.map(([, say]) => say(row)).join(' | ')} |`);
}
if (!isQuick) {
  const folder = fileURLToPath(new URL('results/', import.meta.url));
  mkdirSync(folder, { recursive: true });
  const at = before.at.replace(/[-:]|\.\d+/g, '');
  const file = `${folder}${at}${only === '' ? '' : `-${only}`}.json`;
  const besideIt = other === undefined ? {} : { beside: others };
  writeFileSync(file, `${JSON.stringify({ ...before, results, ...besideIt }, undefined, 2)}\n`);
  console.error(`written: ${file}`);
}
if ([...Object.values(results), ...Object.values(others)].some(({ failed }) => failed)) process.exitCode = 1;

function commandOf(name) {
  return ['node', `bench/${name}.mjs`, ...(programs[name].args ?? [])].join(' ');
}
