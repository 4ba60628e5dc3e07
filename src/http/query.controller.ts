import { Controller, HttpCode, Param, Post, Req, Res, UseGuards } from '@nestjs/common';
import { QueryBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { RunQuery } from '../coordinator/run-query.js';
import { CoordinatorError } from '../domain/errors.js';
import { queries } from '../read-models/index.js';
import { rawBody, StampGuard } from '../stamps/stamp.guard.js';
import { Freshness } from './freshness.js';
import { RateLimits } from './rate-limits.js';

const queriesByPath = new Map(queries.map((query) => [query.path, query]));

/** POST /public/v1/query/<query>: one stamped question. */
@Controller('public/v1/query')
@UseGuards(StampGuard)
export class QueryController {
  constructor(
    private readonly bus: QueryBus,
    private readonly freshness: Freshness,
    private readonly limits: RateLimits,
  ) {}

  @Post(':name')
  @HttpCode(200)
  async query(
    @Param('name') path: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<object> {
    const definition = queriesByPath.get(path);
    if (!definition) {
      throw new CoordinatorError('NOT_FOUND', `no query is named \`${path.slice(0, 100)}\`: /docs lists them`);
    }
    const body = rawBody(request);
    const stamp = request.stamp!;
    await this.limits.check(request, reply, body, stamp);
    return this.bus.execute(new RunQuery(definition, { path, body, stamp }, this.freshness.wanted(request)));
  }
}
