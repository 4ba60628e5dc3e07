import { isDeepStrictEqual } from 'node:util';
import type { OrganizationView } from '../../domain/organization/organization.js';
import { differing, organizationTold, type Thing } from './state-things.js';

/** One difference between two states of an organization, as a sentence. */
export interface StateChange {
  /** The list that it concerns, as in a document of the state; `organization` for the organization itself. */
  readonly list: string;
  readonly id: string;
  readonly change: 'CREATED' | 'CHANGED' | 'DELETED';
  readonly text: string;
}

/** Longest value quoted in a sentence, in characters. */
const longestValue = 120;

/** Each kind of thing that a user has: the list, the word for one, and the members with its id and its name. */
const owned = {
  apiKeys: { noun: 'API key', id: 'apiKeyId', name: 'apiKeyName' },
  authenticators: { noun: 'authenticator', id: 'authenticatorId', name: 'authenticatorName' },
  oauthProviders: { noun: 'OAuth provider', id: 'providerId', name: 'providerName' },
} as const;

/** Members that change with every other change. */
const unsaid: ReadonlySet<string> = new Set(['updatedAt']);

type Told = Readonly<Record<string, unknown>>;

/**
 * The differences between two states of one organization, in words, in the order of a document of the state.
 * @param now decides which tokens are still live, milliseconds since the epoch
 */
export function* compareStates(before: OrganizationView, after: OrganizationView, now: number): Generator<StateChange> {
  const names = namesIn(before, after);
  yield* organizationChanges(before, after, names, now);
  for (const { old, now: thing } of differing(before, after)) {
    if (!old) yield changeOf(thing!, 'CREATED', `${called(thing!)} ${thing!.begins}`);
    else if (!thing) yield changeOf(old, 'DELETED', `${called(old)} ${old.ends}`);
    else {
      const said = memberChanges(old.told(now), thing.told(now), names);
      const renamed = old.name === thing.name ? '' : `, now ${quoted(thing.name ?? '')},`;
      if (said.length > 0) yield changeOf(thing, 'CHANGED', `${called(old)}${renamed} was changed: ${said.join('; ')}`);
    }
  }
}

function changeOf({ list, id }: Thing, change: StateChange['change'], text: string): StateChange {
  return { list, id, change, text };
}

/** A name for a sentence: one that could end its quotes or hide something is written as JSON. */
export function quoted(name: string): string {
  return /^[^'\\\p{C}\p{Zl}\p{Zp}]*$/u.test(name) ? `'${name}'` : JSON.stringify(name);
}

function called({ noun, name, id, list }: Thing): string {
  if (list === 'activities') return `${noun} ${name} \`${id}\``;
  return `${noun} ${name === undefined ? `\`${id}\`` : quoted(name)}`;
}

type Names = (id: string) => string;

/** How to name ids in a sentence: by the newest name that either state has. */
function namesIn(before: OrganizationView, after: OrganizationView): Names {
  const nameIn = (state: OrganizationView, id: string) =>
    state.users.get(id)?.userName ??
    state.userTags.get(id)?.tagName ??
    state.privateKeyTags.get(id)?.tagName ??
    state.wallets.get(id)?.walletName;
  return (id) => {
    const name = nameIn(after, id) ?? nameIn(before, id);
    return name === undefined ? shown(id) : quoted(name);
  };
}

function* organizationChanges(
  before: OrganizationView,
  after: OrganizationView,
  names: Names,
  now: number,
): Generator<StateChange> {
  const said = (text: string, change: StateChange['change'] = 'CHANGED'): StateChange => {
    return { list: 'organization', id: after.organizationId, change, text };
  };
  if (before.organizationId === '' && after.organizationId !== '') {
    yield said(`organization ${quoted(after.name)} was founded`, 'CREATED');
  } else {
    if (before.name !== after.name) {
      yield said(`organization ${quoted(before.name)} was renamed: ${quoted(after.name)}`);
    }
    const { authProxy: old, ...earlier } = organizationTold(before, now);
    const { authProxy, ...later } = organizationTold(after, now);
    // Each has a sentence of its own; the authority behind an append passes with it.
    const apart = new Set(['name', 'rootQuorum', 'isDeleted', 'acting']);
    const without = (told: Told) => Object.fromEntries(Object.entries(told).filter(([member]) => !apart.has(member)));
    const members = memberChanges(without(earlier), without(later), names);
    if (members.length > 0) yield said(`organization ${quoted(after.name)} was changed: ${members.join('; ')}`);
    if (!old && authProxy) yield said('the auth proxy was enabled');
    else if (old && !authProxy) yield said('the auth proxy was disabled');
    else if (old && authProxy) {
      const settings = memberChanges(flat(old as Told), flat(authProxy as Told), names);
      if (settings.length > 0) yield said(`the auth proxy was changed: ${settings.join('; ')}`);
    }
  }
  yield* quorumChanges(before.rootQuorum, after.rootQuorum, names, said);
  if (!before.isDeleted && after.isDeleted) yield said(`organization ${quoted(after.name)} was deleted`, 'DELETED');
}

function flat({ settings, ...rest }: Told): Told {
  return { ...rest, ...(settings as Told) };
}

function* quorumChanges(
  before: OrganizationView['rootQuorum'],
  after: OrganizationView['rootQuorum'],
  names: Names,
  said: (text: string) => StateChange,
): Generator<StateChange> {
  const added = after.userIds.filter((id) => !before.userIds.includes(id)).map(names);
  const removed = before.userIds.filter((id) => !after.userIds.includes(id)).map(names);
  const isOther = before.threshold !== after.threshold;
  if (added.length + removed.length === 0) {
    if (isOther) yield said(`the threshold of the root quorum was changed: ${before.threshold} → ${after.threshold}`);
    return;
  }
  const parts = [
    ...(added.length > 0 ? [`${listed(added)} added to`] : []),
    ...(removed.length > 0 ? [`${listed(removed)} removed from`] : []),
  ];
  const threshold = isOther
    ? `threshold ${before.threshold} → ${after.threshold}`
    : `threshold ${after.threshold} as before`;
  yield said(`${parts.join(' and ')} the root quorum (${threshold})`);
}

function listed(names: readonly string[]): string {
  const last = names.at(-1)!;
  return names.length === 1 ? `${last} was` : `${names.slice(0, -1).join(', ')} and ${last} were`;
}

/** The differences between two descriptions of one thing, as parts of a sentence. */
function memberChanges(before: Told, after: Told, names: Names): string[] {
  const members = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...members].flatMap((member) => {
    const [old, now] = [before[member], after[member]];
    if (unsaid.has(member) || isDeepStrictEqual(old, now)) return [];
    if (member in owned) return ownedChanges(owned[member as keyof typeof owned], old, now, names);
    if (member === 'votes') return voteChanges(old, now, names);
    if (member === 'decisions') return [];
    if (Array.isArray(old) && Array.isArray(now)) return listChanges(member, old, now, names);
    if (old === undefined) return [`${member} ${shown(now)}`];
    if (now === undefined) return [`no ${member} any more`];
    return [`${member} ${shown(old)} → ${shown(now)}`];
  });
}

function ownedChanges(
  { noun, id, name }: (typeof owned)[keyof typeof owned],
  old: unknown,
  now: unknown,
  names: Names,
) {
  const [earlier, later] = [(old ?? []) as readonly Told[], (now ?? []) as readonly Told[]];
  const called = (one: Told) => `${noun} ${quoted(String(one[name]))}`;
  const sameIn = (list: readonly Told[], one: Told) => list.find((other) => other[id] === one[id]);
  return [
    ...later.filter((one) => !sameIn(earlier, one)).map((one) => `${called(one)} was added`),
    ...earlier.filter((one) => !sameIn(later, one)).map((one) => `${called(one)} was deleted`),
    ...later.flatMap((one) => {
      const before = sameIn(earlier, one);
      const said = before ? memberChanges(before, one, names) : [];
      return said.length > 0 ? [`${called(one)}: ${said.join(', ')}`] : [];
    }),
  ];
}

function voteChanges(old: unknown, now: unknown, names: Names): string[] {
  const earlier = ((old ?? []) as readonly Told[]).map(({ voteId }) => voteId);
  return ((now ?? []) as readonly Told[])
    .filter(({ voteId }) => !earlier.includes(voteId))
    .map(({ userId, selection }) => {
      return `${names(String(userId))} ${selection === 'VOTE_SELECTION_APPROVED' ? 'approved' : 'rejected'}`;
    });
}

function listChanges(member: string, old: readonly unknown[], now: readonly unknown[], names: Names): string[] {
  const said = (value: unknown) => (typeof value === 'string' ? names(value) : shown(value));
  const isIn = (list: readonly unknown[], value: unknown) => list.some((other) => isDeepStrictEqual(other, value));
  const added = now.filter((value) => !isIn(old, value)).map((value) => `+ ${said(value)}`);
  const removed = old.filter((value) => !isIn(now, value)).map((value) => `- ${said(value)}`);
  const changes = [...added, ...removed];
  return [`${member} ${changes.length > 0 ? shorter(changes.join(', ')) : 'in another order'}`];
}

function shown(value: unknown): string {
  return shorter(typeof value === 'string' ? quoted(value) : JSON.stringify(value));
}

function shorter(text: string): string {
  return text.length <= longestValue ? text : `${text.slice(0, longestValue)}…`;
}
