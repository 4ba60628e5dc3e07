import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { callerPath } from '../fairness/fair-queue.js';
import { largeBody, thisThread } from '../fairness/turns.js';
import { signatureOf } from './attested.js';
import { readSessionHeader, refuseSession, type SessionHeader } from './session-header.js';
import { readStamp, verifyApiKeyStamp, type Stamp } from './verify.js';

declare module 'fastify' {
  interface FastifyRequest {
    /**
     * Set once the stamp's signature over the raw body has been verified (a passkey's is verified with its user, and whose
     * the key of an attested one is with its token).
     */
    stamp?: Stamp;
    /** Set instead of a stamp by the guard of queries; nothing in it has been verified. */
    session?: SessionHeader;
    /** Where it comes from; through an auth proxy, where whoever calls the proxy comes from. Set as it arrives. */
    caller: { readonly network: string; readonly isThroughProxy: boolean };
  }
}

/** Lets a request in only with a stamp over its raw bytes, before anything in them is parsed. */
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

/** Lets a query in with a stamp, or with a read-only session in its place. */
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
  if (stamp.kind === 'api-key') await verifyApiKeyStamp(stamp, rawBody(request), request.caller.network);
  if (stamp.kind === 'attested') await verifyApiKeyStamp(signatureOf(stamp), rawBody(request), request.caller.network);
  return stamp;
}

/**
 * What to wait for before a large body is read, or answered: bodies that come together are read in turns, and everybody
 * else is served in between. Undefined for a small one.
 */
export function turnOfLarge(request: FastifyRequest, bytes = rawBody(request).length): Promise<void> | undefined {
  if (bytes <= largeBody) return undefined;
  return thisThread.next(callerPath(request.caller.network), { alone: true });
}

/** The body as it came over the wire; empty when there was none. */
export function rawBody(request: FastifyRequest): Uint8Array {
  return Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
}
