/**
 * Takes every repair of scripts/repairs.mjs out, one at a time, and expects the test that stands beside it to be red. It
 * works on a copy of the sources in a temporary folder, so that nothing here changes, whatever becomes of it.
 *
 *   node scripts/remove-repairs.mjs [part of a repair, of its file or its test; a regular expression]
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { readArguments } from './arguments.mjs';
import { repairs } from './repairs.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const wanted = new RegExp(readArguments({ values: { part: '' } }).part);
const longestMs = 240_000;

const chosen = repairs.filter(({ rule, repair, file, test }) => [rule, repair, file, test].join('\n').match(wanted));
const folder = mkdtempSync(join(tmpdir(), 'countersign-repairs-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

for (const name of ['src', 'test', 'docs', 'scripts', 'bench', 'examples', 'deploy', 'package.json', 'tsconfig.json']) {
  cpSync(join(root, name), join(folder, name), { recursive: true });
}
for (const name of ['README.md', 'SECURITY.md', 'CHANGELOG.md', '.swcrc']) {
  cpSync(join(root, name), join(folder, name), { force: true });
}
symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
cpSync(join(root, 'dist'), join(folder, 'dist'), { recursive: true });
const { compilerOptions } = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8'));
const { options } = ts.convertCompilerOptionsFromJson(
  { ...compilerOptions, module: 'esnext', moduleResolution: 'bundler', noEmit: false },
  root,
);

/** Servers and workers under test are what is built: a source that was changed is built again. */
function build(file) {
  if (!file.startsWith('src/')) return;
  const fileName = join(folder, file);
  const { outputText } = ts.transpileModule(readFileSync(fileName, 'utf8'), { compilerOptions: options, fileName });
  writeFileSync(join(folder, file.replace(/^src/, 'dist').replace(/\.ts$/, '.js')), outputText);
}

writeFileSync(
  join(folder, 'jest.config.mjs'),
  `import base from ${JSON.stringify(join(root, 'jest.config.js'))};
export default { ...base, rootDir: ${JSON.stringify(folder)}, globalSetup: undefined, testPathIgnorePatterns: ['/node_modules/'] };
`,
);

/** Runs the test of a repair; its end, and what it said. */
function run({ test, named, attack }) {
  const only = named === undefined ? [] : ['-t', named];
  const jest = join(root, 'node_modules/jest/bin/jest.js');
  const options = [jest, '--config', join(folder, 'jest.config.mjs'), '--maxWorkers=1'];
  const { status, stderr, error } = spawnSync(process.execPath, [...options, test, ...only], {
    cwd: folder,
    encoding: 'utf8',
    timeout: longestMs,
    killSignal: 'SIGKILL',
    env: { ...process.env, NODE_OPTIONS: '', ...(attack === undefined ? {} : { ATTACK: attack }) },
    maxBuffer: 2 ** 28,
  });
  const ran = /Tests:.*?(\d+) (?:passed|failed)/.test(stderr ?? '');
  return { isRed: status !== 0 && ran, isGreen: status === 0 && ran, text: error?.message ?? stderr };
}

/** Tests that are green as long as nothing is taken out, by their file and title; what is red anyway shows nothing. */
const whole = new Map();
function isGreenWhole(one) {
  const key = `${one.test} ${one.named} ${one.attack}`;
  if (!whole.has(key)) whole.set(key, run(one).isGreen);
  return whole.get(key);
}

const failed = [];
for (const one of chosen) {
  const { rule, repair, file, from, to, test, named } = one;
  const path = join(folder, file);
  const source = readFileSync(path, 'utf8');
  const began = Date.now();
  let outcome;
  if (source.split(from).length !== 2) outcome = `stale: \`${from}\` does not stand once in ${file}`;
  else if (!isGreenWhole(one)) outcome = 'the test is not green with the repair in place';
  else {
    writeFileSync(
      path,
      source.replace(from, () => to),
    );
    build(file);
    const { isRed, isGreen, text } = run(one);
    writeFileSync(path, source);
    build(file);
    const [title = '', ...said] = text.split('\n').slice(text.split('\n').findIndex((line) => line.includes('●')));
    const reason = said.find((line) => line.trim() !== '') ?? '';
    if (isRed) outcome = `red: ${title.trim().slice(2)}: ${reason.trim()}`;
    else outcome = isGreen ? 'GREEN' : `no test has run:\n${text.slice(-2_000)}`;
  }
  const seconds = ((Date.now() - began) / 1_000).toFixed(0);
  console.log(`${rule} ${repair} [${test}${named ? ` -t '${named}'` : ''}, ${seconds} s]\n   ${outcome}`);
  if (!outcome.startsWith('red')) failed.push(repair);
}
console.log(`${chosen.length - failed.length} of ${chosen.length} repairs turn a test red when they are taken out`);
if (failed.length > 0) {
  console.log(failed.map((repair) => `- ${repair}`).join('\n'));
  process.exitCode = 1;
}
