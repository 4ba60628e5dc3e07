import type { VerifiedPasskey } from '../decide/caller.js';
import type { Caller } from '../decide/resolve-caller.js';
import type { Vote, VoteSelection } from '../domain/activity/events.js';
import { derivedId } from '../ledger/ids.js';
import type { SubmitRequest } from './read-submit.js';

/** The caller's vote as recorded: the signed text with its stamp. */
export function voteOf(
  { stamp, text, fingerprint, attestation }: SubmitRequest,
  passkey: VerifiedPasskey | undefined,
  { user: { userId }, credential }: Caller,
  activityId: string,
  selection: VoteSelection,
): Vote {
  const vote = {
    voteId: derivedId(activityId, 'vote', userId, fingerprint),
    userId,
    selection,
    message: text,
    fingerprint,
    scheme: stamp.scheme,
    signature: stamp.signature,
    credentialId: credential.id,
    // A test harness stamps with a key other than that of the credential it stands for.
    publicKey: stamp.kind === 'api-key' ? stamp.publicKey : credential.publicKey,
  };
  if (stamp.kind === 'attested') return attestation ? { ...vote, attestation } : vote;
  if (stamp.kind === 'api-key') return vote;
  const { credentialId, authenticatorData, clientDataJson } = stamp;
  return { ...vote, webauthn: { credentialId, authenticatorData, clientDataJson, signCount: passkey?.signCount ?? 0 } };
}
