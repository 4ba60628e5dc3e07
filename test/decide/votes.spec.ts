import { p256 } from '@noble/curves/nist.js';
import { fingerprintOf } from '../../src/stamps/fingerprint.js';
import { ReadFirst, type DecisionContext } from '../../src/decide/decision-context.js';
import { rightsOf } from '../../src/decide/rights.js';
import type { OpenActivity } from '../../src/domain/organization/open-activities.js';
import type { Organization } from '../../src/domain/organization/organization.js';
import { Meter, Steps } from '../../src/domain/steps.js';
import { CoordinatorError } from '../../src/domain/errors.js';
import {
  BareCoordinator,
  organizationId,
  type BareOptions,
  type Member,
  type Stamped,
} from '../coordinator/bare-coordinator.js';
import { SeededPasskey } from '../coordinator/seeded-passkey.js';

const rename = 'ACTIVITY_TYPE_UPDATE_USER_NAME';
const approve = 'ACTIVITY_TYPE_APPROVE_ACTIVITY';
const approvalLifeMs = 24 * 60 * 60 * 1000;
const reject = 'ACTIVITY_TYPE_REJECT_ACTIVITY';

let coordinator: BareCoordinator;
let ann: Member, bob: Member, eve: Member;
let fingerprint: string, activityId: string;

/** Ann has asked for something that takes three approvals of anybody. */
async function begin(options: BareOptions = {}): Promise<void> {
  coordinator = await BareCoordinator.start(options);
  ann = await coordinator.createUser('Ann');
  bob = await coordinator.createUser('Bob');
  eve = await coordinator.createUser('Eve');
  await coordinator.createPolicy({ condition: "activity.resource == 'USER'", consensus: 'approvers.count() >= 3' });
  const asked = await coordinator.submit(ann.key, rename, { userId: ann.userId, userName: 'Anna' });
  expect(asked.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
  ({ fingerprint, id: activityId } = asked);
}

beforeEach(() => begin());
afterEach(() => coordinator.close());

const vote = (by: { readonly key: Stampable }, type = approve) => coordinator.submit(by.key, type, { fingerprint });
type Stampable = Parameters<BareCoordinator['stamp']>[0];

const asRoot = (type: string, parameters: object) => coordinator.submit(coordinator.root.key, type, parameters);

async function refused(request: Promise<unknown>): Promise<[string, string]> {
  try {
    await request;
  } catch (error) {
    if (error instanceof CoordinatorError) return [error.code, error.message];
    throw error;
  }
  throw new Error('not refused');
}

async function votesCast(): Promise<number> {
  const { organization } = await coordinator.loader.load(organizationId);
  return organization.openActivities.get(activityId)?.votes.length ?? 0;
}

describe('a vote', () => {
  it('counts with the others, the last one that is needed completes', async () => {
    expect((await vote(bob)).status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    const { status, result, votes } = await vote(eve);
    expect([status, result]).toEqual(['ACTIVITY_STATUS_COMPLETED', { updateUserNameResult: { userId: ann.userId } }]);
    expect(votes.map(({ userId }) => userId)).toEqual([ann.userId, bob.userId, eve.userId]);
  });

  it('is refused from a key that is nobody’s', async () => {
    const [code] = await refused(vote({ key: coordinator.newKey() }));
    expect([code, await votesCast()]).toEqual(['UNAUTHENTICATED', 1]);
  });

  it('of one user through two credentials counts once', async () => {
    const second = coordinator.newKey();
    const apiKeys = [{ apiKeyName: 'second', publicKey: second.publicKey, curveType: second.curve }];
    await asRoot('ACTIVITY_TYPE_CREATE_API_KEYS_V2', { userId: bob.userId, apiKeys });
    await vote(bob);
    expect(await refused(vote({ key: second }))).toEqual([
      'FAILED_PRECONDITION',
      `user \`${bob.userId}\` has already approved activity \`${activityId}\``,
    ]);
    expect(await refused(vote(ann))).toEqual(['FAILED_PRECONDITION', expect.stringContaining('already approved')]);
    expect(await votesCast()).toBe(2);
  });

  it('in the other form of its ECDSA signature is the same vote', async () => {
    const request = coordinator.stamp(bob.key, approve, { fingerprint });
    await coordinator.send(request);
    const other = malleated(request);
    expect(other.headers).not.toEqual(request.headers);
    const { activity } = await coordinator.send(other);
    expect([activity.id, activity.status, await votesCast()]).toEqual([
      activityId,
      'ACTIVITY_STATUS_CONSENSUS_NEEDED',
      2,
    ]);
  });

  it('in the very bytes of another voter is a vote of its own', async () => {
    const request = coordinator.stamp(bob.key, approve, { fingerprint });
    await coordinator.send(request);
    const { activity } = await coordinator.send(coordinator.stampAgain(eve, request.path, request.body));
    expect(activity.status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect(new Set(activity.votes.map(({ id }) => id)).size).toBe(3);
  });

  it('can be given by sending the submitted bytes with a stamp of one’s own', async () => {
    const request = coordinator.stamp(ann.key, rename, { userId: ann.userId, userName: 'Annabel' });
    const { activity } = await coordinator.send(request);
    const byBob = await coordinator.send(coordinator.stampAgain(bob, request.path, request.body));
    expect([byBob.activity.id, byBob.activity.votes.length]).toEqual([activity.id, 2]);
    const again = await coordinator.send(coordinator.stampAgain(bob, request.path, request.body));
    expect(again.activity.votes).toHaveLength(2);
  });

  it('in a long body counts as long as all but the first have 262 144 characters together', async () => {
    const short = coordinator.stamp(ann.key, rename, { userId: ann.userId, userName: 'Annabel' });
    // The same request, with room between its parts.
    const padded = (characters: number) => short.body.replace('{', '{' + ' '.repeat(characters - short.body.length));
    const long = coordinator.stampAgain(ann, short.path, padded(150_000));
    const { activity } = await coordinator.send(long);
    const byBob = await coordinator.send(coordinator.stampAgain(bob, long.path, long.body));
    expect(byBob.activity.votes).toHaveLength(2);
    const tooMuch = coordinator.stampAgain(eve, long.path, long.body);
    expect(await refused(coordinator.send(tooMuch))).toEqual([
      'RESOURCE_EXHAUSTED',
      'the votes on an activity after the first may have 262144 characters in total: they have 150000, and this body has 150000; ' +
        `send approve_activity with the fingerprint of activity \`${activity.id}\` instead, which is short`,
    ]);
    const byEve = await coordinator.submit(eve.key, approve, { fingerprint: activity.fingerprint });
    expect(byEve.status).toBe('ACTIVITY_STATUS_COMPLETED');
  });

  it('of someone whose vote cannot count is refused, both ways', async () => {
    const only = `approvers.any(user, user.id == '${ann.userId}') && approvers.any(user, user.id == '${bob.userId}')`;
    const policyId = await coordinator.createPolicy({ condition: "activity.resource == 'POLICY'", consensus: only });
    const asked = await coordinator.submit(ann.key, 'ACTIVITY_TYPE_DELETE_POLICY', { policyId });
    for (const type of [approve, reject]) {
      const [code, message] = await refused(coordinator.submit(eve.key, type, { fingerprint: asked.fingerprint }));
      expect([code, message]).toEqual(['PERMISSION_DENIED', expect.stringContaining(`user \`${eve.userId}\` may not`)]);
    }
    const done = await coordinator.submit(bob.key, approve, { fingerprint: asked.fingerprint });
    expect(done.status).toBe('ACTIVITY_STATUS_COMPLETED');
  });

  it('on an activity of another organization finds nothing', async () => {
    const [code, message] = await refused(
      coordinator.submit(bob.key, approve, { fingerprint: `sha256:${'0'.repeat(64)}` }),
    );
    expect([code, message]).toEqual(['NOT_FOUND', expect.stringContaining('no activity found with fingerprint')]);
  });

  it('on a vote finds nothing: only activities can be voted on', async () => {
    const request = coordinator.stamp(bob.key, approve, { fingerprint });
    await coordinator.send(request);
    await coordinator.projected();
    const ofVote = fingerprintOf(Buffer.from(request.body));
    expect((await refused(coordinator.submit(eve.key, approve, { fingerprint: ofVote })))[0]).toBe('NOT_FOUND');
    expect(await votesCast()).toBe(2);
  });

  it('with a passkey counts as any other, and its counter cannot go back', async () => {
    const passkey = new SeededPasskey('bob');
    const authenticators = [passkey.register('phone')];
    await asRoot('ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', { userId: bob.userId, authenticators });
    const earlier = coordinator.stamp(passkey, approve, { fingerprint });
    expect((await vote({ key: passkey })).votes).toHaveLength(2);
    const [code, message] = await refused(coordinator.send(earlier));
    expect([code, message]).toEqual(['UNAUTHENTICATED', expect.stringContaining('counter')]);
  });
});

describe('a rejection', () => {
  it('ends the activity: nobody can approve it any more, nor reject it again', async () => {
    await vote(bob);
    expect((await vote(eve, reject)).status).toBe('ACTIVITY_STATUS_REJECTED');
    for (const [voter, type] of [
      [eve, approve],
      [bob, reject],
      [coordinator.root, approve],
    ] as const) {
      expect(await refused(vote(voter, type))).toEqual([
        'FAILED_PRECONDITION',
        expect.stringContaining(`\`${activityId}\` is not waiting for votes`),
      ]);
    }
  });

  it('by a passkey uses a count up for whoever decides next, before any read model has seen it', async () => {
    const passkey = new SeededPasskey('bob');
    const authenticators = [passkey.register('phone')];
    await asRoot('ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', { userId: bob.userId, authenticators });
    const earlier = coordinator.stamp(passkey, rename, { userId: bob.userId, userName: 'Robert' });
    expect((await vote({ key: passkey }, reject)).status).toBe('ACTIVITY_STATUS_REJECTED');
    const [code, message] = await refused(coordinator.send(earlier));
    expect([code, message]).toEqual(['UNAUTHENTICATED', expect.stringContaining('counter')]);
  });

  it('is open to everyone who has approved, including the submitter', async () => {
    expect((await vote(ann, reject)).status).toBe('ACTIVITY_STATUS_REJECTED');
  });
});

describe('a vote on a finished activity', () => {
  it('is refused as such also before any read model has seen the end', async () => {
    await coordinator.close();
    await begin({ readModels: false });
    await vote(bob);
    await vote(eve);
    const [code, message] = await refused(vote(coordinator.root));
    expect([code, message]).toEqual(['FAILED_PRECONDITION', expect.stringContaining('is not waiting for votes')]);
  });
});

describe('everything is asked again at every vote', () => {
  it('approvals lapse after a day to the millisecond, and can be given again', async () => {
    coordinator.clock.advance(1_000);
    await vote(bob);
    coordinator.clock.advance(approvalLifeMs - 1_000);
    // The submitter's is a day old now, Bob's is a second younger.
    const late = await vote(eve);
    expect([late.status, late.votes.length]).toEqual(['ACTIVITY_STATUS_CONSENSUS_NEEDED', 3]);
    const renewed = await vote(ann);
    expect([renewed.status, renewed.votes.length]).toEqual(['ACTIVITY_STATUS_COMPLETED', 4]);
  });

  it('approvals count until the last millisecond of their day', async () => {
    coordinator.clock.advance(approvalLifeMs - 1);
    await vote(bob);
    expect((await vote(eve)).status).toBe('ACTIVITY_STATUS_COMPLETED');
  });

  it('an approval with a removed credential, or of a deleted user, no longer counts', async () => {
    await vote(bob);
    const { organization } = await coordinator.loader.load(organizationId);
    const { apiKeyId } = organization.users.get(bob.userId)!.apiKeys[0]!;
    await asRoot('ACTIVITY_TYPE_DELETE_API_KEYS', { userId: bob.userId, apiKeyIds: [apiKeyId] });
    expect((await refused(vote(bob)))[0]).toBe('UNAUTHENTICATED');
    expect((await vote(eve)).status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    const joe = await coordinator.createUser('Joe');
    await asRoot('ACTIVITY_TYPE_DELETE_USERS', { userIds: [eve.userId] });
    expect((await vote(joe)).status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    const kim = await coordinator.createUser('Kim');
    expect((await vote(kim)).status).toBe('ACTIVITY_STATUS_COMPLETED');
  });

  it('a policy that forbids it today refuses the vote and leaves the activity as it is', async () => {
    await vote(bob);
    const policyId = await coordinator.createPolicy({ effect: 'EFFECT_DENY' });
    const [code] = await refused(vote(eve));
    expect([code, await votesCast()]).toEqual(['PERMISSION_DENIED', 2]);
    await asRoot('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
    expect((await vote(eve)).status).toBe('ACTIVITY_STATUS_COMPLETED');
  });

  it('a vote that completes the consensus of a DENY is refused, and those of others are taken', async () => {
    await coordinator.createPolicy({
      effect: 'EFFECT_DENY',
      consensus: `approvers.any(user, user.id == '${eve.userId}')`,
    });
    const before = await votesCast();
    expect((await refused(vote(eve)))[0]).toBe('PERMISSION_DENIED');
    expect(await votesCast()).toBe(before);
    expect((await vote(bob)).status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    expect((await refused(vote(eve)))[0]).toBe('PERMISSION_DENIED');
  });

  it('without the policy that it waited for, nobody but the root quorum could help, which was not asked', async () => {
    const { organization } = await coordinator.loader.load(organizationId);
    const [policyId] = [...organization.policies.keys()];
    await asRoot('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
    expect((await refused(vote(bob)))[0]).toBe('PERMISSION_DENIED');
    expect(await votesCast()).toBe(1);
  });

  it('what is no longer possible fails with the last vote, and says why', async () => {
    const asked = await coordinator.submit(ann.key, rename, { userId: eve.userId, userName: 'Eva' });
    const joe = await coordinator.createUser('Joe');
    await coordinator.submit(bob.key, approve, { fingerprint: asked.fingerprint });
    await asRoot('ACTIVITY_TYPE_DELETE_USERS', { userIds: [eve.userId] });
    const { status, failure, result } = await coordinator.submit(joe.key, approve, { fingerprint: asked.fingerprint });
    expect([status, result, failure]).toEqual([
      'ACTIVITY_STATUS_FAILED',
      {},
      { code: 5, message: expect.stringContaining(`no user \`${eve.userId}\``) as string, details: [] },
    ]);
  });

  it('canApprove and canReject predict which votes are accepted, for every user, before and after', async () => {
    const rights = async () => {
      const { organization } = await coordinator.loader.load(organizationId);
      return [ann, bob, eve].map(({ userId }) => coordinator.driver.rights.of(organization, activityId, userId));
    };
    const may = { canApprove: true, canReject: true };
    const hasApproved = { canApprove: false, canReject: true };
    const mayNothing = { canApprove: false, canReject: false };
    expect(await rights()).toEqual([hasApproved, may, may]);
    await vote(bob);
    expect(await rights()).toEqual([hasApproved, hasApproved, may]);
    coordinator.clock.advance('24h');
    expect(await rights()).toEqual([may, may, may]);
    await vote(eve, reject);
    expect(await rights()).toEqual([mayNothing, mayNothing, mayNothing]);
  });
});

/** The same request with (r, n - s) for (r, s): as valid, and another text. */
function malleated(request: Stamped): Stamped {
  const stamp = JSON.parse(Buffer.from(request.headers['x-stamp']!, 'base64url').toString()) as { signature: string };
  const { r, s } = p256.Signature.fromHex(stamp.signature, 'der');
  const signature = new p256.Signature(r, p256.Point.Fn.ORDER - s).toHex('der');
  const header = Buffer.from(JSON.stringify({ ...stamp, signature })).toString('base64url');
  return { ...request, headers: { 'x-stamp': header } };
}

describe('what a user may do about an activity', () => {
  /** Signing something long takes Ann and Bob. */
  async function signing(): Promise<{ organization: Organization; open: OpenActivity }> {
    const both = [ann, bob].map(({ userId }) => `approvers.any(user, user.id == '${userId}')`).join(' && ');
    await coordinator.createPolicy({ condition: "activity.action == 'SIGN'", consensus: both });
    const { result } = await asRoot('ACTIVITY_TYPE_CREATE_PRIVATE_KEYS_V2', {
      privateKeys: [
        {
          privateKeyName: 'signing',
          curve: 'CURVE_SECP256K1',
          privateKeyTags: [],
          addressFormats: ['ADDRESS_FORMAT_ETHEREUM'],
        },
      ],
    });
    const [{ privateKeyId }] = (result as { createPrivateKeysResultV2: { privateKeys: [{ privateKeyId: string }] } })
      .createPrivateKeysResultV2.privateKeys;
    const payload = JSON.stringify({
      types: { EIP712Domain: [{ name: 'name', type: 'string' }], Note: [{ name: 'text', type: 'string' }] },
      primaryType: 'Note',
      domain: { name: 'app' },
      message: { text: 'x'.repeat(40_000) },
    });
    const asked = await coordinator.submit(ann.key, 'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', {
      signWith: privateKeyId,
      payload,
      encoding: 'PAYLOAD_ENCODING_EIP712',
      hashFunction: 'HASH_FUNCTION_NO_OP',
    });
    expect(asked.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    // As after a restart: nothing has been read.
    const { organization } = structuredClone(await coordinator.loader.load(organizationId));
    return { organization, open: organization.openActivities.get(asked.id)! };
  }

  it('is told to whom nothing lets vote, and to who has approved, without that anything is read', async () => {
    const { organization, open } = await signing();
    const { registry, clock } = coordinator;
    const basis: DecisionContext = { registry, organization, revision: 0, now: clock.now(), reading: new Steps(100) };
    expect(rightsOf(basis, open, eve.userId)).toEqual({ canApprove: false, canReject: false });
    expect(rightsOf(basis, open, ann.userId)).toEqual({ canApprove: false, canReject: true });
    const { reading: _, ...readAtOnce } = basis;
    // A policy names Bob. Members of the root quorum may vote whoever submitted it.
    const voters = [bob, coordinator.root];
    for (const { userId } of voters) expect(() => rightsOf(basis, open, userId)).toThrow(ReadFirst);
    for (const { userId } of voters) {
      expect(rightsOf(readAtOnce, open, userId)).toEqual({ canApprove: true, canReject: true });
    }
  });

  it('is told with what the request has left of its steps', async () => {
    const { organization } = await coordinator.loader.load(organizationId);
    const { driver } = coordinator;
    const steps = new Meter();
    expect(driver.rights.of(organization, activityId, bob.userId, steps)).toEqual({
      canApprove: true,
      canReject: true,
    });
    const { spent } = steps;
    expect(spent).toBeGreaterThan(0);
    // What the decision took is taken from the same.
    steps.note(steps.budget - spent * 1.5);
    expect(driver.rights.of(organization, activityId, bob.userId, steps)).toEqual({
      canApprove: false,
      canReject: false,
      notComputed: true,
    });
    const stamped = coordinator.stamp(bob.key, 'ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint });
    const answer = await coordinator.execute(stamped);
    expect(answer.meter.spent).toBeGreaterThan(spent);
  });

  it('and what those of one page wait for takes 200 000 steps besides, as many as are told by then', async () => {
    // Where order matters every sequence of voters is another, so telling who could still matter takes long.
    const consensus = `approvers[0].id == '${ann.userId}' && approvers.count() >= 4`;
    await coordinator.createUser('Fourth');
    await coordinator.createPolicy({ condition: "activity.type == 'ACTIVITY_TYPE_CREATE_USER_TAG'", consensus });
    const ids: string[] = [];
    for (let at = 0; at < 15; at++) {
      const tag = { userTagName: `tag ${at}`, userIds: [] };
      ids.push((await coordinator.submit(ann.key, 'ACTIVITY_TYPE_CREATE_USER_TAG', tag)).id);
    }
    const { organization } = await coordinator.loader.load(organizationId);
    const meter = new Meter();
    const page = coordinator.driver.rights.onPage(organization, ids, bob.userId, meter, []);
    const { spent } = meter;
    const rows = ids.map((id) => page(id));
    expect(rows.map(({ canApprove }) => canApprove)).toEqual(ids.map(() => true));
    expect(rows.map(({ waitsForNotComputed = false }) => waitsForNotComputed)).toContain(true);
    expect(rows[0]!.waitsFor).toBeDefined();
    expect(meter.spent - spent).toBeGreaterThan(150_000);
    expect(meter.spent - spent).toBeLessThan(230_000);
  });

  it('and what each policy says of it now is on the meter of the question, and not told once that is used up', async () => {
    const { organization } = await coordinator.loader.load(organizationId);
    const { driver } = coordinator;
    const said = (meter: Meter) => driver.rights.saysNow(organization, activityId, bob.userId, meter, []);
    const meter = new Meter();
    expect(said(meter)).toHaveLength(organization.policies.size);
    expect(meter.spent).toBeGreaterThan(0);
    const spent = new Meter();
    spent.note(spent.budget);
    expect(said(spent)).toBeUndefined();
  });
});
