import { createHash } from 'node:crypto';
import { chainEvent, GENESIS_HASH } from '../../dist/ledger/chain.js';

/** Events of an organization's founding, and of one activity. */
export const foundingEvents = 4;
export const activityEvents = 3;
/** Events of one append while the store is filled. */
const fillBatch = 300;

/**
 * Histories of people who rename each other, chained as the coordinator does; signatures are of the right length only.
 * @param asked how many users there are, and the API key of the first, if somebody is to go on with it: compressed, in hex
 */
export async function fill(store, organizationIds, eventsEach, asked = {}) {
  const counted = { count: 0, bytes: 0 };
  for (const organizationId of organizationIds) {
    const stream = `organization-${organizationId}`;
    let hash = GENESIS_HASH;
    let revision = -1;
    let batch = [];
    const write = async () => {
      if (batch.length > 0) {
        const last = revision - batch.length;
        await store.append(stream, batch.splice(0), last < 0 ? 'no-stream' : last);
      }
    };
    for (const { type, data, activityId } of history(organizationId, eventsEach, asked)) {
      revision += 1;
      const id = uuid(`${stream} ${revision}`);
      const metadata = {
        at: 1_772_366_400_000 + revision,
        schemaVersion: 1,
        $correlationId: activityId,
        $causationId: activityId,
      };
      hash = chainEvent(hash, { stream, revision, id, type, data, metadata });
      batch.push({ id, type, data, metadata: { ...metadata, hash } });
      counted.count += 1;
      counted.bytes += JSON.stringify(batch.at(-1)).length;
      if (batch.length >= fillBatch) await write();
    }
    await write();
  }
  return counted;
}

function* history(organizationId, events, { users = Math.max(1, Math.min(1_000, Math.floor(events / 100))), member }) {
  const userIds = Array.from({ length: users }, (_, index) => uuid(`${organizationId} user ${index}`));
  const fact = (type, data, activityId = organizationId) => ({ type, data, activityId });
  const publicKey = (userId) => (userId === userIds[0] ? member : undefined) ?? `02${digest(userId)}`;
  yield fact('OrganizationCreated', { organizationId, name: 'Root organization' });
  for (const [index, userId] of userIds.entries()) {
    yield fact('UserCreated', { userId, userName: `User ${index}`, userTags: [] });
    const key = { curve: 'API_KEY_CURVE_P256', credentialType: 'CREDENTIAL_TYPE_API_KEY_P256' };
    yield fact('ApiKeyCreated', {
      userId,
      apiKeyId: uuid(`key ${userId}`),
      apiKeyName: 'key',
      publicKey: publicKey(userId),
      ...key,
    });
  }
  yield fact('RootQuorumUpdated', { threshold: 1, userIds: [userIds[0]] });
  for (let made = 2 + 2 * users, number = 0; made + activityEvents <= events; made += activityEvents, number++) {
    const activityId = uuid(`${organizationId} activity ${number}`, 1_772_366_400_000 + number);
    const userId = userIds[number % users];
    const intent = { userId: userIds[(number * 7) % users], userName: `Name ${number}` };
    const type = 'ACTIVITY_TYPE_UPDATE_USER_NAME';
    const timestampMs = String(1_772_366_400_000 + number);
    const message = JSON.stringify({ type, timestampMs, organizationId, parameters: intent });
    const fingerprint = `sha256:${digest(message)}`;
    const voteId = uuid(`vote ${activityId}`);
    const vote = {
      voteId,
      userId,
      selection: 'VOTE_SELECTION_APPROVED',
      message,
      fingerprint,
      scheme: 'SIGNATURE_SCHEME_TK_API_P256',
      signature: `3045022100${digest(voteId)}0220${digest(activityId)}`,
      credentialId: uuid(`key ${userId}`),
      publicKey: publicKey(userId),
    };
    const decision = { voteId, outcome: 'allow', by: 'root-quorum', policies: [], revision: made - 1 };
    const status = 'ACTIVITY_STATUS_PENDING';
    const submitted = { activityId, type, intent, fingerprint, timestampMs, status, vote, decision };
    yield fact('ActivitySubmitted', submitted, activityId);
    yield fact('UserUpdated', intent, activityId);
    const result = { updateUserNameResult: { userId: intent.userId } };
    yield fact('ActivityCompleted', { activityId, status: 'ACTIVITY_STATUS_COMPLETED', result }, activityId);
  }
}

function digest(text) {
  return createHash('sha256').update(text).digest('hex');
}

/** A UUID that follows from the text; with a time it begins with that, as the ids of activities do (RFC 9562, 5.7). */
export function uuid(text, time) {
  const own = digest(text);
  const hex = time === undefined ? own : time.toString(16).padStart(12, '0') + own.slice(12);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
