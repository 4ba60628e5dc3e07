import { apiKeyPairFromPrivate, type StampingClient, type TestCoordinator } from '../../src/testing/index.js';
import { until } from './until.js';

/** What the link of an invitation says, and a client that stamps with its key. */
export interface InvitationLink {
  readonly url: string;
  readonly organizationId: string;
  readonly invitationId: string;
  readonly accessType: string;
  readonly client: StampingClient;
}

/** The link of the newest mail to an address, read from its text as a person would. */
export async function invitationLinkOf(coordinator: TestCoordinator, address: string): Promise<InvitationLink> {
  const find = () => coordinator.messages().findLast(({ to, text }) => to === address && text.includes('#'));
  await until(`the invitation of ${address} is sent`, () => find() !== undefined);
  const url = /^\S+#\S+$/m.exec(find()!.text)?.[0];
  if (url === undefined) throw new Error(`there is no link in: ${find()!.text}`);
  const parts = new URLSearchParams(new URL(url).hash.slice(1));
  const [organizationId, invitationId, accessType, privateKey] = [
    'organizationId',
    'invitationId',
    'accessType',
    'privateKey',
  ].map((name) => parts.get(name) ?? '') as [string, string, string, string];
  const client = coordinator.clientFor(apiKeyPairFromPrivate(privateKey), organizationId);
  return { url, organizationId, invitationId, accessType, client };
}
