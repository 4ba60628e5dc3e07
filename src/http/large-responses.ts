import { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { callerPath, type QueuePath } from '../fairness/fair-queue.js';
import { thisThread } from '../fairness/turns.js';
import { bytesOf, isLong, joined, jsonPieces, partsOf } from '../wire/json-pieces.js';

/**
 * A large answer is written as JSON in several turns of the main thread, and sent in others. Queries write theirs
 * themselves.
 */
export function writeLargeResponsesApart(fastify: FastifyInstance): void {
  const written = new WeakMap<FastifyReply, readonly Uint8Array[]>();
  fastify.addHook('preSerialization', (request, reply, payload, done) => {
    if (!isLong(payload)) return done(null, payload);
    inTurns(payload, callerPath(request.caller.network)).then(
      (parts) => {
        written.set(reply, parts);
        reply.serializer(() => '');
        done(null, payload);
      },
      (error: unknown) => done(error as Error),
    );
  });
  fastify.addHook('onSend', (_request, reply, payload, done) => {
    const parts = written.get(reply);
    done(null, parts ? inParts(reply, parts) : payload);
  });
}

async function inTurns(payload: unknown, path: QueuePath): Promise<readonly Uint8Array[]> {
  await thisThread.next(path, { alone: true });
  return partsOf(await joined(jsonPieces(payload), () => thisThread.next(path)));
}

/** Bytes that are handed to the system before it serves others. */
const bytesAtOnce = 512 * 1024;

/** The body of a reply, of parts that are never put together: fresh memory of that size would cost more than sending it. */
export function inParts(reply: FastifyReply, parts: readonly Uint8Array[]): Readable {
  void reply.header('content-length', bytesOf(parts));
  async function* inTurn() {
    let sent = 0;
    for (const part of parts) {
      yield part;
      sent += part.length;
      if (sent < bytesAtOnce) continue;
      sent = 0;
      await nextTurn();
    }
  }
  return Readable.from(inTurn(), { objectMode: false });
}
