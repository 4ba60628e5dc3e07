import type { ActivityRecord } from '../domain/activity/record.js';
import type { ActivityEnvelope } from '../wire/envelope.js';
import type { Limits } from '../domain/organization/limits.js';
import type { User } from '../domain/organization/users.js';
import type { RecordedEvent } from '../ledger/event-store.js';
import { DecimalString, Described, Nested, Text, Uuid } from '../wire/fields.js';
import type { ApproversAnswer } from './approvers.js';
import type { Rows } from './database.js';
import type { DryRunTold } from './dry-run.js';
import type { ListedEvent } from './events.js';
import type { ProofAnswer, ProofQuestion } from './explanations.js';
import type { LintPoliciesResponse } from './lint.js';
import type { TurnFor } from '../fairness/turns.js';
import type { Elements, Page, TextPage } from './pages.js';
import type { PolicyOutcomeShape, ReasonsAnswer, ReasonsQuestion } from './reasons.js';
import type { StateAnswer, StateQuestion } from './states.js';
import type { WhatIfQuestion, WhatIfResponse } from './what-if.js';

/** Every query names the organization it is about. */
export class OrganizationRequest {
  @Uuid({ about: 'The organization to read.' })
  organizationId!: string;
}

/** Injects the rows that queries read. */
export const ROWS = Symbol('Rows');

/** What a query may use besides its request. The caller has been found to be allowed to read the organization. */
export interface QueryContext {
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
  /** The limits that hold for the organization that is asked about. */
  readonly limits: () => Promise<Limits>;
  /** Recorded events of an organization from a revision on. */
  readonly history: (organizationId: string, fromRevision: number) => AsyncIterable<RecordedEvent>;
  /** Events of an organization from a revision on, so many at most, as they may be read. */
  readonly told: (organizationId: string, fromRevision: number, limit: number) => Promise<TextPage<ListedEvent>>;
  /** What an organization was at points of its history, or what has changed between two, as it may be read. */
  readonly states: <Question extends StateQuestion>(
    organizationId: string,
    question: Question,
  ) => Promise<StateAnswer<Question['asks']>>;
  /** What policies said in the past decisions on an activity, explained as far as that does not take too long. */
  readonly reasons: (question: ReasonsQuestion) => Promise<ReasonsAnswer>;
  /** Who could make an activity pass that waits for votes. */
  readonly approvers: (activityId: string) => Promise<ApproversAnswer>;
  /** Why a decision is what it is, as far as that does not take too long. */
  readonly proofs: (question: ProofQuestion) => Promise<ProofAnswer>;
  /** What is wrong with the organization's policies, or easily misunderstood. */
  readonly lint: () => Promise<LintPoliciesResponse>;
  /**
   * What a draft would have changed in the whole history, as far as that does not take too long.
   * @throws {CoordinatorError} INVALID_ARGUMENT for a draft that cannot hold; NOT_FOUND for a revision that there is not
   */
  readonly whatIf: (question: WhatIfQuestion) => Promise<WhatIfResponse>;
  /**
   * What an activity would come to if the caller submitted it.
   * @throws {CoordinatorError} as the submit would before it is decided; PERMISSION_DENIED for a proof that is not for the caller
   */
  readonly dryRun: (
    activity: {
      readonly type: string;
      readonly parameters: Readonly<Record<string, unknown>>;
      readonly timestampMs: string;
    },
    withProof: boolean,
  ) => Promise<DryRunTold & ProofAnswer>;
  /** To be awaited between two steps of work on something of that size: what is large has a turn to itself for each. */
  readonly turn: TurnFor;
  /** A list of the answer, as far as there is room for it. */
  readonly page: <Element extends object>(elements: Elements<Element>) => Promise<Page<Element>>;
  /** One activity as this caller sees it, with what it waits for, and what it would sign. */
  readonly explained: (record: ActivityRecord<User | undefined>) => ActivityEnvelope;
  /** What each policy says of an activity that waits for votes, as things stand; undefined where that is not told. */
  readonly saysNow: (activityId: string) => readonly PolicyOutcomeShape[] | undefined;
  /** As `explained`, of several activities, as far as the steps of one request last for them together. */
  readonly envelopes: (
    activityIds: readonly string[],
  ) => (record: ActivityRecord<User | undefined>) => ActivityEnvelope;
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
  answer(request: Request, context: QueryContext): Answered<Response> | Promise<Answered<Response>>;
}

export type AnyQuery = QueryDefinition<OrganizationRequest, object>;

/** Declares a query. */
export function defineQuery<Request extends OrganizationRequest, Response extends object, const Path extends string>(
  definition: QueryDefinition<Request, Response, Path>,
): QueryDefinition<Request, Response, Path> {
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
