import { setTimeout as pause } from 'node:timers/promises';
import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { CoordinatorError } from '../domain/errors.js';
import { isForOperators } from './cors.js';

/** How long a body may still take to arrive once the server refuses new requests, in milliseconds. Nothing of it has begun. */
const uploadMs = 3_000;
/** How long requests in flight may take from then on, in milliseconds. */
const drainMs = 10_000;
const retryAfterSeconds = 2;
/** How long requests may arrive on open connections once no new ones are accepted, in milliseconds. */
const lastRequestsMs = 100;
/** How long callers may take to close their end of a connection, in milliseconds. */
const hangUpMs = 500;

/**
 * The way from serving to closed: first the server is announced as not ready and still serves, then it refuses new requests and
 * finishes those in flight. Connections end with their next response.
 */
export class Shutdown {
  private phase: 'serving' | 'announced' | 'refusing' = 'serving';
  private readonly inFlight = new Set<FastifyRequest>();
  /** Those whose body has not arrived. */
  private readonly receiving = new Map<FastifyRequest, FastifyReply>();
  private readonly sockets = new Set<Socket>();
  private settle: () => void = () => undefined;

  /** Whether callers should go elsewhere. */
  get isAnnounced(): boolean {
    return this.phase !== 'serving';
  }

  /** From now on readiness is red, and every response closes its connection. */
  announce(): void {
    if (this.phase === 'serving') this.phase = 'announced';
  }

  /** From now on new requests are refused. */
  refuse(): void {
    this.phase = 'refusing';
  }

  /** @param isOwn whether a request is made by this process itself, for a request in flight */
  follow(fastify: FastifyInstance, isOwn: (request: FastifyRequest) => boolean = () => false): void {
    fastify.server.on('connection', (socket) => {
      this.sockets.add(socket);
      socket.once('close', () => this.sockets.delete(socket));
    });
    fastify.addHook('onRequest', (request, reply, done) => {
      if (this.phase === 'refusing' && !isForOperators(request) && !isOwn(request)) return done(shuttingDown());
      this.inFlight.add(request);
      this.receiving.set(request, reply);
      reply.raw.once('close', () => this.ended(request));
      done();
    });
    fastify.addHook('preHandler', (request, _reply, done) => {
      this.receiving.delete(request);
      done();
    });
    fastify.addHook('onSend', (_request, reply, payload, done) => {
      if (this.isAnnounced) void reply.header('connection', 'close');
      done(null, payload);
    });
  }

  /**
   * Refuses new requests, and resolves once none is in flight, or when their time is up, to how many are left. What they have asked for is
   * recorded even then; their callers do not learn it from this server.
   */
  async drain(): Promise<number> {
    this.refuse();
    if (this.inFlight.size > 0) {
      const settled = new Promise<void>((resolve) => (this.settle = resolve));
      const over = new AbortController();
      const uploads = setTimeout(() => this.giveUpReceiving(), uploadMs);
      await Promise.race([settled, pause(drainMs, undefined, { signal: over.signal }).catch(() => undefined)]);
      over.abort();
      clearTimeout(uploads);
    }
    return this.inFlight.size;
  }

  /**
   * Ends the connections that are left once no new ones are accepted. A connection that is destroyed with unread bytes is reset,
   * which can destroy a response that its caller has not read yet.
   */
  async hangUp(): Promise<void> {
    await this.closed(lastRequestsMs);
    for (const socket of this.sockets) socket.end();
    await this.closed(hangUpMs);
  }

  private async closed(withinMs: number): Promise<void> {
    const end = performance.now() + withinMs;
    while (this.sockets.size > 0 && performance.now() < end) await pause(10);
  }

  private ended(request: FastifyRequest): void {
    this.receiving.delete(request);
    this.inFlight.delete(request);
    if (this.inFlight.size === 0) this.settle();
  }

  private giveUpReceiving(): void {
    for (const [request, reply] of this.receiving) {
      if (reply.sent) continue;
      // A client that is still writing reads the response only if its connection stays open until then.
      reply.raw.once('finish', () => request.raw.destroy());
      void reply.send(shuttingDown());
    }
  }
}

function shuttingDown(): CoordinatorError {
  return new CoordinatorError(
    'UNAVAILABLE',
    'this server is shutting down, and nothing of this request was done: send the same request again',
    { retryAfterSeconds },
  );
}
