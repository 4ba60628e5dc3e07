import { randomBytes, sign } from 'node:crypto';
import { activities } from '../../dist/activities/index.js';
import { fingerprintOf } from '../../dist/stamps/fingerprint.js';
import { activityVersion, buildRegistry, newestIntent } from '../../dist/decide/registry.js';
import { resolveCaller } from '../../dist/decide/resolve-caller.js';
import { decideSubmit } from '../../dist/decide/submit.js';
import { applyAndSeal } from '../../dist/coordinator/apply-and-seal.js';
import { derivedId } from '../../dist/ledger/ids.js';

/** Events of an activity that renames a user. */
export const activityEvents = 3;

export const registry = buildRegistry(activities);
const type = 'ACTIVITY_TYPE_UPDATE_USER_NAME';
const version = activityVersion(registry, type);

/**
 * The events of a stamped request that renames a user, decided as a coordinator decides it, without HTTP. The folded state
 * contains them afterwards.
 * @param user id, public key and private key object of the user
 */
export function renamed(loaded, { userId, publicKey, signing }, now) {
  const { organizationId } = loaded.organization;
  const parameters = { userId, userName: `Name ${now}` };
  const timestampMs = String(now);
  const message = JSON.stringify({ type, timestampMs, organizationId, parameters });
  const signature = sign('sha256', Buffer.from(message), signing).toString('hex');
  const scheme = 'SIGNATURE_SCHEME_TK_API_P256';
  const stamp = { kind: 'api-key', publicKey, signature, scheme };
  const { credential } = resolveCaller(stamp, loaded.organization, undefined, now);
  const fingerprint = fingerprintOf(Buffer.from(message));
  const activityId = randomUuid();
  const vote = {
    voteId: derivedId(activityId, 'vote', userId, fingerprint),
    ...{ userId, selection: 'VOTE_SELECTION_APPROVED', message, fingerprint, scheme, signature },
    ...{ credentialId: credential.id, publicKey },
  };
  const intent = newestIntent(version, parameters);
  const submission = { activityId, type, intent, parameters, fingerprint, timestampMs };
  const basis = { registry, organization: loaded.organization, revision: loaded.revision, now };
  const decided = decideSubmit(basis, submission, vote, { userId, credential }, undefined);
  return applyAndSeal(loaded, decided.events, activityId, fingerprint, now);
}

/** The events were recorded. */
export function recorded(loaded) {
  loaded.pending.length = 0;
  loaded.recent.clear();
}

export function randomUuid() {
  const hex = randomBytes(16).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
}
