import { checkClockTrusted } from '../decide/decision-time.js';
import { Inject } from '@nestjs/common';
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { attestedElsewhere } from '../decide/refusals.js';
import { REGISTRY, type Registry } from '../decide/registry.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import { ActivityResponses, type ActivityResponse } from './activity-responses.js';
import { readSubmit, type StampedRequest } from './read-submit.js';

/** A stamped request to approve or reject an activity; the response is the activity voted on. */
export class CastVote extends Command<ActivityResponse> {
  constructor(readonly request: StampedRequest) {
    super();
  }
}

@CommandHandler(CastVote)
export class CastVoteHandler implements ICommandHandler<CastVote> {
  constructor(
    @Inject(REGISTRY) private readonly registry: Registry,
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly answers: ActivityResponses,
  ) {}

  async execute({ request }: CastVote): Promise<ActivityResponse> {
    // Before the time of the request is compared with a time that may be over.
    checkClockTrusted(this.clock);
    const vote = readSubmit(request, this.registry, this.clock.now());
    if (vote.stamp.kind === 'attested') throw attestedElsewhere(vote.version.type);
    return this.answers.to(vote, request);
  }
}
