import type { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyRequest } from 'fastify';

type CorsOptions = NonNullable<Parameters<FastifyAdapter['enableCors']>[0]>;

/** Paths for operators, closed to pages of other origins. The auth proxy asks each configuration (`ownCors`). */
const operatorPaths = /^\/+(?:metrics|health|docs|openapi\.json|internal)(?:[/?#]|$)/i;

/** Lets pages of every origin use the API, except what is for operators. */
export function allowOrigins(adapter: FastifyAdapter): void {
  const shared = {
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
    ],
    exposedHeaders: ['X-Position', 'ratelimit-limit', 'ratelimit-remaining', 'retry-after'],
    maxAge: 7_200,
  };
  // Closed to pages of other origins: a browser inside the operators' network would read it for them.
  const delegator = ({ url }: FastifyRequest, done: (error: null, options: CorsOptions) => void): void =>
    done(null, operatorPaths.test(url) ? { origin: false } : shared);
  adapter.enableCors({ delegator });
}
