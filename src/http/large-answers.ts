import type { FastifyInstance } from 'fastify';
import { callerPath } from '../fairness/fair-queue.js';
import { largeBody, thisThread } from '../fairness/turns.js';

/**
 * A large answer is made in one turn of the main thread, and encoded and written in another, which nothing else that is large
 * shares. It is encoded once: a text is measured, then encoded again by the socket.
 */
export function writeLargeAnswersApart(fastify: FastifyInstance): void {
  fastify.addHook('onSend', (request, _reply, payload, done) => {
    if (typeof payload !== 'string' || payload.length <= largeBody) return done(null, payload);
    const write = () => done(null, Buffer.from(payload));
    const turn = thisThread.next(callerPath(request.caller.network), { alone: true });
    if (turn) void turn.then(write);
    else setImmediate(write);
  });
}
