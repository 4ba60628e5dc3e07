import type { FastifyInstance, FastifyRequest } from 'fastify';
import { largeBody } from '../fairness/turns.js';
import { bodyBrokeOff, bodyInTooManyParts, bodyTooLarge } from './errors.filter.js';

/** Largest request body, in bytes. */
export const maxBody = 2 * 1024 * 1024;

/** Each part costs a call of the parser and of what follows it, however short it is. */
const mostParts = (bytes: number): number => 64 + bytes / 256;

/** How much of large bodies is taken in one turn of the event loop, by all connections together, before each gives way. */
const mostInTurn = 512 * 1024;
let takenInTurn = 0;

/** Many connections that each deliver a body at once would keep the thread for all of their copies together. */
function giveWay(payload: NodeJS.ReadableStream, bytes: number): void {
  if (takenInTurn === 0) setImmediate(() => (takenInTurn = 0));
  takenInTurn += bytes;
  if (takenInTurn < mostInTurn) return;
  payload.pause();
  setImmediate(() => payload.resume());
}

/** Receives all bodies as bytes. */
export function receiveBodies(fastify: FastifyInstance): void {
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser('*', receiveBody);
  fastify.addHook('onSend', ({ raw }, reply, payload, done) => {
    // Node would read the rest, which nobody counts, for as long as the connection stays open.
    const isChunked = raw.headers['transfer-encoding'] !== undefined;
    if (!raw.complete && (isChunked || raw.isPaused())) {
      void reply.header('connection', 'close');
      reply.raw.once('finish', () => raw.destroy());
    }
    done(null, payload);
  });
}

/**
 * The bytes of a body. Each part is put in its place as it comes: putting a large one together at its end would keep the
 * thread, for each of those that end together.
 */
function receiveBody(
  { headers }: Pick<FastifyRequest, 'headers'>,
  payload: NodeJS.ReadableStream,
  done: (error: Error | null, body?: Buffer) => void,
): void {
  const length = headers['content-length'];
  const announced = length === undefined ? undefined : Number(length);
  if (announced !== undefined && announced > maxBody) return done(bodyTooLarge());
  let body = Buffer.allocUnsafe(announced ?? 0);
  let received = 0;
  let parts = 0;
  const take = (part: Buffer): void => {
    const before = received;
    received += part.length;
    parts += 1;
    if (received > maxBody) return end(bodyTooLarge());
    if (parts > mostParts(received)) {
      payload.pause();
      return end(bodyInTooManyParts());
    }
    if (received > body.length) {
      const grown = Buffer.allocUnsafe(Math.min(maxBody, Math.max(received, 2 * body.length)));
      body.copy(grown, 0, 0, before);
      body = grown;
    }
    part.copy(body, before);
    if (received > largeBody) giveWay(payload, part.length);
  };
  const end = (error?: Error): void => {
    payload.removeListener('data', take).removeListener('end', ended).removeListener('error', ended);
    if (error) return done(error);
    done(null, body.subarray(0, received));
  };
  const ended = (error?: unknown): void => {
    // What was not received would be memory of others.
    const isWhole = error === undefined && (announced === undefined || received === announced);
    end(isWhole ? undefined : bodyBrokeOff());
  };
  payload.on('data', take).on('end', ended).on('error', ended).resume();
}
