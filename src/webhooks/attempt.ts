import { GuardedFetchError, type GuardedFetch } from '../http-client/guarded-fetch.js';

/** What signs deliveries; see `keyring/webhook-key.ts`. */
export interface Signer {
  readonly jwk: { readonly kid: string };
  sign(message: Uint8Array): Promise<Uint8Array>;
}

/** What is sent where. */
export interface Message {
  readonly url: string;
  readonly eventId: string;
  readonly eventType: string;
  /** The organization that it is about. */
  readonly organizationId: string;
  readonly body: Uint8Array;
}

/** How an attempt ended. `reason` holds nothing that was sent or answered, but the status. */
export type Outcome =
  | { readonly kind: 'delivered'; readonly status: number }
  | { readonly kind: 'failed' | 'refused'; readonly status?: number; readonly reason: string };

/** For one attempt as a whole, in milliseconds. */
const timeoutMs = 10_000;

/**
 * One attempt (client protocol, section 10): a POST that is signed anew. 2xx is a success; 3xx and 4xx, 429 included, are
 * final; what breaks off or is answered 5xx may succeed later.
 */
export async function attempt(
  { url, eventId, eventType, organizationId, body }: Message,
  { fetch, signer, now, signal }: { fetch: GuardedFetch; signer: Signer; now: number; signal: AbortSignal },
): Promise<Outcome> {
  const { kid } = signer.jwk;
  const signed = Buffer.concat([Buffer.from(`v1.ed25519.${kid}.${now}.${eventId}.`), body]);
  const signature = Buffer.from(await signer.sign(signed)).toString('hex');
  const headers = {
    'Content-Type': 'application/json',
    'X-Turnkey-Organization-Id': organizationId,
    'X-Turnkey-Event-Type': eventType,
    'X-Turnkey-Timestamp': String(now),
    'X-Turnkey-Webhook-Version': '1',
    'X-Turnkey-Event-Id': eventId,
    'X-Turnkey-Signature-Key-Id': kid,
    'X-Turnkey-Signature-Algorithm': 'ed25519',
    'X-Turnkey-Signature-Version': 'v1',
    'X-Turnkey-Signature': signature,
  };
  try {
    const { status } = await fetch(url, { method: 'POST', headers, body, timeoutMs, statusOnly: true, signal });
    if (status >= 200 && status < 300) return { kind: 'delivered', status };
    const isFinal = status >= 300 && status < 500;
    return { kind: isFinal ? 'refused' : 'failed', status, reason: `responded with status ${status}` };
  } catch (error) {
    if (!(error instanceof GuardedFetchError)) throw error;
    return { kind: error.mayPass ? 'failed' : 'refused', reason: error.message };
  }
}

/** After the first failure, the second and so on, in milliseconds; then it is given up. As Standard Webhooks has it. */
const retryAfterMs = [5_000, 60_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000];

/** When a delivery that has failed so many times is tried again; undefined when it is given up. */
export function retryAt(attempts: number, now: number): number | undefined {
  const after = retryAfterMs[attempts - 1];
  return after === undefined ? undefined : now + after;
}

/** How old a delivery gets, in milliseconds: an endpoint that is down for days is not told of everything since. */
export const longestLifeMs = 3 * 24 * 60 * 60 * 1000;
