import type { ErrorDetail } from '../errors.js';
import type { DomainEvent } from '../organization/event.js';

/** An attempt that was denied: who tried what, with the proof, and why not. It lives in a stream of its own. */
export type DenialEvent = DomainEvent<
  'ActivityDenied',
  {
    /** Of the attempted activity, or of the vote. */
    type: string;
    userId: string;
    fingerprint: string;
    timestampMs: string;
    /** The request body that was stamped; cut at 65,536 characters. */
    message: string;
    scheme: string;
    /** Of an API key or an attested stamp, hex. */
    publicKey?: string;
    /** Of a passkey, base64url. */
    credentialId?: string;
    signature: string;
    reason: string;
    details: readonly ErrorDetail[];
    /** Denials since the one before that were only counted, because there were too many. */
    omittedBefore?: number;
  }
>;

/** The name of the stream of an organization's denials. */
export function denialStream(organizationId: string): string {
  return `denials-${organizationId}`;
}
