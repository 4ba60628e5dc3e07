import { errorMessage } from './domain/errors.js';
import { BadSetting } from './config/bad-setting.js';
import { readConfig, type Config } from './config/config.js';
import { environment } from './config/environment.js';
import { UnreadableEvent } from './ledger/event-store.js';
import { keepThreadsSmall } from './threads/new-space.js';

/** Only loads what is to run. */
async function start(config: Config): Promise<void> {
  if (config.app === 'proxy') {
    const { startAuthProxy } = await import('./app/start-auth-proxy.js');
    return startAuthProxy(config);
  }
  const { startCoordinator } = await import('./app/start-coordinator.js');
  return startCoordinator(config);
}

// Everything created from here on, also by a library, is for this user only.
process.umask(0o077);
keepThreadsSmall();
try {
  if (process.argv.length > 2) {
    const input = process.argv.slice(2).join(' ');
    throw new BadSetting(
      'arguments',
      input,
      'none are accepted: set environment variables instead (docs/reference/settings.md)',
    );
  }
  const config = readConfig(environment());
  // What is no longer in the environment is in no diagnostic report and in no thread's copy of it.
  delete process.env['KEK'];
  delete process.env['PROXY_SECRET'];
  await start(config);
} catch (error) {
  // One line that says what to do; our stack is of no use to the operator.
  const reason = errorMessage(error);
  const message = error instanceof UnreadableEvent ? `${reason}; run countersign verify, and restore a backup` : reason;
  process.stderr.write(`countersign cannot start: ${message}\n`);
  process.exit(error instanceof BadSetting ? 2 : 1);
}
