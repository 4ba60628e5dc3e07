import type { ErrorDetail } from '../errors.js';
import type { DomainEvent } from '../organization/event.js';

/** A denied attempt: who tried what, with the proof, and why it was denied. Recorded in a stream of its own. */
export type DenialEvent = DomainEvent<
  'ActivityDenied',
  {
    /** Type of the attempted activity, or of the vote. */
    type: string;
    userId: string;
    fingerprint: string;
    timestampMs: string;
    /** The request body that was stamped; cut at 65,536 characters. */
    message: string;
    scheme: string;
    /** The public key of an API key or an attested stamp, hex. */
    publicKey?: string;
    /** The credential id of a passkey, base64url. */
    credentialId?: string;
    signature: string;
    reason: string;
    details: readonly ErrorDetail[];
    /** Number of denials since the previous one that were only counted, because there were too many. */
    omittedBefore?: number;
  }
>;

/** The longest request body that a denial keeps, in characters. */
export const longestDeniedMessage = 65_536;

/** The name of the stream of an organization's denials. */
export function denialStream(organizationId: string): string {
  return `denials-${organizationId}`;
}
