import { createServer, type RequestListener } from 'node:http';
import { Server as TcpServer } from 'node:net';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Logger } from 'pino';
import type { Config } from '../config/config.js';
import { CoordinatorError } from '../domain/errors.js';
import type { Health } from '../ports/health.js';
import { callerHeader, networkOf, toldCaller } from '../rate-limits/caller.js';
import { limitBodies } from './body-limits.js';
import { writeLargeResponsesApart } from './large-responses.js';
import { refuseUnreadablePath } from './errors.filter.js';
import { limitPipelining } from './pipelining.js';
import { maxBody, receiveBodies } from './receive-body.js';
import { Metrics, type HttpMetrics } from '../metrics/metrics.js';
import { logRequests, requestIdOf } from './request-log.js';
import { securityHeaders } from './security-headers.js';
import type { Shutdown } from './shutdown.js';

/** Interval between checks for timed-out connections, in milliseconds. */
const checkTimesMs = 1_000;
/** How long an idle connection is kept, in milliseconds: longer than load balancers keep theirs. */
const keepAliveMs = 72_000;

/** An assembled server, ready to listen. */
export interface Server {
  readonly app: NestFastifyApplication;
  readonly shutdown: Shutdown;
  /** Finishes accepted requests, then releases everything. */
  close(): Promise<void>;
}

/** The adapter between Nest and an HTTP server, with the limits from the settings. */
export function newAdapter({ trustProxy, requestTimeoutMs, headersTimeoutMs }: Config): FastifyAdapter {
  return new FastifyAdapter({
    bodyLimit: maxBody,
    trustProxy,
    forceCloseConnections: 'idle',
    frameworkErrors: refuseUnreadablePath,
    genReqId: requestIdOf,
    // Its body would not be the documented one (`Shutdown`).
    return503OnClosing: false,
    serverFactory: (handle: RequestListener) => {
      // Node uses the larger of the two times, and checks every half minute, unless both and the interval are given.
      const times = {
        headersTimeout: headersTimeoutMs,
        requestTimeout: requestTimeoutMs,
        connectionsCheckingInterval: checkTimesMs,
        keepAliveTimeout: keepAliveMs,
      };
      return createServer(times, limitPipelining(handle));
    },
  });
}

/** Applies to every request before any route: keeps its bytes, and determines where it comes from. */
export function prepareServer(
  adapter: FastifyAdapter,
  {
    proxySecret,
    logger,
    shutdown,
    servesProxy = false,
  }: {
    readonly proxySecret?: string | undefined;
    readonly logger: Logger;
    readonly shutdown: Shutdown;
    /** Requests of the auth proxy come from this process. */
    readonly servesProxy?: boolean;
  },
): void {
  const fastify = adapter.getInstance();
  logRequests(fastify, logger);
  // The stamp is over the exact bytes, so they are kept, and nothing parses them before they are verified.
  receiveBodies(fastify);
  const headers = securityHeaders();
  fastify.addHook('onRequest', (request, reply, done) => {
    void reply.headers(headers);
    const { headers: sent, url: path } = request;
    const stamp = typeof sent['x-stamp'] === 'string' ? sent['x-stamp'] : '';
    const told = toldCaller(proxySecret, sent[callerHeader], { path, stamp });
    request.caller = { network: networkOf(told ?? request.ip), isThroughProxy: told !== undefined };
    done();
  });
  shutdown.follow(fastify, ({ caller }) => servesProxy && caller.isThroughProxy);
  // JSON has no charset parameter (RFC 8259, section 11), and some clients compare the whole media type. Fastify adds one.
  fastify.addHook('onSend', (_request, reply, _payload, done) => {
    if (reply.getHeader('content-type') === 'application/json; charset=utf-8') {
      void reply.header('content-type', 'application/json');
    }
    done();
  });
  limitBodies(fastify);
  writeLargeResponsesApart(fastify);
}

/** Refuses every request once this process cannot keep its promises; health and metrics say why. */
export function refuseAfterFailure(adapter: FastifyAdapter, health: Health): void {
  adapter.getInstance().addHook('onRequest', ({ url }, _reply, done) => {
    if (health.failure === undefined || url.startsWith('/health/') || url === '/metrics') return done();
    done(
      new CoordinatorError(
        'UNAVAILABLE',
        'this server has stopped after a fault and must be restarted; send the same request again after that: it takes effect at most once',
      ),
    );
  });
}

/** Counts responses. */
export function measure(adapter: FastifyAdapter, metrics: HttpMetrics): void {
  adapter.getInstance().addHook('onResponse', (request, reply, done) => {
    metrics.answered(request.routeOptions.url ?? 'unknown', reply.statusCode, reply.elapsedTime / 1000);
    const { activityType } = request.facts;
    if (activityType !== undefined && metrics instanceof Metrics) metrics.submitted(activityType, reply.statusCode);
    done();
  });
}

/** Finishes requests in flight, and accepts no more. Returns how many were cut off because they took too long. */
export async function closeServer({ app, shutdown }: Pick<Server, 'app' | 'shutdown'>): Promise<number> {
  const { server } = app.getHttpAdapter().getInstance();
  const cutOff = await shutdown.drain();
  // Only stops listening: `close` of an HTTP server also destroys idle connections, on which a request may be arriving.
  TcpServer.prototype.close.call(server);
  await shutdown.hangUp();
  server.closeAllConnections();
  await app.close();
  return cutOff;
}
