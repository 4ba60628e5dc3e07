import { CoordinatorError } from '../domain/errors.js';

/**
 * The `Access-Control-Allow-Origin` for an allowed origin. Origins are compared character by character, as browsers
 * send them: scheme, host and port (RFC 6454).
 * @param origin the `Origin` header; undefined for clients that are not browsers
 * @throws {CoordinatorError} PERMISSION_DENIED
 */
export function allowedOrigin(allowed: readonly string[], origin: string | undefined): string {
  if (allowed.includes('*')) return '*';
  if (origin === undefined) {
    throw new CoordinatorError(
      'PERMISSION_DENIED',
      'the request has no Origin header, and this configuration allows listed origins only: call from one of them',
    );
  }
  if (allowed.includes(origin)) return origin;
  throw new CoordinatorError(
    'PERMISSION_DENIED',
    `origin \`${origin.slice(0, 256)}\` is not allowed: add it, in exactly this form, to allowedOrigins with update_auth_proxy_config`,
  );
}
