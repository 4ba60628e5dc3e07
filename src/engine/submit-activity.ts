import { Inject } from '@nestjs/common';
import { Command, CommandBus, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { ActivityAnswers, type ActivityAnswer } from './answers.js';
import { CastVote } from './cast-vote.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import { REGISTRY } from '../ports/engine.js';
import { isVote, type Registry } from '../decide/registry.js';
import { readSubmit, type StampedRequest } from './requests.js';
import { OrganizationLookup } from './organization-lookup.js';

/** A stamped request to a submit path. */
export class SubmitActivity extends Command<ActivityAnswer> {
  /** @param position what a look-up of the caller's organization must have seen */
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
    private readonly answers: ActivityAnswers,
    private readonly commands: CommandBus,
  ) {}

  async execute({ request, position }: SubmitActivity): Promise<ActivityAnswer> {
    const read = readSubmit(request, this.registry, this.clock.now());
    const submit = await this.lookup.ofSubmit(read, position);
    if (isVote(submit.version.definition)) return this.commands.execute(new CastVote(submit));
    return this.answers.to(submit);
  }
}
