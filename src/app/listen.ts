import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Config } from '../config/config.js';
import { measuredSettings } from '../config/measured-settings.js';
import { release } from '../config/release.js';
import { errorMessage } from '../domain/errors.js';
import { nestLogger } from '../logging/logger.js';
import type { Server } from '../http/server.js';

/** Longest time that a stop takes without SHUTDOWN_DELAY_SECONDS, in milliseconds: 10 s are for requests in flight. */
const longestStopMs = 20_000;
/** How long kept connections stay open for a request that is on its way, in milliseconds. */
const lingerMs = 500;

/** @throws {Error} if nothing could listen there: nothing is to be created for that */
export async function refuseTakenPort({ host, port }: Pick<Config, 'host' | 'port'>): Promise<void> {
  if (port === 0) return;
  const probe = createServer().listen(port, host);
  await once(probe, 'listening').catch((error: unknown) => {
    throw portTaken(error, host, port);
  });
  await new Promise((resolve) => probe.close(resolve));
}

function portTaken(error: unknown, host: string, port: number): unknown {
  if (!(error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')) return error;
  return new Error(`${host}:${port} is in use: stop the program that listens there, or set PORT`, { cause: error });
}

/** Starts accepting requests, and signals before that: whoever learns that it is up may stop it at once. */
export async function listen(server: Server, config: Config, logger: Logger): Promise<void> {
  const { host, port } = config;
  const { app } = server;
  // Nest would also log a failure, in its own words.
  app.useLogger(false);
  try {
    await app.listen(port, host);
  } catch (error) {
    throw portTaken(error, host, port);
  }
  app.useLogger(nestLogger(logger));
  logger.info(startOf(config, await app.getUrl()), 'started');
  let isStopping = false;
  // A second Ctrl-C means that someone does not want to wait.
  process.once('SIGINT', () => stop('SIGINT'));
  // A supervisor may signal both this process and the command line that started it, which passes the signal on. When
  // the command line ends, for whatever reason, the channel closes.
  for (const reason of ['SIGTERM', 'SIGHUP', 'disconnect'] as const) process.on(reason, () => stop(reason));

  function stop(signal: NodeJS.Signals | 'disconnect'): void {
    if (isStopping) return;
    isStopping = true;
    logger.info({ signal }, 'stopping');
    // What has been recorded is durable, so ending here loses nothing either.
    const late = setTimeout(() => {
      process.stderr.write(`work was still in progress ${longestStopMs} ms after ${signal}\n`);
      process.exit(1);
    }, config.shutdownDelayMs + longestStopMs);
    close(server, config).then(
      () => {
        clearTimeout(late);
        logger.info({ uptimeSeconds: Math.round(process.uptime()) }, 'stopped');
        process.exit(0);
      },
      (error: unknown) => {
        process.stderr.write(
          `could not stop cleanly: ${errorMessage(error)}; what was acknowledged is recorded, and the next start recovers the rest\n`,
        );
        process.exit(1);
      },
    );
  }
}

/** Callers get time to go elsewhere, and those who come all the same are told to, before connections are closed. */
async function close(server: Server, { shutdownDelayMs }: Config): Promise<void> {
  server.shutdown.announce();
  await pause(shutdownDelayMs);
  server.shutdown.refuse();
  await pause(lingerMs);
  await server.close();
}

/** What runs, and with which settings; none of them is a secret. */
function startOf(config: Config, listening: string): object {
  const { buildCommit: commit, host, port, dataDir } = config;
  const settings = { host, port, dataDir, ...(JSON.parse(measuredSettings(config).text) as object) };
  return { version: release(), commit, node: process.version, pid: process.pid, listening, settings };
}

/** What was started, for `countersign start --json`. */
export function tellCommandLine(started: object): void {
  process.send?.(started);
}
