import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/* `policies test --watch` as a real process, on files that really change. */

const program = fileURLToPath(new URL('../../dist/cli/countersign.js', import.meta.url));
const example = fileURLToPath(new URL('../../examples/policies/treasury', import.meta.url));

let folder: string;
let child: ChildProcess;
let out = '';

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'countersign-watch-'));
  await cp(example, folder, { recursive: true });
});

afterEach(async () => {
  child.kill('SIGKILL');
  await rm(folder, { recursive: true, force: true });
});

function starts(...more: readonly string[]): void {
  out = '';
  child = spawn(process.execPath, [program, 'policies', 'test', '--watch', ...more, folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  child.stdout!.on('data', (chunk: Buffer) => (out += chunk.toString('utf8')));
}

/** Waits until it has written so, since the last time; returns that part. */
async function says(pattern: RegExp): Promise<string> {
  for (;;) {
    const found = pattern.exec(out);
    if (found) {
      const said = out.slice(0, found.index + found[0].length);
      out = out.slice(said.length);
      return said;
    }
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}: ${out}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function changes(from: string, to: string): Promise<void> {
  const file = join(folder, 'policies.yaml');
  const text = await readFile(file, 'utf8');
  expect(text).toContain(from);
  // As editors do: written beside it, and moved there.
  await writeFile(`${file}.tmp`, text.replace(from, to));
  await rename(`${file}.tmp`, file);
}

test('--watch runs the tests again at each change, survives files that are wrong or gone, and ends with the last result', async () => {
  starts();
  await says(/5 of 5 tests passed\.\n/);
  await changes('count() >= 2', 'count() >= 3');
  expect(await says(/3 of 5 tests passed\.\n/)).toContain('FAILED  two treasurers sign');
  await changes('approvers.filter', 'aprovers.filter');
  await says(/policies\.yaml:11:16: field does not exist: aprovers/);
  await rename(join(folder, 'policies.yaml'), join(folder, 'gone'));
  await says(/policies\.yaml cannot be read: it does not exist/);
  await rename(join(folder, 'gone'), join(folder, 'policies.yaml'));
  await changes('aprovers.filter', 'approvers.filter');
  await says(/3 of 5 tests passed\.\n/);
  child.kill('SIGINT');
  expect(await once(child, 'exit')).toEqual([1, null]);
});

test('programs get one line for each run, and a report in the folder is no change', async () => {
  starts('--json', '--junit', join('/', 'dev', 'null'));
  expect(JSON.parse(await says(/\{.*\}\n/))).toMatchObject({ mistakes: [] });
  await writeFile(join(folder, 'results.xml'), '');
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(out).toBe('');
  await changes('count() >= 2', 'count()  >= 2');
  await says(/\{"results".*\}\n/);
  child.kill('SIGTERM');
  const [code] = (await once(child, 'exit')) as [number];
  expect([code, out]).toEqual([0, '{"runs":2}\n']);
});
