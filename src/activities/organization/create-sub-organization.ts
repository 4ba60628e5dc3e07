import { CoordinatorError, invalidField } from '../../domain/errors.js';
import { presentMembers } from '../../domain/organization/event.js';
import {
  emptyOrganization,
  evolve,
  type OrganizationEvent,
  type OrganizationView,
} from '../../domain/organization/organization.js';
import { checkQuorumCanSign, type FeatureName } from '../../domain/organization/settings.js';
import {
  Email,
  Flag,
  Label,
  ListOf,
  Nested,
  Phone,
  Text,
  TextList,
  Uuid,
  UuidList,
  Whole,
} from '../../schema/fields.js';
import { checkTokenUnused, ClientSignature, provenContact, tokenUsed, verifiedSignup } from '../auth/verification.js';
import {
  ApiKeyParamsV2,
  AuthenticatorParamsV2,
  newCredentials,
  verifyAuthenticators,
} from '../credentials/credential-params.js';
import { OauthProviderParamsV2, verifiedIdentities } from '../credentials/oauth-params.js';
import { defineActivity, type PrepareContext } from '../define-activity.js';
import type { PreparePorts, VerificationClaims } from '../ports.js';
import {
  accountFacts,
  accountsToDerive,
  checkAccountsNew,
  checkMnemonicLength,
  maxAccountsAtOnce,
  WalletAccountParams,
} from '../wallets/wallet-params.js';

class RootUserParams {
  @Label({ about: 'The name of the user; need not be unique.' })
  userName!: string;

  @Email({ optional: true, removable: true, about: 'E-mail address; empty: none.' })
  userEmail?: string;

  @Phone({ optional: true, removable: true, about: 'Phone number in E.164; empty: none.' })
  userPhoneNumber?: string;

  @ListOf(() => ApiKeyParamsV2, { optional: true, about: 'API keys of the user.' })
  apiKeys?: ApiKeyParamsV2[];

  @ListOf(() => AuthenticatorParamsV2, { optional: true, about: 'Passkeys of the user.' })
  authenticators?: AuthenticatorParamsV2[];

  @ListOf(() => OauthProviderParamsV2, { optional: true, about: 'Identities the user may log in with.' })
  oauthProviders?: OauthProviderParamsV2[];
}

class WalletParams {
  @Label({ about: 'The name of the wallet.' })
  walletName!: string;

  @ListOf(() => WalletAccountParams, { max: maxAccountsAtOnce, about: 'Its first accounts; may be empty.' })
  accounts!: WalletAccountParams[];

  @Whole({ min: 12, max: 24, optional: true, about: 'Words of its mnemonic: 12 (default), 15, 18, 21 or 24.' })
  mnemonicLength?: number;
}

class CreateSubOrganizationIntent {
  @Label({ about: 'The name of the sub-organization; need not be unique.' })
  subOrganizationName!: string;

  @ListOf(() => RootUserParams, { min: 1, about: 'Its first users, who together are its root quorum.' })
  rootUsers!: RootUserParams[];

  @Whole({ min: 1, max: 100, about: 'How many of the root users must agree to what no policy allows.' })
  rootQuorumThreshold!: number;

  @Nested(() => WalletParams, { optional: true, about: 'A first wallet.' })
  wallet?: WalletParams;

  @Flag({ optional: true, about: 'Switches recovery by e-mail off.' })
  disableEmailRecovery?: boolean;

  @Flag({ optional: true, about: 'Switches login by an e-mailed credential off.' })
  disableEmailAuth?: boolean;

  @Flag({ optional: true, about: 'Switches login by a code in a text message off.' })
  disableSmsAuth?: boolean;

  @Flag({ optional: true, about: 'Switches login by an e-mailed code off.' })
  disableOtpEmailAuth?: boolean;

  @Text({ optional: true, max: 8_192, about: 'Proof of the contact of one root user (verify_otp).' })
  verificationToken?: string;

  @Nested(() => ClientSignature, { optional: true, about: 'By the key that the verification token is bound to.' })
  clientSignature?: ClientSignature;
}

class WalletResult {
  @Uuid()
  walletId!: string;

  @TextList()
  addresses!: string[];
}

class CreateSubOrganizationResult {
  @Uuid()
  subOrganizationId!: string;

  @Nested(() => WalletResult, { optional: true })
  wallet?: WalletResult;

  @UuidList({ optional: true })
  rootUserIds?: string[];
}

const rootUsersField = 'parameters.rootUsers';

/** Which feature each flag switches off; all are on in a sub-organization unless it says otherwise. */
const switches: readonly (readonly [keyof CreateSubOrganizationIntent, FeatureName])[] = [
  ['disableEmailRecovery', 'FEATURE_NAME_EMAIL_RECOVERY'],
  ['disableEmailAuth', 'FEATURE_NAME_EMAIL_AUTH'],
  ['disableSmsAuth', 'FEATURE_NAME_SMS_AUTH'],
  ['disableOtpEmailAuth', 'FEATURE_NAME_OTP_EMAIL_AUTH'],
];

/**
 * Creates an organization under this one. Its own stream is written first, under ids that follow from the request: done
 * again, after a crash for example, it finds the same sub-organization.
 */
export const createSubOrganization = defineActivity({
  type: 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8',
  summary: 'Creates a sub-organization with its root users and, if asked for, a wallet.',
  intent: CreateSubOrganizationIntent,
  result: CreateSubOrganizationResult,
  olderVersions: [
    {
      type: 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V7',
      intent: CreateSubOrganizationIntent,
      lift: (intent: CreateSubOrganizationIntent): CreateSubOrganizationIntent => intent,
    },
  ],
  policy: { resource: 'ORGANIZATION', action: 'CREATE' },

  check({ rootUsers, rootQuorumThreshold, wallet }, organization) {
    if (organization.parentOrganizationId !== undefined) {
      throw new CoordinatorError(
        'FAILED_PRECONDITION',
        `organization \`${organization.organizationId}\` is a sub-organization, and can have none of its own: ` +
          `create it in \`${organization.parentOrganizationId}\``,
      );
    }
    if (rootQuorumThreshold > rootUsers.length) {
      throw invalidField(
        'parameters.rootQuorumThreshold',
        `\`${rootQuorumThreshold}\` cannot be reached by ${rootUsers.length} root users`,
      );
    }
    if (wallet) {
      checkMnemonicLength(wallet.mnemonicLength, 'parameters.wallet.mnemonicLength');
      checkAccountsNew(organization, undefined, accountsToDerive(wallet.accounts, 'parameters.wallet.accounts'));
    }
  },

  async prepare(intent, ports, context) {
    const { organization, now, newId } = context;
    const claims = await verifiedSignup(intent, intent.rootUsers, ports, context);
    if (claims) checkTokenUnused(organization, claims, 'USAGE_TYPE_SIGNUP');
    const subOrganizationId = newId();
    const events = await foundingEvents(intent, subOrganizationId, claims, ports, context);
    const stands = await ports.organizations.found(subOrganizationId, events, now);
    return { subOrganizationId, ...resultOf(stands), claims };
  },

  decide({ subOrganizationName }, { organization }, { subOrganizationId, rootUserIds, wallet, claims }) {
    if (claims) checkTokenUnused(organization, claims, 'USAGE_TYPE_SIGNUP');
    return {
      events: [
        { type: 'SubOrganizationCreated', data: { subOrganizationId, name: subOrganizationName } },
        ...(claims ? [tokenUsed(claims, 'USAGE_TYPE_SIGNUP')] : []),
      ],
      result: { subOrganizationId, rootUserIds, ...(wallet ? { wallet } : {}) },
    };
  },
});

/** Everything a sub-organization begins with. @throws {CoordinatorError} when it could not be founded so */
async function foundingEvents(
  intent: CreateSubOrganizationIntent,
  subOrganizationId: string,
  claims: VerificationClaims | undefined,
  ports: PreparePorts,
  { organization: parent, now, newId }: PrepareContext,
): Promise<readonly OrganizationEvent[]> {
  const events: OrganizationEvent[] = [];
  const child = emptyOrganization();
  const record = (...more: readonly OrganizationEvent[]) => {
    for (const event of more) evolve(child, event, now);
    events.push(...more);
  };
  const { organizationId: parentOrganizationId } = parent;
  const { subOrganizationName: name, rootUsers, rootQuorumThreshold: threshold } = intent;
  record({ type: 'OrganizationCreated', data: { organizationId: subOrganizationId, name, parentOrganizationId } });

  const credentials = newCredentials({ organization: child, newId, now });
  const userIds: string[] = [];
  for (const [index, user] of rootUsers.entries()) {
    const field = `${rootUsersField}[${index}]`;
    const { apiKeys = [], authenticators = [], oauthProviders = [] } = user;
    const [verified, identities] = await Promise.all([
      verifyAuthenticators(authenticators, ports, `${field}.authenticators`),
      verifiedIdentities(oauthProviders, ports, `${field}.oauthProviders`),
    ]);
    const userId = newId();
    userIds.push(userId);
    const contacts = presentMembers({
      userEmail: user.userEmail || undefined,
      userPhoneNumber: user.userPhoneNumber || undefined,
    });
    const owner = { userId, apiKeys: [], authenticators: [], oauthProviders: [] };
    record(
      { type: 'UserCreated', data: { userId, userName: user.userName, ...contacts, userTags: [] } },
      ...credentials.apiKeys(owner, apiKeys, `${field}.apiKeys`).events,
      ...credentials.authenticators(owner, authenticators, verified, `${field}.authenticators`).events,
      ...credentials.oauthProviders(owner, identities, `${field}.oauthProviders`).events,
      ...(claims ? provenContact(userId, contacts, claims) : []),
    );
  }
  const quorum = { threshold, userIds };
  checkQuorumCanSign(child, quorum, now);
  record({ type: 'RootQuorumUpdated', data: quorum });
  for (const [flag, feature] of switches) {
    if (!intent[flag]) record({ type: 'OrganizationFeatureSet', data: { name: feature, value: '' } });
  }
  if (intent.wallet) record(...(await walletEvents(intent.wallet, child, ports, newId)));
  return events;
}

async function walletEvents(
  { walletName, accounts, mnemonicLength = 12 }: WalletParams,
  { organizationId }: OrganizationView,
  { keyring }: PreparePorts,
  newId: () => string,
): Promise<readonly OrganizationEvent[]> {
  const asked = accountsToDerive(accounts, 'parameters.wallet.accounts');
  const sealed = await keyring.createWallet({ organizationId, mnemonicLength, accounts: asked });
  const walletId = newId();
  const facts = accountFacts(accounts, sealed.accounts, newId);
  return [
    { type: 'WalletCreated', data: { walletId, walletName, vaultId: sealed.vaultId, imported: false } },
    ...(facts.length > 0 ? [{ type: 'WalletAccountsCreated', data: { walletId, accounts: facts } } as const] : []),
  ];
}

/** What is answered follows from what stands, which an earlier attempt may have written. */
function resultOf(events: readonly OrganizationEvent[]) {
  const rootUserIds = events.flatMap((event) => (event.type === 'UserCreated' ? [event.data.userId] : []));
  const created = events.find((event) => event.type === 'WalletCreated');
  if (!created) return { rootUserIds };
  const addresses = events.flatMap((event) =>
    event.type === 'WalletAccountsCreated' ? event.data.accounts.map(({ address }) => address) : [],
  );
  return { rootUserIds, wallet: { walletId: created.data.walletId, addresses } };
}
