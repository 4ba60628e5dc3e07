import { CoordinatorError } from '../domain/errors.js';
import { GuardedFetchError } from '../http-client/guarded-request.js';

/** A rejected token, as INVALID_OIDC_TOKEN (docs/protocol.md, OIDC tokens). */
export function invalidOidcToken(problem: string, cause?: unknown): CoordinatorError {
  return new CoordinatorError('INVALID_ARGUMENT', `INVALID_OIDC_TOKEN: ${problem}`, {
    category: 'INVALID_OIDC_TOKEN',
    cause,
  });
}

/** A token that cannot be verified now, as UNAVAILABLE: the same one may be accepted later. */
export function issuerUnavailable(issuer: string, problem: string, cause?: unknown): CoordinatorError {
  return new CoordinatorError(
    'UNAVAILABLE',
    `the keys of issuer \`${issuer}\` cannot be read at the moment: ${problem}; try again`,
    { cause },
  );
}

/** What a failed request to an issuer says about the token. */
export function refusalOf(issuer: string, error: unknown): unknown {
  if (!(error instanceof GuardedFetchError)) return error;
  if (error.mayPass) return issuerUnavailable(issuer, error.message, error);
  return invalidOidcToken(`the keys of issuer \`${issuer}\` cannot be read: ${error.message}`, error);
}
