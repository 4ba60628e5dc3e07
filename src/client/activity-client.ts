import type { activities, ActivityType } from '../activities/index.js';
import { StampingClient } from './stamping-client.js';
import type { Query } from '../read-models/index.js';
import type { ActivityEnvelope } from '../wire/envelope.js';

type DefinitionOf<Type extends ActivityType> = Extract<(typeof activities)[number], { readonly type: Type }>;

/** The parameters of an activity, by its newest type. */
export type ParametersOf<Type extends ActivityType> = InstanceType<DefinitionOf<Type>['intent']>;

/** The result of an activity, by its newest type; a vote has none of its own. */
export type ResultOf<Type extends ActivityType> =
  DefinitionOf<Type> extends { readonly result: new () => infer Result } ? Result : object;

/** The name of a query: the last segment of its path. */
export type QueryName = Query['path'];

type QueryOf<Name extends QueryName> = Extract<Query, { readonly path: Name }>;

type Naming<Request> = Omit<Request, 'organizationId'> & { readonly organizationId?: string };

/** The request of a query; the client names its own organization unless told otherwise. */
export type RequestOf<Name extends QueryName> = Naming<InstanceType<QueryOf<Name>['request']>>;

/** The response of a query. */
export type ResponseOf<Name extends QueryName> = InstanceType<QueryOf<Name>['response']>;

/** An event of an organization, as `list_events` returns it: its `type` tells what `data` is. */
export type ListedEvent = ResponseOf<'list_events'>['events'][number];

/** What must be given to a query: nothing where every member of its request may be absent. */
type Asked<Name extends QueryName> =
  Partial<RequestOf<Name>> extends RequestOf<Name> ? [request?: RequestOf<Name>] : [request: RequestOf<Name>];

/** A name that is known only when the program runs; a literal is one of the known names, or a mistake. */
type Dynamic<Name extends string> = string extends Name ? Name : never;

type SubmitOptions = Parameters<StampingClient['submit']>[2];

/**
 * A stamping client that knows the parameters and the result of every activity, and the request and the response of every
 * query, so that an editor can complete them and a compiler refuses others.
 */
export class ActivityClient extends StampingClient {
  override submit<Type extends ActivityType>(
    type: Type,
    parameters: ParametersOf<Type>,
    options?: SubmitOptions,
  ): Promise<ActivityEnvelope>;
  /** Older versions of a type, and anything that a test wants to see refused. */
  override submit(type: string, parameters: object, options?: SubmitOptions): Promise<ActivityEnvelope>;
  override submit(type: string, parameters: object, options?: SubmitOptions): Promise<ActivityEnvelope> {
    return super.submit(type, parameters, options);
  }

  override perform<Type extends ActivityType>(
    type: Type,
    parameters: ParametersOf<Type>,
    options?: SubmitOptions,
  ): Promise<ResultOf<Type>>;
  /** Types that are known only when the program runs. */
  override perform<Type extends string, Result = Readonly<Record<string, unknown>>>(
    type: Dynamic<Type>,
    parameters: object,
    options?: SubmitOptions,
  ): Promise<Result>;
  /** Any other type, such as an older version: by the type of its result. */
  override perform<Result = unknown>(
    type: unknown extends Result ? never : string,
    parameters: object,
    options?: SubmitOptions,
  ): Promise<Result>;
  override perform<Result>(type: string, parameters: object, options?: SubmitOptions): Promise<Result> {
    return super.perform<Result>(type, parameters, options);
  }

  override query<Name extends QueryName>(name: Name, ...request: Asked<Name>): Promise<ResponseOf<Name>>;
  /** Names that are known only when the program runs. */
  override query<Name extends string, Answer = Readonly<Record<string, unknown>>>(
    name: Dynamic<Name>,
    request?: object,
  ): Promise<Answer>;
  /** Any other query, such as one of a later release: by the type of its response. */
  override query<Answer = unknown>(name: unknown extends Answer ? never : string, request?: object): Promise<Answer>;
  override query<Answer>(name: string, request?: object): Promise<Answer> {
    return super.query<Answer>(name, request);
  }
}
