import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { readConfig } from '../../config/config.js';
import { environment } from '../../config/environment.js';
import type { CliCommand } from '../command.js';
import { asJson } from '../../wire/terminal-json.js';
import { availableMemory, flagsFor } from '../start/memory.js';
import type { Terminal } from '../terminal.js';

interface StartOptions {
  readonly dataDir?: string;
  readonly port?: string;
  readonly json?: boolean;
}

/** `countersign start`. */
export function mountStart(parent: CliCommand): void {
  parent
    .command('start')
    .summary('start a coordinator')
    .description(
      'Starts a coordinator, by default on http://127.0.0.1:8080 with its data in ./data. The first start creates a root ' +
        'organization and writes the key of its user to root.json in that folder. Settings come from the environment and from .env ' +
        '(docs/reference/settings.md). Ctrl-C stops it.',
    )
    .option('--data-dir <folder>', 'folder for everything that is kept on disk, instead of DATA_DIR')
    .option('--port <number>', 'port to listen on, instead of PORT; 0 takes a free one')
    .option('--json', 'when it is up, write one line of JSON instead of text')
    .example('countersign start --data-dir ./data --port 0', 'Start a coordinator on a free port')
    .performs((options: StartOptions) => start(parent.terminal, options));
}

/** The coordinator is a separate process, because Node.js accepts memory limits only when a process starts. */
async function start(terminal: Terminal, { dataDir, port, json }: StartOptions): Promise<void> {
  const env = {
    ...terminal.env,
    ...(dataDir === undefined ? {} : { DATA_DIR: terminal.path(dataDir) }),
    ...(port === undefined ? {} : { PORT: port }),
  };
  readConfig(environment(env));
  const main = fileURLToPath(new URL('../../main.js', import.meta.url));
  const child = spawn(process.execPath, [...flagsFor(availableMemory()), main], {
    cwd: terminal.surroundings.cwd,
    env,
    // The channel closes when this process ends, however it ends, and the coordinator ends with it.
    stdio: ['ignore', json ? 'ignore' : 'inherit', 'inherit', 'ipc'],
  });
  if (json) child.on('message', (started) => terminal.out(`${asJson(started)}\n`));
  const pass = (signal: NodeJS.Signals): void => {
    // A terminal sends Ctrl-C to both.
    if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal);
  };
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const signal of signals) process.on(signal, pass);
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  for (const name of signals) process.off(name, pass);
  if (signal) process.kill(process.pid, signal);
  terminal.exitCode = code ?? 1;
}
