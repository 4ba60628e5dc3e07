import { Inject } from '@nestjs/common';
import { Command, CommandBus, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { ActivityAnswers, type ActivityAnswer } from './answers.js';
import { CastVote } from './cast-vote.js';
import { Driver } from './drive.js';
import { CLOCK, REGISTRY, type Clock } from './ports.js';
import { isVote, type Registry } from './registry.js';
import { readSubmit, type StampedRequest } from './requests.js';

/** A stamped request to a submit path. */
export class SubmitActivity extends Command<ActivityAnswer> {
  constructor(readonly request: StampedRequest) {
    super();
  }
}

@CommandHandler(SubmitActivity)
export class SubmitActivityHandler implements ICommandHandler<SubmitActivity> {
  constructor(
    @Inject(REGISTRY) private readonly registry: Registry,
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly driver: Driver,
    private readonly answers: ActivityAnswers,
    private readonly commands: CommandBus,
  ) {}

  async execute({ request }: SubmitActivity): Promise<ActivityAnswer> {
    const submit = readSubmit(request, this.registry, this.clock.now());
    if (isVote(submit.version.definition)) return this.commands.execute(new CastVote(submit));
    return this.answers.of(await this.driver.drive(submit));
  }
}
