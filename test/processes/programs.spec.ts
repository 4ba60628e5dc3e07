import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/*
 * Benchmarks, scripts and examples take the arguments that they know, and no others. (A program without that check would start
 * its work here, and be killed.)
 */

const root = new URL('../..', import.meta.url).pathname;

/** What other programs import. */
const modules = ['arguments', 'event-schema', 'no-arguments', 'rooms-table'];

const programs = ['bench', 'examples', 'examples/login-page', 'scripts'].flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.mjs') && !(folder === 'scripts' && modules.includes(name.replace('.mjs', ''))))
    .map((name) => `${folder}/${name}`),
);

function run(program: string, ...args: readonly string[]): Promise<{ code: unknown; stdout: string; stderr: string }> {
  return new Promise((ended) => {
    execFile(process.execPath, [program, ...args], { cwd: root, timeout: 30_000 }, (error, stdout, stderr) => {
      ended({ code: error ? error.code : 0, stdout, stderr });
    });
  });
}

test('there are programs to run', () => {
  expect(programs).toEqual(expect.arrayContaining(['bench/submit.mjs', 'examples/two-approvals.mjs']));
  expect(programs.length).toBeGreaterThan(20);
});

test.each(programs)('%s refuses an option that it does not know', async (program) => {
  expect(await run(program, '--nonsense')).toEqual({
    code: 2,
    stdout: '',
    stderr: 'unknown option `--nonsense`; see --help\n',
  });
});

test.each(programs)('%s says what it does', async (program) => {
  const { code, stdout } = await run(program, '--help');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^\S[^]{40,}\n$/);
});

test.each([
  [['--quick=1'], '`--quick` takes no value'],
  [['1', '2', '3'], 'unexpected argument `3`'],
  [['many'], 'seconds must be a number above 0, not `many`'],
  [['0'], 'seconds must be a number above 0, not `0`'],
])('a benchmark refuses %j', async (args, reason) => {
  expect(await run('bench/submit.mjs', ...args)).toEqual({ code: 2, stdout: '', stderr: `${reason}; see --help\n` });
});

test.each([
  ['bench/memory.mjs', ['--minutes'], '`--minutes` needs a value'],
  ['bench/memory.mjs', ['--minutes', 'many'], 'minutes must be a number above 0, not `many`'],
  ['bench/memory.mjs', ['--minutes=0'], 'minutes must be a number above 0, not `0`'],
  ['bench/all.mjs', ['--only', 'nothing'], /^no program is named `nothing`: name one of submit, pairs, /],
] as const)('%s refuses %j', async (program, args, reason) => {
  const { code, stdout, stderr } = await run(program, ...args);
  expect([code, stdout]).toEqual([2, '']);
  if (typeof reason === 'string') expect(stderr).toBe(`${reason}; see --help\n`);
  else expect(stderr).toMatch(reason);
});
