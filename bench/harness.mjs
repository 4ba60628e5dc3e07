/**
 * How long the harness takes to start a coordinator: `import` and the first start in a fresh process, and starts once it is
 * warm, under node alone and in a test of jest, one after another and in two workers. `npm run bench:harness`, `--quick` to see that
 * it runs. Run it on an idle machine.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { cpus, loadavg, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readArguments } from '../scripts/arguments.mjs';
import { printResult } from './load/result.mjs';

const { quick: isQuick } = readArguments({ flags: ['quick'] });
const starts = isQuick ? 3 : 30;
const processes = isQuick ? 1 : 3;
const root = fileURLToPath(new URL('..', import.meta.url));
const jest = join(dirname(createRequire(import.meta.url).resolve('jest/package.json')), 'bin', 'jest.js');

/** Writes what it measured, in milliseconds, in one line that is found among what a test runner says. */
const measuring = `
  const begun = performance.now();
  const { startCoordinator } = await import('countersign/testing');
  const imported = performance.now() - begun;
  const times = [];
  for (let count = 0; count <= ${starts}; count++) {
    const started = performance.now();
    const coordinator = await startCoordinator();
    times.push(performance.now() - started);
    await coordinator.close();
  }
  process.stderr.write('measured ' + JSON.stringify({ imported, first: times[0], warm: times.slice(1) }) + '\\n');
`;

const project = mkdtempSync(join(tmpdir(), 'countersign-bench-'));
try {
  mkdirSync(join(project, 'node_modules'));
  symlinkSync(root, join(project, 'node_modules', 'countersign'));
  const settings = { type: 'module', jest: { testEnvironment: 'node', transform: {}, testTimeout: 120_000 } };
  writeFileSync(join(project, 'package.json'), JSON.stringify(settings));
  writeFileSync(join(project, 'alone.mjs'), measuring);
  for (const name of ['one', 'two']) {
    writeFileSync(join(project, `${name}.test.js`), `test('starts', async () => {${measuring}});`);
  }
  console.log(`${cpus().length} cores, load ${loadavg()[0].toFixed(1)}, Node ${process.versions.node}; milliseconds`);
  console.log('where                    import   first   warm: median   9 of 10 below   longest');
  const told = {};
  show('node', ['alone.mjs'], told);
  const underJest = ['--experimental-vm-modules', jest, '--testMatch'];
  show('jest', [...underJest, '**/one.test.js', '--runInBand'], told);
  show('jest, two workers', [...underJest, '**/*.test.js', '--maxWorkers=2'], told);
  printResult('harness', told);
} finally {
  rmSync(project, { recursive: true, force: true });
}

function show(where, args, told) {
  const runs = Array.from({ length: processes }, () => measured(args)).flat();
  const warm = runs.flatMap((one) => one.warm).toSorted((one, other) => one - other);
  const middle = (values) => values.toSorted((one, other) => one - other)[values.length >> 1];
  const figures = [
    [middle(runs.map(({ imported }) => imported)), 9],
    [middle(runs.map(({ first }) => first)), 8],
    [middle(warm), 15],
    [warm[Math.floor(warm.length * 0.9)], 16],
    [warm.at(-1), 10],
  ];
  told[`${where}: first ms`] = figures[1][0];
  told[`${where}: warm ms`] = figures[2][0];
  console.log(where.padEnd(22) + figures.map(([value, width]) => value.toFixed(0).padStart(width)).join(''));
}

function measured(args) {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: project, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${args.join(' ')} failed:\n${stdout}${stderr}`);
  return [...stderr.matchAll(/^\s*measured (\{.*\})$/gm)].map(([, line]) => JSON.parse(line));
}
