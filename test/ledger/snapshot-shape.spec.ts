import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { apply, nothingLoaded } from '../../src/ledger/loaded-organization.js';
import { snapshotVersion } from '../../src/ledger/snapshots.js';
import { emptyOrganization } from '../../src/domain/organization/organization.js';
import { canonicalJson } from '../../src/domain/canonical-json.js';
import { goldenNames, goldenStream } from '../golden/streams.js';

/**
 * What the golden streams fold into, as a fingerprint of each. When the same events fold into something else, every
 * snapshot that was written before is wrong: raise `snapshotVersion` in src/ledger/snapshots.ts by one, and write
 * the fingerprints that this test reports, with the new version, into snapshot-shape.json. A new golden stream only
 * needs its line there.
 */
const recorded = JSON.parse(readFileSync(new URL('./snapshot-shape.json', import.meta.url), 'utf8')) as {
  readonly version: number;
  readonly folds: Readonly<Record<string, string>>;
};

/** Every member counts, also an undefined one: JSON that says which is which. */
function described(value: unknown): unknown {
  if (value === undefined) return { undefined: true };
  if (typeof value === 'bigint') return { bigint: String(value) };
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Map) return { map: [...value].map(described) };
  if (Array.isArray(value)) return { list: value.map(described) };
  return { members: Object.fromEntries(Object.entries(value).map(([name, member]) => [name, described(member)])) };
}

const text = (value: unknown): string => canonicalJson(described(value));

function foldOf(name: string): string {
  const loaded = nothingLoaded();
  for (const event of goldenStream(name)) apply(loaded, event);
  // A part that these events leave as it begins needs no new version: a snapshot that lacks a part is ignored anyway.
  const untouched = new Map(Object.entries(emptyOrganization()).map(([name, part]) => [name, text(part)]));
  const parts = Object.entries(loaded.organization).filter(([name, part]) => text(part) !== untouched.get(name));
  const state = { organization: Object.fromEntries(parts), recent: loaded.recent };
  return createHash('sha256').update(text(state)).digest('hex');
}

it('what is folded has the shape that the version of snapshots stands for', () => {
  expect(goldenNames.length).toBeGreaterThanOrEqual(2);
  const folds = Object.fromEntries(goldenNames.map((name) => [name, foldOf(name)]));
  expect({ version: snapshotVersion, folds }).toEqual(recorded);
});
