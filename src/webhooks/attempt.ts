import { joined, jsonPieces, partsOf } from '../wire/json-pieces.js';
import { GuardedFetchError, type GuardedFetch } from '../http-client/guarded-request.js';

/** Signs deliveries; see `keyring/webhook-key.ts`. */
export interface Signer {
  readonly jwk: { readonly kid: string };
  sign(message: Uint8Array): Promise<Uint8Array>;
}

/** What is sent, and where. */
export interface Message {
  readonly url: string;
  readonly endpointId: string;
  readonly eventId: string;
  readonly eventType: string;
  /** The organization that the event belongs to. */
  readonly organizationId: string;
  readonly content: Content;
}

/** A body with what is signed before it. */
export interface Content {
  /** What the signature says of when it was made: milliseconds since 1970. */
  readonly at: number;
  readonly signed: Buffer;
  readonly body: Buffer;
}

interface Contents {
  readonly signer: Signer;
  readonly eventId: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Awaited between two parts of what is large. */
  readonly turn: () => Promise<void> | undefined;
}

/** Encoded, without a copy for the signature: what is signed ends with what is sent. */
export async function contentOf(value: object, { signer, eventId, at, turn }: Contents): Promise<Content> {
  const prefix = `v1.ed25519.${signer.jwk.kid}.${at}.${eventId}.`;
  const signed = Buffer.concat([Buffer.from(prefix), ...partsOf(await joined(jsonPieces(value), turn))]);
  return { at, signed, body: signed.subarray(prefix.length) };
}

/** The outcome of an attempt. `reason` contains nothing of the request or response except the status. */
export type Outcome =
  | { readonly kind: 'delivered'; readonly status: number }
  | { readonly kind: 'failed' | 'refused'; readonly status?: number; readonly reason: string };

/** For one whole attempt, in milliseconds. */
const timeoutMs = 10_000;

/**
 * One attempt (docs/protocol.md, webhooks): a POST with a fresh signature. 2xx is a success; 3xx and 4xx, including
 * 429, are final; after a broken connection or a 5xx, a later attempt may succeed.
 */
export async function attempt(
  { url, endpointId, eventId, eventType, organizationId, content: { at, signed, body } }: Message,
  { fetch, signer, signal }: { fetch: GuardedFetch; signer: Signer; signal: AbortSignal },
): Promise<Outcome> {
  const { kid } = signer.jwk;
  const signature = Buffer.from(await signer.sign(signed)).toString('hex');
  const headers = {
    'Content-Type': 'application/json',
    'X-Turnkey-Organization-Id': organizationId,
    'X-Turnkey-Event-Type': eventType,
    'X-Turnkey-Timestamp': String(at),
    'X-Turnkey-Webhook-Version': '1',
    'X-Turnkey-Event-Id': eventId,
    'X-Turnkey-Signature-Key-Id': kid,
    'X-Turnkey-Signature-Algorithm': 'ed25519',
    'X-Turnkey-Signature-Version': 'v1',
    'X-Turnkey-Signature': signature,
  };
  try {
    const bounds = { timeoutMs, statusOnly: true, keepFor: endpointId } as const;
    const { status } = await fetch(url, { method: 'POST', headers, body, signal, ...bounds });
    if (status >= 200 && status < 300) return { kind: 'delivered', status };
    const isFinal = status >= 300 && status < 500;
    return { kind: isFinal ? 'refused' : 'failed', status, reason: `responded with status ${status}` };
  } catch (error) {
    if (!(error instanceof GuardedFetchError)) throw error;
    return { kind: error.mayPass ? 'failed' : 'refused', reason: error.message };
  }
}

/**
 * Delays after the first failure, the second and so on, in milliseconds; then it is given up. As in Standard Webhooks.
 */
const retryAfterMs = [5_000, 60_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000];

/** When a delivery is retried after this many failures; undefined if it is given up. */
export function retryAt(attempts: number, now: number): number | undefined {
  const after = retryAfterMs[attempts - 1];
  return after === undefined ? undefined : now + after;
}

/**
 * Maximum age of a delivery, in milliseconds: an endpoint that was down for days is not notified of everything since.
 */
export const longestLifeMs = 3 * 24 * 60 * 60 * 1000;
