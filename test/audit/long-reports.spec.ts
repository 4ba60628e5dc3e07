import { activities } from '../../src/activities/index.js';
import { buildRegistry } from '../../src/decide/registry.js';
import { CoordinatorError } from '../../src/domain/errors.js';
import { emptyOrganization, evolve } from '../../src/domain/organization/organization.js';
import { WhatIfReport } from '../../src/audit/simulate/what-if-report.js';
import type { Came } from '../../src/audit/simulate/branch.js';
import { ForkReport } from '../../src/audit/simulate/fork-report.js';
import { anOrganization, aUser } from '../activities/facts.js';
import { id } from '../activities/given.js';

const organizationId = id(700);

const refused = (message: string): Came => ({ kind: 'refused', error: new CoordinatorError('NOT_FOUND', message) });
const requested = {
  revision: 1,
  at: 0,
  activityId: id(1),
  activityType: 'ACTIVITY_TYPE_CREATE_USER_TAG',
  userId: id(100),
};

/** An organization with so many users. */
function withUsers(count: number) {
  const organization = emptyOrganization();
  evolve(organization, anOrganization(), 0);
  for (let index = 0; index < count; index++) evolve(organization, aUser(id(100 + index)), 0);
  return organization;
}

test('a fork tells of a thousand divergences, and of fifty changes that follow from each', () => {
  const [before, after] = [withUsers(1), withUsers(61)];
  const report = new ForkReport(organizationId, 0);
  for (let count = 0; count < 1_003; count++) {
    const applied = report.compare(requested, refused('one'), refused('other'), [before, before]);
    applied(count === 0 ? [before, after] : [before, before]);
  }
  const { divergences, more } = report.ended(before, before, 1);
  expect([divergences.length, more]).toEqual([1_000, 3]);
  expect(divergences[0]!.changes).toHaveLength(51);
  expect(divergences[0]!.changes.at(-1)).toBe('and more');
  expect(divergences[1]!.changes).toEqual([]);
});

test('a what-if tells of a thousand divergences of a kind, and of two hundred differences at the end', () => {
  const [before, after] = [withUsers(1), withUsers(204)];
  const report = new WhatIfReport({ registry: buildRegistry(activities), now: 0, meter: undefined, room: undefined });
  for (let count = 0; count < 1_003; count++) {
    report.compare(requested, refused('one'), refused('other'), [before, before], () => refused('one'));
  }
  const told = report.ended(organizationId, { original: before, branch: after, last: 1, isCut: false }, []);
  expect([told.divergences.length, told.more]).toEqual([1_000, 3]);
  expect([told.differences.length, told.moreDifferences]).toEqual([200, 3]);
});
