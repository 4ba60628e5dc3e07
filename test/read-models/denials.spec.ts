import { denialStream, type DenialEvent } from '../../src/domain/activity/denial.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { denialsModel } from '../../src/read-models/denials.js';
import { explainActivity } from '../../src/read-models/explanations.js';
import { id } from '../activities/given.js';
import { recorded, rowsAlone, rowsOf } from './projected.js';

test('a denial without a revision is not explained, and the answer says why', async () => {
  const organizationId = id(7);
  const data: DenialEvent['data'] = {
    type: 'ACTIVITY_TYPE_CREATE_USER_TAG',
    userId: id(1),
    fingerprint: 'sha256:00',
    timestampMs: '0',
    message: '{}',
    scheme: 'SIGNATURE_SCHEME_TK_API_P256',
    signature: '',
    reason: 'no',
    details: [{ '@type': 'denied', policyEvaluations: [] }],
  };
  const [event] = recorded(organizationId, [{ type: 'UserDeleted', data: { userId: id(1) } }]) as [RecordedEvent];
  const denied = { ...event, id: id(9), stream: denialStream(organizationId), type: 'ActivityDenied', data };
  const rows = rowsOf(denialsModel, [denied]);
  const answer = await explainActivity.answer({ organizationId, activityId: id(9) }, rowsAlone(rows, organizationId));
  expect(answer).toEqual({
    notExplained: 'the build that denied it did not record at which revision of the organization it did so',
  });
});
