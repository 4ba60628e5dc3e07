import type { Logger } from 'pino';
import type { Config } from '../config/config.js';
import { nestLogger } from '../http/logger.js';
import type { Server } from '../http/server.js';

/** Longest time that SIGTERM waits for requests in flight, in milliseconds. */
const drainMs = 10_000;

/** Starts accepting requests, and signals before that: whoever learns that it is up may stop it at once. */
export async function listen(server: Server, { host, port }: Config, logger: Logger): Promise<void> {
  const { app } = server;
  // Nest would also log a failure, in its own words.
  app.useLogger(false);
  try {
    await app.listen(port, host);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')) throw error;
    throw new Error(`${host}:${port} is in use: stop the program that listens there, or set PORT`, { cause: error });
  }
  app.useLogger(nestLogger(logger));
  let isStopping = false;
  // A second Ctrl-C means that someone does not want to wait.
  process.once('SIGINT', () => stop('SIGINT'));
  // A supervisor may signal both this process and the command line that started it, which passes the signal on. When
  // the command line ends, for whatever reason, the channel closes.
  for (const reason of ['SIGTERM', 'SIGHUP', 'disconnect'] as const) process.on(reason, () => stop(reason));

  function stop(signal: NodeJS.Signals | 'disconnect'): void {
    if (isStopping) return;
    isStopping = true;
    const late = setTimeout(() => {
      process.stderr.write(`requests were still running ${drainMs} ms after ${signal}\n`);
      process.exit(1);
    }, drainMs);
    server.close().then(
      () => {
        clearTimeout(late);
        process.exit(0);
      },
      (error: unknown) => {
        process.stderr.write(`could not stop cleanly: ${String(error)}\n`);
        process.exit(1);
      },
    );
  }
}

/** What was started, for `countersign start --json`. */
export function tellCommandLine(started: object): void {
  process.send?.(started);
}
