import { Controller, HttpCode, Inject, Options, Param, Post, Req, Res } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CoordinatorError, invalidField } from '../domain/errors.js';
import { parseStrictJson } from '../wire/strict-json.js';
import { turnOfLarge } from '../stamps/stamp.guard.js';
import { thisThread } from '../fairness/turns.js';
import { Api } from './api.js';
import { Captcha, captchaHeader } from './captcha.js';
import { CallerPaths } from './caller-paths.js';
import { endpoints } from './endpoints.js';
import { Limits } from './limits.js';
import { allowedOrigin } from './origins.js';
import { isUuid } from '../domain/uuid.js';

/** Injects what the time is taken from: milliseconds since the epoch. */
export const PROXY_CLOCK = Symbol('ProxyClock');

const endpointsByName = new Map(endpoints.map((endpoint) => [endpoint.name, endpoint]));
const configHeader = 'X-Auth-Proxy-Config-Id';
/** What browsers may send here (docs/protocol.md, auth proxy), and for how many seconds they may remember it. */
const preflightHeaders = {
  'access-control-allow-methods': 'POST',
  'access-control-allow-headers': `Content-Type, Accept, ${configHeader}, ${captchaHeader}, X-Client-Version`,
  'access-control-max-age': '600',
} as const;

/** The API lets all origins in; here each configuration says which. */
const ownCors = { cors: false };

/** POST /v1/<endpoint>: what people without a key ask for, forwarded with the key of a configuration. */
@Controller('v1')
export class AuthProxyController {
  private readonly paths = new CallerPaths();

  constructor(
    private readonly api: Api,
    private readonly limits: Limits,
    private readonly captcha: Captcha,
    @Inject(PROXY_CLOCK) private readonly clock: { now(): number },
  ) {}

  /** A preflight request names no configuration, so it is answered for all of them; each request is then checked. */
  @Options(':name')
  @RouteConfig(ownCors)
  @HttpCode(204)
  async preflight(
    @Req() { headers, ip }: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<undefined> {
    this.limits.countAddress(ip);
    const { origin } = headers;
    void reply.header('vary', 'Origin');
    if (origin !== undefined && (await this.isAllowed(origin, headers))) {
      void reply.headers({ ...preflightHeaders, 'access-control-allow-origin': origin });
    }
  }

  @Post(':name')
  @RouteConfig(ownCors)
  @HttpCode(200)
  async call(
    @Param('name') name: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<object> {
    const endpoint = endpointsByName.get(name);
    // Until it is known whose origins count, browsers may read why a request is refused, and nothing else is told.
    void reply.headers({
      'access-control-allow-origin': '*',
      'access-control-expose-headers': 'retry-after',
      vary: 'Origin',
      'cache-control': 'no-store',
    });
    if (!endpoint) {
      const known = [...endpointsByName.keys()].join(', ');
      throw new CoordinatorError(
        'NOT_FOUND',
        `the auth proxy has no endpoint \`${name.slice(0, 100)}\`: use one of ${known}`,
      );
    }
    this.limits.countAddress(request.ip);
    const configId = configIdOf(request);
    // Each call is many requests to the API: one begins in a turn, and nobody has more turns than others.
    await thisThread.next(this.paths.of(configId, request.caller.network), { alone: true });
    const { traceparent } = request.headers;
    const trace = { 'x-request-id': request.id, ...(typeof traceparent === 'string' ? { traceparent } : {}) };
    const api = this.api.for({ address: request.ip, trace });
    const configuration = await api.configuration(configId);
    this.paths.remember(configuration);
    // What a refused origin is told is not for its page to read.
    void reply.removeHeader('access-control-allow-origin');
    const origin = allowedOrigin(configuration.settings.allowedOrigins, request.headers.origin);
    void reply.header('access-control-allow-origin', origin);
    this.limits.countConfiguration(configuration.configId, request.ip);
    await turnOfLarge(request);
    const body = bodyOf(request);
    return endpoint.run({
      api,
      limits: this.limits,
      captchaSiteKey: this.captcha.siteKey,
      checkCaptcha: () => this.captcha.check(request.headers[captchaHeader.toLowerCase()]),
      configuration,
      body,
      address: request.ip,
      now: this.clock.now(),
    });
  }

  private async isAllowed(origin: string, headers: FastifyRequest['headers']): Promise<boolean> {
    const named = headers[configHeader.toLowerCase()];
    if (named === undefined) return this.api.allowsOrigin(origin);
    if (typeof named !== 'string' || !isUuid(named)) return false;
    try {
      const { settings } = await this.api.configuration(named);
      allowedOrigin(settings.allowedOrigins, origin);
      return true;
    } catch (error) {
      if (error instanceof CoordinatorError && ['NOT_FOUND', 'PERMISSION_DENIED'].includes(error.code)) return false;
      throw error;
    }
  }
}

/** @throws {CoordinatorError} INVALID_ARGUMENT unless the header is there, once, and a UUID */
function configIdOf({ headers }: FastifyRequest): string {
  const value = headers[configHeader.toLowerCase()];
  if (value === undefined || value === '')
    throw invalidField(configHeader, 'is required: send the id of a configuration');
  if (typeof value !== 'string' || !isUuid(value)) {
    throw invalidField(configHeader, 'must be the UUID of a configuration, from get_auth_proxy_config');
  }
  return value.toLowerCase();
}

/** No body at all is an empty request (docs/protocol.md, auth proxy). @throws {CoordinatorError} INVALID_ARGUMENT */
function bodyOf({ body }: FastifyRequest): Readonly<Record<string, unknown>> {
  return Buffer.isBuffer(body) && body.length > 0 ? parseStrictJson(body).value : {};
}
