import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Config } from '../config/config.js';
import { callerHeader, networkOf, toldCaller } from '../rate-limits/caller.js';
import { limitBodies } from './body-limits.js';
import { writeLargeAnswersApart } from './large-answers.js';
import { refuseUnreadablePath } from './errors.filter.js';
import { maxBody, receiveBody } from './receive-body.js';
import type { HttpMetrics } from './metrics.js';
import { securityHeaders } from './security-headers.js';

/** Interval between checks for timed-out connections, in milliseconds. */
const checkTimesMs = 1_000;

/** An assembled server, ready to listen. */
export interface Server {
  readonly app: NestFastifyApplication;
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
    requestTimeout: requestTimeoutMs,
    // Node uses the larger of the two times, and checks every half minute, unless both and the interval are given.
    http: {
      headersTimeout: headersTimeoutMs,
      requestTimeout: requestTimeoutMs,
      connectionsCheckingInterval: checkTimesMs,
    },
  });
}

/** Applies to every request before any route: keeps its bytes, and determines where it comes from. */
export function prepareServer(adapter: FastifyAdapter, proxySecret: string | undefined): void {
  const fastify = adapter.getInstance();
  // The stamp is over the exact bytes, so they are kept, and nothing parses them before they are verified.
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser('*', receiveBody);
  const headers = securityHeaders();
  fastify.addHook('onRequest', (request, reply, done) => {
    void reply.headers(headers);
    const { headers: sent, url: path } = request;
    const stamp = typeof sent['x-stamp'] === 'string' ? sent['x-stamp'] : '';
    const told = toldCaller(proxySecret, sent[callerHeader], { path, stamp });
    request.caller = { network: networkOf(told ?? request.ip), isThroughProxy: told !== undefined };
    done();
  });
  limitBodies(fastify);
  writeLargeAnswersApart(fastify);
}

/** Counts responses. */
export function measure(adapter: FastifyAdapter, metrics: HttpMetrics): void {
  adapter.getInstance().addHook('onResponse', (request, reply, done) => {
    metrics.answered(request.routeOptions.url ?? 'unknown', reply.statusCode, reply.elapsedTime / 1000);
    done();
  });
}

/** Finishes requests in flight, and accepts no more. */
export async function closeServer(app: NestFastifyApplication): Promise<void> {
  const { server } = app.getHttpAdapter().getInstance();
  // Otherwise a connection whose last request ends during closing would be kept for another, and keep the process
  // alive.
  const idle = setInterval(() => server.closeIdleConnections(), 50);
  await app.close();
  clearInterval(idle);
}
