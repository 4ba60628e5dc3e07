import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { apiKeyPairFromPrivate, StampingClient } from '../../src/testing/index.js';

// The real process, as `npm start` runs it.
export const main = new URL('../../dist/main.js', import.meta.url).pathname;
/** The command line. */
export const countersign = new URL('../../dist/cli/countersign.js', import.meta.url).pathname;

/** A process that was started, and what it has said so far. */
export interface Run {
  readonly child: ChildProcess;
  readonly stdout: () => string;
  readonly stderr: () => string;
  readonly exit: Promise<{ readonly code: number | null; readonly signal: string | null }>;
}

/** A data folder of its own, and the processes on it; all are gone after `remove`. */
export class Installation {
  private readonly running = new Set<ChildProcess>();

  private constructor(readonly dataDir: string) {}

  static async make(): Promise<Installation> {
    return new Installation(await mkdtemp(join(tmpdir(), 'countersign-process-')));
  }

  run(
    file: string,
    settings: Readonly<Record<string, string>> = {},
    args: readonly string[] = [],
    nodeFlags: readonly string[] = [],
  ): Run {
    const env = { PATH: process.env['PATH'], DATA_DIR: this.dataDir, PORT: '0', LOG_LEVEL: 'warn', ...settings };
    const child = spawn(process.execPath, [...nodeFlags, file, ...args], {
      cwd: this.dataDir,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.running.add(child);
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    const exit = once(child, 'close').then(([code, signal]: unknown[]) => ({
      code: code as number | null,
      signal: signal as string | null,
    }));
    return { child, stdout: () => stdout, stderr: () => stderr, exit };
  }

  /** Starts the server and waits until it says that it is up. */
  async start(
    settings: Readonly<Record<string, string>> = {},
    nodeFlags: readonly string[] = [],
  ): Promise<Run & { readonly url: string }> {
    const server = this.run(main, settings, [], nodeFlags);
    for (;;) {
      const url = /API\s+(http:\/\/\S+)/.exec(server.stdout())?.[1];
      if (url && server.stdout().includes('Root API key')) return { ...server, url };
      const ended = await Promise.race([server.exit, new Promise((resolve) => setTimeout(resolve, 20))]);
      if (ended) throw new Error(`did not start: ${server.stderr()}`);
    }
  }

  async root(): Promise<Record<string, string>> {
    return JSON.parse(await readFile(join(this.dataDir, 'root.json'), 'utf8')) as Record<string, string>;
  }

  /** Stamps as the root user of `root.json`. */
  async client(url: string): Promise<StampingClient> {
    const { organizationId, apiPrivateKey } = await this.root();
    return new StampingClient(url, organizationId!, apiKeyPairFromPrivate(apiPrivateKey!));
  }

  async remove(): Promise<void> {
    const alive = [...this.running].filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
    for (const child of alive) child.kill('SIGKILL');
    await Promise.all(alive.map((child) => once(child, 'exit')));
    await rm(this.dataDir, { recursive: true, force: true });
  }
}

/** What a server warns of at its start when nothing is set up: that it made a key, and that messages go to a file. */
const expectedWarning = /created a new key-encryption key|messages are not sent/;

/** Asks a server to end; it must do so, and without a word that neither every start says nor the test expects. */
export async function stop({ child, exit, stderr }: Run, expected?: RegExp): Promise<void> {
  child.kill('SIGTERM');
  const ended = await exit;
  const words = stderr()
    .split('\n')
    .filter((line) => line !== '' && !expectedWarning.test(line) && !expected?.test(line));
  expect({ ...ended, words }).toEqual({ code: 0, signal: null, words: [] });
}
