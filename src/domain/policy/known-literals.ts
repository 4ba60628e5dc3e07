import { CoordinatorError } from '../errors.js';
import type { ContractInterface } from '../organization/contract-interfaces.js';
import type { OrganizationView } from '../organization/organization.js';
import { compileClause } from './language.js';
import type { PolicyEnvironment } from './namespaces.js';
import { literalsOf, reads, truthFor, type Literal } from './literals.js';
import { suggestion } from './suggestion.js';
import { located, PolicyError, type CheckedExpression } from './syntax.js';
import type { Clause, Policy } from './types.js';
import { isUuid } from '../uuid.js';

/** What a text in a policy can be equal to, by origin. Origins that are missing here are not checked. */
type Vocabulary = NonNullable<PolicyEnvironment['vocabulary']>;

type Clauses = { readonly [Name in Clause]?: string };

const clauseNames = ['condition', 'consensus', 'time'] as const;

/** The name of what is compared, in messages. */
const nouns: Readonly<Record<string, string>> = {
  'Activity.type': 'activity type',
  'Activity.kind': 'activity kind',
  'Activity.resource': 'activity resource',
  'Activity.action': 'activity action',
  'Credential.type': 'credential type',
  'EthereumTransaction.type': 'type of Ethereum transaction',
  'BitcoinOutput.address_type': 'type of address',
  'BitcoinLocktime.type': 'type of lock time',
  'User.id': 'user',
  'User.tags': 'user tag',
  'Credential.user_id': 'user',
  'Wallet.id': 'wallet',
  'PrivateKey.id': 'private key',
  'PrivateKey.tags': 'private key tag',
};

/** What depends neither on the build nor on an organization. */
export const languageVocabulary: Vocabulary = {
  'Credential.type': new Set(
    (
      'WEBAUTHN_AUTHENTICATOR API_KEY_P256 API_KEY_SECP256K1 API_KEY_ED25519 LOGIN OTP_AUTH_KEY_P256 OAUTH_KEY_P256 ' +
      'EMAIL_AUTH_KEY_P256 RECOVER_USER_KEY_P256 READ_WRITE_SESSION_KEY_P256'
    )
      .split(' ')
      .map((name) => `CREDENTIAL_TYPE_${name}`),
  ),
  'EthereumTransaction.type': new Set(['LEGACY', 'TYPE_1', 'TYPE_2', 'TYPE_3', 'TYPE_4']),
  'BitcoinLocktime.type': new Set(['Seconds', 'Blocks']),
};

/** Everything in one organization that can be named by id. */
interface Nouns {
  has(id: string): boolean;
  /** The id of the thing with this name, or with this id in another letter case. */
  meantBy(text: string): string | undefined;
}

function nounsOf<Noun>(known: ReadonlyMap<string, Noun>, nameOf: (noun: Noun) => string): Nouns {
  let ids: Map<string, string> | undefined;
  return {
    has: (id) => known.has(id),
    meantBy: (text) => {
      // A list of a thousand names is looked up in one of a thousand users.
      ids ??= new Map([...known].toReversed().map(([id, noun]) => [nameOf(noun), id]));
      const id = text.toLowerCase();
      return ids.get(text) ?? (known.has(id) ? id : undefined);
    },
  };
}

function identified(organization: OrganizationView, origin: string): Nouns | undefined {
  switch (origin) {
    case 'User.id':
    case 'Credential.user_id':
      return nounsOf(organization.users, ({ userName }) => userName);
    case 'User.tags':
      return nounsOf(organization.userTags, ({ tagName }) => tagName);
    case 'Wallet.id':
      return nounsOf(organization.wallets, ({ walletName }) => walletName);
    case 'PrivateKey.id':
      return nounsOf(organization.privateKeys, ({ privateKeyName }) => privateKeyName);
    case 'PrivateKey.tags':
      return nounsOf(organization.privateKeyTags, ({ tagName }) => tagName);
    default:
      return undefined;
  }
}

/**
 * Refuses a clause that compares something with a text that can never be equal to it: such a policy has no effect, and
 * nobody would notice a DENY without effect. Ids must exist when the policy is written; deleting one later does no harm
 * to an ALLOW, and `checkNoDenialNames` guards the DENYs.
 * @throws {CoordinatorError} INVALID_ARGUMENT with the nearest known text
 */
export function checkKnownLiterals(
  clauses: Clauses,
  environment: PolicyEnvironment,
  organization: OrganizationView,
): void {
  const known = new Map<string, Nouns | undefined>();
  for (const clause of clauseNames) {
    const text = clauses[clause];
    if (text === undefined) continue;
    for (const literal of literalsOf(compileClause(text, clause, environment))) {
      const { origin } = literal;
      if (!known.has(origin)) known.set(origin, identified(organization, origin));
      const mistake = unknownWord(literal, environment) ?? unknownId(literal, known.get(origin));
      if (mistake === undefined) continue;
      throw new CoordinatorError('INVALID_ARGUMENT', `invalid policy ${clause}: ${located(mistake, literal.at)}`, {
        category: 'REQUEST_INVALID',
      });
    }
  }
}

/** Literals in stored clauses that no request of this build can ever match; ids are not checked. */
export function unknownWords(clauses: Clauses, environment: PolicyEnvironment): readonly string[] {
  return clauseNames.flatMap((clause) => {
    const compiled = compiledOrUndefined(clauses[clause], clause, environment);
    return literalsOf(compiled).flatMap((literal) => unknownWord(literal, environment) ?? []);
  });
}

/**
 * Refuses to delete what a DENY names, because the DENY would have no effect from then on. `origin` is what it is
 * compared with.
 * @throws {CoordinatorError} FAILED_PRECONDITION that names the policy
 */
export function checkNoDenialNames(
  origin: string,
  ids: readonly string[],
  environment: PolicyEnvironment,
  { policies }: OrganizationView,
): void {
  for (const policy of policies.values()) {
    if (policy.effect !== 'EFFECT_DENY') continue;
    const named = policyLiterals(policy, environment).find((one) => one.origin === origin && ids.includes(one.value));
    if (named !== undefined) throw namedByDenial(`${nouns[origin] ?? origin} \`${named.value}\``, policy);
  }
}

const readOfInterfaces = new Set(['EthereumTransaction.function_name', 'EthereumTransaction.contract_call_args']);

/**
 * Refuses to delete the interface of an Ethereum contract while a DENY reads functions or arguments with it: without
 * one, calls of a contract have neither. A DENY that its `eth.tx.to` alone makes false for this contract does not
 * count.
 * @throws {CoordinatorError} FAILED_PRECONDITION that names the policy
 */
export function checkNoDenialReads(
  contractAddress: string,
  environment: PolicyEnvironment,
  { policies }: OrganizationView,
): void {
  for (const policy of policies.values()) {
    const condition = compiledOrUndefined(policy.condition, 'condition', environment);
    if (policy.effect !== 'EFFECT_DENY' || condition === undefined || !reads(condition, readOfInterfaces)) continue;
    if (truthFor(condition, contractAddress.toLowerCase()) === false) continue;
    throw namedByDenial(`calls of contract \`${contractAddress}\``, policy);
  }
}

/** What interfaces name, by their type. */
const namedByInterfaces: Readonly<Record<ContractInterface['type'], ReadonlySet<string>>> = {
  SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM: readOfInterfaces,
  SMART_CONTRACT_INTERFACE_TYPE_SOLANA: new Set(['SolanaInstruction.parsed_instruction_data']),
};

/**
 * Refuses to delete the interface of a contract or program while a policy reads calls by it, whatever its effect: another
 * interface in its place could give the same calls other names, so that an ALLOW applies to them or a DENY does not any
 * more. A policy that its `eth.tx.to` alone makes false for this contract does not count.
 * @throws {CoordinatorError} FAILED_PRECONDITION that names the policy
 */
export function checkNoPolicyReads(
  { type, smartContractAddress }: Pick<ContractInterface, 'type' | 'smartContractAddress'>,
  environment: PolicyEnvironment,
  { policies }: OrganizationView,
): void {
  for (const { policyId, policyName, condition: text } of policies.values()) {
    const condition = compiledOrUndefined(text, 'condition', environment);
    if (condition === undefined || !reads(condition, namedByInterfaces[type])) continue;
    const isEthereum = type === 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM';
    if (isEthereum && truthFor(condition, smartContractAddress.toLowerCase()) === false) continue;
    throw new CoordinatorError(
      'FAILED_PRECONDITION',
      `policy \`${policyId}\` (\`${policyName}\`) reads calls of \`${smartContractAddress}\` by this interface, and would read ` +
        'them otherwise by another: only the root quorum can delete it while the policy is there',
    );
  }
}

function namedByDenial(what: string, { policyId, policyName }: Policy): CoordinatorError {
  return new CoordinatorError(
    'FAILED_PRECONDITION',
    `policy \`${policyId}\` (\`${policyName}\`) denies by the ${what}, and could not any more: change or delete it first`,
  );
}

/** Every text that a policy compares something with; none for a clause that this build cannot parse. */
function policyLiterals(policy: Policy, environment: PolicyEnvironment): readonly Literal[] {
  return clauseNames.flatMap((clause) => literalsOf(compiledOrUndefined(policy[clause], clause, environment)));
}

function compiledOrUndefined(
  text: string | undefined,
  clause: Clause,
  environment: PolicyEnvironment,
): CheckedExpression | undefined {
  if (text === undefined) return undefined;
  try {
    return compileClause(text, clause, environment);
  } catch (error) {
    if (error instanceof PolicyError) return undefined;
    throw error;
  }
}

function unknownWord({ origin, value }: Literal, { vocabulary = languageVocabulary }: PolicyEnvironment) {
  const known = Object.hasOwn(vocabulary, origin) ? vocabulary[origin] : undefined;
  if (known === undefined || known.has(value)) return undefined;
  return `unknown ${nouns[origin] ?? lastName(origin)} \`${value}\`${suggestion(value, known)}`;
}

function unknownId({ origin, value }: Literal, known: Nouns | undefined): string | undefined {
  if (known === undefined || known.has(value)) return undefined;
  const isId = isUuid(value);
  const meant = known.meantBy(value);
  // Texts that are not ids are accepted, unless a name was evidently used in place of an id.
  if (meant === undefined && !isId) return undefined;
  const hint = meant === undefined ? '' : `: did you mean \`${meant}\`?`;
  return `unknown ${nouns[origin] ?? lastName(origin)} \`${value}\`${hint}`;
}

function lastName(origin: string): string {
  return origin.slice(origin.lastIndexOf('.') + 1).replaceAll('_', ' ');
}
