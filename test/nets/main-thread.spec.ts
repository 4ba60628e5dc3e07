import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../e2e/until.js';

// What the nets read of a server's main thread shows it when that thread is blocked.

/** Blocks for as many milliseconds as each line of its input says, and answers with a line. */
const blocking = `
  process.stdin.on('data', (line) => {
    const end = performance.now() + Number(line);
    while (performance.now() < end);
    setTimeout(() => process.stdout.write('done\\n'), 50);
  });
  process.stdout.write('ready\\n');
`;

test('the longest turn since the last reading is measured, and nothing of what was before', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'main-thread-'));
  const file = join(folder, 'times.json');
  const preload = `--import=${new URL('./main-thread.mjs', import.meta.url).href}`;
  const child = spawn(process.execPath, [preload, '-e', blocking], { env: { ...process.env, MAIN_THREAD_FILE: file } });
  const longestAfter = async (ms: number, reading: number): Promise<number> => {
    child.stdin.write(`${ms}\n`);
    await once(child.stdout, 'data');
    child.kill('SIGUSR2');
    let times = { told: 0, longestMs: 0 };
    await until('the times are written', async () => {
      times = JSON.parse(await readFile(file, 'utf8').catch(() => '{"told":0}')) as typeof times;
      return times.told === reading;
    });
    return times.longestMs;
  };
  try {
    await once(child.stdout, 'data');
    await longestAfter(0, 1);
    const [long, short] = [await longestAfter(1_000, 2), await longestAfter(0, 3)];
    // In processor time of the thread: on a busy machine it has had a part of the second.
    expect(long).toBeGreaterThan(100);
    expect(short).toBeLessThan(long / 2);
  } finally {
    child.kill('SIGKILL');
    await rm(folder, { recursive: true });
  }
});
