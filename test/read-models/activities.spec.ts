import { activitiesModel, activityOf } from '../../src/read-models/activities.js';
import { usersModel } from '../../src/read-models/users.js';
import { ReadModelDatabase } from '../../src/read-models/database.js';
import { Projector } from '../../src/read-models/projector.js';
import type { Vote } from '../../src/domain/activity/events.js';
import type { OrganizationEvent } from '../../src/domain/organization/organization.js';
import { id } from '../activities/given.js';
import { recorded } from './projected.js';

const organizationId = id(900);
const parameters = { payload: 'a'.repeat(100_000), encoding: null, hashFunction: 'HASH_FUNCTION_SHA256' };
const message = JSON.stringify({ type: 'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', organizationId, parameters });
const intent = { payload: parameters.payload, hashFunction: parameters.hashFunction };
const vote: Vote = {
  voteId: id(2),
  userId: id(3),
  selection: 'VOTE_SELECTION_APPROVED',
  message,
  fingerprint: `sha256:${'f'.repeat(64)}`,
  credentialId: id(4),
  publicKey: '02'.repeat(33),
  signature: 'aa',
  scheme: 'SIGNATURE_SCHEME_TK_API_P256',
};
const submitted = {
  type: 'ActivitySubmitted',
  data: {
    activityId: id(1),
    type: 'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2',
    status: 'ACTIVITY_STATUS_CONSENSUS_NEEDED',
    fingerprint: `sha256:${'f'.repeat(64)}`,
    timestampMs: '1',
    intent,
    vote,
    decision: { voteId: id(2), outcome: 'consensus-needed', decidedBy: 'none', evaluations: [], revision: 0, rules: 1 },
  },
} satisfies OrganizationEvent;

test('a row keeps a signed body once, and the intent is read from it', () => {
  const rows = new ReadModelDatabase(':memory:');
  new Projector(rows, [activitiesModel, usersModel], { identity: 'test', head: 0n }).project(
    recorded(organizationId, [submitted]),
  );
  const { length } = String(rows.get('SELECT doc FROM activities')!['doc']);
  expect(length).toBeLessThan(1.1 * message.length);
  expect(activityOf(rows, organizationId, id(1)).intent).toEqual(intent);
  rows.close();
});

test('what the columns of a row and its first vote say, its doc does not say again', () => {
  const rows = new ReadModelDatabase(':memory:');
  new Projector(rows, [activitiesModel, usersModel], { identity: 'test', head: 0n }).project(
    recorded(organizationId, [submitted]),
  );
  const doc = JSON.parse(String(rows.get('SELECT doc FROM activities')!['doc'])) as object;
  expect(Object.keys(doc)).toEqual(['revisions', 'timestampMs', 'votes', 'decisions', 'createdAt', 'updatedAt']);
  const { activityId, type, status, fingerprint } = submitted.data;
  expect(activityOf(rows, organizationId, id(1))).toMatchObject({
    activityId,
    organizationId,
    type,
    status,
    fingerprint,
  });
  rows.close();
});
