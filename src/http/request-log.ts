import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { CoordinatorError } from '../domain/errors.js';
import { LineSampler } from './line-sampler.js';

/** What a request turned out to be about, for the log and for metrics: ids and names, no content. */
interface RequestFacts {
  /** The path, with the name of the activity or query where it is one of ours. */
  route?: string;
  organizationId?: string;
  /** Of the caller, once the caller is known. */
  credentialId?: string;
  activityId?: string;
  activityType?: string;
  /** Why it was refused. */
  error?: Pick<CoordinatorError, 'code' | 'category'>;
}

declare module 'fastify' {
  interface FastifyRequest {
    facts: RequestFacts;
  }
}

const requestId = /^[\w.:+/=@-]{1,128}$/;
/** https://www.w3.org/TR/trace-context/#traceparent-header */
const traceparent = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

/** The caller's own request id if it is a plain one, otherwise a new one. */
export function requestIdOf({ headers }: { readonly headers: IncomingHttpHeaders }): string {
  const sent = headers['x-request-id'];
  return typeof sent === 'string' && requestId.test(sent) ? sent : randomUUID();
}

/** The W3C trace context of a request, if it is valid. */
function traceparentOf({ headers }: { readonly headers: IncomingHttpHeaders }): string | undefined {
  const { traceparent: sent } = headers;
  return typeof sent === 'string' && traceparent.test(sent) ? sent : undefined;
}

/**
 * One line per request: at `info`, or at `warn` if authentication or a rate limit refused it. Unauthenticated callers can
 * cause the latter without end, so those are sampled. Successful probes and scrapes are at `debug`.
 */
export function logRequests(fastify: FastifyInstance, logger: Logger): void {
  fastify.decorateRequest('facts');
  fastify.addHook('onRequest', (request, reply, done) => {
    request.facts = {};
    void reply.header('x-request-id', request.id);
    done();
  });
  // Every member of these lines is chosen here, so they need no search for secrets, which costs more than the rest.
  const lines = logger.child({}, { redact: [] });
  const sampler = new LineSampler((network, leftOut) =>
    lines.warn({ network, leftOut }, `left out ${leftOut} lines about refused requests of this network`),
  );
  fastify.addHook('onClose', (_instance, done) => {
    sampler.close();
    done();
  });
  fastify.addHook('onResponse', (request, reply, done) => {
    const level = levelOf(request, reply);
    if (lines.isLevelEnabled(level)) {
      if (level !== 'warn') lines[level](lineOf(request, reply), 'request');
      else if (sampler.admits(request.caller.network)) {
        lines.warn({ ...lineOf(request, reply), network: request.caller.network }, 'request refused');
      }
    }
    done();
  });
}

function levelOf({ routeOptions: { url } }: FastifyRequest, { statusCode }: FastifyReply): 'warn' | 'info' | 'debug' {
  if (statusCode === 401 || statusCode === 429) return 'warn';
  const isProbe = url !== undefined && (url.startsWith('/health/') || url === '/metrics');
  return isProbe && statusCode < 400 ? 'debug' : 'info';
}

/** Members that are undefined are not written. */
function lineOf(request: FastifyRequest, reply: FastifyReply): object {
  const { facts, method, id, routeOptions } = request;
  return {
    requestId: id,
    method,
    // Never the URL as sent: a query string may contain anything.
    route: facts.route ?? routeOptions.url ?? 'unknown',
    status: reply.statusCode,
    durationMs: Math.round(reply.elapsedTime * 10) / 10,
    organizationId: facts.organizationId,
    credentialId: facts.credentialId,
    activityId: facts.activityId,
    activityType: facts.activityType,
    error: facts.error?.code,
    category: facts.error?.category,
    traceparent: traceparentOf(request),
  };
}
