import { BadSetting } from './bad-setting.js';
import type { SettingValues } from './setting-values.js';
import type { SettingName } from './settings.js';
import { isIssuer, isWebOrigin, shownAddress } from './urls.js';

/** The server's addresses, and how it accepts requests. */
export interface ServerSettings {
  /** Address to listen on. */
  readonly host: string;
  /** Port to listen on; 0 lets the system choose. */
  readonly port: number;
  /** The public URL of this server; undefined means the address that it listens on. */
  readonly publicUrl: string | undefined;
  /** The page that invitations lead to; undefined means this server's own. */
  readonly invitationUrl: string | undefined;
  /** How activities show `createdAt` and `updatedAt` to clients of which it is not known what they expect. */
  readonly activityTimestamps: 'text' | 'object';
  readonly logLevel: 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'silent';
  /** Time limits for a client to send a request, and its headers, in milliseconds. */
  readonly requestTimeoutMs: number;
  readonly headersTimeoutMs: number;
  /** Take the caller's address from X-Forwarded-For, as set by a proxy in front. */
  readonly trustProxy: boolean;
  /** How long a server that is told to stop reports that it is not ready, and still serves, in milliseconds. */
  readonly shutdownDelayMs: number;
  /** The commit that the build was made from, if it is known. */
  readonly buildCommit: string | undefined;
}

/** @throws {BadSetting} */
export function readServer(input: SettingValues): ServerSettings {
  const port = input.text('PORT');
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) throw new BadSetting('PORT', port, 'must be from 0 to 65535');
  const publicUrl = input.optional('PUBLIC_URL');
  if (publicUrl !== undefined && !isWebOrigin(publicUrl)) {
    const rule = 'must be an origin such as https://api.example.com, without a path';
    throw new BadSetting('PUBLIC_URL', shownAddress(publicUrl), rule);
  }
  const invitationUrl = input.optional('INVITATION_URL');
  // A URL without query and fragment, because each link adds its own fragment.
  if (invitationUrl !== undefined && !isIssuer(invitationUrl)) {
    const rule = 'must be a page such as https://app.example.com/invitation, without query and fragment';
    throw new BadSetting('INVITATION_URL', shownAddress(invitationUrl), rule);
  }
  const [headersTimeout, requestTimeout] = [seconds(input, 'HEADERS_TIMEOUT'), seconds(input, 'REQUEST_TIMEOUT')];
  if (headersTimeout > requestTimeout) {
    const rule = `must be at most REQUEST_TIMEOUT (${requestTimeout}), which covers the whole request`;
    throw new BadSetting('HEADERS_TIMEOUT', String(headersTimeout), rule);
  }
  return {
    host: input.text('HOST'),
    port: Number(port),
    publicUrl,
    invitationUrl,
    activityTimestamps: input.oneOf('ACTIVITY_TIMESTAMPS', ['text', 'object']),
    logLevel: input.oneOf('LOG_LEVEL', ['fatal', 'error', 'warn', 'info', 'debug', 'silent']),
    requestTimeoutMs: requestTimeout * 1_000,
    headersTimeoutMs: headersTimeout * 1_000,
    trustProxy: input.flag('TRUST_PROXY'),
    shutdownDelayMs: shutdownDelay(input) * 1_000,
    buildCommit: input.read('BUILD_COMMIT', buildCommitOf),
  };
}

function seconds(input: SettingValues, name: SettingName): number {
  const value = input.text(name);
  if (/^[1-9]\d{0,3}$/.test(value)) return Number(value);
  throw new BadSetting(name, value, 'must be a whole number of seconds, from 1 to 9999');
}

function shutdownDelay(input: SettingValues): number {
  const value = input.text('SHUTDOWN_DELAY_SECONDS');
  if (/^\d{1,3}$/.test(value) && Number(value) <= 300) return Number(value);
  throw new BadSetting('SHUTDOWN_DELAY_SECONDS', value, 'must be a whole number of seconds, from 0 to 300');
}

function buildCommitOf(value: string): string {
  if (/^[0-9a-f]{7,64}$/.test(value)) return value;
  throw new BadSetting('BUILD_COMMIT', value, 'must be a commit id, 7 to 64 hex characters');
}
