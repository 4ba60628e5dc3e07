import type { ActivityClient } from '../client/activity-client.js';
import { ApiError } from '../client/stamping-client.js';
import { isUuid } from '../domain/uuid.js';
import { clauseNames, type HeldPolicy, type HeldSet, type PolicySaid } from '../audit/policies/policy-changes.js';
import { madeUpId, type IdOf, type NamedKind } from '../audit/policies/policy-files.js';
import { printable } from './layout.js';
import { wholeList } from './list-pages.js';

export interface Named {
  readonly kind: NamedKind;
  readonly id: string;
  readonly name: string;
}

const lists = {
  user: ['list_users', 'users', 'userId', 'userName'],
  tag: ['list_user_tags', 'userTags', 'tagId', 'tagName'],
  wallet: ['list_wallets', 'wallets', 'walletId', 'walletName'],
  'private key': ['list_private_keys', 'privateKeys', 'privateKeyId', 'privateKeyName'],
  'private key tag': ['list_private_key_tags', 'privateKeyTags', 'tagId', 'tagName'],
} as const satisfies Readonly<Record<NamedKind, readonly string[]>>;

/** What an organization has of what policies speak about, with names for ids and ids for names. */
export interface OrganizationPolicies extends HeldSet {
  readonly idOf: IdOf;
  /** The ids that names stood for so far. */
  readonly resolved: ReadonlyMap<string, Named>;
  /** A text with `<wallet Treasury>` in place of each id that has a name which stands for it alone. */
  named(text: string): string;
  /** The name of a user; the id if there is none. */
  userName(userId: string): string;
}

/**
 * Reads an organization as a caller sees it, without the built-in policy of its auth proxy, which comes and goes with the proxy.
 * Names of tags that are missing stand for an id that nothing has. */
export async function organizationPolicies(client: ActivityClient): Promise<OrganizationPolicies> {
  const things = (await Promise.all(Object.keys(lists).map((kind) => thingsOf(client, kind as NamedKind)))).flat();
  const policies = await wholeList<HeldPolicy>(client, 'list_policies', 'policies', ({ policyId }) => policyId);
  const builtIn = await authProxyPolicy(client);
  const { quorum } = (await client.query('get_organization_configs')).configs;
  const byId = new Map(things.map((one) => [one.id, one]));
  const byName = new Map<string, Named[]>();
  for (const one of things) byName.set(nameKey(one), [...(byName.get(nameKey(one)) ?? []), one]);
  const resolved = new Map<string, Named>();
  return {
    policies: policies
      .filter(({ policyId }) => policyId !== builtIn)
      .map(({ policyId, ...said }) => ({ policyId, ...trimmed(said) })),
    tags: things.flatMap(({ kind, id, name }) => (kind === 'tag' ? [{ tagId: id, tagName: name }] : [])),
    quorum,
    resolved,
    idOf: (kind, name) => {
      const found = byId.get(name.toLowerCase());
      // Nothing can be found by an id that it has as its name.
      const byItsId = found?.kind === kind ? [found] : [];
      const all = isUuid(name) ? byItsId : (byName.get(nameKey({ kind, name })) ?? []);
      const [one, ...others] = all;
      if (others.length > 0) {
        const ids = all.map(({ id }) => id).join(', ');
        return { wrong: `${all.length} have the name ${kind} \`${name}\`: put one of their ids in its place: ${ids}` };
      }
      if (!one && (kind !== 'tag' || isUuid(name))) return { wrong: `the organization has no ${kind} \`${name}\`` };
      const named = one ?? { kind, name, id: madeUpId(kind, name) };
      resolved.set(nameKey(named), named);
      return named.id;
    },
    named: (text) =>
      text.replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (id) => {
        const one = byId.get(id) ?? [...resolved.values()].find((each) => each.id === id);
        const isAlone = one && (byName.get(nameKey(one))?.length ?? 1) === 1;
        // A name that a file could not have would say something else there.
        return isAlone && printable(one.name) === one.name && !/[<>'"\\]/.test(one.name)
          ? `<${one.kind} ${one.name}>`
          : id;
      }),
    userName: (userId) => {
      const one = byId.get(userId);
      return one && byName.get(nameKey(one))?.length === 1 ? one.name : userId;
    },
  };
}

/** `user: Ann`. */
export const nameKey = ({ kind, name }: Pick<Named, 'kind' | 'name'>): string => `${kind}: ${name}`;

/** The id of the policy by which the auth proxy acts; undefined while there is no proxy. */
async function authProxyPolicy(client: ActivityClient): Promise<string | undefined> {
  try {
    return (await client.query('get_auth_proxy_config')).config.policyId;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

async function thingsOf(client: ActivityClient, kind: NamedKind): Promise<readonly Named[]> {
  const [query, member, idMember, nameMember] = lists[kind];
  type Thing = Readonly<Record<string, string>>;
  const things = await wholeList<Thing>(client, query, member, (thing) => thing[idMember]!);
  return things.map((thing) => ({ kind, id: thing[idMember]!, name: thing[nameMember]! }));
}

/** A policy without the white space around its clauses, which YAML adds, and without clauses that are empty. */
export function trimmed({ policyName, effect, notes, ...rest }: PolicySaid): PolicySaid {
  const clauses = clauseNames.flatMap((name) => {
    const text = rest[name]?.trim();
    return text ? [[name, text] as const] : [];
  });
  return { policyName, effect, notes: notes.trim(), ...Object.fromEntries(clauses) };
}
