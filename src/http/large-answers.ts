import type { FastifyInstance } from 'fastify';
import { largeBody } from '../fairness/turns.js';

/**
 * A large answer is made in one turn of the main thread, and encoded and written in the next. It is encoded once: a text is
 * measured, then encoded again by the socket.
 */
export function writeLargeAnswersApart(fastify: FastifyInstance): void {
  fastify.addHook('onSend', (_request, _reply, payload, done) => {
    if (typeof payload !== 'string' || payload.length <= largeBody) return done(null, payload);
    setImmediate(() => done(null, Buffer.from(payload)));
  });
}
