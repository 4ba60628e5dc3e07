import type { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyRequest } from 'fastify';

type CorsOptions = NonNullable<Parameters<FastifyAdapter['enableCors']>[0]>;

/** What is for operators, and for no page of another origin. The auth proxy asks each configuration (`ownCors`). */
const operatorPaths = /^\/+(?:metrics|health|docs|openapi\.json|internal)(?:[/?#]|$)/i;

/** Lets pages of every origin use the API, and nothing that is for operators. */
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
    ],
    exposedHeaders: ['X-Position', 'ratelimit-limit', 'ratelimit-remaining', 'retry-after'],
    maxAge: 7_200,
  };
  // What is for operators is for no page of another origin: a browser inside their network would read it out.
  const delegator = ({ url }: FastifyRequest, done: (error: null, options: CorsOptions) => void): void =>
    done(null, operatorPaths.test(url) ? { origin: false } : shared);
  adapter.enableCors({ delegator });
}
