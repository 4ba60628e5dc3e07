import { fingerprintOf } from '../../stamps/fingerprint.js';
import type { DecisionContext, Voter } from '../../decide/decision-context.js';
import type { Registry } from '../../decide/registry.js';
import { credentialsOf } from '../../domain/organization/credentials-of-users.js';
import { invitedBy } from '../../decide/resolve-caller.js';
import { CoordinatorError } from '../../domain/errors.js';
import type { DeniedRequest } from '../../domain/activity/denial.js';
import type { Vote, VoteSelection } from '../../domain/activity/events.js';
import { openByFingerprint } from '../../domain/organization/open-activities.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import type { PolicyCredential } from '../../domain/policy/types.js';
import { derivedId } from '../../ledger/ids.js';
import { parseStrictJson } from '../../wire/strict-json.js';
import { validateParameters } from '../../wire/validate.js';
import type { Asked } from './branch.js';
import type { Deciding } from '../verify/deciding-events.js';
import { NoSuchBranch, type GivenRequest } from './fork-change.js';
import { voterOf } from '../verify/recorded-context.js';

type Parameters = Readonly<Record<string, unknown>>;

/** A recorded request or vote. @param authority the parent, if the parent decided */
export function askedOf(event: Deciding, authority: Voter['authority']): Asked {
  const { vote, activityId } = event.data;
  const voterIn = (context: DecisionContext): Voter =>
    authority ? { ...voterOf({ ...context, ...authority }, vote), authority } : voterOf(context, vote);
  if (event.type !== 'ActivitySubmitted') {
    return { what: { kind: 'vote', activityId, fingerprint: namedIn(vote) }, vote, voterIn };
  }
  const { type, intent: parameters, fingerprint, timestampMs, generateAppProofs, decision } = event.data;
  const { resolution: found } = decision;
  const submission = { activityId, type, parameters, fingerprint, timestampMs, generateAppProofs, found };
  return { what: { kind: 'submission', submission }, vote, voterIn };
}

/** The fingerprint that a signed vote names; its own, if the same body was sent again as a vote. */
function namedIn({ message, fingerprint }: Vote): string {
  const { parameters } = parseStrictJson(Buffer.from(message), Infinity).value;
  const named = (parameters as { readonly fingerprint?: unknown } | undefined)?.fingerprint;
  return typeof named === 'string' ? named : fingerprint;
}

/**
 * A denied request, or why it cannot be decided again.
 * @param at when it was denied, milliseconds since the epoch
 * @param home whose user sent it
 */
export function askedAgain(
  denial: DeniedRequest,
  registry: Registry,
  state: OrganizationView,
  at: number,
  home: OrganizationView = state,
): Asked | string {
  const { type, userId, fingerprint, timestampMs, message, scheme, signature } = denial;
  if (fingerprintOf(message) !== fingerprint) return 'its body was not kept whole';
  if (scheme === 'SIGNATURE_SCHEME_TK_ATTESTED_P256') return 'what attested its stamp was not kept';
  const credential = credentialBehind(denial, home, at);
  if (!credential) return 'its credential is not there: it is a member’s of the parent, or of nobody any more';
  const { parameters = {}, generateAppProofs } = parseStrictJson(Buffer.from(message), Infinity).value as {
    readonly parameters?: Parameters;
    readonly generateAppProofs?: boolean;
  };
  const version = registry.versions.get(type);
  if (!version) return `its type, ${type}, is not known any more`;
  const { definition } = version;
  const open = openByFingerprint(state, fingerprint);
  const activityId = open?.activityId ?? derivedId('branch', fingerprint);
  const voterIn = ({ organization, now }: DecisionContext): Voter => {
    const found = credentialBehind(denial, organization, now);
    if (!found) throw new Error(`user \`${userId}\` has no such credential`);
    return { userId, credential: found };
  };
  const vote = {
    voteId: derivedId(activityId, 'vote', userId, fingerprint),
    userId,
    selection: definition.kind === 'vote' ? definition.selection : 'VOTE_SELECTION_APPROVED',
    message,
    fingerprint,
    scheme,
    signature,
    credentialId: credential.id,
    publicKey: credential.publicKey,
  } as const;
  if (definition.kind === 'vote') {
    return { what: { kind: 'vote', fingerprint: namedIn(vote) }, vote, voterIn };
  }
  if (open) return { what: { kind: 'vote', activityId, fingerprint }, vote, voterIn };
  validateParameters(version.intent, parameters);
  const submission = { activityId, type, parameters, fingerprint, timestampMs, generateAppProofs };
  return { what: { kind: 'submission', submission }, vote, voterIn };
}

function credentialBehind(
  { userId, publicKey, credentialId }: DeniedRequest,
  organization: OrganizationView,
  now: number,
): PolicyCredential | undefined {
  const invited = publicKey === undefined ? undefined : invitedBy(publicKey, organization, now);
  if (invited?.user.userId === userId) return invited.credential;
  const user = organization.users.get(userId);
  return (user ? credentialsOf(user) : []).find((one) => {
    return credentialId === undefined ? one.publicKey === publicKey : one.credentialId === credentialId;
  });
}

/** An unsigned request, as a change specifies it. */
export interface Unsigned {
  readonly given: GivenRequest;
  /** The request that it replaces, if it is edited. */
  readonly recorded?: Deciding;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/**
 * A request as a change specifies it, with a credential that the user has on the branch.
 * @throws {NoSuchBranch} if nobody could send it
 */
export function askedFor({ given: input, recorded, at }: Unsigned, registry: Registry, state: OrganizationView): Asked {
  const signed = recorded && parseStrictJson(Buffer.from(recorded.data.vote.message), Infinity).value;
  const type = input.type ?? (signed?.['type'] as string | undefined);
  const userId = input.userId ?? recorded?.data.vote.userId;
  if (type === undefined || userId === undefined) {
    throw new NoSuchBranch('a request that is inserted says `userId`, `type` and `parameters`');
  }
  const version = registry.versions.get(type);
  if (!version) throw new NoSuchBranch(`there is no activity \`${type}\``);
  const isOther = input.type !== undefined && input.type !== signed?.['type'];
  const parameters = { ...(isOther ? {} : (signed?.['parameters'] as Parameters)), ...input.parameters };
  validateParameters(version.intent, parameters);
  const user = state.users.get(userId);
  const kept = recorded?.data.vote.userId === userId ? recorded.data.vote.credentialId : undefined;
  const credentials = user ? credentialsOf(user) : [];
  const credential = credentials.find(({ id }) => id === kept) ?? credentials[0];
  if (!credential) {
    throw new NoSuchBranch(`user \`${userId}\` has no API key or passkey at this point of the organization's history`);
  }
  const { timestampMs = String(at) } = (signed ?? {}) as { readonly timestampMs?: string };
  const message = JSON.stringify({ type, timestampMs, organizationId: state.organizationId, parameters });
  const fingerprint = fingerprintOf(message);
  const recordedId = recorded?.data.activityId;
  const activityId = recordedId ?? derivedId('branch', fingerprint);
  const { definition } = version;
  const selection: VoteSelection = definition.kind === 'vote' ? definition.selection : 'VOTE_SELECTION_APPROVED';
  const vote: Vote = {
    voteId: derivedId(activityId, 'vote', userId, fingerprint),
    userId,
    selection,
    message,
    fingerprint,
    // Nobody has signed it.
    signature: '',
    scheme: 'SIGNATURE_SCHEME_TK_API_P256',
    credentialId: credential.id,
    publicKey: credential.publicKey,
  };
  const voterIn = (context: DecisionContext): Voter => voterOf(context, vote);
  if (definition.kind === 'vote' || (recorded && recorded.type !== 'ActivitySubmitted')) {
    return {
      what: { kind: 'vote', ...(recordedId ? { activityId: recordedId } : {}), fingerprint: namedIn(vote) },
      vote,
      voterIn,
    };
  }
  const { generateAppProofs } = (signed ?? {}) as { readonly generateAppProofs?: boolean };
  const submission = { activityId, type, parameters, fingerprint, timestampMs, generateAppProofs };
  return { what: { kind: 'submission', submission }, vote, voterIn };
}

/** @throws {NoSuchBranch} if nobody could send such a request */
export function asking(make: () => Asked): Asked {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
    throw new NoSuchBranch(`the request cannot be sent: ${error.message}`, { cause: error });
  }
}

/** A denied request, if this release takes its body; else why not. */
export function askedSafely(make: () => Asked | string): Asked | string {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
    return 'this release does not take its body';
  }
}
