import { CoordinatorError } from '../../domain/errors.js';
import { Described, Email, Flag, Label, ListOf, Nested, Phone, Text, Whole } from '../../wire/fields.js';
import { ClientSignature } from '../auth/verification.js';
import { ApiKeyParams, ApiKeyParamsV2, AuthenticatorParamsV2, liftApiKey } from '../credentials/credential-params.js';
import { OauthProviderParams, OauthProviderParamsV2 } from '../credentials/oauth-params.js';
import { maxAccountsAtOnce, WalletAccountParams } from '../wallets/wallet-params.js';

/** Root users and intents of every accepted wire version of create_sub_organization (docs/protocol.md, versions). */

class RootUser {
  @Label({ about: 'The name of the user; need not be unique.' })
  userName!: string;

  @Email({ optional: true, removable: true, about: 'E-mail address; empty for none.' })
  userEmail?: string;

  @ListOf(() => AuthenticatorParamsV2, { optional: true, about: 'Passkeys of the user.' })
  authenticators?: AuthenticatorParamsV2[];
}

class RootUserParams extends RootUser {
  @ListOf(() => ApiKeyParams, { optional: true, about: 'API keys of the user.' })
  apiKeys?: ApiKeyParams[];
}

class RootUserParamsV2 extends RootUserParams {
  @ListOf(() => OauthProviderParams, { optional: true, about: 'OpenID identities with which the user can log in.' })
  oauthProviders?: OauthProviderParams[];
}

class RootUserParamsV3 extends RootUser {
  @ListOf(() => ApiKeyParamsV2, { optional: true, about: 'API keys of the user.' })
  apiKeys?: ApiKeyParamsV2[];

  @ListOf(() => OauthProviderParams, { optional: true, about: 'OpenID identities with which the user can log in.' })
  oauthProviders?: OauthProviderParams[];
}

class RootUserParamsV4 extends RootUserParamsV3 {
  @Phone({ optional: true, removable: true, about: 'Phone number in E.164 format; empty for none.' })
  userPhoneNumber?: string;
}

/** A first user of a sub-organization. */
export class RootUserParamsV5 extends RootUser {
  @Phone({ optional: true, removable: true, about: 'Phone number in E.164 format; empty for none.' })
  userPhoneNumber?: string;

  @ListOf(() => ApiKeyParamsV2, { optional: true, about: 'API keys of the user.' })
  apiKeys?: ApiKeyParamsV2[];

  @ListOf(() => OauthProviderParamsV2, { optional: true, about: 'OpenID identities with which the user can log in.' })
  oauthProviders?: OauthProviderParamsV2[];
}

/** A first wallet. */
export class WalletParams {
  @Label({ about: 'The name of the wallet.' })
  walletName!: string;

  @ListOf(() => WalletAccountParams, { max: maxAccountsAtOnce, about: 'Its first accounts; may be empty.' })
  accounts!: WalletAccountParams[];

  @Whole({
    min: 12,
    max: 24,
    optional: true,
    about: 'Number of words in its mnemonic: 12 (default), 15, 18, 21 or 24.',
  })
  mnemonicLength?: number;
}

class SubOrganizationParams {
  @Label({ about: 'The name of the sub-organization; need not be unique.' })
  subOrganizationName!: string;

  @Whole({ min: 1, max: 100, about: 'Root quorum threshold: how many root users must approve what no policy allows.' })
  rootQuorumThreshold!: number;
}

class SubOrganizationWithWallet extends SubOrganizationParams {
  @Nested(() => WalletParams, { optional: true, about: 'A first wallet.' })
  wallet?: WalletParams;

  @Flag({ optional: true, about: 'Disables recovery by e-mail.' })
  disableEmailRecovery?: boolean;

  @Flag({ optional: true, about: 'Disables login with an e-mailed credential.' })
  disableEmailAuth?: boolean;
}

class SubOrganizationSignup extends SubOrganizationWithWallet {
  @Flag({ optional: true, about: 'Disables login with a code sent by SMS.' })
  disableSmsAuth?: boolean;

  @Flag({ optional: true, about: 'Disables login with an e-mailed code.' })
  disableOtpEmailAuth?: boolean;

  @Text({ optional: true, max: 8_192, about: 'Verification token for the contact of one root user, from verify_otp.' })
  verificationToken?: string;

  @Nested(() => ClientSignature, {
    optional: true,
    about: 'Signature by the key that the verification token is bound to.',
  })
  clientSignature?: ClientSignature;
}

const rootUsersAbout = 'Its first users, who make up its root quorum.';

class CreateSubOrganizationIntent {
  @Label({ about: 'The name of the sub-organization.' })
  name!: string;

  @Nested(() => AuthenticatorParamsV2, { about: 'The passkey of its one root user.' })
  rootAuthenticator!: AuthenticatorParamsV2;
}

class CreateSubOrganizationIntentV2 extends SubOrganizationParams {
  @ListOf(() => RootUserParams, { min: 1, about: rootUsersAbout })
  rootUsers!: RootUserParams[];
}

class CreateSubOrganizationIntentV3 extends CreateSubOrganizationIntentV2 {
  @Described({ type: 'array', items: {} }, { about: 'Private keys to create.' })
  privateKeys!: object[];
}

class CreateSubOrganizationIntentV4 extends SubOrganizationWithWallet {
  @ListOf(() => RootUserParams, { min: 1, about: rootUsersAbout })
  rootUsers!: RootUserParams[];
}

class CreateSubOrganizationIntentV5 extends SubOrganizationWithWallet {
  @ListOf(() => RootUserParamsV2, { min: 1, about: rootUsersAbout })
  rootUsers!: RootUserParamsV2[];
}

class CreateSubOrganizationIntentV6 extends SubOrganizationWithWallet {
  @ListOf(() => RootUserParamsV3, { min: 1, about: rootUsersAbout })
  rootUsers!: RootUserParamsV3[];
}

class CreateSubOrganizationIntentV7 extends SubOrganizationSignup {
  @ListOf(() => RootUserParamsV4, { min: 1, about: rootUsersAbout })
  rootUsers!: RootUserParamsV4[];
}

/** The newest parameters. */
export class CreateSubOrganizationIntentV8 extends SubOrganizationSignup {
  @ListOf(() => RootUserParamsV5, { min: 1, about: rootUsersAbout })
  rootUsers!: RootUserParamsV5[];

  /** Not a wire field: version 7 also accepts verification tokens that are bound to no key (docs/protocol.md, versions). */
  takesUnboundToken?: true;
}

const withCurve = ({ apiKeys = [], ...user }: RootUserParamsV2): RootUserParamsV5 => ({
  ...user,
  apiKeys: apiKeys.map(liftApiKey),
});

const newest = 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8';

function refuseVersion(version: string, why: string): never {
  throw new CoordinatorError('UNIMPLEMENTED', `${version} is not supported: ${why}; send ${newest}`);
}

/** The older versions. The first and the third are refused: what they ask for has no equivalent in the newest. */
export const olderVersions = [
  {
    type: 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V7',
    intent: CreateSubOrganizationIntentV7,
    lift: (intent: CreateSubOrganizationIntentV7): CreateSubOrganizationIntentV8 => ({
      ...intent,
      takesUnboundToken: true,
    }),
  },
  {
    type: 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V6',
    intent: CreateSubOrganizationIntentV6,
    lift: (intent: CreateSubOrganizationIntentV6): CreateSubOrganizationIntentV8 => intent,
  },
  {
    type: 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V5',
    intent: CreateSubOrganizationIntentV5,
    lift: ({ rootUsers, ...intent }: CreateSubOrganizationIntentV5): CreateSubOrganizationIntentV8 => ({
      ...intent,
      rootUsers: rootUsers.map(withCurve),
    }),
  },
  {
    type: 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V4',
    intent: CreateSubOrganizationIntentV4,
    lift: ({ rootUsers, ...intent }: CreateSubOrganizationIntentV4): CreateSubOrganizationIntentV8 => ({
      ...intent,
      rootUsers: rootUsers.map(withCurve),
    }),
  },
  {
    type: 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V3',
    intent: CreateSubOrganizationIntentV3,
    lift: () =>
      refuseVersion(
        'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V3',
        'a sub-organization starts without private keys; its users create them with create_private_keys',
      ),
  },
  {
    type: 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V2',
    resultKey: 'createSubOrganizationResult',
    intent: CreateSubOrganizationIntentV2,
    lift: ({ rootUsers, ...intent }: CreateSubOrganizationIntentV2): CreateSubOrganizationIntentV8 => ({
      ...intent,
      rootUsers: rootUsers.map(withCurve),
    }),
  },
  {
    type: 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION',
    intent: CreateSubOrganizationIntent,
    lift: () => refuseVersion('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION', 'its root user has no name'),
  },
];
