import { emptyOrganization } from '../../../src/domain/organization/organization.js';
import { nothing, put, remove } from '../../../src/domain/organization/slices.js';
import { keptState } from '../../../src/audit/timeline/fold-to.js';

const tag = (tagId: string) => ({ tagId, tagName: tagId, createdAt: 0, updatedAt: 0 });

test('what one organization has, no other has, though they share what is empty', () => {
  const [one, other] = [emptyOrganization(), emptyOrganization()];
  expect(one.userTags).toBe(other.userTags);
  put(one, 'userTags', 'a', tag('a'));
  put(one, 'features', 'FEATURE_NAME_WEBHOOK', 'x');
  expect([one.userTags.size, one.features.size]).toEqual([1, 1]);
  expect([other.userTags.size, other.features.size, nothing.size]).toEqual([0, 0, 0]);
  expect(one.policies).toBe(nothing);
});

test('a state that was kept stays as it is, also where it was empty', () => {
  const organization = structuredClone(emptyOrganization());
  const kept = keptState(organization);
  put(organization, 'userTags', 'a', tag('a'));
  put(organization, 'userTags', 'b', tag('b'));
  expect([organization.userTags.size, kept.userTags.size]).toEqual([2, 0]);
  const later = keptState(organization);
  remove(organization, 'userTags', 'a');
  expect([...later.userTags.keys()]).toEqual(['a', 'b']);
});

test('a slice that has nothing left takes no memory of its own again', () => {
  const organization = emptyOrganization();
  put(organization, 'userTags', 'a', tag('a'));
  put(organization, 'userTags', 'b', tag('b'));
  const before = organization.userTags;
  remove(organization, 'userTags', 'unknown');
  remove(organization, 'userTags', 'a');
  expect(organization.userTags).toBe(before);
  expect([...organization.userTags.keys()]).toEqual(['b']);
  remove(organization, 'userTags', 'b');
  expect(organization.userTags).toBe(nothing);
  remove(organization, 'userTags', 'b');
  expect(organization.userTags).toBe(nothing);
});

test('what all share cannot be written to, whatever the compiler is told', () => {
  const shared = emptyOrganization().users as Map<unknown, unknown>;
  expect(() => shared.set('user', {})).toThrow('shared by all organizations');
  expect(() => new Map(shared)).not.toThrow();
  expect([...shared]).toEqual([]);
});
