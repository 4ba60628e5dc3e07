import { CoordinatorError, invalidField } from '../../domain/errors.js';
import { isAuthProxyUser } from '../../domain/organization/auth-proxy.js';
import { clientIdsOf } from '../../domain/organization/client-ids.js';
import { presentMembers } from '../../domain/organization/event.js';
import { checkFoundings, checkLimit, checkLimits, type Limits } from '../../domain/organization/limits.js';
import { emptyOrganization, evolve, type OrganizationEvent } from '../../domain/organization/organization.js';
import type { FeatureName } from '../../domain/organization/settings.js';
import { Nested, TextList, Uuid, UuidList } from '../../wire/fields.js';
import {
  checkBound,
  checkTokenUnused,
  checkUnboundUnused,
  provenContact,
  recalledContact,
  type ProvedContact,
  tokenUsed,
  verifiedSignup,
} from '../auth/verification.js';
import { newCredentials, verifyAuthenticators } from '../credentials/credential-params.js';
import { verifiedIdentities } from '../credentials/oauth-params.js';
import { oidcTokensUsed } from '../auth/token-uses.js';
import { defineActivity, type DecideContext, type PrepareContext } from '../define-activity.js';
import { RecordedActivity } from '../recorded-activity.js';
import { recalledUsers, type ProvedCredentials } from '../users/new-users.js';
import type { PreparePorts } from '../../ports/prepare.js';
import type { VerificationClaims } from '../../ports/tokens.js';
import {
  accountFacts,
  accountsToDerive,
  checkAccountsNew,
  checkMnemonicLength,
  recalledWallet,
} from '../wallets/wallet-params.js';
import { CreateSubOrganizationIntentV8, olderVersions, type WalletParams } from './sub-organization-params.js';

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

/** What the decision uses. */
export interface RecalledSubOrganization {
  readonly subOrganizationId: string;
  readonly claims: ProvedContact | undefined;
  /** Of each root user. */
  readonly proved: readonly ProvedCredentials[];
  readonly wallet: ReturnType<typeof recalledWallet> | undefined;
  /** Ids of the things that it begins with, in order. */
  readonly ids: readonly string[];
}

const rootUsersField = 'parameters.rootUsers';

/** The feature that each flag switches off; by default, all are on in a sub-organization. */
const switches: readonly (readonly [keyof CreateSubOrganizationIntentV8, FeatureName])[] = [
  ['disableEmailRecovery', 'FEATURE_NAME_EMAIL_RECOVERY'],
  ['disableEmailAuth', 'FEATURE_NAME_EMAIL_AUTH'],
  ['disableSmsAuth', 'FEATURE_NAME_SMS_AUTH'],
  ['disableOtpEmailAuth', 'FEATURE_NAME_OTP_EMAIL_AUTH'],
];

/**
 * Creates an organization under this one. This organization's event contains everything it begins with, and its own
 * stream is written from that event: what is refused here never existed (docs/adr/0006).
 */
export const createSubOrganization = defineActivity({
  type: 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8',
  summary: 'Creates a sub-organization with its root users and, optionally, a wallet.',
  intent: CreateSubOrganizationIntentV8,
  result: CreateSubOrganizationResult,
  olderVersions,
  policy: { resource: 'ORGANIZATION', action: 'CREATE' },

  check(intent, organization, { subOrganizationLimits }) {
    const { rootUsers, rootQuorumThreshold, wallet } = intent;
    if (organization.parentOrganizationId !== undefined) {
      throw new CoordinatorError(
        'FAILED_PRECONDITION',
        `organization \`${organization.organizationId}\` is a sub-organization and cannot have sub-organizations of its own: ` +
          `create it in \`${organization.parentOrganizationId}\``,
      );
    }
    checkRootUsers(rootUsers, rootQuorumThreshold, subOrganizationLimits);
    if (wallet) {
      checkMnemonicLength(wallet.mnemonicLength, 'parameters.wallet.mnemonicLength');
      checkLimit(subOrganizationLimits, 'walletAccounts', 0, wallet.accounts.length);
      checkAccountsNew(organization, undefined, accountsToDerive(wallet.accounts, 'parameters.wallet.accounts'));
    }
  },

  async prepare(intent, ports, context): Promise<RecalledSubOrganization> {
    const subOrganizationId = context.newId();
    const claims = await signupClaims(intent, ports, context);
    const proved = await provedUsers(intent, ports, context);
    const ids: string[] = [];
    const newId = () => {
      ids.push(context.newId());
      return ids.at(-1)!;
    };
    const founding = { subOrganizationId, claims, proved };
    // Refused before there are keys for it.
    foundingEvents(intent, { ...founding, wallet: undefined }, { ...context, newId });
    const wallet = intent.wallet && (await sealedWallet(intent.wallet, subOrganizationId, ports));
    if (wallet) [undefined, ...wallet.accounts].forEach(newId);
    return { ...founding, wallet, ids };
  },

  recall(intent, recorded): RecalledSubOrganization {
    const { verificationToken, rootUsers } = intent;
    const { subOrganizationId, initialEvents } = recorded.first('SubOrganizationCreated');
    const founding = new RecordedActivity(initialEvents);
    return {
      subOrganizationId,
      claims: verificationToken ? recalledContact(verificationToken) : undefined,
      proved: recalledUsers(rootUsers, founding),
      wallet: intent.wallet && recalledWallet(intent.wallet.accounts, founding),
      ids: initialEvents.flatMap(idsOf),
    };
  },

  decide(intent, context, prepared) {
    const { organization, submitterId, now, limits, subOrganizationLimits } = context;
    const { subOrganizationId, claims, proved } = prepared;
    const ids = prepared.ids.values();
    const newId = () => {
      const { value } = ids.next();
      if (value === undefined) throw new Error('it begins with more than was prepared for it');
      return value;
    };
    const founding = foundingEvents(intent, prepared, { organization, submitterId, now, subOrganizationLimits, newId });
    checkFoundings(organization, submitterId, now, limits);
    checkLimits(emptyOrganization(), founding, subOrganizationLimits);
    if (claims) checkTokenUnused(organization, claims, 'USAGE_TYPE_SIGNUP');
    const tokens = proved.flatMap((one) => one.tokens ?? []);
    return {
      events: [
        {
          type: 'SubOrganizationCreated',
          data: { subOrganizationId, name: intent.subOrganizationName, initialEvents: founding },
        },
        ...(claims ? [tokenUsed(claims, 'USAGE_TYPE_SIGNUP')] : []),
        ...oidcTokensUsed(tokens, 'USAGE_TYPE_OIDC_REGISTRATION'),
      ],
      result: { subOrganizationId, ...resultOf(founding) },
    };
  },
});

/** @throws {CoordinatorError} if the users cannot be created, or could never reach their quorum */
function checkRootUsers(
  rootUsers: CreateSubOrganizationIntentV8['rootUsers'],
  threshold: number,
  limits: Limits,
): void {
  checkLimit(limits, 'users', 0, rootUsers.length);
  if (threshold > rootUsers.length) {
    throw invalidField(
      'parameters.rootQuorumThreshold',
      `\`${threshold}\` cannot be reached by ${rootUsers.length} root users`,
    );
  }
  // The same factories as below, without anything that needs the outside world.
  const credentials = newCredentials({ organization: emptyOrganization(), newId: () => '', now: 0, limits });
  for (const [index, { apiKeys = [] }] of rootUsers.entries()) {
    credentials.apiKeys({ userId: '', apiKeys: [] }, apiKeys, `${rootUsersField}[${index}].apiKeys`);
  }
  const able = rootUsers.filter(
    ({ apiKeys = [], authenticators = [], oauthProviders = [], userEmail, userPhoneNumber }) =>
      apiKeys.length + authenticators.length + oauthProviders.length > 0 || userEmail || userPhoneNumber,
  ).length;
  if (able < threshold) {
    throw invalidField(
      rootUsersField,
      `the root quorum requires ${threshold} of them, but only ${able} could ever sign: give them credentials, or a ` +
        'contact to log in with',
    );
  }
}

/** @throws {CoordinatorError} INVALID_ARGUMENT, FAILED_PRECONDITION if the token is invalid or used */
async function signupClaims(
  intent: CreateSubOrganizationIntentV8,
  ports: PreparePorts,
  context: PrepareContext,
): Promise<VerificationClaims | undefined> {
  const claims = await verifiedSignup(intent, intent.rootUsers, ports, context);
  if (!claims) return undefined;
  checkBound(claims, intent);
  checkTokenUnused(context.organization, claims, 'USAGE_TYPE_SIGNUP');
  await checkUnboundUnused(claims, ports);
  return claims;
}

/** @throws {CoordinatorError} INVALID_ARGUMENT, FAILED_PRECONDITION for credentials that do not verify */
async function provedUsers(
  { rootUsers }: CreateSubOrganizationIntentV8,
  ports: PreparePorts,
  { organization: parent, subOrganizationLimits: limits }: PrepareContext,
): Promise<readonly ProvedCredentials[]> {
  const registrars = { clientIds: clientIdsOf(parent), isOfSubOrganization: true };
  const users: ProvedCredentials[] = [];
  for (const [index, { authenticators = [], oauthProviders = [] }] of rootUsers.entries()) {
    const field = `${rootUsersField}[${index}]`;
    const [verified, { proved: _proved, ...oauth }] = await Promise.all([
      verifyAuthenticators(authenticators, ports, parent, `${field}.authenticators`, limits),
      verifiedIdentities(oauthProviders, ports, registrars, `${field}.oauthProviders`, limits),
    ]);
    users.push({ authenticators: verified, ...oauth });
  }
  return users;
}

/**
 * Everything a sub-organization begins with.
 * @throws {CoordinatorError} if it could not be founded this way
 */
function foundingEvents(
  intent: CreateSubOrganizationIntentV8,
  { subOrganizationId, claims, proved, wallet }: Omit<RecalledSubOrganization, 'ids'>,
  {
    organization: parent,
    submitterId,
    now,
    newId,
    subOrganizationLimits: limits,
  }: Pick<DecideContext, 'organization' | 'submitterId' | 'now' | 'newId' | 'subOrganizationLimits'>,
): readonly OrganizationEvent[] {
  const events: OrganizationEvent[] = [];
  const child = emptyOrganization();
  const record = (...more: readonly OrganizationEvent[]) => {
    for (const event of more) evolve(child, event, now);
    events.push(...more);
  };
  const { organizationId: parentOrganizationId } = parent;
  const { subOrganizationName: name, rootUsers, rootQuorumThreshold: threshold } = intent;
  const founder = isAuthProxyUser(parent, submitterId) ? ({ createdBy: 'auth-proxy' } as const) : {};
  const founding = { organizationId: subOrganizationId, name, parentOrganizationId, ...founder };
  record({ type: 'OrganizationCreated', data: founding });

  const credentials = newCredentials({ organization: child, newId, now, limits });
  const userIds: string[] = [];
  for (const [index, user] of rootUsers.entries()) {
    const field = `${rootUsersField}[${index}]`;
    const { apiKeys = [], authenticators = [] } = user;
    const { authenticators: verified, identities } = proved[index]!;
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
  record({ type: 'RootQuorumUpdated', data: { threshold, userIds } });
  for (const [flag, feature] of switches) {
    if (!intent[flag]) record({ type: 'OrganizationFeatureSet', data: { name: feature, value: '' } });
  }
  if (intent.wallet && wallet) record(...walletEvents(intent.wallet, wallet, newId));
  return events;
}

function sealedWallet(
  { accounts, mnemonicLength = 12 }: WalletParams,
  organizationId: string,
  { keyring }: PreparePorts,
) {
  const requested = accountsToDerive(accounts, 'parameters.wallet.accounts');
  return keyring.createWallet({ organizationId, mnemonicLength, accounts: requested });
}

function walletEvents(
  { walletName, accounts }: WalletParams,
  { vaultId, accounts: derived }: ReturnType<typeof recalledWallet>,
  newId: () => string,
): readonly OrganizationEvent[] {
  const walletId = newId();
  const facts = accountFacts(accounts, derived, newId);
  return [
    { type: 'WalletCreated', data: { walletId, walletName, vaultId, imported: false } },
    ...(facts.length > 0 ? [{ type: 'WalletAccountsCreated', data: { walletId, accounts: facts } } as const] : []),
  ];
}

/** The ids that an event gives to things. */
function idsOf(event: OrganizationEvent): readonly string[] {
  switch (event.type) {
    case 'UserCreated':
      return [event.data.userId];
    case 'ApiKeyCreated':
      return [event.data.apiKeyId];
    case 'AuthenticatorCreated':
      return [event.data.authenticatorId];
    case 'OauthProviderCreated':
      return [event.data.providerId];
    case 'WalletCreated':
      return [event.data.walletId];
    case 'WalletAccountsCreated':
      return event.data.accounts.map(({ walletAccountId }) => walletAccountId);
    default:
      return [];
  }
}

/** The result, derived from what it begins with. */
function resultOf(events: readonly OrganizationEvent[]) {
  const rootUserIds = events.flatMap((event) => (event.type === 'UserCreated' ? [event.data.userId] : []));
  const created = events.find((event) => event.type === 'WalletCreated');
  if (!created) return { rootUserIds };
  const addresses = events.flatMap((event) =>
    event.type === 'WalletAccountsCreated' ? event.data.accounts.map(({ address }) => address) : [],
  );
  return { rootUserIds, wallet: { walletId: created.data.walletId, addresses } };
}
