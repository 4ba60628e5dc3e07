import type { DecisionContext } from '../../decide/decision-context.js';
import { policyContext } from '../../decide/authorization-request.js';
import { isAuthProxyUser } from '../../domain/organization/auth-proxy.js';
import type { User } from '../../domain/organization/users.js';
import type { LintSubject } from './lint-subject.js';

/** The policies of an organization and what they can name, as data. What its auth proxy has is not the members' to write. */
export function lintTask(context: DecisionContext): LintSubject {
  const { organization, now } = context;
  const { policies, rootQuorum, authProxy } = organization;
  const users = namesOf(organization.users, ({ userName }) => userName);
  return {
    policies: [...policies.values()].filter(({ policyId }) => policyId !== authProxy?.policyId),
    users: [...policyContext(context).users].filter(({ userId }) => !isAuthProxyUser(organization, userId)),
    logsIn: [...organization.users.values()].filter(canLogIn).map(({ userId }) => userId),
    rootQuorum: { threshold: rootQuorum.threshold, userIds: [...rootQuorum.userIds] },
    names: {
      'User.id': users,
      'Credential.user_id': users,
      'User.tags': namesOf(organization.userTags, ({ tagName }) => tagName),
      'Wallet.id': namesOf(organization.wallets, ({ walletName }) => walletName),
      'PrivateKey.id': namesOf(organization.privateKeys, ({ privateKeyName }) => privateKeyName),
      'PrivateKey.tags': namesOf(organization.privateKeyTags, ({ tagName }) => tagName),
    },
    now,
  };
}

/** Without any of its keys. */
function canLogIn({ userEmail, userPhoneNumber, oauthProviders }: User): boolean {
  return Boolean(userEmail) || Boolean(userPhoneNumber) || oauthProviders.length > 0;
}

function namesOf<Noun>(
  known: ReadonlyMap<string, Noun>,
  nameOf: (noun: Noun) => string,
): Readonly<Record<string, string>> {
  return Object.fromEntries(Array.from(known, ([id, noun]) => [id, nameOf(noun)]));
}
