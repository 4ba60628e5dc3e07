import type { Readable } from 'node:stream';
import { Controller, HttpCode, Inject, Param, Post, Req, Res, UseGuards } from '@nestjs/common';
import { QueryBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { RunQuery } from '../queries/run-query.js';
import { CoordinatorError } from '../domain/errors.js';
import { queries } from '../read-models/index.js';
import { rawBody, ReadGuard } from '../stamps/stamp.guard.js';
import { inParts } from './large-responses.js';
import { wantsTimestampObjects } from './activity-timestamps.js';
import { CONFIG } from '../config/config.token.js';
import type { Config } from '../config/config.js';
import { Freshness } from './freshness.js';
import { notImplemented } from './errors.filter.js';
import { publishedQueries } from './published-paths.js';
import { RateLimits } from './rate-limits.js';
import { followReader } from './slow-readers.js';

const queriesByPath = new Map(queries.map((query) => [query.path, query]));

/** POST /public/v1/query/<query>: one query, stamped or with a read-only session. */
@Controller('public/v1/query')
@UseGuards(ReadGuard)
export class QueryController {
  constructor(
    private readonly bus: QueryBus,
    private readonly freshness: Freshness,
    private readonly limits: RateLimits,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  @Post(':name')
  @HttpCode(200)
  async query(
    @Param('name') path: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<string | Readable> {
    const definition = queriesByPath.get(path);
    if (!definition) {
      if (publishedQueries.includes(path)) throw notImplemented(`query/${path}`);
      throw new CoordinatorError('NOT_FOUND', `no query is named \`${path.slice(0, 100)}\`: see /docs`);
    }
    const body = rawBody(request);
    const by = request.session ?? request.stamp!;
    request.facts.route = `/public/v1/query/${path}`;
    const onKnown = this.limits.check(request, reply, by);
    const timestampObjects = wantsTimestampObjects(request.headers, this.config);
    const { json, slot } = await this.bus.execute(
      new RunQuery(definition, { body, by, onKnown, timestampObjects }, this.freshness.wanted(request)),
    );
    void reply.type('application/json');
    followReader(reply.raw, request.raw.socket, slot);
    return typeof json === 'string' ? json : inParts(reply, json);
  }
}
