import type { Logger } from 'pino';
import type { Config } from '../config/config.js';
import type { Clock } from '../ports/clock.js';

/** Logs which settings are not meant for production. */
export function warnOfSettings(
  { allowPrivateNetwork, restored, sandboxUntil }: Config,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): void {
  if (allowPrivateNetwork) {
    logger.warn(
      'ALLOW_PRIVATE_NETWORK is true: OIDC issuers, OAuth 2.0 providers and webhooks may be plain http and on loopback or ' +
        'private addresses; for development only, never where strangers send requests',
    );
  }
  if (restored) {
    logger.warn(
      'RESTORED is true: this server is read-only. It answers queries, refuses activities and votes, and sends no mail, text ' +
        'message or webhook; start without RESTORED to work with it',
    );
  }
  if (sandboxUntil !== undefined && clock.now() < sandboxUntil) {
    const until = new Date(sandboxUntil).toISOString();
    logger.warn({ until }, 'SANDBOX is on: anybody can log in as user@example.com and +19999999999 with 000000');
  }
}
