import type { ActivityClient } from '../client/activity-client.js';
import { BadUsage } from './bad-usage.js';

interface Named {
  readonly id: string;
  readonly name: string;
}

/** Pages of a list that are read: a server may always have one more. */
const mostPages = 1_000;

/** Every element of a list that the server returns in pages. @throws {Error} if the list does not end */
export async function wholeList<Element>(
  client: ActivityClient,
  query: string,
  member: string,
  idOf: (element: Element) => string,
  request: object = {},
): Promise<readonly Element[]> {
  const all: Element[] = [];
  for await (const page of pagesOf(client, query, member, idOf, request)) all.push(...page);
  return all;
}

/** The pages of a list, one after the other. @throws {Error} if the list does not end */
export async function* pagesOf<Element>(
  client: ActivityClient,
  query: string,
  member: string,
  idOf: (element: Element) => string,
  request: object = {},
): AsyncGenerator<readonly Element[]> {
  const seen = new Set<string>();
  for (let after: string | undefined; seen.size < mostPages;) {
    const answer = await client.query<Readonly<Record<string, unknown>>>(query, {
      ...request,
      paginationOptions: { limit: '100', ...(after === undefined ? {} : { after }) },
    });
    const elements = answer[member] as readonly Element[];
    yield elements;
    const last = elements.at(-1);
    if (last === undefined || (elements.length < 100 && answer['hasMore'] !== true)) return;
    after = idOf(last);
    if (seen.has(after)) throw new Error(`the pages of ${query} do not end: element ${after} comes twice`);
    seen.add(after);
  }
  throw new Error(`the pages of ${query} do not end: more than ${mostPages} were read`);
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
