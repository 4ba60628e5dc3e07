import { readdirSync, readFileSync } from 'node:fs';
import { referencePages } from '../../scripts/generate-reference.mjs';
import { activities } from '../../src/activities/index.js';
import type { AnyDefinition } from '../../src/activities/define-activity.js';
import { settings } from '../../src/config.js';
import { organizationEventTypes } from '../../src/domain/organization/organization.js';
import { queries } from '../../src/read-models/index.js';

const folder = new URL('../../docs/reference/', import.meta.url);
const pages = referencePages();

const headings = (page: string): string[] => [...pages[page]!.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading!);

test.each(Object.keys(pages))('docs/reference/%s is what `npm run docs` makes', (name) => {
  expect(readFileSync(new URL(name, folder), 'utf8')).toBe(pages[name]);
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
  const recorded = [...pages['events.md']!.matchAll(/^\| `([A-Z]\w+)` \| `/gm)].map(([, name]) => name);
  const sealing = ['KeyEncryptionKeyTaken', 'DataKeysRewrapped', 'SecretSealed', 'DataKeyRewrapped'];
  const telling = ['Delivered', 'AttemptFailed', 'DeliveryAbandoned', 'RedeliveryRequested'].map(
    (end) => `Webhook${end}`,
  );
  const boots = ['AttestationRootIssued', 'CoordinatorBooted'];
  const others = [...sealing, ...telling, ...boots];
  expect(recorded.sort()).toEqual(
    [...organizationEventTypes, 'ActivityDenied', 'CoordinatorInstalled', ...others].sort(),
  );
  for (const [name] of settings) expect(pages['settings.md']).toContain(`| \`${name}\` |`);
});

test('making the pages again gives the same text', () => {
  expect(referencePages()).toEqual(pages);
});
