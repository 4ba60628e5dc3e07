import { checkClockTrusted } from '../decide/decision-time.js';
import { Inject } from '@nestjs/common';
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { ActivityResponses, type ActivityResponse } from './activity-responses.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import { REGISTRY, type Registry } from '../decide/registry.js';
import { readSubmit, type StampedRequest } from './read-submit.js';
import { OrganizationLookup } from './organization-lookup.js';

/** A stamped request for an activity. */
export class SubmitActivity extends Command<ActivityResponse> {
  /** @param position what looking up the caller's organization must have seen */
  constructor(
    readonly request: StampedRequest,
    readonly position: bigint,
  ) {
    super();
  }
}

@CommandHandler(SubmitActivity)
export class SubmitActivityHandler implements ICommandHandler<SubmitActivity> {
  constructor(
    @Inject(REGISTRY) private readonly registry: Registry,
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly lookup: OrganizationLookup,
    private readonly answers: ActivityResponses,
  ) {}

  async execute({ request, position }: SubmitActivity): Promise<ActivityResponse> {
    // Before the time of the request is compared with a time that may be over.
    checkClockTrusted(this.clock);
    const read = readSubmit(request, this.registry, this.clock.now());
    return this.answers.to(await this.lookup.ofSubmit(read, position), request);
  }
}
