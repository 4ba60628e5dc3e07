import type { ActivityRecord } from '../domain/activity/record.js';
import type { ActivityEnvelope } from '../domain/activity/envelope.js';
import type { User } from '../domain/organization/users.js';
import type { RecordedEvent } from '../event-store/event-store.js';
import { Nested, Text, Uuid } from '../schema/fields.js';
import type { Rows } from './database.js';

/** Every query names the organization it is about. */
export class OrganizationRequest {
  @Uuid({ about: 'The organization to read.' })
  organizationId!: string;
}

/** What a query may use besides its request. The caller has been found to be allowed to read the organization. */
interface QueryContext {
  readonly rows: Rows;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** The caller's own organization: the named one, or its parent. */
  readonly callerOrganizationId: string;
  readonly callerUserId: string;
  /** What an OIDC token says once it is verified. @throws {CoordinatorError} INVALID_ARGUMENT INVALID_OIDC_TOKEN */
  readonly verifyOidc: (token: string) => Promise<{
    readonly issuer: string;
    readonly audience: string;
    readonly subject: string;
    readonly verifiedEmail?: string;
  }>;
  /** Recorded events of an organization from a revision on. */
  readonly history: (organizationId: string, fromRevision: number) => AsyncIterable<RecordedEvent>;
  /** The activity as this caller sees it. */
  readonly envelope: (record: ActivityRecord<User | undefined>) => ActivityEnvelope;
}

/** One question of the Activity API, in one value. Listing it in `index.ts` registers it. */
export interface QueryDefinition<Request extends OrganizationRequest, Response extends object> {
  /** Last segment of the path. */
  readonly path: string;
  /** One sentence for the reference. */
  readonly summary: string;
  readonly request: new () => Request;
  readonly response: new () => Response;
  /** The body may name the parent when the credential lives in one of its sub-organizations (client protocol 1.4). */
  readonly whereTheCredentialLives?: true;
  answer(request: Request, context: QueryContext): Response | Promise<Response>;
}

export type AnyQuery = QueryDefinition<OrganizationRequest, object>;

/** Declares a query. */
export function defineQuery<Request extends OrganizationRequest, Response extends object>(
  definition: QueryDefinition<Request, Response>,
): QueryDefinition<Request, Response> {
  return definition;
}

/** Which part of a list is wanted (specification, section 4.4). */
export class PaginationOptions {
  @Text({ optional: true, max: 16, about: 'How many, from "1" to "100"; "10" when absent.' })
  limit?: string;

  @Uuid({ optional: true, about: 'Only elements that stand before this one in the list.' })
  before?: string;

  @Uuid({ optional: true, about: 'Only elements that stand after this one in the list.' })
  after?: string;
}

export class PaginatedRequest extends OrganizationRequest {
  @Nested(() => PaginationOptions, { optional: true })
  paginationOptions?: PaginationOptions;
}
