import type { ErrorDetail } from '../errors.js';
import type { DomainEvent } from '../organization/event.js';
import type { Decision } from './events.js';

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
    /** Last revision of the organization's stream that it is based on. Earlier builds recorded none of these three. */
    revision?: number;
    /** The number of the rules that applied. */
    rules?: number;
    /** Whose users and policies denied it, if not the organization's own: its parent's. */
    authority?: { readonly organizationId: string; readonly revision: number } | undefined;
  }
>;

/** What a denial says about its request. */
export type DeniedRequest = Pick<
  DenialEvent['data'],
  'type' | 'userId' | 'fingerprint' | 'timestampMs' | 'message' | 'scheme' | 'signature' | 'publicKey' | 'credentialId'
>;

/** What a denial is based on, as decisions say it. */
export type DenialBasis = Pick<Decision, 'revision' | 'rules' | 'authority'>;

/** The longest request body that a denial keeps, in characters. */
export const longestDeniedMessage = 65_536;

/** The name of the stream of an organization's denials. */
export function denialStream(organizationId: string): string {
  return `denials-${organizationId}`;
}
