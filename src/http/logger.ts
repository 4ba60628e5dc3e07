import type { LoggerService } from '@nestjs/common';
import { pino, type Logger } from 'pino';

export const LOGGER = Symbol('Logger');

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

/** JSON lines on standard error. Secrets are removed by name, at the top and two levels down. */
export function createLogger(level: string, destination: NodeJS.WritableStream = process.stderr): Logger {
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
