import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';

const run = promisify(execFile);
const guide = new URL('../../docs/how-to/make-a-stamp.md', import.meta.url);

let coordinator: TestCoordinator;
let folder: string;

beforeAll(async () => {
  coordinator = await startCoordinator();
  folder = await mkdtemp(join(tmpdir(), 'countersign-stamp-'));
  await mkdir(join(folder, 'data'));
  const { root, url } = coordinator;
  await writeFile(join(folder, 'data', 'root.json'), `${JSON.stringify({ ...root, apiUrl: url }, null, 2)}\n`);
});

afterAll(async () => {
  await coordinator?.close();
  await rm(folder, { recursive: true, force: true });
});

/** The programs of the guide. A machine without the language fails here and names its command. */
test.each([
  ['python', 'stamp.py', 'python3', ['stamp.py']],
  ['go', 'stamp.go', 'go', ['run', 'stamp.go']],
  ['bash', 'stamp.sh', 'bash', ['stamp.sh']],
] as const)(
  'the program in %s of the guide stamps a request that is accepted',
  async (language, file, command, args) => {
    const program = new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\``, 'm').exec(await readFile(guide, 'utf8'))?.[1];
    await writeFile(join(folder, file), program!);
    const env = { PATH: process.env['PATH'], HOME: folder, TMPDIR: folder, GOFLAGS: '-mod=mod' };
    const { stdout } = await run(command, args, { cwd: folder, env, timeout: 120_000 });
    expect(JSON.parse(stdout)).toMatchObject({ organizationId: coordinator.organizationId, username: 'Root user' });
  },
  180_000,
);
