import { createHash } from 'node:crypto';
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deserialize, serialize } from 'node:v8';
import fc from 'fast-check';
import { apply, nothingLoaded, type LoadedOrganization } from '../../src/ledger/loaded-organization.js';
import { OrganizationLoader } from '../../src/ledger/load-organization.js';
import { piecesOf } from '../../src/ledger/snapshot-pieces.js';
import { Snapshots, snapshotVersion } from '../../src/ledger/snapshots.js';
import type { EventStore, RecordedEvent } from '../../src/ledger/event-store.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { BareCoordinator, organizationId } from '../coordinator/bare-coordinator.js';
import { SteeredStore } from './steered-store.js';
import { play, stories } from '../coordinator/story.js';
import { remove } from '../../src/domain/organization/slices.js';
import { isLong } from '../long.js';

const stream = `organization-${organizationId}`;
const everything = 2n ** 62n;
const folders: string[] = [];

afterAll(async () => {
  for (const folder of folders) await rm(folder, { recursive: true });
});

/** Snapshots in a new folder, or in one that is there; what they complain of is kept. */
async function snapshotsIn(folder?: string, checkpoint: () => bigint = () => everything) {
  if (folder === undefined) folders.push((folder = await mkdtemp(join(tmpdir(), 'snapshots-'))));
  const said: string[] = [];
  const snapshots = new Snapshots({
    folder,
    checkpoint,
    ignored: (file, reason) => said.push(`${file.slice(folder.length + 1)}: ${reason}`),
    failed: (id, error) => said.push(`${id} failed: ${String(error)}`),
  });
  return { folder, snapshots, said };
}

/** A loader of its own, as after a restart, and how many events it has folded. */
function loaderOn(store: EventStore, snapshots?: Snapshots, snapshotEvery = 1) {
  const folded = { events: 0 };
  const nothing = () => undefined;
  const metrics = {
    decided: nothing,
    spent: () => undefined,
    appended: nothing,
    appendFailed: nothing,
    conflict: nothing,
    folded: (_seconds: number, events: number) => (folded.events += events),
  };
  const loader = new OrganizationLoader(store, metrics, snapshots ? { snapshots, snapshotEvery } : {});
  return { loader, folded };
}

/** The same values in objects of one kind, whoever has made them; `recent` only after a position. */
function plain({ organization, revision, hash, position, recent }: LoadedOrganization, covered = -1n): unknown {
  const fingerprints = [...recent].filter(([, known]) => known.position > covered);
  return deserialize(serialize({ organization, revision, hash, position, fingerprints }));
}

function foldOf(events: readonly RecordedEvent[]): LoadedOrganization {
  const loaded = nothingLoaded();
  for (const event of events) apply(loaded, event);
  return loaded;
}

/** A store that has recorded these events of one stream, at the same positions when nothing else is in it. */
async function storeWith(events: readonly RecordedEvent[]): Promise<InMemoryEventStore> {
  const store = new InMemoryEventStore();
  await extend(store, events);
  return store;
}

async function extend(store: EventStore, events: readonly RecordedEvent[]): Promise<void> {
  if (events.length === 0) return;
  const first = events[0]!.revision;
  await store.append(stream, events, first === 0 ? 'no-stream' : first - 1);
}

async function streamOf(store: EventStore): Promise<RecordedEvent[]> {
  const events: RecordedEvent[] = [];
  for await (const event of store.read(stream)) events.push(event);
  return events;
}

/** A history with users, votes that wait and policies; the same for every test of this file. */
let history: readonly RecordedEvent[];

beforeAll(async () => {
  const coordinator = await BareCoordinator.start({ readModels: false });
  const [ann, bob] = [await coordinator.createUser('Ann'), await coordinator.createUser('Bob')];
  await coordinator.createPolicy({ condition: "activity.resource == 'USER'", consensus: 'approvers.count() >= 2' });
  const rename = { userId: bob.userId, userName: 'Robert' };
  await coordinator.submit(ann.key, 'ACTIVITY_TYPE_UPDATE_USER_NAME', rename);
  await coordinator.createUserTag('finance', [ann.userId]);
  history = await streamOf(await storeWith(await coordinator.events()));
  expect(foldOf(history).organization.openActivities.size).toBe(1);
  await coordinator.close();
});

test('eight wait to be written, and one more is not taken until there is room', async () => {
  const { folder, snapshots, said } = await snapshotsIn();
  const ids = Array.from({ length: 9 }, (_, at) => organizationId.replace(/.$/, String(at)));
  const keep = (id: string) => {
    const loaded = foldOf(history);
    return snapshots.keep({ ...loaded, organization: { ...loaded.organization, organizationId: id } });
  };
  expect(ids.map(keep)).toEqual([...Array<boolean>(8).fill(true), false]);
  await snapshots.settled();
  expect(keep(ids[8]!)).toBe(true);
  await snapshots.settled();
  expect([(await readdir(folder)).sort(), said]).toEqual([ids, []]);
});

test('a file is complained of once, as long as it is among the last 1,000', async () => {
  const { snapshots, said } = await snapshotsIn();
  const ignore = (revision: number) => snapshots.ignore(organizationId, revision, 'no use');
  for (const revision of [0, 1, 0]) ignore(revision);
  expect(said).toHaveLength(2);
  for (let revision = 2; revision <= 1_000; revision++) ignore(revision);
  for (const revision of [1, 0]) ignore(revision);
  expect(said.slice(1_001)).toEqual([`${organizationId}/0.snapshot: no use`]);
});

const half = () => Math.floor(history.length / 2);

/** The first half of the history folded and kept, the second half recorded after it. */
async function keptHalf(checkpoint?: () => bigint) {
  const store = await storeWith(history.slice(0, half()));
  const { folder, snapshots, said } = await snapshotsIn(undefined, checkpoint);
  await loaderOn(store, snapshots).loader.load(organizationId);
  await snapshots.settled();
  expect([await readdir(join(folder, organizationId)), said]).toEqual([[`${half() - 1}.snapshot`], []]);
  const file = join(folder, organizationId, `${half() - 1}.snapshot`);
  await extend(store, history.slice(half()));
  return { store, folder, file, name: `${organizationId}/${half() - 1}.snapshot` };
}

/** Folds with the snapshots of a folder as a new process would: the state, the events folded, the complaints. */
async function afterRestart(store: EventStore, folder: string, checkpoint?: () => bigint) {
  const { snapshots, said } = await snapshotsIn(folder, checkpoint);
  const { loader, folded } = loaderOn(store, snapshots, 1_000_000);
  const loaded = await loader.load(organizationId);
  return { loaded, loader, folded: folded.events, said };
}

describe('random stories', () => {
  it('fold from a snapshot into what they fold into from the start', async () => {
    let withOpenActivities = 0;
    let withFingerprints = 0;

    /** What a snapshot after so many events gives, when a read model has seen all up to a position. */
    const throughSnapshot = async (events: readonly RecordedEvent[], cut: number, covered: bigint) => {
      const store = await storeWith(events.slice(0, cut));
      const { folder, snapshots } = await snapshotsIn(undefined, () => covered);
      const atCut = await loaderOn(store, snapshots).loader.load(organizationId);
      withOpenActivities += atCut.organization.openActivities.size > 0 ? 1 : 0;
      await snapshots.settled();
      await extend(store, events.slice(cut));

      const { loaded, folded, said } = await afterRestart(store, folder, () => covered);
      expect([folded, said]).toEqual([events.length - cut, []]);
      for (const [, { position }] of loaded.recent) expect(position > covered).toBe(true);
      withFingerprints += loaded.recent.size > 0 ? 1 : 0;
      return { loaded, bytes: await readFile(join(folder, organizationId, `${cut - 1}.snapshot`)) };
    };

    await fc.assert(
      fc.asyncProperty(stories, fc.nat(), fc.nat(), async (story, cutAt, coveredAt) => {
        const { coordinator, secrets } = await play(story);
        const events = await streamOf(await storeWith(await coordinator.events()));
        await coordinator.close();
        const fromStart = foldOf(events);
        for (const cut of [1, 2, 3, 4].map((part) => 1 + ((cutAt * part) % events.length))) {
          const covered = BigInt(coveredAt % (cut + 1));
          const { loaded, bytes } = await throughSnapshot(events, cut, covered);
          expect(plain(loaded, covered)).toStrictEqual(plain(fromStart, covered));
          expect(secrets.flatMap(formsOf).filter((form) => bytes.includes(form))).toEqual([]);
        }
      }),
      { numRuns: isLong ? 40 : 4, seed: 17 },
    );
    expect([withOpenActivities > 0, withFingerprints > 0]).toEqual([true, true]);
  }, 60_000);
});

/** A secret of hex as it could stand in bytes. */
function formsOf(secret: string): (string | Buffer)[] {
  const raw = Buffer.from(secret, 'hex');
  return [
    secret,
    secret.toUpperCase(),
    raw,
    raw.toString('base64url').slice(0, -1),
    raw.toString('base64').slice(0, -2),
  ];
}

describe('a snapshot', () => {
  it('is what is kept at that moment, whatever becomes of the state while it is written', async () => {
    const { folder, snapshots } = await snapshotsIn();
    const loaded = foldOf(history.slice(0, half()));
    expect(snapshots.keep(loaded)).toBe(true);
    for (const event of history.slice(half())) apply(loaded, event);
    for (const userId of loaded.organization.users.keys()) remove(loaded.organization, 'users', userId);
    await snapshots.settled();
    const store = await storeWith(history.slice(0, half()));
    const again = await afterRestart(store, folder);
    expect(again.folded).toBe(0);
    expect(plain(again.loaded, everything)).toStrictEqual(plain(foldOf(history.slice(0, half())), everything));
  });

  it('goes on being verified: an event after it that was changed is found', async () => {
    const { store, folder } = await keptHalf();
    const tampered = new SteeredStore(store);
    tampered.tamper = (event) =>
      event.revision === half() + 1 ? { ...event, data: { ...(event.data as object), userName: 'Mallory' } } : event;
    await expect(afterRestart(tampered, folder)).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      cause: { revision: half() + 1 },
    });
  });

  it('leaves the events before it to whoever folds without snapshots', async () => {
    const { store, folder } = await keptHalf();
    const tampered = new SteeredStore(store);
    tampered.tamper = (event) => (event.revision === 1 ? { ...event, type: 'UserUpdated' } : event);
    await expect(afterRestart(tampered, folder)).resolves.toMatchObject({ folded: history.length - half() });
    await expect(loaderOn(tampered).loader.load(organizationId)).rejects.toThrow(/revision 1 of .* cannot be read/);
  });

  it('is made again after so many events, also while the process runs, and never of what is not recorded', async () => {
    const store = new SteeredStore(await storeWith(history.slice(0, 5)), false);
    const { folder, snapshots } = await snapshotsIn();
    const { loader } = loaderOn(store, snapshots, 4);
    const files = async () => {
      await snapshots.settled();
      return (await readdir(join(folder, organizationId)).catch(() => [])).sort();
    };
    const loaded = await loader.load(organizationId);
    expect(await files()).toEqual(['4.snapshot']);

    await extend(store, history.slice(5, 8));
    expect(await loader.load(organizationId)).toBe(loaded);
    expect(await files()).toEqual(['4.snapshot']);
    // As the driver does: the state is ahead of the stream until its append is answered.
    apply(loaded, history[8]!);
    loaded.pending.push(loaded.hash);
    expect((await loader.load(organizationId)).revision).toBe(8);
    expect(await files()).toEqual(['4.snapshot']);

    await extend(store, history.slice(8, 9));
    expect((await loader.load(organizationId)).pending).toEqual([]);
    expect(await files()).toEqual(['4.snapshot', '8.snapshot']);
  });

  it('leaves the two newest files, and removes what a crash has left', async () => {
    const { folder, snapshots } = await snapshotsIn();
    for (const length of [3, 5, 7, 9]) {
      expect(snapshots.keep(foldOf(history.slice(0, length)))).toBe(true);
      await snapshots.settled();
      await writeFile(join(folder, organizationId, `${length}.half-written.part`), 'x');
    }
    expect(snapshots.keep(foldOf(history.slice(0, 8)))).toBe(true);
    await snapshots.settled();
    expect((await readdir(join(folder, organizationId))).sort()).toEqual(['6.snapshot', '7.snapshot']);
  });

  it('is not needed: the folder may go at any time', async () => {
    const { store, folder } = await keptHalf();
    await rm(folder, { recursive: true });
    const { loaded, folded, said } = await afterRestart(store, folder);
    expect([folded, said]).toEqual([history.length, []]);
    expect(plain(loaded)).toStrictEqual(plain(foldOf(history)));
    const { snapshots } = await snapshotsIn(folder);
    snapshots.keep(loaded);
    await snapshots.settled();
    expect((await afterRestart(store, folder)).folded).toBe(0);
  });

  it('that cannot be written is said, and nothing else happens', async () => {
    const store = await storeWith(history);
    const { folder } = await snapshotsIn();
    await writeFile(join(folder, 'file'), '');
    const { snapshots, said } = await snapshotsIn(join(folder, 'file'));
    const { loader, folded } = loaderOn(store, snapshots);
    await loader.load(organizationId);
    await snapshots.settled();
    expect(folded.events).toBe(history.length);
    expect(said).toEqual([expect.stringMatching(new RegExp(`^${organizationId} failed: Error: ENOTDIR`))]);
  });

  it('is not looked for under names that are no id', async () => {
    const { folder, file } = await keptHalf();
    await cp(join(folder, organizationId), join(folder, 'elsewhere', organizationId), { recursive: true });
    expect(await readFile(file)).toBeTruthy();
    const { snapshots } = await snapshotsIn(join(folder, 'elsewhere'));
    const found: unknown[] = [];
    for await (const one of snapshots.readable(`../${organizationId}`)) found.push(one);
    expect(found).toEqual([]);
  });
});

describe('fingerprints of requests', () => {
  it('that a snapshot leaves out are read from the events while the read models are rebuilt', async () => {
    const end = history[half() - 1]!.position;
    const { store, folder } = await keptHalf(() => end);
    const rebuilding = await afterRestart(store, folder, () => end - 1n);
    expect([rebuilding.folded, rebuilding.said]).toEqual([history.length - half(), []]);
    const fingerprints = [...rebuilding.loaded.recent];
    expect(fingerprints).toEqual([...foldOf(history).recent]);

    const rebuilt = await afterRestart(store, folder, () => end);
    expect(rebuilt.folded).toBe(history.length - half());
    expect(rebuilt.loaded.recent.size).toBeLessThan(fingerprints.length);
  });

  it('are read of requests that could still be repeated, and not of older ones', async () => {
    const coordinator = await BareCoordinator.start({ readModels: false });
    const { userId } = await coordinator.createUser('Ann');
    const renamed = async (count: number, name: string) => {
      for (let at = 0; at < count; at++) {
        await coordinator.submit(coordinator.root.key, 'ACTIVITY_TYPE_UPDATE_USER_NAME', {
          userId,
          userName: `${name} ${at}`,
        });
      }
    };
    await renamed(400, 'old');
    coordinator.clock.advance(64 * 60_000);
    await renamed(1, 'recent');
    coordinator.clock.advance(64 * 60_000);
    await renamed(1, 'new');
    const events = await streamOf(await storeWith(await coordinator.events()));
    await coordinator.close();

    const store = await storeWith(events);
    const end = events.at(-1)!.position;
    const { folder, snapshots } = await snapshotsIn(undefined, () => end);
    await loaderOn(store, snapshots).loader.load(organizationId);
    await snapshots.settled();
    const { loaded, folded } = await afterRestart(store, folder, () => -1n);
    const all = [...foldOf(events).recent];
    expect([folded, all.length > 400]).toEqual([0, true]);
    expect([...loaded.recent].slice(-2)).toEqual(all.slice(-2));
    expect(loaded.recent.size).toBeLessThan(400);
  });

  it('are in it as long as no read model has them', async () => {
    const { store, folder } = await keptHalf(() => -1n);
    const { loaded, folded } = await afterRestart(store, folder, () => -1n);
    expect(folded).toBe(history.length - half());
    expect(plain(loaded)).toStrictEqual(plain(foldOf(history)));
  });
});

describe('a file that cannot be used is ignored, and said once', () => {
  const cases: readonly [string, (file: string) => Promise<void>, RegExp][] = [
    ['empty', (file) => writeFile(file, ''), /its bytes are not those that were written/],
    [
      'cut short',
      async (file) => writeFile(file, (await readFile(file)).subarray(0, -10)),
      /its bytes are not those that were written/,
    ],
    ...[0, 70, 200, 0.5, 1].map((place): [string, (file: string) => Promise<void>, RegExp] => [
      `changed at ${place}`,
      async (file) => {
        const bytes = await readFile(file);
        const at = place > 0 && place <= 1 ? Math.floor((bytes.length - 1) * place) : place;
        bytes[at]! ^= 1;
        await writeFile(file, bytes);
      },
      /its bytes are not those that were written/,
    ]),
    [
      'of a newer release',
      (file) => rewritten(file, { version: snapshotVersion + 1 }),
      new RegExp(`it has version ${snapshotVersion + 1}, this release reads ${snapshotVersion}`),
    ],
    [
      'of an older release',
      (file) => rewritten(file, { version: snapshotVersion - 1 }),
      new RegExp(`it has version ${snapshotVersion - 1}, this release reads ${snapshotVersion}`),
    ],
    [
      'of another organization',
      (file) => rewritten(file, { organizationId: '0f9d5a5e-0000-4000-8000-00000000000f' }),
      /it is of revision \d+ of organization `0f9d5a5e-0000-4000-8000-00000000000f`/,
    ],
    [
      'of another history',
      (file) => rewritten(file, { hash: 'ab'.repeat(32) }),
      /the hash chain of stream .* is broken at revision/,
    ],
    ['of another store', (file) => rewritten(file, { position: '4711' }), /it is at position \d+, not at 4711/],
    ['without all its parts', (file) => rewritten(file, {}, 300), /./],
  ];

  it.each(cases)('%s', async (_what, damage, reason) => {
    const { store, folder, file, name } = await keptHalf();
    await damage(file);
    const { snapshots, said } = await snapshotsIn(folder);
    for (const time of [1, 2]) {
      const { loader, folded } = loaderOn(store, snapshots, 1_000_000);
      const loaded = await loader.load(organizationId);
      expect([time, folded.events]).toEqual([time, history.length]);
      expect(plain(loaded)).toStrictEqual(plain(foldOf(history)));
    }
    expect(said).toHaveLength(1);
    expect(said[0]!.startsWith(`${name}: `)).toBe(true);
    expect(said[0]).toMatch(reason);

    // The next one takes its place, and folds begin with it again.
    await loaderOn(store, snapshots).loader.load(organizationId);
    await snapshots.settled();
    expect((await afterRestart(store, folder)).folded).toBe(0);
  });

  it.each([
    ['that lacks a part', { userTags: null }, /it lacks userTags$/],
    [
      'with a part that nobody knows',
      { vaults: new Map([['a', 'b']]) },
      /its `vaults` is not part of an organization$/,
    ],
  ])('%s', async (_what, change, reason) => {
    const { store, folder } = await keptHalf();
    const { snapshots } = await snapshotsIn(folder);
    const loaded = foldOf(history);
    const parts = Object.entries({ ...loaded.organization, ...change }).filter(([, part]) => part !== null);
    const organization = Object.fromEntries(parts) as unknown as typeof loaded.organization;
    snapshots.keep({ ...loaded, organization });
    await snapshots.settled();
    const { said, folded } = await afterRestart(store, folder);
    expect([folded, said]).toEqual([history.length - half(), [expect.stringMatching(reason)]]);
  });

  it('of events that a restored backup does not have', async () => {
    const { folder } = await keptHalf();
    const restored = await storeWith(history.slice(0, half() - 3));
    const { loaded, folded, said } = await afterRestart(restored, folder);
    expect(folded).toBe(half() - 3);
    expect(plain(loaded)).toStrictEqual(plain(foldOf(history.slice(0, half() - 3))));
    expect(said).toEqual([`${organizationId}/${half() - 1}.snapshot: the stream ends before it`]);

    const { snapshots } = await snapshotsIn(folder);
    snapshots.keep(loaded);
    await snapshots.settled();
    expect(await readdir(join(folder, organizationId))).toEqual([`${half() - 4}.snapshot`]);
  });

  it('while the one before it serves', async () => {
    const { store, folder, file } = await keptHalf();
    const { snapshots } = await snapshotsIn(folder);
    await loaderOn(store, snapshots).loader.load(organizationId);
    await snapshots.settled();
    const newest = join(folder, organizationId, `${history.length - 1}.snapshot`);
    expect(newest).not.toBe(file);
    await writeFile(newest, 'damaged');
    const { folded, said } = await afterRestart(store, folder);
    expect(folded).toBe(history.length - half());
    expect(said).toHaveLength(1);
  });
});

/** The file with another header, or cut, and with the digest that goes with that. */
async function rewritten(file: string, changes: object, cut = 0): Promise<void> {
  const bytes = (await readFile(file)).subarray(64);
  const end = bytes.indexOf('\n');
  const header = JSON.parse(bytes.toString('utf8', 0, end)) as object;
  const body = bytes.subarray(end + 1, bytes.length - cut);
  const rest = Buffer.concat([Buffer.from(`${JSON.stringify({ ...header, ...changes })}\n`), body]);
  await writeFile(file, createHash('sha256').update(rest).digest('hex') + rest.toString('latin1'), 'latin1');
}

test('a state is cut into pieces by its texts: what is large stands alone, and nothing is lost', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(1, 10, 1_000, 40_000, 100_000), { maxLength: 300 }), (lengths) => {
      const users = lengths.map((length, at) => [
        `user ${at}`,
        { notes: ['x'.repeat(length)], byName: new Map([[at, 'y']]) },
      ]);
      const pieces = [...piecesOf([['users', users]])].map((piece) => ('entries' in piece ? piece.entries : []));
      expect(pieces.flat()).toEqual(users);
      for (const [at, entries] of pieces.entries()) {
        const characters = JSON.stringify(entries).length;
        expect(entries.length <= 200 && (entries.length <= 1 || characters < 80_000)).toBe(true);
        // Small ones share a piece, or a large state would take as many turns as it has entries.
        const next = pieces[at + 1];
        if (next) expect(entries.length === 200 || characters + JSON.stringify(next[0]).length > 65_536).toBe(true);
      }
    }),
    { numRuns: 30 },
  );
});
