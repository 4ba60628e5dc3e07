import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Config } from '../config/config.js';
import { callerHeader, networkOf, toldCaller } from '../rate-limits/caller.js';
import { limitBodies, maxBody } from './body-limits.js';
import { refuseUnreadablePath } from './errors.filter.js';
import type { HttpMetrics } from './metrics.js';
import { securityHeaders } from './security-headers.js';

/** Between two looks at connections whose time is up, in milliseconds. */
const checkTimesMs = 1_000;

/** A server that has been put together and can listen. */
export interface Server {
  readonly app: NestFastifyApplication;
  /** Finishes what was accepted, then lets go of everything. */
  close(): Promise<void>;
}

/** The adapter between Nest and an HTTP server with the limits that the settings say. */
export function newAdapter({ trustProxy, requestTimeoutMs, headersTimeoutMs }: Config): FastifyAdapter {
  return new FastifyAdapter({
    bodyLimit: maxBody,
    trustProxy,
    forceCloseConnections: 'idle',
    frameworkErrors: refuseUnreadablePath,
    requestTimeout: requestTimeoutMs,
    // Node counts the larger of the two times, and looks every half minute, unless both and the interval are said.
    http: {
      headersTimeout: headersTimeoutMs,
      requestTimeout: requestTimeoutMs,
      connectionsCheckingInterval: checkTimesMs,
    },
  });
}

/** What is done with every request before any route: its bytes are kept, and it is known where it comes from. */
export function prepareServer(adapter: FastifyAdapter, proxySecret: string | undefined): void {
  const fastify = adapter.getInstance();
  // The stamp is over the exact bytes, so they are kept and nothing parses them before it is verified.
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
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
}

/** Counts answers. */
export function measure(adapter: FastifyAdapter, metrics: HttpMetrics): void {
  adapter.getInstance().addHook('onResponse', (request, reply, done) => {
    metrics.answered(request.routeOptions.url ?? 'unknown', reply.statusCode, reply.elapsedTime / 1000);
    done();
  });
}

/** Answers what is in flight, and takes nothing more. */
export async function closeServer(app: NestFastifyApplication): Promise<void> {
  const { server } = app.getHttpAdapter().getInstance();
  // A connection whose last request ends while we close would be kept for the next one, and the process with it.
  const idle = setInterval(() => server.closeIdleConnections(), 50);
  await app.close();
  clearInterval(idle);
}
