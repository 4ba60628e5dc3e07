import { hash } from 'node:crypto';
import type { DerivedAddress } from '../domain/activity/app-proof.js';
import type { ActivityEvent, Decision, Vote } from '../domain/activity/events.js';
import type { OrganizationEvent } from '../domain/organization/organization.js';
import { canonicalJson } from '../domain/canonical-json.js';
import type { OpenActivity } from '../domain/organization/open-activities.js';
import type { ProofSigner } from '../ports/proof-signer.js';
import { countedApprovals } from './approvals.js';
import type { DecisionContext, Prepared, Submission } from './decision-context.js';
import { activityVersion, newestIntent } from './registry.js';

/** Links of the hash chains that a decision was based on: the organization's, and the parent's if it decided. */
export interface BasisLinks {
  readonly organization: string;
  readonly parent: string | undefined;
}

/**
 * The app proofs of an activity that requested some and ends with these events.
 * @param submitted if the activity has not waited for votes
 */
export function proofOf(
  context: DecisionContext,
  submitted: OpenActivity | Pick<Submission, 'type' | 'parameters' | 'generateAppProofs'>,
  prepared: Prepared,
  events: readonly OrganizationEvent[],
  links: BasisLinks,
  signer: ProofSigner,
): readonly ActivityEvent[] {
  const end = events.at(-1);
  if (end?.type !== 'ActivityCompleted' && end?.type !== 'ActivityFailed') return [];
  if (!submitted.generateAppProofs) return [];
  const { organizationId } = context.organization;
  const { type } = submitted;
  const [parameters, approvals] =
    'votes' in submitted ? [submitted.intent, countedApprovals(context, submitted)] : [submitted.parameters, []];
  const version = activityVersion(context.registry, type);
  const { definition } = version;
  const derivedBeside =
    prepared && 'value' in prepared && definition.derivedBeside
      ? definition.derivedBeside(newestIntent(version, parameters), organizationId, prepared.value)
      : [];
  const { activityId } = end.data;
  const ended = {
    organizationId,
    activityId,
    type,
    parameters,
    approvals,
    events,
    derivedBeside,
    links,
    at: context.now,
  };
  return [proveEnded(ended, signer)];
}

/** An activity that has just ended, with everything its proofs are about. */
interface Ended {
  readonly organizationId: string;
  readonly activityId: string;
  readonly type: string;
  /** As submitted. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** Approvals before these events that still count, the submitter's first. */
  readonly approvals: readonly Vote[];
  /** What is about to be recorded; the end of the activity comes last. */
  readonly events: readonly OrganizationEvent[];
  /** Addresses that appear in none of the events. */
  readonly derivedBeside: readonly DerivedAddress[];
  readonly links: BasisLinks;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/**
 * The app proofs of an activity that has ended, as recorded: first the policy outcome, then one for each derived
 * address (docs/protocol.md, app proofs).
 */
function proveEnded(ended: Ended, signer: ProofSigner): ActivityEvent {
  const { activityId, at, events } = ended;
  const isCompleted = events.at(-1)?.type === 'ActivityCompleted';
  const derived = isCompleted ? [...derivedIn(events, ended.organizationId), ...ended.derivedBeside] : [];
  const timestampMs = String(at);
  const payloads = [
    { type: 'APP_PROOF_TYPE_POLICY_OUTCOME', timestampMs, policyOutcomeProof: policyOutcome(ended) },
    ...derived.map((address) => ({
      type: 'APP_PROOF_TYPE_ADDRESS_DERIVATION',
      timestampMs,
      addressDerivationProof: address,
    })),
  ];
  const proofs = payloads.map((payload) => {
    const proofPayload = JSON.stringify(payload);
    return { proofPayload, signature: signer.sign(proofPayload) };
  });
  return { type: 'AppProofsIssued', data: { activityId, publicKey: signer.publicKey, proofs } };
}

function policyOutcome({ organizationId, activityId, type, parameters, ...ended }: Ended) {
  const votes = [...ended.approvals, ...ended.events.flatMap(voteIn)];
  const decision = ended.events.flatMap(decisionIn).at(-1);
  return {
    organizationId,
    outcome: 'OUTCOME_ALLOW',
    decisionContextDigest: sha256(canonicalJson({ activityId, type, intent: parameters, decision })),
    organizationDataDigest: ended.links.organization,
    parentOrganizationDataDigest: ended.links.parent ?? '',
    userRequestApprovals: votes.map(({ scheme, publicKey, message, signature, webauthn }) => ({
      scheme,
      publicKey,
      message,
      signature,
      // What a passkey signs besides the challenge.
      ...(webauthn ? { authenticatorData: webauthn.authenticatorData, clientDataJson: webauthn.clientDataJson } : {}),
    })),
  };
}

function derivedIn(events: readonly OrganizationEvent[], organizationId: string): DerivedAddress[] {
  return events.flatMap((event): DerivedAddress[] => {
    switch (event.type) {
      case 'WalletAccountsCreated': {
        const { walletId, accounts } = event.data;
        return accounts.map(({ path, address }) => ({ organizationId, walletId, derivationPath: path, address }));
      }
      case 'PrivateKeyCreated': {
        const { privateKeyId, addresses } = event.data;
        return addresses.map(({ address }) => ({ organizationId, privateKeyId, address }));
      }
      case 'SubOrganizationCreated':
        return derivedIn(event.data.initialEvents, event.data.subOrganizationId);
      default:
        return [];
    }
  });
}

function voteIn(event: OrganizationEvent): Vote[] {
  return event.type === 'ActivitySubmitted' || event.type === 'ActivityApproved' ? [event.data.vote] : [];
}

function decisionIn(event: OrganizationEvent): Decision[] {
  return event.type === 'ActivitySubmitted' || event.type === 'ActivityApproved' ? [event.data.decision] : [];
}

const sha256 = (text: string): string => hash('sha256', text, 'hex');
