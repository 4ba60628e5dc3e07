import { createHash, timingSafeEqual } from 'node:crypto';
import { Controller, HttpCode, Inject, Post, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { AuthProxies } from '../coordinator/auth-proxies.js';
import { CoordinatorError, invalidField } from '../domain/errors.js';
import { parseStrictJson } from '../wire/strict-json.js';
import { rawBody } from '../stamps/stamp.guard.js';
import { Freshness } from './freshness.js';

/** Injects the secret that auth proxies present; undefined if none is served. */
export const PROXY_SECRET = Symbol('ProxySecret');

/** What auth proxies need from the API besides its public paths: configurations, and stamps (docs/adr/0019). */
@Controller('internal/v1/auth-proxy')
export class AuthProxyKeysController {
  constructor(
    @Inject(PROXY_SECRET) private readonly secret: { readonly value: string | undefined },
    private readonly proxies: AuthProxies,
    private readonly freshness: Freshness,
  ) {}

  /** `{ configId }` → the configuration. */
  @Post('configuration')
  @HttpCode(200)
  configuration(@Req() request: FastifyRequest): Promise<object> {
    const { configId } = this.asked(request, ['configId']);
    return this.proxies.configuration(configId, this.freshness.wanted(request));
  }

  /** `{ configId, body }` → `{ stamp }`, the value of `X-Stamp` for that body. */
  @Post('stamp')
  @HttpCode(200)
  async stamp(@Req() request: FastifyRequest): Promise<{ stamp: string }> {
    const { configId, body } = this.asked(request, ['configId', 'body']);
    return { stamp: await this.proxies.stamp(configId, body, this.freshness.wanted(request)) };
  }

  /** `{ configId, filterType, filterValue }` → `{ organizationId }`, where a public identifier leads, if anywhere. */
  @Post('account')
  @HttpCode(200)
  async account(@Req() request: FastifyRequest): Promise<{ organizationId?: string }> {
    const { configId, filterType, filterValue } = this.asked(request, ['configId', 'filterType', 'filterValue']);
    const position = this.freshness.wanted(request);
    const organizationId = await this.proxies.account(configId, { filterType, filterValue }, position);
    return organizationId === undefined ? {} : { organizationId };
  }

  /**
   * `{ configId, filterType, filterValue, request }` → `{ organizationId, body, stamp }`: the request with the organization
   * that the identifier leads to, and the stamp for it; `{}` if it leads nowhere.
   */
  @Post('account-stamp')
  @HttpCode(200)
  async accountStamp(@Req() asked: FastifyRequest): Promise<object> {
    const names = ['configId', 'filterType', 'filterValue', 'request'] as const;
    const { configId, request, ...identifier } = this.asked(asked, names);
    const position = this.freshness.wanted(asked);
    return (await this.proxies.stampForAccount(configId, identifier, request, position)) ?? {};
  }

  /** `{ origin }` → `{ allowed }`, whether any configuration allows the origin. */
  @Post('origin')
  @HttpCode(200)
  async origin(@Req() request: FastifyRequest): Promise<{ allowed: boolean }> {
    const { origin } = this.asked(request, ['origin']);
    return { allowed: await this.proxies.allowsOrigin(origin, this.freshness.wanted(request)) };
  }

  /** @throws {CoordinatorError} UNAUTHENTICATED unless the request presents the secret, before anything is parsed */
  private asked<Name extends string>(request: FastifyRequest, names: readonly Name[]): Readonly<Record<Name, string>> {
    const { value } = this.secret;
    if (value === undefined) {
      throw new CoordinatorError('NOT_FOUND', 'the auth proxy is not enabled: set PROXY_SECRET, here and at the proxy');
    }
    if (!isSame(request.headers.authorization ?? '', `Bearer ${value}`)) {
      throw new CoordinatorError('UNAUTHENTICATED', 'the auth proxy has a different PROXY_SECRET than this server');
    }
    const input = parseStrictJson(rawBody(request)).value as Readonly<Record<string, unknown>>;
    for (const name of names) {
      if (typeof input[name] !== 'string') throw invalidField(name, 'must be a string');
    }
    return input as Readonly<Record<Name, string>>;
  }
}

/** Compares digests, which have the same length, so that timing reveals nothing. */
function isSame(one: string, other: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}
