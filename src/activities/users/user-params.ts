import { presentMembers } from '../../domain/organization/event.js';
import { Email, Label, ListOf, OneOf, Phone, UuidList } from '../../wire/fields.js';
import {
  ApiKeyParams,
  ApiKeyParamsV2,
  AuthenticatorParams,
  AuthenticatorParamsV2,
  credentialsForeseen,
  liftApiKey,
  liftAuthenticator,
} from '../credentials/credential-params.js';
import { OauthProviderParams, OauthProviderParamsV2 } from '../credentials/oauth-params.js';
import type { Foreseen } from '../define-activity.js';

/** Fields of a new user in every version. */
export class NamedUserParams {
  @Label({ about: 'The name of the user; need not be unique.' })
  userName!: string;

  @Email({ optional: true, removable: true, about: 'E-mail address; empty for none.' })
  userEmail?: string;

  @UuidList({ optional: true, about: 'Tags of the user.' })
  userTags?: string[];
}

/** A new user, first version. */
export class UserParams extends NamedUserParams {
  @OneOf(['ACCESS_TYPE_WEB', 'ACCESS_TYPE_API', 'ACCESS_TYPE_ALL'], {
    about: 'Not used: credentials and policies decide what a user may do.',
  })
  accessType!: string;

  @ListOf(() => ApiKeyParams, { optional: true, about: 'API keys of the user, all P-256.' })
  apiKeys?: ApiKeyParams[];

  @ListOf(() => AuthenticatorParams, { optional: true, about: 'Passkeys of the user; their userId is not used.' })
  authenticators?: AuthenticatorParams[];
}

/** A new user, second version: passkeys in the newer shape. */
export class UserParamsV2 extends NamedUserParams {
  @ListOf(() => ApiKeyParams, { optional: true, about: 'API keys of the user, all P-256.' })
  apiKeys?: ApiKeyParams[];

  @ListOf(() => AuthenticatorParamsV2, { optional: true, about: 'Passkeys of the user.' })
  authenticators?: AuthenticatorParamsV2[];
}

class ReachableUserParams extends NamedUserParams {
  @Phone({ optional: true, removable: true, about: 'Phone number in E.164 format; empty for none.' })
  userPhoneNumber?: string;

  @ListOf(() => ApiKeyParamsV2, { optional: true, about: 'API keys of the user.' })
  apiKeys?: ApiKeyParamsV2[];

  @ListOf(() => AuthenticatorParamsV2, { optional: true, about: 'Passkeys of the user.' })
  authenticators?: AuthenticatorParamsV2[];
}

/** A new user, third version: phone number, curves, OAuth providers. */
export class UserParamsV3 extends ReachableUserParams {
  @ListOf(() => OauthProviderParams, { optional: true, about: 'OpenID identities with which the user can log in.' })
  oauthProviders?: OauthProviderParams[];
}

/** A new user. Lists that are absent are empty. */
export class UserParamsV4 extends ReachableUserParams {
  @ListOf(() => OauthProviderParamsV2, { optional: true, about: 'OpenID identities with which the user can log in.' })
  oauthProviders?: OauthProviderParamsV2[];
}

/** The same user in the newest shape; `field` names it in errors. @throws {CoordinatorError} INVALID_ARGUMENT */
export function liftUser(user: UserParams, field: string): UserParamsV4 {
  const { accessType: _unused, authenticators = [], ...rest } = user;
  const lifted = authenticators.map((one, index) => liftAuthenticator(one, `${field}.authenticators[${index}]`));
  return liftUserV2({ ...rest, authenticators: lifted });
}

/** The same user in the newest shape. */
export function liftUserV2({ apiKeys = [], ...rest }: UserParamsV2): UserParamsV4 {
  return { ...rest, apiKeys: apiKeys.map(liftApiKey) };
}

/** What is known of new users before their credentials are verified. */
export function usersForeseen(users: readonly UserParamsV4[]): readonly Foreseen[] {
  return users.flatMap(({ userName, userEmail, userPhoneNumber, userTags, ...credentials }, index) => {
    const userId = `new ${index}`;
    const more = presentMembers({ userEmail, userPhoneNumber, userTags });
    const created = { type: 'UserCreated', data: { userId, userName, ...more } } as const;
    return [created, ...credentialsForeseen(userId, credentials)];
  });
}
