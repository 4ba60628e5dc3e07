export interface EventSchema {
  readonly $defs: Readonly<Record<string, object>>;
}

/** JSON Schema of the data of every event, made from the types under a folder of sources. */
export function eventSchema(root: string): EventSchema;

/** The same schema, in which no object may have members that its type does not name. */
export function closed(schema: EventSchema): EventSchema;
