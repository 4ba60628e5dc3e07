import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { signatureOf } from './attested.js';
import { readStamp, verifyApiKeyStamp, type Stamp } from './verify.js';

declare module 'fastify' {
  interface FastifyRequest {
    /**
     * Set once the stamp's signature over the raw body has been verified (a passkey's is verified with its user, and whose
     * the key of an attested one is with its token).
     */
    stamp?: Stamp;
  }
}

/** Lets a request in only with a stamp over its raw bytes, before anything in them is parsed. */
@Injectable()
export class StampGuard implements CanActivate {
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    const stamp = readStamp(request.headers);
    if (stamp.kind === 'api-key') await verifyApiKeyStamp(stamp, rawBody(request));
    if (stamp.kind === 'attested') await verifyApiKeyStamp(signatureOf(stamp), rawBody(request));
    request.stamp = stamp;
    return true;
  }
}

/** The body as it came over the wire; empty when there was none. */
export function rawBody(request: FastifyRequest): Uint8Array {
  return Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
}
