import cors, { type FastifyCorsOptions } from '@fastify/cors';
import type { FastifyInstance, FastifyRequest } from 'fastify';

/** Paths for operators, closed to pages of other origins. The auth proxy asks each configuration (`ownCors`). */
const operatorPaths = /^\/+(?:metrics|health|docs|openapi\.json|internal)(?:[/?#]|$)/i;

const exposedHeaders = ['X-Position', 'X-Request-Id', 'ratelimit-limit', 'ratelimit-remaining', 'retry-after'];
/** What a preflight request is told. */
const preflightOptions: FastifyCorsOptions = {
  origin: '*',
  methods: ['GET', 'POST'],
  allowedHeaders: [
    'Content-Type',
    'Accept',
    'X-Stamp',
    'X-Stamp-WebAuthn',
    'X-Stamp-Attested',
    'X-Client-Version',
    'X-Session',
    'X-Min-Position',
    'X-Auth-Proxy-Config-ID',
    'X-Captcha-Token',
    'X-Organization-Id',
    'X-Request-Id',
    'traceparent',
  ],
  exposedHeaders,
  maxAge: 7_200,
};
const forAnyOrigin = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': exposedHeaders.join(', '),
} as const;

/**
 * Lets pages of every origin use the API, except what is for operators. Call it before any other hook, so that refusals can
 * be read, too. Every response has the same two headers, so the plugin, which computes them for each request, only answers
 * preflight requests.
 */
export function allowOrigins(fastify: FastifyInstance): void {
  fastify.addHook('onRequest', (request, reply, done) => {
    const { cors: ownCors } = (request.routeOptions.config ?? {}) as { readonly cors?: false };
    if (ownCors !== false && !isForOperators(request)) void reply.headers(forAnyOrigin);
    done();
  });
  // Hooks of a context of its own run for its routes alone: those of preflight requests.
  void fastify.register(async (preflights) => {
    await preflights.register(cors, {
      delegator: (request, told) => told(null, isForOperators(request) ? { origin: false } : preflightOptions),
    });
  });
}

/**
 * A browser inside the operators' network would read it for pages of others. The router decodes a path before it compares it;
 * what cannot be decoded leads nowhere.
 */
export function isForOperators({ url }: FastifyRequest): boolean {
  // The router passes over scheme and host, which a request that came through a forward proxy may still have.
  const [path] = url.replace(/^https?:\/\/.*?\//, '/').split('?', 1);
  try {
    return operatorPaths.test(decodeURIComponent(path!));
  } catch {
    return true;
  }
}
