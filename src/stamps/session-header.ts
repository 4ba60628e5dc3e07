import { CoordinatorError } from '../domain/errors.js';
import { singleHeader, unreadable } from './header.js';

/** Header `X-Session`, parsed but not verified (docs/protocol.md, read-only sessions). */
export interface SessionHeader {
  readonly kind: 'session';
  readonly token: string;
}

type Headers = Readonly<Record<string, string | string[] | undefined>>;

const maxLength = 1_024;
const stampNames = ['x-stamp', 'x-stamp-webauthn', 'x-stamp-attested'];

/**
 * The session of a query, if it has one.
 * @throws {CoordinatorError} UNAUTHENTICATED SIGNATURE_INVALID if there is a stamp too, because the two may stand for
 * different users
 */
export function readSessionHeader(headers: Headers): SessionHeader | undefined {
  const token = singleHeader(headers['x-session'], 'X-Session', maxLength);
  if (token === undefined) return undefined;
  const stamp = stampNames.find((name) => headers[name] !== undefined);
  if (stamp !== undefined) throw unreadable('X-Session', `${stamp} was also sent: send a session or a stamp, not both`);
  return { kind: 'session', token };
}

/** Refuses a session where a stamp is required. @throws {CoordinatorError} UNAUTHENTICATED SIGNATURE_MISSING */
export function refuseSession(headers: Headers): void {
  if (headers['x-session'] === undefined) return;
  throw new CoordinatorError(
    'UNAUTHENTICATED',
    'a read-only session (X-Session) is valid for queries only: stamp the request and send it without X-Session',
    { category: 'SIGNATURE_MISSING' },
  );
}
