import { Writable } from 'node:stream';
import { ManualClock, SeededRandomness, startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { refusal } from './exchange.js';

/** A little of everything that is recorded: users, a policy, votes, a denial, time that passes. */
async function story(coordinator: TestCoordinator): Promise<string> {
  const alice = await coordinator.createUser('Alice', { userEmail: 'alice@example.com' });
  const bob = await coordinator.createUser('Bob');
  await coordinator.createPolicy({
    policyName: 'two rename',
    condition: "activity.kind == 'UPDATE_USER_NAME'",
    consensus: 'approvers.count() >= 2',
  });
  const rename = { userId: alice.userId, userName: 'Alicia' };
  const asked = await alice.client.submit('ACTIVITY_TYPE_UPDATE_USER_NAME', rename);
  coordinator.clock.advance('90m');
  await bob.client.approve(asked.fingerprint);
  await refusal(bob.client.submit('ACTIVITY_TYPE_DELETE_USERS', { userIds: [alice.userId] }));
  return JSON.stringify(
    [
      ...(await coordinator.events()),
      ...(await coordinator.events(`denials-${coordinator.organizationId}`)),
      ...(await coordinator.events('installation-root')),
    ].map((event) => ({ ...event, position: String(event.position) })),
  );
}

async function storyOf(seed: string): Promise<string> {
  const coordinator = await startCoordinator({ seed });
  try {
    return await story(coordinator);
  } finally {
    await coordinator.close();
  }
}

test('the same seed and the same requests are recorded byte for byte alike, another seed is not', async () => {
  const [one, again, other] = await Promise.all([storyOf('one'), storyOf('one'), storyOf('other')]);
  expect(one.length).toBeGreaterThan(5_000);
  expect(again).toBe(one);
  expect(other).not.toBe(one);
});

test('ten coordinators side by side know nothing of each other', async () => {
  const names = Array.from({ length: 10 }, (_, index) => `User ${index}`);
  // One seed for all: even ids that are alike must not meet.
  const all = await Promise.all(names.map(() => startCoordinator({ seed: 'same' })));
  try {
    expect(new Set(all.map(({ url }) => url)).size).toBe(10);
    await Promise.all(all.map((coordinator, index) => coordinator.createUser(names[index]!)));
    const known = await Promise.all(
      all.map(async ({ client }) => {
        const { users } = await client.query<{ users: { userName: string }[] }>('list_users');
        return users.map(({ userName }) => userName);
      }),
    );
    expect(known).toEqual(names.map((name) => ['Root user', 'Auth proxy', name]));
    all[0]!.clock.advance('3h');
    expect(all[1]!.clock.now()).toBe(Date.UTC(2026, 0, 1));
  } finally {
    await Promise.all(all.map((coordinator) => coordinator.close()));
  }
});

test('the clock stands at the given time, and what is recorded carries it', async () => {
  const coordinator = await startCoordinator({ at: new Date('2030-05-06T07:08:09.010Z') });
  try {
    const before = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'one' });
    coordinator.clock.advance('1.5h');
    const after = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'two' });
    expect([before.createdAt, after.createdAt]).toEqual(['2030-05-06T07:08:09.010Z', '2030-05-06T08:38:09.010Z']);
    expect(after.timestampMs).toBe(String(Date.parse('2030-05-06T08:38:09.010Z')));
  } finally {
    await coordinator.close();
  }
});

test('a clock goes on by every unit, never back, and refuses what is no duration', () => {
  const clock = new ManualClock(0);
  for (const [by, now] of [
    [5, 5],
    ['5ms', 10],
    ['1s', 1_010],
    ['2m', 121_010],
    ['1h', 3_721_010],
    ['1d', 90_121_010],
  ] as const) {
    clock.advance(by);
    expect(clock.now()).toBe(now);
  }
  clock.set(new Date(100_000_000));
  expect(clock.now()).toBe(100_000_000);
  expect(() => clock.set(99_999_999)).toThrow('cannot go back');
  expect(() => clock.advance('1 week' as '1d')).toThrow('`1 week`');
  expect(() => clock.advance(-1)).toThrow('cannot go back');
  expect(clock.now()).toBe(100_000_000);
});

test('seeded bytes do not depend on how they are asked for', () => {
  const [one, other] = [new SeededRandomness('seed'), new SeededRandomness('seed')];
  const inPieces = [1, 31, 32, 33, 3].flatMap((count) => [...one.bytes(count)]);
  expect(inPieces).toEqual([...other.bytes(100)]);
  expect([...new SeededRandomness('another').bytes(100)]).not.toEqual(inPieces);
});

test.each(['memory', 'sqlite'] as const)('a restart on %s keeps what was recorded', async (store) => {
  const first = await startCoordinator({ store });
  const alice = await first.createUser('Alice');
  const events = await first.events();
  const second = await first.restart();
  try {
    expect(await second.events()).toEqual(events);
    expect(second.root).toEqual({ ...first.root, apiUrl: second.url, authProxyUrl: second.url });
    const { user } = await second.client.query<{ user: { userName: string } }>('get_user', { userId: alice.userId });
    expect(user.userName).toBe('Alice');
    // The client of before the restart points at a port where nobody listens any more.
    await expect(alice.client.query('whoami')).rejects.toThrow('fetch failed');
    expect(await second.clientFor(alice.key).query('whoami')).toMatchObject({ username: 'Alice' });
  } finally {
    await second.close();
  }
});

const openWorkers = () => process.getActiveResourcesInfo().filter((name) => name === 'MessagePort').length;

test('a setting that cannot be used stops the start and leaves nothing running', async () => {
  const before = openWorkers();
  const start = startCoordinator({ store: 'sqlite', settings: { TRUST_PROXY: 'perhaps' } });
  await expect(start).rejects.toThrow('TRUST_PROXY=perhaps: must be one of true, false');
  expect(openWorkers()).toBe(before);
});

test('log lines go where they are told to', async () => {
  const lines: string[] = [];
  const log = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(chunk.toString());
      done();
    },
  });
  const coordinator = await startCoordinator({ logLevel: 'debug', log });
  await coordinator.close();
  expect(lines.join('')).toContain('Nest application successfully started');
});
