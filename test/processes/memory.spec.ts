import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Installation, main } from '../e2e/installation.js';
import { until } from '../e2e/until.js';

const probe = fileURLToPath(new URL('thread-space.mjs', import.meta.url));

let installation: Installation;

beforeEach(async () => {
  installation = await Installation.make();
});

afterEach(() => installation.remove());

test('a thread of a coordinator has 4 MiB for new objects, twice: one half is copied to the other', async () => {
  const file = join(installation.dataDir, 'space');
  installation.run(main, { NODE_OPTIONS: `--max-semi-space-size=16 --import ${probe}`, SPACE_FILE: file });
  let most = 0;
  await until('the thread has told it', async () => {
    most = Number(await readFile(file, 'utf8').catch(() => 0));
    return most > 0;
  });
  // Each half begins with less, and grows.
  expect(most / 2 ** 20).toBeGreaterThan(4);
  expect(most / 2 ** 20).toBeLessThanOrEqual(8.1);
}, 120_000);
