/**
 * Every row of the table in bench/README.md, one program after another, in about a quarter of an hour on an idle machine. Prints
 * the table "what, aim, now" and writes all figures to bench/results/<date>.json, with machine, versions and commit. A
 * program that fails, or takes longer than it may, is named as failed in its rows, and the end is 1. `npm run bench:all [--
 * --only NAME]` runs the program of that name only, and `--quick` sees that it runs and writes nothing.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { readArguments, refuse } from '../scripts/arguments.mjs';
import { programs, rows } from './load/aims.mjs';
import { surroundings } from './load/result.mjs';

const { quick: isQuick, only } = readArguments({ flags: ['quick'], options: { only: '' } });
if (only !== '' && !Object.hasOwn(programs, only)) {
  refuse(`no program is named \`${only}\`: name one of ${Object.keys(programs).join(', ')}`);
}

/** What a program said: its last line as JSON, or why there is none. */
async function run(name) {
  const { args = [], minutes } = programs[name];
  const file = fileURLToPath(new URL(`${name}.mjs`, import.meta.url));
  const child = spawn(process.execPath, [file, ...(isQuick ? ['--quick'] : args)], {
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
  if (code !== 0 || !last.startsWith('{')) return { failed: `ended with ${code}: ${complained.trim().slice(-400)}` };
  return JSON.parse(last);
}

const before = surroundings();
const results = {};
for (const name of Object.keys(programs)) {
  if (only !== '' && name !== only) continue;
  const begun = performance.now();
  results[name] = await run(name);
  const { failed } = results[name];
  console.error(`${name}: ${((performance.now() - begun) / 1000).toFixed(0)} s${failed ? `, FAILED: ${failed}` : ''}`);
}

/** What a row says now, of the figures that its program gave. */
function now({ program, figures }) {
  const { failed, figures: found } = results[program];
  if (failed) return '**failed**';
  const missing = figures.map(({ name }) => name).filter((name) => found[name] === undefined);
  if (missing.length > 0) return isQuick ? 'not in a quick run' : `**not said: ${missing.join(', ')}**`;
  return figures.map(({ name, unit = '' }) => `${found[name].toLocaleString('en')}${unit}`).join('; ');
}

console.log(`| what | aim | now (load ${before.load} before it began) | command |`);
console.log('| --- | --- | --- | --- |');
for (const row of rows.filter(({ program }) => program in results)) {
  console.log(`| ${row.what} | ${row.aim} | ${now(row)} | \`${commandOf(row.program)}\` |`);
}
if (!isQuick) {
  const folder = fileURLToPath(new URL('results/', import.meta.url));
  mkdirSync(folder, { recursive: true });
  const at = before.at.replace(/[-:]|\.\d+/g, '');
  const file = `${folder}${at}${only === '' ? '' : `-${only}`}.json`;
  writeFileSync(file, `${JSON.stringify({ ...before, results }, undefined, 2)}\n`);
  console.error(`written: ${file}`);
}
if (Object.values(results).some(({ failed }) => failed)) process.exitCode = 1;

function commandOf(name) {
  return ['node', `bench/${name}.mjs`, ...(programs[name].args ?? [])].join(' ');
}
