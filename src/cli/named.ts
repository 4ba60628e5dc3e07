import type { ActivityClient } from '../client/activity-client.js';
import { BadUsage } from './bad-usage.js';

interface Named {
  readonly id: string;
  readonly name: string;
}

/** Every element of a list that the server returns in pages. */
export async function wholeList<Element>(
  client: ActivityClient,
  query: string,
  member: string,
  idOf: (element: Element) => string,
  request: object = {},
): Promise<readonly Element[]> {
  const all: Element[] = [];
  for (let after: string | undefined; ;) {
    const answer = await client.query<Readonly<Record<string, unknown>>>(query, {
      ...request,
      paginationOptions: { limit: '100', ...(after === undefined ? {} : { after }) },
    });
    const elements = answer[member] as readonly Element[];
    all.push(...elements);
    const last = elements.at(-1);
    if (last === undefined || (elements.length < 100 && answer['hasMore'] !== true)) return all;
    after = idOf(last);
  }
}

/**
 * The ids of what the user names, by name or by id.
 * @throws {BadUsage} if nothing has that name, or several do
 */
export function idsOf(what: string, names: readonly string[], all: readonly Named[]): readonly string[] {
  return names.map((name) => {
    const byId = all.find(({ id }) => id === name.toLowerCase());
    if (byId) return byId.id;
    const found = all.filter((one) => one.name === name);
    const [only, ...others] = found.length > 0 ? found : all.filter((one) => sameText(one.name, name));
    if (!only)
      throw new BadUsage(
        `no ${what} is named \`${name}\`: see countersign ${what === 'policy' ? 'policies' : `${what}s`}`,
      );
    if (others.length > 0) {
      const ids = [only, ...others].map(({ id }) => id).join(', ');
      throw new BadUsage(`${others.length + 1} are named \`${name}\`: use one of the ids ${ids}`);
    }
    return only.id;
  });
}

const sameText = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase();
