import type { activities, ParametersOf, PolicyValue } from 'countersign/internal';
import { codeParameters } from './code-parameters.js';
import { contactParameters } from './contact-parameters.js';
import { childParameters, parentParameters } from './tenant-parameters.js';
import { interfaceParameters } from './interface-parameters.js';
import { keyParameters } from './key-parameters.js';
import { oauthParameters } from './oauth-parameters.js';
import { organizationParameters } from './organization-parameters.js';
import { providerParameters } from './provider-parameters.js';
import { sessionParameters } from './session-parameters.js';
import { importParameters } from './trial-imports.js';
import type { TrialOrganization } from './trial-organization.js';
import type { TrialResources } from './trial-resources.js';

/** What the parameters of an example are made of. */
export interface Making {
  /** What the example has of wallets, keys and transactions. */
  readonly facts: Readonly<Record<string, PolicyValue>>;
  readonly organization: TrialOrganization;
  readonly resources: TrialResources;
  /** A parameter that the example gives, by its name in policies. */
  readonly given: (name: string) => string | undefined;
  readonly givenAmount: (name: string) => bigint | undefined;
  readonly givenFlag: (name: string) => boolean | undefined;
  /** The real id of the user it is about. @throws {NotExecuted} if there is none */
  readonly user: () => string;
}

/** Parameters, and what policies see of wallets, keys and transactions in them. */
export interface Made<Parameters> {
  readonly parameters: Parameters;
  readonly resources?: Readonly<Record<string, PolicyValue>>;
  /** The sub-organization in which it is submitted, if it is not the organization of the users. */
  readonly organizationId?: string;
}

type ActivityType = Extract<(typeof activities)[number], { readonly kind: 'activity' }>['type'];

/** By the newest type: the least that a valid request says, with what an example gives. */
export type Makers = {
  readonly [Type in ActivityType]?: (making: Making) => Promise<Made<ParametersOf<Type>>>;
};

/** Of every activity: a new verb without one does not compile. */
export const makers: Required<Makers> = {
  ...keyParameters,
  ...importParameters,
  ...organizationParameters,
  ...contactParameters,
  ...codeParameters,
  ...oauthParameters,
  ...interfaceParameters,
  ...sessionParameters,
  ...providerParameters,
  ...parentParameters,
  ...childParameters,
};

/** Whether its examples need an organization without a parent; those of others are executed in a sub-organization. */
export const isOfParent = (type: string): boolean =>
  [parentParameters, oauthParameters].some((some) => Object.hasOwn(some, type));
