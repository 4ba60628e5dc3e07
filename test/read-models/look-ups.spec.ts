import { organizationStream } from '../../src/domain/organization/organization.js';
import { emptyTail, seal, type Fact } from '../../src/ledger/seal.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { ActivityIndex, ClaimIndex, CounterIndex, InstallationIndex } from '../../src/read-models/indexes.js';
import { createLogger } from '../../src/logging/logger.js';
import { Metrics } from '../../src/metrics/metrics.js';
import { projectInMemory } from '../../src/read-models/projecting.js';
import { ReadModelRunner } from '../../src/read-models/runner.js';
import { ManualClock } from '../../src/testing/deterministic.js';
import { id } from '../activities/given.js';

const [parentId, organizationId] = [id(1), id(2)];
const at = Date.UTC(2026, 0, 1);

const event = (type: string, data: object): Fact => ({
  type,
  data,
  metadata: { at, $correlationId: type, $causationId: type },
});

const recorded: readonly Fact[] = [
  event('OrganizationCreated', { organizationId, name: 'One', parentOrganizationId: parentId }),
  event('VerificationTokenUsed', { tokenId: 'token', usage: 'USAGE_TYPE_LOGIN', expiresAt: at + 3_600_000 }),
  event('UserCreated', { userId: id(3), userName: 'Ann', userEmail: 'ann@example.com', userTags: [] }),
];

/** What decisions ask of the rows of each model, over events at which one of them stops. */
async function stopped(table: string | undefined, more: readonly Fact[]) {
  const store = new InMemoryEventStore();
  const projecting = projectInMemory();
  const { rows } = projecting;
  if (table !== undefined)
    rows.run(`CREATE TRIGGER broken BEFORE INSERT ON ${table} BEGIN SELECT RAISE(ABORT, 'broken'); END`);
  const nothing = () => undefined;
  const runner = new ReadModelRunner(store, projecting, { projected: nothing, failed: nothing, interrupted: nothing });
  runner.start();
  const clock = new ManualClock(at);
  const founding = event('SubOrganizationCreated', {
    subOrganizationId: organizationId,
    name: 'One',
    initialEvents: [],
  });
  const append = (stream: string, facts: readonly Fact[]) =>
    store.append(stream, seal(stream, emptyTail, facts).events, 'no-stream');
  await append(organizationStream(parentId), [founding]);
  const { position } = await append(organizationStream(organizationId), [...recorded, ...more]);
  const claims = new ClaimIndex(runner, rows, clock);
  const index = new InstallationIndex(store, runner, rows, clock);
  const strict = { passkeyCounters: 'strict' } as const;
  const counters = new CounterIndex(store, runner, rows, strict, new Metrics(), createLogger('silent'));
  const email = { kind: 'EMAIL', value: 'ann@example.com' } as const;
  const asked: Readonly<Record<string, readonly (() => Promise<unknown>)[]>> = {
    'token-uses': [() => index.tokenUses('token')],
    claims: [
      () => index.homeOfContact(parentId, 'EMAIL', 'ann@example.com'),
      () => claims.whereItLeads(parentId, email, position),
      () => claims.keysOfCredentialId(parentId, 'credential', position),
      () => claims.knowsIssuer(parentId, 'https://issuer.example', position),
      () => counters.highest(parentId, { credentialId: 'credential', publicKey: 'key' }),
    ],
    activities: [() => new ActivityIndex(runner, rows).read(organizationId, id(9), position)],
  };
  return {
    asked,
    async close() {
      await runner.close();
      await projecting.close();
    },
  };
}

const notRecorded = event('ActivityCompleted', { activityId: id(8) });

test.each([
  ['token-uses', 'token_uses', []],
  ['claims', 'claim_organizations', []],
  ['sub-organizations', 'sub_organizations', []],
  ['activities', undefined, [notRecorded]],
])('once %s have stopped, nothing is answered from their rows, and the rest is', async (model, table, more) => {
  const { asked, close } = await stopped(table, more);
  const unavailable = {
    code: 'UNAVAILABLE',
    message: `read models have stopped (${model}): see the log of the server`,
  };
  for (const [name, questions] of Object.entries(asked)) {
    for (const ask of questions) {
      const answer = await ask().catch((error: unknown) => error);
      if (name === model) expect(answer).toMatchObject(unavailable);
      else if (name === 'activities') expect(answer).toMatchObject({ code: 'NOT_FOUND' });
      else expect(answer).not.toBeInstanceOf(Error);
    }
  }
  await close();
});
