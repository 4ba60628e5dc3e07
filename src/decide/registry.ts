import type { AnyActivity, AnyDefinition, AnyVote } from '../activities/define-activity.js';
import { languageVocabulary } from '../domain/policy/known-literals.js';
import { policyEnvironment, type PolicyEnvironment } from '../domain/policy/namespaces.js';
import { publishedActions, publishedResources, publishedTypes } from '../domain/policy/published-names.js';
import { resourceNamespaces } from '../domain/policy/resource-namespaces.js';
import { acceptedParameters } from '../wire/absent.js';
import type { PolicyType } from '../domain/policy/types.js';

/** One wire version of a verb. */
export interface ActivityVersion {
  readonly type: string;
  /** The type without prefix and version: what policies see as `activity.kind`. */
  readonly kind: string;
  readonly definition: AnyDefinition;
  readonly intent: new () => object;
  /** Names of the one key of `intent`, and of those of `result`: one, or several with the same value. */
  readonly keys: { readonly intentKey: string; readonly resultKeys: readonly string[] };
  /** Lifts a valid intent of this version to the newest; undefined for the newest. */
  readonly lift: ((intent: object) => object) | undefined;
}

/** Everything derived from the list of activities. */
export interface Registry {
  /** Every version, by submitted type. */
  readonly versions: ReadonlyMap<string, ActivityVersion>;
  /** By the last segment of the submit path: the versions that it accepts, newest first. */
  readonly paths: ReadonlyMap<string, readonly ActivityVersion[]>;
  readonly policyEnvironment: PolicyEnvironment;
}

export const REGISTRY = Symbol('Registry');

const typePattern = /^ACTIVITY_TYPE_([A-Z0-9]+(?:_[A-Z0-9]+)*?)(?:_(V\d+))?$/;

/** `CREATE_USERS` and `V4` of `ACTIVITY_TYPE_CREATE_USERS_V4`. */
function readType(type: string): { kind: string; version: string } {
  const match = typePattern.exec(type);
  if (!match) throw new Error(`activity type \`${type}\` does not follow ACTIVITY_TYPE_<KIND>[_V<n>]`);
  return { kind: match[1]!, version: match[2] ?? '' };
}

const camelCase = (kind: string): string =>
  kind.toLowerCase().replace(/_([a-z0-9])/g, (_whole, letter: string) => letter.toUpperCase());

/**
 * Builds the registry.
 * @throws at boot when two definitions share a type, or disagree about the type of one policy parameter
 */
export function buildRegistry(definitions: readonly AnyDefinition[]): Registry {
  const versions = new Map<string, ActivityVersion>();
  const paths = new Map<string, ActivityVersion[]>();
  const params: Record<string, PolicyType> = {};

  for (const definition of definitions) {
    const newest = readType(definition.type);
    const older = definition.kind === 'activity' ? (definition.olderVersions ?? []) : [];
    for (const one of [{ ...definition, lift: undefined }, ...older]) {
      const { kind, version } = readType(one.type);
      if (kind !== newest.kind) throw new Error(`\`${one.type}\` is not an older version of \`${definition.type}\``);
      if (versions.has(one.type)) throw new Error(`activity type \`${one.type}\` is defined twice`);
      const entry: ActivityVersion = {
        type: one.type,
        kind,
        definition,
        intent: one.intent,
        keys: {
          intentKey: one.intentKey ?? `${camelCase(kind)}Intent${version}`,
          resultKeys: definition.kind === 'vote' ? [] : [one.resultKey ?? `${camelCase(kind)}Result${version}`].flat(),
        },
        lift: one.lift?.bind(one),
      };
      versions.set(one.type, entry);
      const path = kind.toLowerCase();
      paths.set(path, [...(paths.get(path) ?? []), entry]);
    }
    if (definition.kind === 'activity') {
      for (const [name, { type }] of Object.entries(definition.params ?? {})) {
        const known = params[name];
        if (known && JSON.stringify(known) !== JSON.stringify(type)) {
          throw new Error(`activity.params.${name} of \`${definition.type}\` has another type elsewhere`);
        }
        params[name] = type;
      }
    }
  }
  const environment = policyEnvironment(params, resourceNamespaces);
  return { versions, paths, policyEnvironment: { ...environment, vocabulary: vocabularyOf(definitions, versions) } };
}

/** The values that policies of this build can compare with; see `known-literals.ts`. */
function vocabularyOf(
  definitions: readonly AnyDefinition[],
  versions: Registry['versions'],
): Readonly<Record<string, ReadonlySet<string>>> {
  const published = publishedTypes.map((name) => `ACTIVITY_TYPE_${name}`);
  const activities = definitions.filter((definition) => definition.kind === 'activity');
  const policies = activities.flatMap(({ policy }) => (policy === 'root-quorum-only' ? [] : [policy]));
  const params = new Map<string, Set<string> | undefined>();
  for (const [name, { literals }] of activities.flatMap((definition) => Object.entries(definition.params ?? {}))) {
    const known = params.has(name) ? params.get(name) : new Set<string>();
    params.set(name, known && literals && new Set([...known, ...literals]));
  }
  return {
    ...languageVocabulary,
    'Activity.type': new Set([...versions.keys(), ...published]),
    'Activity.kind': new Set([
      ...[...versions.values()].map(({ kind }) => kind),
      ...published.map((type) => readType(type).kind),
    ]),
    'Activity.resource': new Set([...policies.map(({ resource }) => resource), ...publishedResources]),
    'Activity.action': new Set([...policies.map(({ action }) => action), ...publishedActions]),
    ...Object.fromEntries(
      [...params].flatMap(([name, known]) => (known ? [[`ActivityParams.${name}`, known] as const] : [])),
    ),
  };
}

export function isVote(definition: AnyDefinition): definition is AnyVote {
  return definition.kind === 'vote';
}

/** The newest intent of a recorded activity, whatever version was submitted. It was validated then. */
export function newestIntent(version: ActivityVersion, intent: object): object {
  const known = newest.get(intent);
  if (known) return known;
  const accepted = acceptedParameters(version.intent, intent);
  const lifted = version.lift ? version.lift(accepted) : accepted;
  newest.set(intent, lifted);
  return lifted;
}

/** The same object each time, because findings about it are cached by identity. */
const newest = new WeakMap<object, object>();

/** The definition of a type in history. @throws if this build no longer has it */
export function activityVersion(registry: Registry, type: string): ActivityVersion & { definition: AnyActivity } {
  const version = registry.versions.get(type);
  if (!version || version.definition.kind !== 'activity')
    throw new Error(`history names an unknown activity \`${type}\``);
  return version as ActivityVersion & { definition: AnyActivity };
}
