import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { ActivityAnswers, type ActivityAnswer } from './answers.js';
import type { SubmitRequest } from './requests.js';

/** A well-formed approve_activity or reject_activity; it is answered with the activity that it is about. */
export class CastVote extends Command<ActivityAnswer> {
  constructor(readonly request: SubmitRequest) {
    super();
  }
}

@CommandHandler(CastVote)
export class CastVoteHandler implements ICommandHandler<CastVote> {
  constructor(private readonly answers: ActivityAnswers) {}

  async execute({ request }: CastVote): Promise<ActivityAnswer> {
    return this.answers.to(request);
  }
}
