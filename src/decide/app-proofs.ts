import { hash } from 'node:crypto';
import type { DerivedAddress } from '../domain/activity/app-proof.js';
import type { ActivityEvent, Decision, Vote } from '../domain/activity/events.js';
import type { OrganizationEvent } from '../domain/organization/organization.js';
import { canonicalJson } from '../domain/canonical-json.js';
import type { ProofSigner } from '../ports/proof-signer.js';

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
  /** Link of the organization's hash chain that the decision was based on. */
  readonly organizationHash: string;
  /** The same for the parent, if the parent decided. */
  readonly parentHash: string | undefined;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/**
 * The app proofs of an activity that has ended, as recorded: first the policy outcome, then one for each derived
 * address (docs/protocol.md, app proofs).
 */
export function proveEnded(ended: Ended, signer: ProofSigner): ActivityEvent {
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
    organizationDataDigest: ended.organizationHash,
    parentOrganizationDataDigest: ended.parentHash ?? '',
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
