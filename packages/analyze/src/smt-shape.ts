import type { PolicyEnvironment } from 'countersign/internal';
import type { AnalysedActivity } from './analysed-activities.js';
import { and, integer, no, not, or, same, text, yes, type Term } from './smt-script.js';
import type { OpenRequest } from './smt-request.js';
import type { Limits } from './smt-unknown.js';
import { fieldOf, type Open } from './smt-values.js';

/** What holds of every request, apart from what policies decide: what can be missing, and what comes together. */

/** The roots of the chains whose transactions policies read: namespaces of their own, one of which a request has at most. */
export const chains = ['eth', 'solana', 'bitcoin', 'tron'] as const;
const keys = ['wallet', 'wallets', 'wallet_account', 'private_key'] as const;

/** Fields that a call without data, or of an unknown contract, does not have. */
const ofCalls: ReadonlySet<string> = new Set(['eth.tx.function_name', 'eth.tx.contract_call_args']);
const alwaysThere: ReadonlySet<string> = new Set([
  'activity',
  'activity.params',
  'activity.type',
  'activity.kind',
  'time',
  'time.now',
]);

/** All names that decoders give, of fields that policies may compare with any others. What has another one is refused. */
export const decodedNames = {
  'BitcoinOutput.address_type': namesIn('P2PKH P2SH P2WPKH P2WSH P2TR P2A WITNESS_UNKNOWN OP_RETURN UNKNOWN'),
  'TronContract.type': namesIn(
    'TransferContract TriggerSmartContract AccountPermissionUpdateContract FreezeBalanceV2Contract ' +
      'UnfreezeBalanceV2Contract DelegateResourceContract UnDelegateResourceContract',
  ),
  'TronContract.resource': namesIn('BANDWIDTH ENERGY TRON_POWER'),
  'TronPermission.type': namesIn('Owner Witness Active'),
} as const;

function namesIn(text: string): ReadonlySet<string> {
  return new Set(text.split(' '));
}

/** What is unknown of a request, with lists of so many elements at most. */
export function limitsOf({ vocabulary = {} }: PolicyEnvironment, elements: number): Limits {
  // What an activity is called is said by the activities themselves.
  const words = Object.entries(vocabulary).filter(([origin]) => !/^(?:Activity|Credential)\./.test(origin));
  return {
    elements,
    vocabulary: { ...decodedNames, ...Object.fromEntries(words) },
    widened: new Set(),
    mayBeMissing: (path) => {
      if (alwaysThere.has(path) || path.startsWith('users[')) return false;
      if (ofCalls.has(path)) return true;
      const [root, ...fields] = path.split('.');
      if (root === 'activity') return fields.length === 2 && !path.includes('[');
      return fields.length === 0 ? !path.includes('[') : fields.length === 1 && isChain(root!) && !path.includes('[');
    },
    mayBeUnreadable: (path) => !alwaysThere.has(path) && (!path.startsWith('users[') || path.endsWith('.email')),
  };
}

const isChain = (name: string): boolean => chains.some((chain) => chain === name);

/** The roots that tell of the key, of each kind of activity: one of these sets. Of other kinds nothing is assumed. */
const subjects: Readonly<Record<string, readonly (readonly string[])[]>> = {
  SIGN_TRANSACTION: [['wallet', 'wallet_account'], ['private_key']],
  SIGN_RAW_PAYLOAD: [['wallet', 'wallet_account'], ['private_key']],
  SIGN_RAW_PAYLOADS: [['wallet', 'wallet_account'], ['private_key']],
  EXPORT_WALLET: [['wallet']],
  EXPORT_WALLET_ACCOUNT: [['wallet', 'wallet_account']],
  EXPORT_PRIVATE_KEY: [['private_key']],
  CREATE_WALLET_ACCOUNTS: [['wallet']],
  UPDATE_WALLET: [['wallet']],
  DELETE_WALLETS: [['wallets']],
  DELETE_WALLET_ACCOUNTS: [['wallets']],
};

/**
 * Makes the open request one of these activities, by the place of each, and as such requests are. `members` are those of the
 * root quorum.
 */
export function beOneOf(
  request: OpenRequest,
  activities: readonly AnalysedActivity[],
  members: ReadonlySet<string>,
): Term {
  const { script, voters } = request;
  const isAlone = same(voters.howMany, '1');
  const isByMember = or(
    ...voters.users.flatMap(({ userId }, place) => (members.has(userId) ? [voters.asks(place)] : [])),
  );
  const isByKey = voters.asksWithout('CREDENTIAL_TYPE_WEBAUTHN_AUTHENTICATOR');
  const which = script.constant('Int');
  // What it is about was deleted in the meantime, or cannot be read at all.
  const isGone = script.constant('Bool');
  const { value } = request.rootAt('activity').open;
  const params = fieldOf(value, 'params').value;
  const names = new Set(activities.flatMap((one) => one.params));
  const gone = script.name(and(...[...keys, ...chains].map((name) => request.rootAt(name).open.isUnreadable)));
  const alternatives = activities.map((one, place) => {
    const { type, kind, resource, action, params: exposed, own, isRootOnly, hasResources } = one;
    const attributes = Object.entries({ type, kind, resource, action }).map(([name, expected]) => {
      const field = fieldOf(value, name);
      return expected === undefined ? field.isUnreadable : and(not(field.isUnreadable), holds(field, expected));
    });
    const owns = { session: same(request.own, '2'), never: same(request.own, '0'), maybe: not(same(request.own, '2')) };
    return and(
      same(which, integer(place)),
      ...attributes,
      isRootOnly ? request.isRootOnly : not(request.isRootOnly),
      owns[own],
      ...(one.isAtOnce ? [isAlone] : []),
      ...(one.takesPasskeys ? [] : [isByKey]),
      ...{ 'a-user': [], 'a-root-user': [isByMember], invited: [not(isByMember)] }[one.submitter],
      ...[...names].map((name) => {
        const isMissing = fieldOf(params, name).isNotApplicable;
        return exposed.includes(name) ? not(isMissing) : isMissing;
      }),
      hasResources
        ? or(and(isGone, gone), and(not(isGone), subjectOf(request, one)))
        : and(not(isGone), nothing(request)),
    );
  });
  script.facts.push(or(...alternatives));
  return which;
}

function subjectOf(request: OpenRequest, { type, kind }: AnalysedActivity): Term {
  const sets = ofPrivateKeys.has(type) ? [['private_key']] : subjects[kind];
  const key = sets?.map((roots) => onlyThere(request, keys, roots)) ?? [yes];
  return and(or(...key), signedBy(request, kind));
}

/** Types that can name a private key only, by its id. */
const ofPrivateKeys: ReadonlySet<string> = new Set([
  'ACTIVITY_TYPE_SIGN_TRANSACTION',
  'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD',
]);

/** What is decoded: a transaction of one chain, typed data or nothing. */
function signedBy(request: OpenRequest, kind: string): Term {
  if (subjects[kind] === undefined) return yes;
  const isMissing = (name: string) => fieldOf(request.rootAt('eth').open.value, name).isNotApplicable;
  if (kind === 'SIGN_TRANSACTION') {
    const one = chains.map((chain) => and(onlyThere(request, chains, [chain]), isSaid(request, 'type', types[chain])));
    const { value: tx } = fieldOf(request.rootAt('eth').open.value, 'tx');
    const isOfType = (name: string) => holds(fieldOf(tx, 'type'), name);
    // EIP-4844 and EIP-7702: both have a receiver.
    const isCreated = and(holds(fieldOf(tx, 'to'), ''), or(isOfType('TYPE_3'), isOfType('TYPE_4')));
    const isOnly = and(isMissing('eip_712'), isMissing('eip_7702_authorization'));
    return and(or(...one), not(isMissing('tx')), not(isCreated), isOnly);
  }
  return kind.startsWith('SIGN_') ? payloadOf(request) : onlyThere(request, chains, []);
}

const types = {
  eth: 'TRANSACTION_TYPE_ETHEREUM',
  solana: 'TRANSACTION_TYPE_SOLANA',
  bitcoin: 'TRANSACTION_TYPE_BITCOIN',
  tron: 'TRANSACTION_TYPE_TRON',
} as const;
const described = {
  eip_712: 'PAYLOAD_ENCODING_EIP712',
  eip_7702_authorization: 'PAYLOAD_ENCODING_EIP7702_AUTHORIZATION',
} as const;

/**
 * Payloads describe themselves if their encoding says so. Others are read as what their signature is valid for, by their hash
 * function, or may be anything that the key signs, and cannot be read. Or they are nothing of the kind.
 */
function payloadOf(request: OpenRequest): Term {
  const { value } = request.rootAt('eth').open;
  const [typed, authorization] = [fieldOf(value, 'eip_712'), fieldOf(value, 'eip_7702_authorization')];
  const isOf = (encoding: string) => isSaid(request, 'encoding', encoding);
  const isHashedBy = (name: string) => isSaid(request, 'hash_function', name);
  const tx = (chain: string) => fieldOf(request.rootAt(chain).open.value, 'tx');
  const isSigned = (...there: readonly (typeof chains)[number][]) =>
    and(onlyThere(request, chains, there), ...there.map((chain) => not(tx(chain).isNotApplicable)));
  const isHidden = (...there: readonly (typeof chains)[number][]) =>
    and(onlyThere(request, chains, there), ...there.map((chain) => tx(chain).isUnreadable));
  const isEthereum = and(onlyThere(request, chains, ['eth']), tx('eth').isNotApplicable);
  const isPlain = and(not(isOf(described.eip_712)), not(isOf(described.eip_7702_authorization)));
  const isAnything = and(isHidden('eth', 'tron', 'bitcoin'), typed.isUnreadable, authorization.isUnreadable);
  const isOfEthereum = or(
    and(isSigned('eth'), or(typed.isNotApplicable, typed.isUnreadable)),
    and(isEthereum, typed.isNotApplicable, not(authorization.isNotApplicable)),
  );
  const isTyped = and(isOf(described.eip_712), not(typed.isNotApplicable), authorization.isNotApplicable);
  const isAuthorization = and(
    isOf(described.eip_7702_authorization),
    typed.isNotApplicable,
    not(authorization.isNotApplicable),
    // Chain 0 is every chain, and cannot be read.
    not(holds(fieldOf(authorization.value, 'chain_id'), 0)),
  );
  return or(
    and(isPlain, onlyThere(request, chains, [])),
    and(isPlain, or(isAnything, isHidden('bitcoin')), not(isHashedBy('HASH_FUNCTION_NOT_APPLICABLE'))),
    and(isPlain, isOfEthereum, isHashedBy('HASH_FUNCTION_KECCAK256')),
    and(
      isPlain,
      or(isSigned('tron'), isSigned('bitcoin'), isSigned('tron', 'bitcoin')),
      isHashedBy('HASH_FUNCTION_SHA256'),
    ),
    and(isPlain, isSigned('solana'), isHashedBy('HASH_FUNCTION_NOT_APPLICABLE')),
    and(isEthereum, or(isTyped, isAuthorization), isHashedBy('HASH_FUNCTION_NO_OP')),
  );
}

/** What a parameter is, as policies see it. */
function isSaid(request: OpenRequest, name: string, expected: string): Term {
  const params = fieldOf(request.rootAt('activity').open.value, 'params').value;
  return holds(fieldOf(params, name), expected);
}

const nothing = (request: OpenRequest): Term => and(onlyThere(request, keys, []), onlyThere(request, chains, []));

/** These of some roots are part of the request, and the others are not. */
function onlyThere(request: OpenRequest, roots: readonly string[], there: readonly string[]): Term {
  return and(
    ...roots.map((name) => {
      const { isNotApplicable } = request.rootAt(name).open;
      return there.includes(name) ? not(isNotApplicable) : isNotApplicable;
    }),
  );
}

function holds({ value }: Open, expected: string | number): Term {
  if (typeof expected === 'number') return value.kind === 'integer' ? same(value.term, integer(expected)) : no;
  return value.kind === 'text' ? same(value.term, text(expected)) : no;
}
