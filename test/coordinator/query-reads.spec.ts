import { jest } from '@jest/globals';
import { organizationStream } from '../../src/domain/organization/organization.js';
import { denialStream } from '../../src/domain/activity/denial.js';
import { EventStoreDbEventStore } from '../../src/ledger/stores/event-store-db/event-store-db.js';
import { queries } from '../../src/read-models/index.js';
import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { furnish, querySamples, sampleSettings, type Furnished } from '../e2e/samples.js';
import { EventStoreDouble } from '../ledger/stores/double/double.js';

/** What answers with recorded events, or with what they fold into, reads these beside. */
const tellsEvents = [
  'compare_states',
  'explain_activity',
  'get_event',
  'get_organization_state',
  'get_policy_evaluations',
  'list_activity_events',
  'list_events',
  'what_if',
];

/** Counted, never timed: what each query asks of a store that others may write to as well. */
describe('on a store that several coordinators share', () => {
  let double: EventStoreDouble;
  let coordinator: TestCoordinator;
  let furnished: Furnished;
  let reads: jest.SpiedFunction<EventStoreDbEventStore['read']>;

  beforeAll(async () => {
    double = await EventStoreDouble.start();
    coordinator = await startCoordinator({
      store: `esdb://127.0.0.1:${double.port}?tls=false`,
      settings: sampleSettings,
    });
    furnished = await furnish(coordinator);
    await coordinator.settled();
    reads = jest.spyOn(EventStoreDbEventStore.prototype, 'read');
  });
  beforeEach(() => reads.mockClear());
  afterAll(async () => {
    reads.mockRestore();
    await coordinator.close();
    await double.stop();
  });

  const streamsRead = () => reads.mock.calls.map(([stream]) => stream);

  it.each(queries.map(({ path }) => path))('%s looks once whether the head is current', async (path) => {
    const own = organizationStream(coordinator.organizationId);
    await coordinator.client.query(path, querySamples(furnished)[path]);
    const beside = path === 'what_if' ? [denialStream(coordinator.organizationId)] : [];
    expect(new Set(streamsRead().slice(1))).toEqual(new Set(tellsEvents.includes(path) ? [own, ...beside] : []));
    if (path !== 'what_if') expect(streamsRead()).toEqual(tellsEvents.includes(path) ? [own, own] : [own]);
  });

  it.each(['whoami', 'list_users', 'list_policies', 'list_activities'])(
    '%s by a sub-organization’s own key does not look at its parent',
    async (path) => {
      await furnished.child.query(path);
      expect(streamsRead()).toEqual([organizationStream(furnished.child.organizationId)]);
    },
  );

  it.each(['whoami', 'list_users', 'list_policies', 'list_activities'])(
    '%s by a key that only the parent has looks at both',
    async (path) => {
      const { organizationId } = furnished.child;
      await coordinator.clientFor(coordinator.client.key, organizationId).query(path);
      expect(streamsRead()).toEqual([organizationId, coordinator.organizationId].map(organizationStream));
    },
  );
});
