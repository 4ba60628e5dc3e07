import { activities } from '../activities/index.js';
import { slipsBetween } from '../config/environment.js';
import { buildRegistry, type ActivityVersion, type Registry } from '../decide/registry.js';
import { queries, type AnyQuery } from '../read-models/index.js';
import { BadUsage } from './bad-usage.js';

let registry: Registry | undefined;

function known(): Registry {
  registry ??= buildRegistry(activities);
  return registry;
}

/**
 * The activity that the user means: `create_policy`, `create-policy`, or a whole type, which may be an older version.
 * @throws {BadUsage} with the closest names
 */
export function activityNamed(name: string): ActivityVersion {
  const version = known().versions.get(name) ?? known().paths.get(wireName(name))?.[0];
  if (version) return version;
  throw unknownName('activity', name, activityNames());
}

/** The query that the user means. @throws {BadUsage} with the closest names */
export function queryNamed(name: string): AnyQuery {
  const query = queries.find(({ path }) => path === wireName(name));
  if (query) return query;
  throw unknownName('query', name, queryNames());
}

export function activityNames(): readonly string[] {
  return [...known().paths.keys()].toSorted();
}

export function queryNames(): readonly string[] {
  return queries.map(({ path }) => path).toSorted();
}

const wireName = (name: string): string =>
  name
    .toLowerCase()
    .replaceAll('-', '_')
    .replace(/^activity_type_/, '')
    .replace(/_v\d+$/, '');

/** @throws {BadUsage} that suggests similar names, if there are any */
export function unknownName(what: string, name: string, all: readonly string[]): BadUsage {
  const near = nearest(wireName(name), all);
  const hint = near.length > 0 ? `did you mean ${near.join(', ')}?` : `use one of ${all.join(', ')}`;
  return new BadUsage(`no ${what} is named \`${name}\`: ${hint}`);
}

/** Names within a typo or two, or that contain all words of what was typed. */
function nearest(name: string, all: readonly string[]): readonly string[] {
  const words = name.split('_').filter(Boolean);
  const ranked = all
    .map((one) => ({ one, slips: slipsBetween(name, one) }))
    .filter(({ one, slips }) => slips <= 2 || (words.length > 0 && words.every((word) => one.includes(word))))
    .toSorted((one, other) => one.slips - other.slips);
  return ranked.slice(0, 3).map(({ one }) => one);
}
