import { organizationEventTypes, type OrganizationEvent } from '../../domain/organization/organization.js';
import { CoordinatorError } from '../../domain/errors.js';
import { parseWholeJson } from '../../wire/strict-json.js';

/** An event that replaces another, or precedes it. */
export interface GivenEvent {
  readonly type?: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** A request that replaces another, or precedes it; it is decided. What an edit omits stays as it was signed. */
export interface GivenRequest {
  readonly userId?: string;
  readonly type?: string;
  readonly parameters?: Readonly<Record<string, unknown>>;
}

/** What differs on a branch, at one event of the stream. */
export type Change =
  | { readonly kind: 'skip'; readonly revision: number }
  | { readonly kind: 'edit' | 'insert'; readonly revision: number; readonly as: GivenEvent | GivenRequest };

/** Such a branch is impossible; the message says why, and what to do instead. */
export class NoSuchBranch extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'NoSuchBranch';
  }
}

export function isEvent(input: GivenEvent | GivenRequest): input is GivenEvent {
  return 'data' in input;
}

const shape =
  'an event is `{"type","data":{…}}`, a request `{"userId","type","parameters":{…}}`; an edit leaves out what stays';

/**
 * The change in a file.
 * @throws {NoSuchBranch} if it is neither an event nor a request
 */
export function readGiven(bytes: Uint8Array): GivenEvent | GivenRequest {
  let value: Readonly<Record<string, unknown>>;
  try {
    ({ value } = parseWholeJson(bytes));
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
    throw new NoSuchBranch(`${error.message.replace(/^request body/, 'the file')}: ${shape}`, { cause: error });
  }
  const wrong = (problem: string) => new NoSuchBranch(`the file ${problem}: ${shape}`);
  const members = Object.keys(value);
  const known = 'data' in value ? ['type', 'data'] : ['userId', 'type', 'parameters'];
  const unknown = members.find((member) => !known.includes(member));
  if (unknown !== undefined) throw wrong(`has a member \`${unknown.slice(0, 64)}\``);
  if (members.length === 0) throw wrong('is empty');
  for (const member of ['data', 'parameters']) {
    const input = value[member];
    if (member in value && (typeof input !== 'object' || input === null || Array.isArray(input))) {
      throw wrong(`has no object as \`${member}\``);
    }
  }
  for (const member of ['userId', 'type']) {
    if (member in value && typeof value[member] !== 'string') throw wrong(`has no text as \`${member}\``);
  }
  const { type } = value;
  if ('data' in value && type !== undefined && !organizationEventTypes.some((one) => one === type)) {
    throw wrong(`names the type ${JSON.stringify(type)?.slice(0, 64)}, which no event has (docs/reference/events.md)`);
  }
  return value;
}

/** @throws {NoSuchBranch} if the change describes a request */
export function editedEvent(event: OrganizationEvent, change: Exclude<Change, { kind: 'skip' }>): OrganizationEvent {
  if (!isEvent(change.as)) {
    throw new NoSuchBranch(
      `revision ${change.revision} is ${event.type}, a fact: the file has to say its \`data\`; a request is at the revision ` +
        'that it was decided at',
    );
  }
  const { type = event.type, data }: GivenEvent = change.as;
  const merged = type === event.type ? { ...event.data, ...data } : data;
  return { type, data: merged } as unknown as OrganizationEvent;
}
