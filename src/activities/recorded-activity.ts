import type { OrganizationEvent } from '../domain/organization/organization.js';

type EventData<Type extends OrganizationEvent['type']> = Extract<OrganizationEvent, { type: Type }>['data'];

/** What a decision has left in history, for `recall`: its effects, and the end of the activity behind them. */
export class RecordedActivity<Result extends object = object> {
  constructor(readonly events: readonly OrganizationEvent[]) {}

  /** Data of the events of a type, in order. */
  all<Type extends OrganizationEvent['type']>(type: Type): EventData<Type>[] {
    return this.events.flatMap((event) => (event.type === type ? [event.data as EventData<Type>] : []));
  }

  /** Data of the first event of a type. @throws {Error} when there is none, as no such decision leaves such events */
  first<Type extends OrganizationEvent['type']>(type: Type): EventData<Type> {
    const [data] = this.all(type);
    if (!data) throw new Error(`a \`${type}\` should be among the effects`);
    return data;
  }

  /** The result as it was recorded: without what only the submitter was told (`reveal`). @throws {Error} unless it was completed */
  get result(): Result {
    return this.first('ActivityCompleted').result as Result;
  }
}
