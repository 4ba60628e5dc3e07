import type { EventReader } from './event-store.js';

/** The stream that names the root organization of a store; written once, at the first start. */
export const installationStream = 'installation-root';

/** Id of the root organization of a store; undefined if it has none yet. */
export async function rootOrganizationId(store: Pick<EventReader, 'read'>): Promise<string | undefined> {
  for await (const { data } of store.read(installationStream)) {
    return (data as { readonly organizationId: string }).organizationId;
  }
  return undefined;
}
