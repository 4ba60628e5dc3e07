import { CoordinatorError, invalidField } from '../../domain/errors.js';
import { isAuthProxyUser } from '../../domain/organization/auth-proxy.js';
import { clientIdsOf } from '../../domain/organization/client-ids.js';
import { presentMembers } from '../../domain/organization/event.js';
import { checkFoundings, checkLimit, checkLimits, type Limits } from '../../domain/organization/limits.js';
import {
  emptyOrganization,
  evolve,
  type OrganizationEvent,
  type OrganizationView,
} from '../../domain/organization/organization.js';
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
import { oidcTokensUsed, recalledTokens, type RecordedTokens } from '../auth/token-uses.js';
import { defineActivity, type PrepareContext } from '../define-activity.js';
import type { PreparePorts } from '../../ports/prepare.js';
import type { VerificationClaims } from '../../ports/tokens.js';
import { accountFacts, accountsToDerive, checkAccountsNew, checkMnemonicLength } from '../wallets/wallet-params.js';
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
export interface RecalledSubOrganization extends CreateSubOrganizationResult, RecordedTokens {
  readonly claims: ProvedContact | undefined;
  readonly founding: readonly OrganizationEvent[];
}

/** Output of `prepare`. */
export interface PreparedSubOrganization extends RecalledSubOrganization {
  readonly rootUserIds: string[];
  readonly derived: ReturnType<typeof derivedIn>;
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

  async prepare(intent, ports, context): Promise<PreparedSubOrganization> {
    const subOrganizationId = context.newId();
    const claims = await signupClaims(intent, ports, context);
    const tokens: NonNullable<RecordedTokens['tokens']>[number][] = [];
    const founding = await foundingEvents(intent, subOrganizationId, claims, ports, context, tokens);
    const derived = derivedIn(founding);
    return { subOrganizationId, ...resultOf(founding), derived, claims, founding, tokens };
  },

  recall(intent, recorded): RecalledSubOrganization {
    const { verificationToken } = intent;
    const { subOrganizationId, rootUserIds, wallet } = recorded.result;
    const founding = asSigned(intent, recorded.first('SubOrganizationCreated').initialEvents);
    const result = resultOf(founding);
    return {
      subOrganizationId,
      // Older versions have fewer members in their result.
      ...(rootUserIds ? { rootUserIds: result.rootUserIds } : {}),
      ...(wallet && result.wallet ? { wallet: result.wallet } : {}),
      claims: verificationToken ? recalledContact(verificationToken) : undefined,
      founding,
      ...recalledTokens(recorded),
    };
  },

  derivedBeside: (_intent, _organizationId, { subOrganizationId, derived }) =>
    derived.map((address) => ({ organizationId: subOrganizationId, ...address })),

  decide(
    { subOrganizationName: name },
    { organization, submitterId, now, limits, subOrganizationLimits },
    { subOrganizationId, rootUserIds, wallet, claims, founding, tokens = [] },
  ) {
    checkFoundings(organization, submitterId, now, limits);
    checkLimits(emptyOrganization(), founding, subOrganizationLimits);
    if (claims) checkTokenUnused(organization, claims, 'USAGE_TYPE_SIGNUP');
    return {
      events: [
        { type: 'SubOrganizationCreated', data: { subOrganizationId, name, initialEvents: founding } },
        ...(claims ? [tokenUsed(claims, 'USAGE_TYPE_SIGNUP')] : []),
        ...oidcTokensUsed(tokens, 'USAGE_TYPE_OIDC_REGISTRATION'),
      ],
      result: { subOrganizationId, ...(rootUserIds ? { rootUserIds } : {}), ...(wallet ? { wallet } : {}) },
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

/**
 * Everything a sub-organization begins with. `tokens` collects the OIDC tokens of the request.
 * @throws {CoordinatorError} if it could not be founded this way
 */
async function foundingEvents(
  intent: CreateSubOrganizationIntentV8,
  subOrganizationId: string,
  claims: VerificationClaims | undefined,
  ports: PreparePorts,
  { organization: parent, submitterId, now, newId, subOrganizationLimits: limits }: PrepareContext,
  tokens: NonNullable<RecordedTokens['tokens']>[number][],
): Promise<readonly OrganizationEvent[]> {
  const registrars = { clientIds: clientIdsOf(parent), isOfSubOrganization: true };
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
    const { apiKeys = [], authenticators = [], oauthProviders = [] } = user;
    const [verified, oauth] = await Promise.all([
      verifyAuthenticators(authenticators, ports, parent, `${field}.authenticators`, limits),
      verifiedIdentities(oauthProviders, ports, registrars, `${field}.oauthProviders`, limits),
    ]);
    tokens.push(...(oauth.tokens ?? []));
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
      ...credentials.oauthProviders(owner, oauth.identities, `${field}.oauthProviders`).events,
      ...(claims ? provenContact(userId, contacts, claims) : []),
    );
  }
  record({ type: 'RootQuorumUpdated', data: { threshold, userIds } });
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

/** Recorded events with the names, contacts, quorum and accounts of the signed request in their places. */
function asSigned(
  { subOrganizationName: name, rootUsers, rootQuorumThreshold: threshold, wallet }: CreateSubOrganizationIntentV8,
  events: readonly OrganizationEvent[],
): readonly OrganizationEvent[] {
  const userIds = events.flatMap((event) => (event.type === 'UserCreated' ? [event.data.userId] : []));
  let users = 0;
  return events.map((event): OrganizationEvent => {
    switch (event.type) {
      case 'OrganizationCreated':
        return { ...event, data: { ...event.data, name } };
      case 'UserCreated': {
        const user = rootUsers[users++];
        if (!user) return event;
        const { userId, userTags } = event.data;
        const contacts = presentMembers({
          userEmail: user.userEmail || undefined,
          userPhoneNumber: user.userPhoneNumber || undefined,
        });
        return { ...event, data: { userId, userName: user.userName, ...contacts, userTags } };
      }
      case 'RootQuorumUpdated':
        return { ...event, data: { ...event.data, threshold, userIds } };
      case 'WalletCreated':
        return wallet ? { ...event, data: { ...event.data, walletName: wallet.walletName } } : event;
      case 'WalletAccountsCreated': {
        const { accounts } = event.data;
        const ids = accounts.map(({ walletAccountId }) => walletAccountId);
        const derived = accounts.map(({ curve, path, addressFormat, address, publicKey }) => {
          return { curve, path, addressFormat, address, publicKey };
        });
        const facts = wallet ? accountFacts(wallet.accounts, derived, () => ids.shift() ?? '') : accounts;
        return { ...event, data: { ...event.data, accounts: facts } };
      }
      default:
        return event;
    }
  });
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

/** Addresses of a first wallet, which are only in the other organization's stream. */
function derivedIn(events: readonly OrganizationEvent[]) {
  return events.flatMap((event) =>
    event.type === 'WalletAccountsCreated'
      ? event.data.accounts.map(({ path, address }) => ({
          walletId: event.data.walletId,
          derivationPath: path,
          address,
        }))
      : [],
  );
}
