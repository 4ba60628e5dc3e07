import type { activities, ActivityType } from '../activities/index.js';
import { StampingClient } from './stamping-client.js';
import type { ActivityEnvelope } from '../wire/envelope.js';

type DefinitionOf<Type extends ActivityType> = Extract<(typeof activities)[number], { readonly type: Type }>;

/** The parameters of an activity, by its newest type. */
export type ParametersOf<Type extends ActivityType> = InstanceType<DefinitionOf<Type>['intent']>;

/** The result of an activity, by its newest type; a vote has none of its own. */
export type ResultOf<Type extends ActivityType> =
  DefinitionOf<Type> extends { readonly result: new () => infer Result } ? Result : object;

type SubmitOptions = Parameters<StampingClient['submit']>[2];

/** A stamping client that knows the parameters and the result of every activity, so that an editor can complete them. */
export class ActivityClient extends StampingClient {
  override submit<Type extends ActivityType>(
    type: Type,
    parameters: ParametersOf<Type>,
    options?: SubmitOptions,
  ): Promise<ActivityEnvelope>;
  /** Older versions of a type, and whatever a test wants to see refused. */
  override submit(type: string, parameters: object, options?: SubmitOptions): Promise<ActivityEnvelope>;
  override submit(type: string, parameters: object, options?: SubmitOptions): Promise<ActivityEnvelope> {
    return super.submit(type, parameters, options);
  }

  override perform<Type extends ActivityType>(
    type: Type,
    parameters: ParametersOf<Type>,
    options?: SubmitOptions,
  ): Promise<ResultOf<Type>>;
  override perform<Result = Readonly<Record<string, unknown>>>(
    type: string,
    parameters: object,
    options?: SubmitOptions,
  ): Promise<Result>;
  override perform<Result>(type: string, parameters: object, options?: SubmitOptions): Promise<Result> {
    return super.perform<Result>(type, parameters, options);
  }
}
