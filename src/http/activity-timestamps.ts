import type { IncomingHttpHeaders } from 'node:http';
import type { Config } from '../config/config.js';

/**
 * Whether a client gets the times of activities as objects: the published SDKs in Go, Python, Rust, Swift, Kotlin and Dart
 * cannot decode text there. JavaScript clients, which announce themselves as `@turnkey/…`, do not read them.
 */
export function wantsTimestampObjects(
  headers: IncomingHttpHeaders,
  { activityTimestamps }: Pick<Config, 'activityTimestamps'>,
): boolean {
  if (activityTimestamps === 'object') return true;
  const version = headers['x-client-version'];
  if (typeof version === 'string' && version !== '') return !version.startsWith('@turnkey/');
  return headers['user-agent']?.startsWith('turnkey-rust-client/') ?? false;
}
