import { readdirSync, readFileSync } from 'node:fs';
import { referencePages } from '../../scripts/generate-reference.mjs';
import { architecturePage } from '../../scripts/rooms-table.mjs';
import { activities } from '../../src/activities/index.js';
import type { AnyDefinition } from '../../src/activities/define-activity.js';
import { settings } from '../../src/config/settings.js';
import { organizationEventTypes } from '../../src/domain/organization/organization.js';
import { queries } from '../../src/read-models/index.js';
import { goldenLines, goldenNames } from '../golden/streams.js';

const folder = new URL('../../docs/reference/', import.meta.url);
const pages = referencePages();

interface GoldenEvent {
  readonly stream: string;
  readonly type: string;
  readonly data: { readonly type?: string };
  readonly metadata: { readonly $correlationId: string };
}

/** Whether every activity may have it, as an event of its own life. */
const isOfActivity = (type: string): boolean => type.startsWith('Activity') || type === 'AppProofsIssued';

const headings = (page: string): string[] => [...pages[page]!.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading!);

test.each(Object.keys(pages))('docs/reference/%s is what `npm run docs` makes', (name) => {
  expect(readFileSync(new URL(name, folder), 'utf8')).toBe(pages[name]);
});

test('the table of docs/architecture.md says who may import whom as the rules do', () => {
  const page = readFileSync(new URL('../architecture.md', folder), 'utf8');
  expect(page).toBe(architecturePage());
});

test('nothing lies beside the generated pages but what the walk makes and what is written by hand', () => {
  expect(readdirSync(folder).sort()).toEqual([...Object.keys(pages), 'conformance.md', 'policy-language.md'].sort());
});

test('every version of every activity, every query, event and setting is on its page', () => {
  const definitions: readonly AnyDefinition[] = activities;
  const types = definitions.flatMap((definition) => [
    definition.type,
    ...(definition.kind === 'activity' ? (definition.olderVersions ?? []).map(({ type }) => type) : []),
  ]);
  for (const type of types) expect(pages['activities.md']).toMatch(new RegExp(`[\`>]${type}[\`<]`));
  expect(headings('activities.md')).toHaveLength(activities.length);
  for (const { path } of queries) expect(headings('queries.md')).toContain(path);
  // Its other tables say what becomes of events that another table has.
  const eventTables = pages['events.md']!.replace(/^## Members that may be sealed\n[^]*?(?=^## )/m, '');
  const recorded = [...eventTables.matchAll(/^\| `([A-Z]\w+)` \| `/gm)].map(([, name]) => name);
  const sealing = ['KeyEncryptionKeyActivated', 'DataKeysRewrapped', 'SecretSealed', 'DataKeyRewrapped'];
  const telling = ['Delivered', 'AttemptFailed', 'DeliveryAbandoned', 'RedeliveryRequested'].map(
    (end) => `Webhook${end}`,
  );
  const boots = ['AttestationRootIssued', 'CoordinatorBooted', 'HistoryRestored'];
  const others = [...sealing, ...telling, ...boots, 'MessageCounted', 'StoreFormatted'];
  expect(recorded.sort()).toEqual(
    [...organizationEventTypes, 'ActivityDenied', 'ClaimProved', 'CoordinatorInstalled', ...others].sort(),
  );
  for (const [name] of settings) expect(pages['settings.md']).toContain(`| \`${name}\` |`);
});

test('what the golden streams have of an activity is among the events that its section names', () => {
  const sections = pages['activities.md']!.split('\n## ');
  const listed = new Map<string, string>();
  for (const definition of activities as readonly AnyDefinition[]) {
    if (definition.kind === 'vote') continue;
    const section = sections.find((one) => one.includes(`\nParameters of \`${definition.type}\`:`));
    const [, names] = /^- Events: (.+)$/m.exec(section!)!;
    for (const { type } of [definition, ...(definition.olderVersions ?? [])]) listed.set(type, names!);
  }
  const unlisted: string[] = [];
  const compared = new Set<string>();
  for (const name of goldenNames) {
    const typeOf = new Map<string, string>();
    for (const line of goldenLines(name)) {
      const { stream, type, data, metadata } = JSON.parse(line) as GoldenEvent;
      const activity = `${stream} ${metadata.$correlationId}`;
      if (type === 'ActivitySubmitted') typeOf.set(activity, data.type!);
      const submitted = typeOf.get(activity);
      // Founding an organization is no activity of its stream, and every activity has events of its own life.
      if (submitted === undefined || isOfActivity(type)) continue;
      compared.add(type);
      if (!listed.get(submitted)?.includes(`\`${type}\``)) unlisted.push(`${submitted}: ${type}`);
    }
  }
  expect(unlisted).toEqual([]);
  expect(compared.size).toBeGreaterThan(40);
  const produced = [...listed.values()].join();
  const effects = organizationEventTypes.filter(
    (type) => !isOfActivity(type) && !['OrganizationCreated', 'HistoryImported', 'ClockMended'].includes(type),
  );
  expect(effects.filter((type) => !produced.includes(`\`${type}\``))).toEqual([]);
});

test('making the pages again gives the same text', () => {
  expect(referencePages()).toEqual(pages);
});
