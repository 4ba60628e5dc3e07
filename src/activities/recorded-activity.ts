import type { OrganizationEvent } from '../domain/organization/organization.js';

type EventData<Type extends OrganizationEvent['type']> = Extract<OrganizationEvent, { type: Type }>['data'];

/** What a decision left in history, for `recall`: its effects, followed by the end of the activity. */
export class RecordedActivity<Result extends object = object> {
  constructor(readonly events: readonly OrganizationEvent[]) {}

  /** Data of the events of a type, in order. */
  all<Type extends OrganizationEvent['type']>(type: Type): EventData<Type>[] {
    return this.events.flatMap((event) => (event.type === type ? [event.data as EventData<Type>] : []));
  }

  /** Data of the first event of a type. @throws {Error} if there is none, because every such decision records one */
  first<Type extends OrganizationEvent['type']>(type: Type): EventData<Type> {
    const [data] = this.all(type);
    if (!data) throw new Error(`a \`${type}\` should be among the effects`);
    return data;
  }

  /**
   * The recorded result, without what only the submitter received (`reveal`). @throws {Error} unless it was completed
   */
  get result(): Result {
    return this.first('ActivityCompleted').result as Result;
  }
}
