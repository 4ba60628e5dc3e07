import fc from 'fast-check';
import { organizationStream, type OrganizationEvent } from '../../src/domain/organization/organization.js';
import { OrganizationLoader } from '../../src/ledger/load-organization.js';
import type { ActivityStatus, Vote } from '../../src/domain/activity/events.js';
import { activityAt, activityStatus, step, type ActivitySnapshot } from '../../src/domain/activity/machine.js';
import { CoordinatorError } from '../../src/domain/errors.js';
import type { User } from '../../src/domain/organization/users.js';
import { BrokenChain, GENESIS_HASH, verifyChain } from '../../src/ledger/chain.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { projectInMemory } from '../../src/read-models/projecting.js';
import { readModels } from '../../src/read-models/index.js';
import { organizationId, runnerOn, type BareCoordinator } from '../coordinator/bare-coordinator.js';
import { redecide } from '../../src/audit/verify/decide-again.js';
import { play, stories, type Played } from '../coordinator/story.js';
import { verifyVote } from '../../src/audit/verify/verify-vote.js';
import { isLong } from '../long.js';

/** For a longer campaign: `STORIES=500 STORIES_SEED=7`. */
const runs = Number(process.env['STORIES'] ?? (isLong ? 100 : 12));
const seed = Number(process.env['STORIES_SEED'] ?? 45);

/** What the stories have had in them, so that nothing is proved of an empty set. */
const seen = new Map<string, number>();
const note = (what: string): void => void seen.set(what, (seen.get(what) ?? 0) + 1);

describe(`${runs} random stories (STORIES_SEED=${seed})`, () => {
  it(
    'can be told again from their events alone, in every respect',
    async () => {
      await fc.assert(
        fc.asyncProperty(stories, fc.nat(), async (story, choice) => {
          const played = await play(story);
          try {
            const { coordinator } = played;
            const events = await coordinator.events();
            await coordinator.projected();
            answersAreInTheStore(played, events);
            await replayGivesTheFoldedState(coordinator);
            everyDecisionComesOutTheSame(coordinator, events);
            chainHoldsAndCatchesEveryChange(events, choice);
            await rebuiltReadModelsAreTheLiveOnes(coordinator);
            await readModelsAgreeWithTheFoldedState(coordinator);
            await everySignatureVerifiesAgain(events);
            await nothingSecretIsRecorded(played);
            everyStatusIsTheMachines(coordinator, events);
          } finally {
            await played.coordinator.close();
          }
        }),
        { numRuns: runs, seed, endOnFailure: true },
      );
    },
    60_000 + 2_000 * runs,
  );

  it('had everything in them that they should prove', () => {
    const least = {
      ActivityApproved: 40,
      ActivityRejected: 10,
      ActivityCompleted: 100,
      'approved again after a day': 1,
      ActivityFailed: 2,
      'vote SIGNATURE_SCHEME_TK_API_P256': 50,
      'vote SIGNATURE_SCHEME_TK_API_ED25519': 20,
      'vote SIGNATURE_SCHEME_TK_API_SECP256K1': 20,
      'vote SIGNATURE_SCHEME_TK_WEBAUTHN': 10,
      AuthenticatorCreated: 20,
      UserDeleted: 5,
      RootQuorumUpdated: 5,
      'completed by votes': 20,
      'still open': 20,
      'refused PERMISSION_DENIED': 50,
      'refused FAILED_PRECONDITION': 5,
      'refused UNAUTHENTICATED': 5,
      'by policy': 5,
      'by own-credentials': 1,
      'error in a policy': 10,
    };
    const counts = Object.fromEntries(Object.keys(least).map((what) => [what, seen.get(what) ?? 0]));
    // Few stories need not have what is rare in them.
    const scale = Math.min(1, seed === 45 ? runs / 25 : runs / 100);
    for (const [what, count] of Object.entries(least)) {
      expect([what, counts[what]! >= Math.floor(count * scale), counts]).toEqual([what, true, counts]);
    }
  });
});

/** What was answered is what is recorded; what was refused has left nothing. */
function answersAreInTheStore({ told }: Played, events: readonly RecordedEvent[]): void {
  const fingerprints = new Map<string, string>();
  const submissions = new Map<string, string>();
  for (const event of events.map(typed)) {
    note(event.type);
    if (event.type === 'ActivitySubmitted') {
      expect(submissions.has(event.data.fingerprint)).toBe(false);
      submissions.set(event.data.fingerprint, event.data.activityId);
    }
    if ('vote' in event.data) {
      note(`vote ${event.data.vote.scheme}`);
      fingerprints.set(event.data.vote.fingerprint, event.data.activityId);
    }
  }
  const accepted = new Set<string>();
  for (const { request, answer } of told) {
    if (answer.status === 'fulfilled') {
      const { id } = answer.value.activity;
      expect([...submissions.values()]).toContain(id);
      accepted.add(request.body);
    }
  }
  const messages = new Set(
    events.flatMap(({ data }) => ((data as { vote?: Vote }).vote ? [(data as { vote: Vote }).vote.message] : [])),
  );
  for (const { request, answer } of told) {
    if (answer.status === 'fulfilled') continue;
    if (!(answer.reason instanceof CoordinatorError)) throw answer.reason;
    note(`refused ${answer.reason.code}`);
    if (!accepted.has(request.body)) expect(messages.has(request.body)).toBe(false);
  }
}

async function replayGivesTheFoldedState({ store, loader }: BareCoordinator): Promise<void> {
  const nothing = () => undefined;
  const metrics = {
    decided: nothing,
    spent: nothing,
    appended: nothing,
    appendFailed: nothing,
    conflict: nothing,
    folded: nothing,
  };
  const replayed = await new OrganizationLoader(store, metrics).load(organizationId);
  const live = await loader.load(organizationId);
  expect({ ...live.organization }).toStrictEqual({ ...replayed.organization });
  expect([live.revision, live.hash, live.position]).toEqual([replayed.revision, replayed.hash, replayed.position]);
  for (const _ of live.organization.openActivities) note('still open');
}

function everyDecisionComesOutTheSame({ registry }: BareCoordinator, events: readonly RecordedEvent[]): void {
  const made = redecide(events, registry);
  expect(made.length).toBeGreaterThanOrEqual(4);
  for (const { recorded, again, outcome, outcomeAgain } of made) {
    expect({ outcome: outcomeAgain, events: again }).toStrictEqual({ outcome, events: recorded });
  }
}

/** Any change of one byte of any event, anywhere in it, is found at the latest when the next event is reached. */
function chainHoldsAndCatchesEveryChange(events: readonly RecordedEvent[], choice: number): void {
  expect(events.reduce(verifyChain, GENESIS_HASH)).toMatch(/^[0-9a-f]{64}$/);
  for (const round of [1, 2, 3]) {
    const at = (choice * round) % events.length;
    const { stream, revision, id, type, data, metadata, position } = events[at]!;
    const text = JSON.stringify({ stream, revision, id, type, data, metadata });
    const place = (choice * 7 + round * 13) % text.length;
    for (const byte of ['0', 'z', ' ', '"']) {
      const changed = parsed(text.slice(0, place) + byte + text.slice(place + 1));
      if (changed === undefined || JSON.stringify(changed) === text) continue;
      const forged = events.with(at, { ...(changed as RecordedEvent), position });
      note('forgery');
      expect(() => forged.reduce(verifyChain, GENESIS_HASH)).toThrow(BrokenChain);
    }
  }
  const without = events.toSpliced(choice % (events.length - 1), 1);
  expect(() => without.reduce(verifyChain, GENESIS_HASH)).toThrow(BrokenChain);
}

function parsed(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

async function rebuiltReadModelsAreTheLiveOnes({ store, projecting }: BareCoordinator): Promise<void> {
  const rebuilt = projectInMemory();
  const runner = runnerOn(store, rebuilt);
  runner.start();
  await runner.passed((await store.head())!, 5_000);
  expect(runner.failures()).toEqual([]);
  for (const table of readModels.flatMap(({ tables }) => tables)) {
    const rows = (of: typeof rebuilt) =>
      of.rows
        .all(`SELECT * FROM ${table}`)
        .map((row) => JSON.stringify(row))
        .toSorted();
    expect([table, rows(projecting)]).toEqual([table, rows(rebuilt)]);
  }
  await runner.close();
  await rebuilt.close();
}

/** Two readings of the same history: they may differ in what they keep, and in nothing that both keep. */
async function readModelsAgreeWithTheFoldedState({ projecting: { rows }, loader }: BareCoordinator): Promise<void> {
  const { organization } = await loader.load(organizationId);
  const { users, policies, userTags, name, rootQuorum, features } = organization;
  const recordsIn = <Kept>(table: string) =>
    rows
      .all(`SELECT doc FROM ${table} WHERE organization_id = ? ORDER BY created`, organizationId)
      .map(({ doc }) => JSON.parse(String(doc)) as Kept);
  // The signature counter serves decisions only.
  const withoutCounter = (user: User) => ({
    ...user,
    authenticators: user.authenticators.map(({ signCount: _counter, ...one }) => one),
  });
  expect(recordsIn<User>('users').map(withoutCounter)).toEqual([...users.values()].map(withoutCounter));
  expect(recordsIn('policies')).toEqual([...policies.values()]);
  expect(recordsIn('user_tags')).toEqual([...userTags.values()]);
  const row = rows.get('SELECT doc FROM organizations WHERE organization_id = ?', organizationId);
  const listed = [...features].map(([feature, value]) => ({ name: feature, value }));
  const stored = JSON.parse(String(row?.['doc'])) as { features: { name: string }[] };
  expect({ ...stored, features: stored.features.toSorted((a, b) => a.name.localeCompare(b.name)) }).toMatchObject({
    name,
    rootQuorum,
    features: listed.toSorted((a, b) => a.name.localeCompare(b.name)),
  });
}

async function everySignatureVerifiesAgain(events: readonly RecordedEvent[]): Promise<void> {
  for (const event of events.map(typed)) {
    if (!('vote' in event.data)) continue;
    await verifyVote(event.data.vote);
  }
}

async function nothingSecretIsRecorded({ coordinator, secrets }: Played): Promise<void> {
  const streams = [organizationStream(organizationId), `denials-${organizationId}`];
  const recorded = (await Promise.all(streams.map((stream) => coordinator.events(stream)))).flat();
  const text = JSON.stringify(recorded.map(({ data, metadata }) => [data, metadata]));
  expect(secrets.length).toBeGreaterThan(4);
  for (const secret of secrets) {
    const bytes = Buffer.from(secret, 'hex');
    for (const form of [
      secret,
      secret.toUpperCase(),
      bytes.toString('base64url'),
      bytes.toString('base64').slice(0, -1),
    ]) {
      expect(text.includes(form)).toBe(false);
    }
  }
}

/** Walks the machine along the events of each activity: each status recorded, and the last one in the read model. */
function everyStatusIsTheMachines({ projecting }: BareCoordinator, events: readonly RecordedEvent[]): void {
  const machines = new Map<string, ActivitySnapshot>();
  const approvals = new Set<string>();
  for (const event of events.map(typed)) {
    const next = machineAfter(machines, event);
    if (!next || !('status' in event.data)) continue;
    machines.set(event.data.activityId, next);
    if (event.type === 'ActivitySubmitted' || event.type === 'ActivityApproved') {
      const approval = `${event.data.activityId} ${event.data.vote.userId}`;
      if (approvals.has(approval)) note('approved again after a day');
      approvals.add(approval);
    }
    expect([event.type, event.data.status]).toEqual([event.type, activityStatus(next)]);
    expect(event.data.status).not.toBe('ACTIVITY_STATUS_CREATED');
  }
  const rows = projecting.rows.all('SELECT activity_id, status FROM activities');
  const statuses = new Map(rows.map((row) => [String(row['activity_id']), String(row['status']) as ActivityStatus]));
  expect(statuses).toEqual(new Map([...machines].map(([id, snapshot]) => [id, activityStatus(snapshot)])));
  expect([...statuses.values()]).not.toContain('ACTIVITY_STATUS_PENDING');
}

function machineAfter(
  machines: ReadonlyMap<string, ActivitySnapshot>,
  event: OrganizationEvent,
): ActivitySnapshot | undefined {
  const { type, data } = event;
  const machine = 'activityId' in data ? machines.get(data.activityId) : undefined;
  const outcome = (decision: { outcome: string }) => (decision.outcome === 'allow' ? 'allow' : 'consensus-needed');
  switch (type) {
    case 'ActivitySubmitted': {
      const { vote, decision } = data;
      note(`by ${decision.decidedBy}`);
      if (decision.evaluations.some((one) => one.outcome === 'OUTCOME_ERROR')) note('error in a policy');
      const created = activityAt('created', { eligible: [], votes: [vote] });
      return step(created, { type: 'evaluated', outcome: outcome(decision) });
    }
    case 'ActivityApproved':
    case 'ActivityRejected': {
      const { userId } = data.vote;
      expect(machine?.value).toBe('consensusNeeded');
      const waiting = activityAt('consensusNeeded', { eligible: [userId], votes: [] });
      if (type === 'ActivityRejected') {
        // Who rejects a change about themselves leaves it waiting.
        const isAboutVoter = data.status === 'ACTIVITY_STATUS_CONSENSUS_NEEDED';
        if (isAboutVoter) note('rejected about oneself');
        return step(waiting, { type: 'reject', userId, isAboutVoter });
      }
      if (data.decision.outcome === 'allow') note('completed by votes');
      return step(step(waiting, { type: 'approve', userId }), { type: 'evaluated', outcome: outcome(data.decision) });
    }
    case 'ActivityCompleted':
      return step(machine!, { type: 'completed' });
    case 'ActivityFailed':
      return step(machine!, { type: 'failed' });
    default:
      return undefined;
  }
}

function typed({ type, data }: Pick<RecordedEvent, 'type' | 'data'>): OrganizationEvent {
  return { type, data } as OrganizationEvent;
}
