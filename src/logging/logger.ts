import type { LoggerService } from '@nestjs/common';
import { pino, type DestinationStream, type Logger } from 'pino';

export const LOGGER = Symbol('Logger');

/** What most parts need of a logger: a line with members and a message, at a level. */
export interface Log {
  debug(members: object, message: string): void;
  info(members: object, message: string): void;
  warn(members: object, message: string): void;
  error(members: object, message: string): void;
}

/** Members whose values are never logged, at any place in a log line. */
const secretMembers = [
  'authorization',
  'x-stamp',
  'x-stamp-webauthn',
  'x-stamp-attested',
  'x-session',
  'apiPrivateKey',
  'privateKey',
  'otpCode',
  'oidcToken',
  'verificationToken',
  'credentialBundle',
  'exportBundle',
];

/** Bytes of lines that wait for a reader of standard error that is slow. More are dropped, because they would end the process. */
const mostWaiting = 2 * 1024 * 1024;

/** Standard error, without waiting for whoever reads it: nobody's request may depend on that. */
function standardError(): DestinationStream {
  const destination = pino.destination({ dest: 2, sync: false, maxLength: mostWaiting });
  let dropped = 0;
  destination.on('drop', () => (dropped += 1));
  destination.on('drain', () => {
    if (dropped === 0) return;
    const line = {
      level: 40,
      time: Date.now(),
      dropped,
      msg: `dropped ${dropped} log lines: standard error is not read fast enough`,
    };
    dropped = 0;
    destination.write(`${JSON.stringify(line)}\n`);
  });
  return destination;
}

/** JSON lines on standard error. Secrets are removed by name, at the top and two levels down. */
export function createLogger(level: string, destination: DestinationStream = standardError()): Logger {
  const paths = secretMembers.flatMap((name) => [`["${name}"]`, `*["${name}"]`, `*.*["${name}"]`]);
  return pino({ level, redact: { paths, censor: '[redacted]' }, base: null }, destination);
}

/** Nest's own messages through the same log; its startup messages only on request. */
export function nestLogger(logger: Logger): LoggerService {
  return {
    log: (message: unknown) => logger.debug(String(message)),
    error: (message: unknown) => logger.error(String(message)),
    warn: (message: unknown) => logger.warn(String(message)),
    debug: (message: unknown) => logger.debug(String(message)),
    verbose: (message: unknown) => logger.debug(String(message)),
  };
}
