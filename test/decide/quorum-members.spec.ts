import { metered } from '../../src/decide/decision-context.js';
import { askedBySubmit, waitsFor } from '../../src/decide/explain.js';
import type { Organization } from '../../src/domain/organization/organization.js';
import { BareCoordinator, organizationId, type Member } from '../coordinator/bare-coordinator.js';

// A member's contacts and credentials are changed on the member's own authority, or the root quorum's, whatever policies allow.

const changeEmail = 'ACTIVITY_TYPE_UPDATE_USER_EMAIL';
const approve = 'ACTIVITY_TYPE_APPROVE_ACTIVITY';

let coordinator: BareCoordinator;
let ann: Member, bob: Member, carl: Member, eve: Member;

/** Ann, Bob and the root user are the quorum, of whom two decide; a policy lets Eve and somebody else change users. */
beforeEach(async () => {
  coordinator = await BareCoordinator.start();
  ann = await coordinator.createUser('Ann');
  bob = await coordinator.createUser('Bob');
  carl = await coordinator.createUser('Carl');
  eve = await coordinator.createUser('Eve');
  const consensus = `approvers.any(user, user.id == '${eve.userId}') && approvers.count() >= 2`;
  await coordinator.createPolicy({ condition: "activity.resource == 'USER'", consensus });
  const userIds = [coordinator.root.userId, ann.userId, bob.userId];
  await coordinator.submit(coordinator.root.key, 'ACTIVITY_TYPE_UPDATE_ROOT_QUORUM', { threshold: 2, userIds });
});
afterEach(() => coordinator.close());

const changed = (by: Member, whose: Member) =>
  coordinator.submit(by.key, changeEmail, { userId: whose.userId, userEmail: 'new@example.com' });

const organization = async (): Promise<Organization> => (await coordinator.loader.load(organizationId)).organization;

async function told(activityId: string, userId: string): Promise<string | undefined> {
  const folded = await organization();
  const open = folded.openActivities.get(activityId)!;
  const basis = { registry: coordinator.registry, organization: folded, revision: 0, now: coordinator.clock.now() };
  return waitsFor(basis, open, userId)?.text;
}

const approved = async (by: { readonly key: Member['key'] }, fingerprint: string, id: string) => {
  await coordinator.submit(by.key, approve, { fingerprint });
  return (await organization()).openActivities.get(id)?.status;
};
const emailOf = async ({ userId }: Member) => (await organization()).users.get(userId)!.userEmail;

test('a policy suffices for a user who is no member', async () => {
  const { id, fingerprint } = await changed(eve, eve);
  expect(await told(id, carl.userId)).not.toContain('who is affected');
  expect(await approved(carl, fingerprint, id)).toBeUndefined();
  expect(await emailOf(eve)).toBe('new@example.com');
});

test('for a member it waits when policies allow it, and says for whom; the member’s approval suffices', async () => {
  const { id, fingerprint } = await changed(eve, ann);
  expect(await approved(carl, fingerprint, id)).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
  expect(await told(id, ann.userId)).toContain('the approval of "Ann", who is affected');
  expect(await approved(ann, fingerprint, id)).toBeUndefined();
  expect(await emailOf(ann)).toBe('new@example.com');
});

test('another member alone does not suffice; two of the quorum do', async () => {
  const { id, fingerprint } = await changed(eve, ann);
  expect(await approved(bob, fingerprint, id)).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
  expect(await told(id, bob.userId)).toContain('the approval of "Ann", who is affected');
  expect(await approved(coordinator.root, fingerprint, id)).toBeUndefined();
  expect(await emailOf(ann)).toBe('new@example.com');
});

test('a member who asks for the own change waits for the policy only', async () => {
  const { status, id } = await changed(ann, ann);
  expect(status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
  expect(await told(id, ann.userId)).not.toContain('who is affected');
});

test('a question about a submit names the member, and nobody else', async () => {
  const folded = await organization();
  const basis = metered({
    registry: coordinator.registry,
    organization: folded,
    revision: 0,
    now: coordinator.clock.now(),
  });
  const key = folded.users.get(eve.userId)!.apiKeys[0]!;
  const { apiKeyId: id, credentialType: type, publicKey } = key;
  const voter = { userId: eve.userId, credential: { id, userId: eve.userId, type, publicKey } };
  const asked = (userId: string) =>
    askedBySubmit(basis, { type: changeEmail, intent: { userId, userEmail: 'x@example.com' } }, { publicKey }, voter);
  expect(asked(ann.userId).member).toBe(ann.userId);
  expect('member' in asked(eve.userId)).toBe(false);
});
