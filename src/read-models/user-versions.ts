import type { User } from '../domain/organization/users.js';
import type { Rows } from './database.js';

/**
 * Users as they were at any position. A change of a name repeats no key: a version that changes little has only the members
 * that it changed, after a whole one.
 */
export const userVersionsSchema = `
  CREATE TABLE user_versions (
    organization_id TEXT NOT NULL, user_id TEXT NOT NULL, position INTEGER NOT NULL, whole INTEGER NOT NULL, doc TEXT,
    PRIMARY KEY (organization_id, user_id, position)
  ) WITHOUT ROWID;`;

/** So many parts at most follow a whole version, each at most a quarter as long: reading one reads three times it at most. */
const mostParts = 8;
const mostOfWhole = 1 / 4;

/** Where a user's last whole version is, and how many versions that are parts follow it. */
export interface Placed {
  readonly whole: bigint;
  readonly parts: number;
}

/** Members that a version changed; one that it removed is null. */
type Part = Readonly<Partial<Record<keyof User, unknown>>>;

/** Stores a version: as a part of the version before it, if that is given and it is worth it. `doc` is `user` as JSON. */
export function putVersion(
  rows: Rows,
  { organizationId, user, doc, position }: { organizationId: string; user: User; doc: string; position: bigint },
  before?: { readonly user: User; readonly placed: Placed },
): Placed {
  const part = before && before.placed.parts < mostParts ? JSON.stringify(partBetween(before.user, user)) : undefined;
  const isPart = part !== undefined && part.length <= doc.length * mostOfWhole;
  const placed =
    before && isPart ? { ...before.placed, parts: before.placed.parts + 1 } : { whole: position, parts: 0 };
  rows.run(
    'INSERT OR REPLACE INTO user_versions VALUES (?, ?, ?, ?, ?)',
    organizationId,
    user.userId,
    position,
    placed.whole,
    isPart ? part : doc,
  );
  return placed;
}

/** From this position on, there is no such user. */
export function endVersions(rows: Rows, organizationId: string, userId: string, position: bigint): void {
  const sql = 'INSERT OR REPLACE INTO user_versions VALUES (?, ?, ?, ?, NULL)';
  rows.run(sql, organizationId, userId, position, position);
}

/** The user as of a position (a decimal string); undefined if there was none then. */
export function userAt(rows: Rows, organizationId: string, userId: string, position: string): User | undefined {
  const last = rows.get(
    `SELECT position, whole, doc FROM user_versions WHERE organization_id = ? AND user_id = ? AND position <= ?
     ORDER BY position DESC LIMIT 1`,
    organizationId,
    userId,
    BigInt(position),
  );
  if (!last || last['doc'] === null) return undefined;
  if (last['position'] === last['whole']) return JSON.parse(String(last['doc'])) as User;
  const versions = rows.all(
    `SELECT doc FROM user_versions WHERE organization_id = ? AND user_id = ? AND position BETWEEN ? AND ?
     ORDER BY position`,
    organizationId,
    userId,
    last['whole']!,
    last['position']!,
  );
  const members = versions.map(({ doc }) => JSON.parse(String(doc)) as Part);
  return withoutNulls(Object.assign({}, ...members) as Part) as User;
}

/** What a version changed. Members that it did not touch are the same objects as before. */
function partBetween(before: User, after: User): Part {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]) as ReadonlySet<keyof User>;
  const changes = [...names].filter((name) => before[name] !== after[name]);
  return Object.fromEntries(changes.map((name) => [name, after[name] ?? null]));
}

function withoutNulls(members: Part): Part {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null));
}
