import type { Credentials } from '@eventstore/db-client';
import type { ConnectionSettings } from './settings.js';

/**
 * Wire path of appends: `classic` is one call each; `batch` is one stream for all, with two to three times the
 * throughput.
 */
export type AppendMode = 'batch' | 'classic';

/**
 * The path that is wanted, or else the one that the settings allow, and what classic appends are given as credentials.
 * @throws {TypeError} if the settings do not allow the one that is wanted
 */
export function appendPath(
  settings: ConnectionSettings,
  wanted: AppendMode | undefined,
): { readonly mode: AppendMode; readonly classic: Credentials | undefined } {
  const { credentials, tls } = settings;
  // Without TLS the client sends no credentials, but it still behaves differently if it was given some.
  const classic = credentials ?? (tls ? undefined : { username: 'nobody', password: 'nothing' });
  const mode = wanted ?? (classic === undefined ? 'batch' : 'classic');
  if (mode === 'classic' && classic === undefined) {
    throw new TypeError('append mode `classic` over TLS needs `user:password` in the connection string');
  }
  return { mode, classic };
}
