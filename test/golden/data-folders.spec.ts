import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { activities } from '../../src/activities/index.js';
import { buildRegistry } from '../../src/decide/registry.js';
import { apply, nothingLoaded } from '../../src/ledger/loaded-organization.js';
import { SqliteEventStore } from '../../src/ledger/stores/sqlite/sqlite.js';
import { verifyHistory } from '../../src/replay/verify.js';
import { commits, ownFolds, unpack } from './data-folder.js';

let dataDir: string;
let store: SqliteEventStore;

const asLists = (value: unknown): Record<string, unknown> =>
  JSON.parse(
    JSON.stringify(value, (_key, member: unknown) => (member instanceof Map ? [...member] : member)),
  ) as Record<string, unknown>;

/** What has come to the state since; all else is what the commit itself has folded. */
const since: Readonly<Record<string, readonly string[]>> = {
  '89efda3': ['additions', 'foundings', 'foundingContacts'],
  c4c1bc8: ['additions', 'foundings', 'foundingContacts'],
  // The last one before decide, engine and ledger were rooms of their own.
  '3a7d3c6': [],
};

test('there is a data folder of each', () => expect([...commits].sort()).toEqual(Object.keys(since).sort()));

describe.each(Object.entries(since))('the data folder of commit %s', (commit, added) => {
  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'countersign-data-folder-'));
    await unpack(commit, dataDir);
    store = await SqliteEventStore.open(join(dataDir, 'events.db'));
  });
  afterAll(async () => {
    await store.close();
    await rm(dataDir, { recursive: true, force: true });
  });

  test('folds into the state that the commit itself has folded, its chain checked', async () => {
    const folds = ownFolds(commit);
    expect(folds.size).toBe(2);
    for (const [stream, { revision, hash, state }] of folds) {
      const loaded = nothingLoaded();
      for await (const event of store.read(stream)) apply(loaded, event);
      expect({ revision: loaded.revision, hash: loaded.hash }).toEqual({ revision, hash });
      const folded = asLists(loaded.organization);
      expect(Object.keys(folded).filter((member) => !(member in state))).toEqual(added);
      expect({ ...folded, ...Object.fromEntries(added.map((member) => [member, undefined])) }).toEqual(state);
    }
  });

  test('verifies: every stamp, and every decision by rules that have a number', async () => {
    const { findings, stamps, decisions, unnumbered } = await verifyHistory(store, {
      registry: buildRegistry(activities),
    });
    const isNumbered = commit === '3a7d3c6';
    expect({ findings, stamps, decisions, unnumbered }).toEqual({
      findings: [],
      stamps: isNumbered ? 25 : 24,
      decisions: isNumbered ? 22 : 0,
      unnumbered: isNumbered ? 0 : 21,
    });
  });
});
