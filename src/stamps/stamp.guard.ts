import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { Stamp } from './stamp.js';
import type { FastifyRequest } from 'fastify';
import { callerPath } from '../fairness/fair-queue.js';
import { largeBody, thisThread } from '../fairness/turns.js';
import { signatureOf } from './attested.js';
import { readSessionHeader, refuseSession, type SessionHeader } from './session-header.js';
import { readStamp, verifyApiKeyStamp } from './verify.js';

declare module 'fastify' {
  interface FastifyRequest {
    /**
     * Set once the stamp's signature over the raw body has been verified (a passkey's is verified with its user; an
     * attested one's key with its token).
     */
    stamp?: Stamp;
    /** Set instead of a stamp by the guard of queries; it is not verified yet. */
    session?: SessionHeader;
    /** Address of the client; through an auth proxy, of the proxy's client. Set on arrival. */
    caller: { readonly network: string; readonly isThroughProxy: boolean };
  }
}

/** Admits a request only with a stamp over its raw bytes, before any of them is parsed. */
@Injectable()
export class StampGuard implements CanActivate {
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    refuseSession(request.headers);
    request.stamp = await verifiedStamp(request);
    await turnOfLarge(request);
    return true;
  }
}

/** Admits a query with a stamp, or with a read-only session instead. */
@Injectable()
export class ReadGuard implements CanActivate {
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    const session = readSessionHeader(request.headers);
    if (session) request.session = session;
    else request.stamp = await verifiedStamp(request);
    await turnOfLarge(request);
    return true;
  }
}

async function verifiedStamp(request: FastifyRequest): Promise<Stamp> {
  const stamp = readStamp(request.headers);
  // A large body is hashed on this thread: several that arrive together are not hashed in one turn.
  await turnOfLarge(request);
  if (stamp.kind === 'api-key') await verifyApiKeyStamp(stamp, rawBody(request), request.caller.network);
  if (stamp.kind === 'attested') await verifyApiKeyStamp(signatureOf(stamp), rawBody(request), request.caller.network);
  return stamp;
}

/**
 * A promise to await before a large body is read or responded to: bodies that arrive together are read in turns, and
 * everyone else is served in between. Undefined for a small one.
 */
export function turnOfLarge(request: FastifyRequest, bytes = rawBody(request).length): Promise<void> | undefined {
  if (bytes <= largeBody) return undefined;
  return thisThread.next(callerPath(request.caller.network), { alone: true });
}

/** The body as received; empty if there was none. */
export function rawBody(request: FastifyRequest): Uint8Array {
  return Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
}
