import { FoldCache } from '../../src/ledger/fold-cache.js';
import { nothingLoaded, type LoadedOrganization } from '../../src/ledger/loaded-organization.js';
import { OrganizationLoader } from '../../src/ledger/load-organization.js';
import { foundOrganization } from '../../src/decide/found-organization.js';
import { evolve } from '../../src/domain/organization/organization.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { put } from '../../src/domain/organization/slices.js';

/** An organization with so many users, its names of that length. */
function organizationOf(users: number, nameLength = 10): LoadedOrganization {
  const loaded = nothingLoaded();
  for (let index = 0; index < users; index++) {
    const data = { userId: `user-${index}`, userName: 'n'.repeat(nameLength), userTags: [] };
    evolve(loaded.organization, { type: 'UserCreated', data }, 0);
    loaded.revision += 1;
  }
  return loaded;
}

/** Which of these a cache of so many bytes still has once they were kept in that order. */
function keptOf(organizations: readonly LoadedOrganization[], mostBytes: number) {
  const forgotten: string[] = [];
  const cache = new FoldCache((id) => forgotten.push(id), mostBytes);
  organizations.forEach((loaded, index) => cache.keep(String(index), loaded));
  const kept = organizations.flatMap((loaded, index) => (cache.get(String(index)) === loaded ? [index] : []));
  return { cache, kept, forgotten };
}

describe('the memory of folded organizations', () => {
  it('holds as many as fit, and forgets first what was not asked for the longest', () => {
    const some = Array.from({ length: 10 }, () => organizationOf(100));
    const { cache, kept, forgotten } = keptOf(some, 100_000);
    expect(kept.length).toBeGreaterThan(1);
    expect(kept.length).toBeLessThan(9);
    expect([...forgotten.map(Number), ...kept]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);

    const oldest = kept[0]!;
    cache.keep(String(oldest), some[oldest]!);
    cache.keep('another', organizationOf(100));
    expect(cache.get(String(oldest))).toBe(some[oldest]);
    expect(cache.get(String(kept[1]))).toBeUndefined();
  });

  it('keeps one again for as little beside ten thousand as beside ten', () => {
    const msBeside = (others: number): number => {
      const hot = organizationOf(0);
      const { cache } = keptOf(
        Array.from({ length: others }, () => organizationOf(0)),
        Infinity,
      );
      const begun = process.cpuUsage();
      for (let count = 0; count < 10_000; count++) cache.keep('hot', hot);
      const { user, system } = process.cpuUsage(begun);
      return (user + system) / 1_000;
    };
    // It was 400 ms; what is collected meanwhile is in it too.
    expect(msBeside(10_000)).toBeLessThan(5 * msBeside(10) + 100);
  });

  it('forgets first what belongs to a parent that has more than an eighth with all of its sub-organizations', () => {
    const of = (organizationId: string, parentOrganizationId?: string): LoadedOrganization => {
      const loaded = organizationOf(100);
      Object.assign(loaded.organization, { organizationId, parentOrganizationId });
      return loaded;
    };
    const forgotten: string[] = [];
    const cache = new FoldCache((id) => forgotten.push(id), 1_000_000);
    const victims = ['victim', 'child of victim'];
    cache.keep('victim', of('victim'));
    cache.keep('child of victim', of('child of victim', 'victim'));
    for (let index = 0; index < 200; index += 1) cache.keep(`child ${index}`, of(`child ${index}`, 'stranger'));
    expect(forgotten.length).toBeGreaterThan(100);
    expect(victims.filter((id) => cache.get(id))).toEqual(victims);
    expect(forgotten).toEqual(forgotten.map((_, index) => `child ${index}`));

    // Of many that have no more than their share, the oldest goes first, whosever it is.
    for (let index = 0; index < 100; index += 1) cache.keep(`other ${index}`, of(`other ${index}`));
    expect(victims.filter((id) => cache.get(id))).toEqual([]);
    expect(cache.get('other 99')).toBeDefined();
  });

  it('counts what an organization holds: users, the size of their texts, fingerprints', () => {
    const hold = (one: LoadedOrganization) =>
      keptOf(
        Array.from({ length: 400 }, () => ({ ...one })),
        8_000_000,
      ).kept.length;
    expect(hold(organizationOf(1))).toBe(400);
    expect(hold(organizationOf(1_000))).toBeLessThan(100);
    expect(hold(organizationOf(100, 1_000))).toBeLessThan(hold(organizationOf(100)) / 2);
    const remembering = organizationOf(1);
    for (let index = 0; index < 1_000; index++) {
      const known = { activityId: 'a'.repeat(36), position: 1n };
      remembering.recent.set(`sha256:${String(index).padStart(64, '0')}`, known);
    }
    expect(hold(remembering)).toBeLessThan(100);
  });

  it('notices growth', () => {
    const { cache, forgotten } = keptOf([organizationOf(10), organizationOf(10)], 60_000);
    expect(forgotten).toEqual([]);
    const growing = cache.get('1')!;
    const grown = organizationOf(300);
    for (const [id, user] of grown.organization.users) put(growing.organization, 'users', id, user);
    growing.revision += 300;
    cache.keep('1', growing);
    expect(forgotten).toEqual(['0']);
  });

  it('keeps the latest however large it is, and whatever has an append on its way', () => {
    const writing = organizationOf(500);
    writing.pending.push('hash');
    const { kept, forgotten } = keptOf([writing, organizationOf(500), organizationOf(500)], 10_000);
    expect([kept, forgotten]).toEqual([[0, 2], ['1']]);
  });

  it('bounds what a loader holds; what was forgotten is folded again', async () => {
    const store = new InMemoryEventStore();
    const ids = Array.from({ length: 50 }, (_, index) => `0f9d5a5e-0000-4000-8000-${String(index).padStart(12, '0')}`);
    for (const organizationId of ids) {
      await foundOrganization(store, {
        organizationId,
        organizationName: 'Acme',
        userId: organizationId,
        userName: 'Root user',
        apiPublicKey: '02'.repeat(33),
        curve: 'API_KEY_CURVE_P256',
        at: 0,
      });
    }
    const foldsWith = async (cacheBytes: number): Promise<number> => {
      let folds = 0;
      const nothing = () => undefined;
      const metrics = {
        decided: nothing,
        spent: nothing,
        appended: nothing,
        appendFailed: nothing,
        conflict: nothing,
        folded: () => (folds += 1),
      };
      const loader = new OrganizationLoader(store, metrics, { cacheBytes });
      for (const id of [...ids, ...ids]) {
        expect((await loader.load(id)).organization.organizationId).toBe(id);
      }
      return folds;
    };
    expect(await foldsWith(10_000_000)).toBe(50);
    expect(await foldsWith(10_000)).toBe(100);
  });
});
