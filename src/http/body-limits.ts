import { getHeapStatistics } from 'node:v8';
import type { FastifyInstance } from 'fastify';
import { BodiesInFlight, bytesInFlight, tooManyBodies, type BodyInFlight } from '../rate-limits/bodies-in-flight.js';
import { bodyTooLarge } from './errors.filter.js';
import { maxBody } from './receive-body.js';

/** Largest body that is read completely just to refuse it, in bytes. */
const mostPassedOver = 32 * 1024 * 1024;
/** What a request takes at least, in bytes, however short its body is. */
const leastCounted = 1_024;
/** Bodies up to this size, in bytes, have a reserve of their own. */
const smallBody = 64 * 1024;

declare module 'fastify' {
  interface FastifyRequest {
    /** Set while its body is counted. */
    bodyInFlight?: BodyInFlight & { isWorkedOn: boolean; isClosed: boolean };
  }
}

/** A body is counted before it is received, until the response is sent and nobody works on it any more. */
export function limitBodies(fastify: FastifyInstance): void {
  const most = bytesInFlight(getHeapStatistics().heap_size_limit);
  const bodies = new BodiesInFlight({ most, small: smallBody });
  fastify.decorateRequest('bodyInFlight');
  fastify.addHook('onRequest', (request, reply, done) => {
    const length = request.headers['content-length'];
    const isChunked = request.headers['transfer-encoding'] !== undefined;
    const bytes = isChunked ? maxBody : Math.min(Number(length ?? 0) || 0, maxBody);
    if (bytes === 0) return done();
    if (!isChunked && Number(length) > maxBody && Number(length) <= mostPassedOver) {
      // A client that is still writing when the connection closes never reads why.
      request.raw.once('end', () => done(bodyTooLarge())).resume();
      return;
    }
    const giveUp = (): void => {
      if (reply.sent) return void request.raw.destroy();
      reply.raw.once('finish', () => request.raw.destroy());
      void reply.header('connection', 'close').send(tooManyBodies());
    };
    let body: BodyInFlight;
    try {
      body = bodies.take(request.caller.network, Math.max(bytes, leastCounted), giveUp);
    } catch (error) {
      return done(error as Error);
    }
    // A literal without a spread, because every request makes one (docs/performance.md).
    const one = { received: body.received, letGo: body.letGo, isWorkedOn: false, isClosed: false };
    request.bodyInFlight = one;
    reply.raw.once('close', () => {
      one.isClosed = true;
      // A client that hangs up does not end work that was started.
      if (!one.isWorkedOn) one.letGo();
    });
    done();
  });
  fastify.addHook('preHandler', (request, _reply, done) => {
    const one = request.bodyInFlight;
    if (one) one.isWorkedOn = true;
    one?.received();
    done();
  });
  fastify.addHook('onSend', (request, _reply, payload, done) => {
    const one = request.bodyInFlight;
    if (one) one.isWorkedOn = false;
    if (one?.isClosed) one.letGo();
    done(null, payload);
  });
}
