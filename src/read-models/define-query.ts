import type { TurnFor } from '../fairness/turns.js';
import { DecimalString, Described, Nested, Text, Uuid } from '../wire/fields.js';
import type { Rows } from './database.js';
import type { Elements, Page } from './pages.js';

/** Every query names the organization it is about. */
export class OrganizationRequest {
  @Uuid({ about: 'The organization to read.' })
  organizationId!: string;
}

/** Injects the rows that queries read. */
export const ROWS = Symbol('Rows');

/**
 * What every query may use besides its request. The caller has been found to be allowed to read the organization.
 * A query that needs more declares it as a port in its own file (`QueryPorts` in `index.ts`).
 */
export interface QueryContext {
  readonly rows: Rows;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** The caller's own organization: the named one, or its parent. */
  readonly callerOrganizationId: string;
  readonly callerUserId: string;
  /** To be awaited between two steps of work on something of that size: what is large has a turn to itself for each. */
  readonly turn: TurnFor;
  /** A list of the answer, as far as there is room for it. */
  readonly page: <Element extends object>(elements: Elements<Element>) => Promise<Page<Element>>;
}

/** An answer whose lists may have been written already. */
type Answered<Response> = {
  readonly [Member in keyof Response]:
    | Response[Member]
    | (Exclude<Response[Member], undefined> extends readonly (infer Element extends object)[]
        ? Page<Element>
        : Exclude<Response[Member], undefined> extends object
          ? Answered<Exclude<Response[Member], undefined>>
          : never);
};

/** One question of the Activity API, in one value. Listing it in `index.ts` registers it. */
export interface QueryDefinition<
  Request extends OrganizationRequest,
  Response extends object,
  Path extends string = string,
  Ports = unknown,
> {
  /** Last segment of the path. */
  readonly path: Path;
  /** One sentence for the reference. */
  readonly summary: string;
  readonly request: new () => Request;
  readonly response: new () => Response;
  /** The body may name the parent when the credential lives in one of its sub-organizations (docs/protocol.md, who may stamp what). */
  readonly whereTheCredentialLives?: true;
  /** For members of the root quorum, of the organization or of its parent, and with a stamp only. */
  readonly readsHistory?: true;
  /** Also for users who may vote on the activity that `activityId` of the request names. */
  readonly isForVoters?: true;
  /** Whether a request is also for everybody who may read the organization. */
  isForReaders?(request: Request, rows: Rows): boolean;
  answer(request: Request, context: QueryContext & Ports): Answered<Response> | Promise<Answered<Response>>;
}

/** Declares a query. */
export function defineQuery<
  Request extends OrganizationRequest,
  Response extends object,
  const Path extends string,
  Ports = unknown,
>(definition: QueryDefinition<Request, Response, Path, Ports>): QueryDefinition<Request, Response, Path, Ports> {
  return definition;
}

/** Which part of a list is wanted (specification, section 4.4). */
export class PaginationOptions {
  @Text({ optional: true, max: 16, about: 'Page size, from "1" to "100"; default "10".' })
  limit?: string;

  @Uuid({ optional: true, about: 'Only elements before this one in the list, even if it has been deleted since.' })
  before?: string;

  @Uuid({ optional: true, about: 'Only elements after this one in the list, even if it has been deleted since.' })
  after?: string;
}

/** Which part of a list is wanted that published clients ask for without pages. */
export class ListPage {
  @DecimalString({ min: 1, max: 100, optional: true, about: 'Page size, from "1" to "100"; default: all.' })
  limit?: string;

  @Uuid({ optional: true, about: 'Only elements before this one in the list, even if it has been deleted since.' })
  before?: string;

  @Uuid({ optional: true, about: 'Only elements after this one in the list, even if it has been deleted since.' })
  after?: string;
}

/** Asks for all of a list, or for a part of it. */
export class ListRequest extends OrganizationRequest {
  @Nested(() => ListPage, { optional: true, about: 'A Countersign extension.' })
  paginationOptions?: ListPage;
}

/** An answer with lists, which end where they would be larger than 4 MiB together. */
export class PagedResponse {
  @Described(
    { type: 'boolean', const: true },
    {
      optional: true,
      about: 'True if the list exceeds the 4 MiB limit of a response: request the elements after the last one.',
    },
  )
  hasMore?: true;
}

export class PaginatedRequest extends OrganizationRequest {
  @Nested(() => PaginationOptions, { optional: true })
  paginationOptions?: PaginationOptions;
}
