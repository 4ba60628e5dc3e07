import { Controller, HttpCode, Inject, Param, Post, Req, Res, UseGuards } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { sizeOf, type ActivityResponse } from '../coordinator/activity-responses.js';
import { REGISTRY, isVote, type Registry } from '../decide/registry.js';
import { CastVote } from '../coordinator/cast-vote.js';
import { SubmitActivity } from '../coordinator/submit-activity.js';
import { CoordinatorError } from '../domain/errors.js';
import { senderPath } from '../fairness/fair-queue.js';
import { rawBody, StampGuard, turnOfLarge } from '../stamps/stamp.guard.js';
import { wantsTimestampObjects } from './activity-timestamps.js';
import { CONFIG } from '../config/config.token.js';
import type { Config } from '../config/config.js';
import { Freshness } from './freshness.js';
import { notImplemented } from './errors.filter.js';
import { publishedSubmits } from './published-paths.js';
import { credentialIn, RateLimits } from './rate-limits.js';

/** POST /public/v1/submit/<activity>: one stamped intent. */
@Controller('public/v1/submit')
@UseGuards(StampGuard)
export class SubmitController {
  constructor(
    @Inject(REGISTRY) private readonly registry: Registry,
    private readonly commands: CommandBus,
    private readonly freshness: Freshness,
    private readonly limits: RateLimits,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  @Post(':name')
  @HttpCode(200)
  async submit(
    @Param('name') path: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<{ activity: ActivityResponse['activity'] }> {
    const versions = this.registry.paths.get(path);
    if (!versions) {
      if (publishedSubmits.includes(path)) throw notImplemented(`submit/${path}`);
      throw new CoordinatorError('NOT_FOUND', `no activity is submitted to \`${path.slice(0, 100)}\`: see /docs`);
    }
    const body = rawBody(request);
    const stamp = request.stamp!;
    request.facts.route = `/public/v1/submit/${path}`;
    request.facts.activityType = versions[0]!.type;
    const onKnown = this.limits.check(request, reply, stamp);
    const { network, isThroughProxy } = request.caller;
    const from = senderPath({ network, isThroughProxy, credential: credentialIn(stamp) });
    const timestampObjects = wantsTimestampObjects(request.headers, this.config);
    const requested = { path, body, stamp, from, onKnown, timestampObjects };
    const seen = this.freshness.wanted(request);
    // All versions that a path accepts are of one kind.
    const command = isVote(versions[0]!.definition) ? new CastVote(requested) : new SubmitActivity(requested, seen);
    const { activity, position } = await this.commands.execute(command);
    request.facts.activityId = activity.id;
    this.freshness.answered(position, reply);
    // The response contains what was sent, or voted on.
    await turnOfLarge(request, sizeOf(activity));
    return { activity };
  }
}
